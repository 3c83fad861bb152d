//! `larch compact`: merges files, so that they become fewer and fuller.

use crate::args::{Common, Inspect};
use crate::commands::stats::Stats;
use crate::database;
use crate::failure::Result;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::size;
use larch::Table;
use os::Machine;
use serde::Serialize;

/// The result for one table.
#[derive(Serialize)]
struct Report {
    table: String,
    files_before: u64,
    file_bytes_before: u64,
    files: u64,
    file_bytes: u64,
    /// The time of the whole run over all tables.
    seconds: f64,
}

/// Runs the command.
pub fn run(common: &Common, args: &Inspect) -> Result<()> {
    let database = database::open_to_write(&args.dir, common)?;
    let tables = database::tables(&database, &args.dir, args.table.as_deref())?;
    let stats = |tables: &[Table]| -> Result<Vec<Stats>> { tables.iter().map(Stats::of).collect() };
    let clock = Machine::real().clock;
    let (started, before) = (clock.now(), stats(&tables)?);
    let interrupt = Interrupt::caught();
    for table in &tables {
        let mut progress = Progress::bytes(format!("compacting {}", table.name()), 0);
        table.compact_with(progress.until(&interrupt))?;
    }
    let time = clock.now().saturating_sub(started);
    let after = stats(&tables)?;
    drop(tables);
    database.close()?;
    let mut output = Output::new();
    for (before, after) in before.into_iter().zip(after) {
        let report = Report {
            table: after.table,
            files_before: before.files,
            file_bytes_before: before.file_bytes,
            files: after.files,
            file_bytes: after.file_bytes,
            seconds: time.as_secs_f64(),
        };
        if args.json { output.json(&report)? } else { output.line(text(&report))? }
    }
    if !args.json {
        output.line(format!("took {}", size::seconds(time)))?;
    }
    output.finish()
}

fn text(report: &Report) -> String {
    format!(
        "{}: {} of {}, was {} of {}",
        report.table,
        size::of(report.files, "file"),
        size::bytes(report.file_bytes),
        size::count(report.files_before),
        size::bytes(report.file_bytes_before)
    )
}
