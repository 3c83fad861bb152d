//! `larch repair`: copies everything that can be read of a damaged database to a new database.

use crate::args::Repair;
use crate::failure::{CommandFailure, Result};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::size;
use larch::repair::{Loss, RepairReport};
use os::Machine;
use serde::Serialize;

/// What was saved, and what was lost.
#[derive(Serialize)]
struct Report<'r> {
    tables: u64,
    rows: u64,
    files: u64,
    commits: u64,
    lost: Vec<Lost<'r>>,
    guesses: &'r [String],
    seconds: f64,
}

/// Something that was lost.
#[derive(Serialize)]
struct Lost<'r> {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<&'r str>,
    /// The bounds of the lost keys, escaped as in Rust's byte strings.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    rows: u64,
    why: &'r str,
}

impl<'r> From<&'r Loss> for Lost<'r> {
    fn from(loss: &'r Loss) -> Self {
        let keys = loss.keys.as_ref();
        Self {
            file: loss.file.display().to_string(),
            table: loss.table.as_deref(),
            from: keys.map(|(low, _)| low.escape_ascii().to_string()),
            to: keys.and_then(|(_, high)| Some(high.as_ref()?.escape_ascii().to_string())),
            rows: loss.rows,
            why: &loss.why,
        }
    }
}

/// Runs the command.
pub fn run(args: &Repair) -> Result<()> {
    let clock = Machine::real().clock;
    let started = clock.now();
    let mut progress = Progress::endless("rows saved");
    let report = larch::repair::repair(&args.dir, &args.new, progress.until(&Interrupt::caught()))?;
    drop(progress);
    let time = clock.now().saturating_sub(started);
    let mut output = Output::new();
    if args.json {
        let RepairReport { tables, rows, files, commits, .. } = report;
        let lost = report.lost.iter().map(Lost::from).collect();
        let (guesses, seconds) = (&report.guesses[..], time.as_secs_f64());
        output.json(&Report { tables, rows, files, commits, lost, guesses, seconds })?;
    } else {
        for guess in &report.guesses {
            output.line(guess)?;
        }
        for loss in &report.lost {
            output.line(format!("lost: {loss}"))?;
        }
        output.line(format!(
            "saved {} of {} from {} and {}, in {}",
            size::of(report.rows, "row"),
            size::of(report.tables, "table"),
            size::of(report.files, "file"),
            size::of(report.commits, "commit"),
            size::seconds(time)
        ))?;
    }
    output.finish()?;
    if report.lost.is_empty() {
        return Ok(());
    }
    let (rows, new) = (report.lost.iter().map(|loss| loss.rows).sum(), args.new.display());
    Err(CommandFailure::Lost(format!(
        "the repair could not read up to {}; {new} has all others",
        size::of(rows, "row")
    )))
}
