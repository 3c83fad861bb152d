//! `larch checkpoint`: makes a copy that shares files with its origin.

use crate::args::{Checkpoint, Common};
use crate::database;
use crate::failure::Result;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::size;
use os::Machine;
use serde::Serialize;

/// What the copy consists of.
#[derive(Serialize)]
struct Report {
    version: u64,
    files: u64,
    bytes: u64,
    copied_bytes: u64,
    rewritten_bytes: u64,
    left_out_indexes: u64,
    seconds: f64,
}

/// Runs the command.
pub fn run(common: &Common, args: &Checkpoint) -> Result<()> {
    let database = database::open_to_copy(&args.dir, common)?;
    let clock = Machine::real().clock;
    let started = clock.now();
    let mut progress = Progress::bytes("copying", 0);
    let interrupt = Interrupt::caught();
    let made = match &args.at {
        None => database.checkpoint_with(&args.dest, progress.until(&interrupt)),
        Some(when) => {
            database::as_of(when, |when| database.checkpoint_at_with(&args.dest, when, progress.until(&interrupt)))
        }
    };
    drop(progress);
    let (made, time) = (made?, clock.now().saturating_sub(started));
    let report = Report {
        version: made.version.0,
        files: made.files,
        bytes: made.bytes,
        copied_bytes: made.copied_bytes,
        rewritten_bytes: made.rewritten_bytes,
        left_out_indexes: made.left_out_indexes,
        seconds: time.as_secs_f64(),
    };
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
    } else {
        output.line(format!(
            "{} has version {}: {} of {}, {} of it copied, in {}",
            args.dest.display(),
            size::count(report.version),
            size::of(report.files, "file"),
            size::bytes(report.bytes),
            size::bytes(report.copied_bytes),
            size::seconds(time)
        ))?;
        if args.at.is_some() {
            output.line(format!(
                "{} written again, because files have newer rows, too; {} made later left out",
                size::bytes(report.rewritten_bytes),
                size::indexes(report.left_out_indexes)
            ))?;
        }
    }
    output.finish()
}
