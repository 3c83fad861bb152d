//! `larch branch`, `larch branches` and `larch drop-database`: databases of one store that share files. The binary
//! supplies the code that talks to stores; the binary of the default workspace knows no store.

use crate::args::{Branch, DropDatabase, InspectBranches};
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::places::no_stores;
use crate::size;
use os::Machine;
use row_access::time::Timestamp;
use serde::Serialize;
use std::io;
use std::path::Path;
use std::time::Duration;

/// What a branch shares with its origin, and what was copied for it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Branched {
    /// The number of SSTs that the branch shares with its origin.
    pub files: u64,
    /// The number of bytes in these SSTs.
    pub bytes: u64,
    /// The number of bytes in the copied manifest and logs.
    pub copied_bytes: u64,
}

/// A branch that exists or is being made.
#[derive(Clone, Debug)]
pub struct BranchFound {
    /// The place of the branch in the store.
    pub place: String,
    /// When the branch was asked for, as the time since the start of 1970.
    pub since: Duration,
    /// How many files of its origin the branch needs, and the number of bytes in them; `None` if the branch is
    /// still being made, or if the process that made it was interrupted.
    pub files: Option<(u64, u64)>,
}

/// The functions for databases in a store. A database is named by its URL.
#[derive(Clone, Copy, Debug)]
pub struct Branching {
    /// Makes the second database as a branch of the first.
    pub branch: fn(&str, &str) -> io::Result<Branched>,
    /// Lists the branches of a database that may need its files.
    pub branches: fn(&str) -> io::Result<Vec<BranchFound>>,
    /// Removes a database. Returns the number and the total size of the SSTs that only this database had.
    pub drop_database: fn(&str) -> io::Result<(u64, u64)>,
}

/// The result of the command, and the time that it took.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    branched: Branched,
    seconds: f64,
}

#[derive(Serialize)]
struct Listed {
    branch: String,
    /// The time in UTC.
    since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct Dropped {
    files: u64,
    bytes: u64,
}

/// The URL of a database, and the functions for its store.
fn at_url(url: &Path, branching: Option<Branching>) -> Result<(&str, Branching)> {
    let text = url.to_str().filter(|text| text.contains("://"));
    let Some(text) = text else {
        let why = format!(
            "{} is a directory, and branches are of databases in a store, s3://bucket/prefix; in a directory \
             `larch checkpoint DIR DEST` makes a database that shares its files, and rm -r removes one",
            url.display()
        );
        return Err(Failure::Usage(why));
    };
    Ok((text, branching.ok_or_else(no_stores)?))
}

fn failed(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::NotFound(error.to_string()),
        io::ErrorKind::InvalidInput => Failure::Usage(error.to_string()),
        _ => Failure::Input(error.to_string()),
    }
}

/// Runs `larch branch`.
pub fn branch(args: &Branch, branching: Option<Branching>) -> Result<()> {
    let (from, branching) = at_url(&args.dir, branching)?;
    let (to, _) = at_url(&args.new, Some(branching))?;
    let clock = Machine::real().clock;
    let started = clock.now();
    let branched = (branching.branch)(from, to).map_err(failed)?;
    let time = clock.now().saturating_sub(started);
    let mut output = Output::new();
    if args.json {
        output.json(&Report { branched, seconds: time.as_secs_f64() })?;
        return output.finish();
    }
    let Branched { files, bytes, copied_bytes } = branched;
    output.line(format!(
        "{to} shares {} of {} with {from}, {} of manifest and logs copied, in {}",
        size::of(files, "file"),
        size::bytes(bytes),
        size::bytes(copied_bytes),
        size::seconds(time)
    ))?;
    output.finish()
}

/// Runs `larch branches`.
pub fn list(args: &InspectBranches, branching: Option<Branching>) -> Result<()> {
    let (url, branching) = at_url(&args.dir, branching)?;
    let mut output = Output::new();
    for BranchFound { place, since, files } in (branching.branches)(url).map_err(failed)? {
        let since = Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)).text();
        if args.json {
            let (files, bytes) = files.unzip();
            output.json(&Listed { branch: place, since, files, bytes })?;
            continue;
        }
        output.line(match files {
            Some((files, bytes)) => {
                format!("{place}, {since} UTC: needs {} of {}", size::of(files, "file"), size::bytes(bytes))
            }
            None => format!("{place}, {since} UTC: is being made, or was not finished; all files are kept for it"),
        })?;
    }
    output.finish()
}

/// Runs `larch drop-database`.
pub fn drop_database(args: &DropDatabase, branching: Option<Branching>) -> Result<()> {
    let (url, branching) = at_url(&args.dir, branching)?;
    let (files, bytes) = (branching.drop_database)(url).map_err(failed)?;
    let mut output = Output::new();
    if args.json {
        output.json(&Dropped { files, bytes })?;
    } else {
        output.line(format!("{url} was dropped, with {} of {}", size::of(files, "file"), size::bytes(bytes)))?;
    }
    output.finish()
}
