//! `larch check`: reads everything and reports all damage.

use crate::args::{Common, Inspect};
use crate::colours::{self, BAD, GOOD};
use crate::database;
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
    files: u64,
    pages: u64,
    rows: u64,
    bytes: u64,
    problems: Vec<String>,
    seconds: f64,
}

/// Runs the command. Opening the database reads the manifest and the log, so a check of a single table covers
/// these, too, and leaves out only the files of other tables.
pub fn run(common: &Common, args: &Inspect) -> Result<()> {
    let database = database::open(&args.dir, common).map_err(damage)?;
    let table = args.table.as_ref().map(|name| database::table(&database, &args.dir, name)).transpose()?;
    let clock = Machine::real().clock;
    let started = clock.now();
    let mut progress = Progress::bytes("checking", 0);
    let interrupt = Interrupt::caught();
    let found = match &table {
        Some(table) => table.check(progress.until(&interrupt)),
        None => database.check(progress.until(&interrupt)),
    };
    drop(progress);
    let found = found.map_err(|error| damage(error.into()))?;
    let time = clock.now().saturating_sub(started);
    let report = Report {
        files: found.files,
        pages: found.pages,
        rows: found.rows,
        bytes: found.bytes,
        problems: found.problems.iter().map(ToString::to_string).collect(),
        seconds: time.as_secs_f64(),
    };
    let mut output = Output::new();
    if args.json {
        output.json(&report)?;
    } else {
        for problem in &report.problems {
            output.line(problem)?;
        }
        let style = if report.problems.is_empty() { GOOD } else { BAD };
        let state = colours::styled(style, &size::damage(report.problems.len()));
        output.line(format!(
            "{state} in {}, {}, {} ({}), read in {}",
            size::of(report.files, "file"),
            size::of(report.pages, "page"),
            size::of(report.rows, "version"),
            size::bytes(report.bytes),
            size::seconds(time)
        ))?;
    }
    output.finish()?;
    if report.problems.is_empty() {
        return Ok(());
    }
    let dir = args.dir.display();
    Err(CommandFailure::Damaged(format!("{dir} is damaged; restore what is named from a backup, or import it again")))
}

/// Damage that stops the check is reported like the damage that it finds.
fn damage(failure: CommandFailure) -> CommandFailure {
    match failure {
        CommandFailure::Engine(error) if error.is_corruption() => CommandFailure::Damaged(error.to_string()),
        other => other,
    }
}
