//! `larch keep` gives a name to the rows as they are now, `larch kept` lists the names, and `larch forget` takes one
//! away.

use crate::args::{Common, InspectKept, Keep};
use crate::database;
use crate::escape::shown_name;
use crate::failure::{CommandFailure, Result};
use crate::output::Output;
use crate::size;
use kit::time::Timestamp;
use larch::past::Kept;
use serde::Serialize;

/// A version that is kept.
#[derive(Serialize)]
struct Listed<'k> {
    name: &'k str,
    version: u64,
    /// When it got its name, in UTC.
    since: String,
}

impl<'k> Listed<'k> {
    fn of(kept: &'k Kept) -> Self {
        let since = Timestamp(i64::try_from(kept.since.as_micros()).unwrap_or(i64::MAX)).text();
        Self { name: &kept.name, version: kept.version.0, since }
    }

    fn text(&self) -> String {
        format!("{}: version {}, since {} UTC", shown_name(self.name), size::count(self.version), self.since)
    }
}

/// Runs `larch keep`.
pub fn keep(common: &Common, args: &Keep) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let kept = database.keep(&args.name)?;
    database.close()?;
    let mut output = Output::new();
    output.line(Listed::of(&kept).text())?;
    output.finish()
}

/// Runs `larch kept`.
pub fn list(common: &Common, args: &InspectKept) -> Result<()> {
    let database = database::open(&args.dir, common)?;
    let mut output = Output::new();
    for kept in database.kept() {
        let listed = Listed::of(&kept);
        if args.json { output.json(&listed)? } else { output.line(listed.text())? }
    }
    output.finish()
}

/// Runs `larch forget`.
pub fn forget(common: &Common, args: &Keep) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let is_forgotten = database.forget(&args.name)?.is_some();
    let names: Vec<String> = database.kept().into_iter().map(|kept| kept.name).collect();
    database.close()?;
    if is_forgotten {
        return Ok(());
    }
    let others = if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
    Err(CommandFailure::NotFound(format!("{} keeps no version as {}; {others}", args.dir.display(), args.name)))
}
