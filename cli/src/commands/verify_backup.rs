//! `larch verify-backup`: checks whether all backups in a directory or in a store can be restored.

use super::backup::backups_at;
use crate::args::InspectBackups;
use crate::failure::{CommandFailure, Result};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::size;
use os::Machine;
use serde::Serialize;

/// What was read, and the problems that were found.
#[derive(Serialize)]
struct Report {
    backups: u64,
    files: u64,
    bytes: u64,
    problems: Vec<String>,
    /// The numbers of backups that were begun but not finished.
    unfinished: Vec<u64>,
    seconds: f64,
}

/// Runs the command.
pub fn run(args: &InspectBackups) -> Result<()> {
    let clock = Machine::real().clock;
    let started = clock.now();
    let mut progress = Progress::bytes("verifying", 0);
    let found = backups_at(&args.dest)?.verify(progress.until(&Interrupt::caught()));
    drop(progress);
    let (found, time) = (found?, clock.now().saturating_sub(started));
    let report = Report {
        backups: found.backups,
        files: found.files,
        bytes: found.bytes,
        problems: found.problems.iter().map(ToString::to_string).collect(),
        unfinished: found.unfinished,
        seconds: time.as_secs_f64(),
    };
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
    } else {
        for problem in &report.problems {
            output.line(problem)?;
        }
        for number in &report.unfinished {
            output.line(format!("backup {number} was not finished; the next backup removes its files"))?;
        }
        let state = size::damage(report.problems.len());
        output.line(format!(
            "{state} in {}, {} ({}), read in {}",
            size::of(report.backups, "backup"),
            size::of(report.files, "file"),
            size::bytes(report.bytes),
            size::seconds(time)
        ))?;
    }
    output.finish()?;
    let dest = args.dest.display();
    if report.backups == 0 {
        return Err(CommandFailure::NotFound(format!("there is no backup in {dest}; check the name")));
    }
    if report.problems.is_empty() {
        return Ok(());
    }
    Err(CommandFailure::Damaged(format!(
        "backups in {dest} are damaged; bring what is named back from a copy of them, or remove the damaged files and make a \
         new backup, which copies them again. The older ones stay damaged until larch backup --keep removes them"
    )))
}
