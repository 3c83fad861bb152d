//! `larch restore`: makes a database from a backup.

use super::backup::backups_at;
use crate::args::Restore;
use crate::failure::Result;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::places;
use crate::progress::Progress;
use crate::size;
use crate::stored::Stored;
use os::Machine;
use serde::Serialize;

/// What was restored.
#[derive(Serialize)]
struct Report {
    backup: u64,
    version: u64,
    files: u64,
    bytes: u64,
    seconds: f64,
}

/// Runs the command.
pub fn run(args: &Restore) -> Result<()> {
    let clock = Machine::real().clock;
    let started = clock.now();
    let mut progress = Progress::bytes("restoring", 0);
    let backups = backups_at(&args.dest)?;
    let machine = places::machine(&args.dir, Stored::Database)?.unwrap_or_else(Machine::real);
    let restored = backups.restore_on(&machine, args.backup, &args.dir, progress.until(&Interrupt::caught()));
    drop(progress);
    let (restored, time) = (restored?, clock.now().saturating_sub(started));
    let report = Report {
        backup: restored.number,
        version: restored.version.0,
        files: restored.files,
        bytes: restored.bytes,
        seconds: time.as_secs_f64(),
    };
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
    } else {
        output.line(format!(
            "{} is backup {}, version {}: {} of {}, in {}",
            args.dir.display(),
            report.backup,
            size::count(report.version),
            size::of(report.files, "file"),
            size::bytes(report.bytes),
            size::seconds(time)
        ))?;
    }
    output.finish()
}
