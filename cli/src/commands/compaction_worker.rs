//! `larch compaction-worker`: does compactions for the process that writes to a database, and prints a line for
//! each compaction.

use crate::args::{self, Common};
use crate::failure::{CommandFailure, Result};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::size;
use larch::worker::CompactedJob;
use serde::Serialize;
use std::ops::ControlFlow;

/// The compaction that was done.
#[derive(Serialize)]
struct Done<'j> {
    table: &'j str,
    input_files: u64,
    input_bytes: u64,
    output_files: u64,
    output_bytes: u64,
    seconds: f64,
    /// Why the compaction failed, if it did.
    error: Option<String>,
}

/// Runs the command.
pub fn run(common: &Common, args: &args::CompactionWorker) -> Result<()> {
    let interrupt = Interrupt::caught();
    let mut worker = common.builder(&args.dir)?.compaction_worker()?;
    let (mut output, mut jobs, mut failure) = (Output::new(), 0, None);
    if args.jobs == Some(0) {
        return output.finish();
    }
    worker.run(|job| {
        let Some(job) = job else { return interrupt.goes_on() };
        let done = Done::of(job);
        let json = || serde_json::to_string(&done).expect("it has no maps");
        let line = if args.json { json() } else { done.to_string() };
        if let Err(error) = output.line(line).and_then(|()| output.flush()) {
            failure = Some(error);
            return ControlFlow::Break(());
        }
        jobs += 1;
        if args.jobs.is_some_and(|most| jobs >= most) { ControlFlow::Break(()) } else { interrupt.goes_on() }
    })?;
    failure.map_or(Ok(()), |failure: CommandFailure| Err(failure))?;
    output.finish()
}

impl<'j> Done<'j> {
    fn of(job: &'j CompactedJob) -> Self {
        Self {
            table: &job.table,
            input_files: job.input_files,
            input_bytes: job.input_bytes,
            output_files: job.output_files,
            output_bytes: job.output_bytes,
            seconds: job.time.as_secs_f64(),
            error: job.error.as_ref().map(ToString::to_string),
        }
    }
}

impl std::fmt::Display for Done<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = |files, bytes| format!("{} of {}", size::of(files, "file"), size::bytes(bytes));
        let (input, output) = (of(self.input_files, self.input_bytes), of(self.output_files, self.output_bytes));
        write!(f, "{}: {input} to {output} in {:.1} s", self.table, self.seconds)?;
        self.error.as_ref().map_or(Ok(()), |error| write!(f, "; failed: {error}"))
    }
}
