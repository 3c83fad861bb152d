//! `larch branch`, `larch branches` and `larch drop-database`: databases of one store that share files.

use crate::args::{Branch, DropDatabase, InspectBranches};
use crate::cloud;
use crate::failure::{CommandFailure, Result};
use crate::output::Output;
use crate::places;
use crate::size;
use crate::stored::{BranchFound, Branched};
use kit::time::Timestamp;
use os::Machine;
use serde::Serialize;
use std::path::Path;

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

/// The URL of a database in a store.
fn at_url(place: &Path) -> Result<&str> {
    places::url(place).ok_or_else(|| {
        CommandFailure::Usage(format!(
            "{} is a directory, and branches are of databases in a store, s3://bucket/prefix; in a directory \
             `larch checkpoint DIR DEST` makes a database that shares its files, and rm -r removes one",
            place.display()
        ))
    })
}

/// Runs `larch branch`.
pub fn branch(args: &Branch) -> Result<()> {
    let (from, to) = (at_url(&args.dir)?, at_url(&args.new)?);
    let clock = Machine::real().clock;
    let started = clock.now();
    let branched = cloud::branch(from, to)?;
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
pub fn list(args: &InspectBranches) -> Result<()> {
    let url = at_url(&args.dir)?;
    let mut output = Output::new();
    for BranchFound { place, since, files } in cloud::branches(url)? {
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
pub fn drop_database(args: &DropDatabase) -> Result<()> {
    let url = at_url(&args.dir)?;
    let (files, bytes) = cloud::drop_database(url)?;
    let mut output = Output::new();
    if args.json {
        output.json(&Dropped { files, bytes })?;
    } else {
        output.line(format!("{url} was dropped, with {} of {}", size::of(files, "file"), size::bytes(bytes)))?;
    }
    output.finish()
}
