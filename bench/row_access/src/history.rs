//! The table of runs: one row for each session, written when it begins and again when it ends.

use crate::time::{Timestamp, interval};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// A row of the table of runs. The columns are those of ybio; an end is missing while a session goes on or died.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its number; 0 before it has one.
    pub job_id: i64,
    /// When it began.
    pub start_time: Timestamp,
    /// When it ended.
    pub end_time: Option<Timestamp>,
    /// Batches that were accessed.
    pub num_batches: Option<i64>,
    /// Rows that were read or updated.
    pub num_rows: Option<i64>,
    /// This number of rows in a hundred was to be updated.
    pub pct_update: i64,
    /// The greatest `scratch` that was seen.
    pub max_scratch: Option<i64>,
    /// Statements were prepared.
    pub prepared: bool,
    /// The index alone was read.
    pub index_only: bool,
    /// Ranges were drawn among this number of rows.
    pub tab_rows: i64,
    /// Rows that were accessed together.
    pub batch_size: i64,
    /// The table.
    pub table_name: String,
    /// Rows that the table had, if they were counted.
    pub table_rows: Option<i64>,
    /// The greatest `scratch` that it had.
    pub table_scratch: Option<i64>,
    /// A note.
    pub comments: Option<String>,
}

impl Job {
    /// Rows a second, of a job that ended.
    pub fn riops(&self) -> Option<i64> {
        let seconds = self.end_time?.since(self.start_time).as_secs_f64();
        (seconds > 0.0).then(|| (self.num_rows.unwrap_or(0) as f64 / seconds).round() as i64)
    }

    fn pct_scratch(&self) -> Option<i64> {
        let (seen, all) = (self.max_scratch?, self.table_scratch.filter(|all| *all != 0)?);
        Some((100.0 * seen as f64 / all as f64).round() as i64)
    }

    /// How much of the table was read: `  45 %`, or how often, `  x2.5`. In six characters, as far as they are enough.
    fn coverage(&self) -> Option<String> {
        let (read, all) = (self.num_rows?, self.table_rows.filter(|all| *all > 0)?);
        let text = match read > all {
            true => format!("x{:.1}", read as f64 / all as f64),
            false => format!("{} %", 100 * read / all),
        };
        Some(format!("{text:>6}"))
    }
}

/// How the values of a column stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// The columns of the results, with what they show of a job.
type Column = (&'static str, Side, fn(&Job) -> String);

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn letter(truth: bool) -> String {
    if truth { "t" } else { "f" }.to_owned()
}

const COLUMNS: [Column; 19] = [
    ("duration", Side::Left, |job| shown(job.end_time.map(|end| interval(end.since(job.start_time))))),
    ("riops", Side::Right, |job| shown(job.riops())),
    ("pct_scratch", Side::Right, |job| shown(job.pct_scratch())),
    ("coverage", Side::Left, |job| shown(job.coverage())),
    ("job_id", Side::Right, |job| job.job_id.to_string()),
    ("start_time", Side::Left, |job| job.start_time.text()),
    ("end_time", Side::Left, |job| shown(job.end_time.map(Timestamp::text))),
    ("num_batches", Side::Right, |job| shown(job.num_batches)),
    ("num_rows", Side::Right, |job| shown(job.num_rows)),
    ("pct_update", Side::Right, |job| job.pct_update.to_string()),
    ("max_scratch", Side::Right, |job| shown(job.max_scratch)),
    ("prepared", Side::Left, |job| letter(job.prepared)),
    ("index_only", Side::Left, |job| letter(job.index_only)),
    ("tab_rows", Side::Right, |job| job.tab_rows.to_string()),
    ("batch_size", Side::Right, |job| job.batch_size.to_string()),
    ("table_name", Side::Left, |job| job.table_name.clone()),
    ("table_rows", Side::Right, |job| shown(job.table_rows)),
    ("table_scratch", Side::Right, |job| shown(job.table_scratch)),
    ("comments", Side::Left, |job| shown(job.comments.clone())),
];

/// The table that ybio's query of results gives, as psql prints it.
pub fn table(jobs: &[Job]) -> String {
    let cells: Vec<Vec<String>> =
        jobs.iter().map(|job| COLUMNS.iter().map(|(_, _, show)| show(job)).collect()).collect();
    let width = |column: usize| {
        let longest = cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        longest.max(COLUMNS[column].0.len())
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let line = |cells: Vec<String>| format!("{}\n", format!(" {} ", cells.join(" | ")).trim_end());
    let heads = COLUMNS.iter().zip(&widths).map(|((name, ..), width)| format!("{name:^width$}"));
    let mut text = line(heads.collect());
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    text.push_str(&format!("{}\n", rules.join("+")));
    for row in &cells {
        let padded = COLUMNS.iter().zip(row).zip(&widths).map(|(((_, side, _), cell), width)| match side {
            Side::Left => format!("{cell:<width$}"),
            Side::Right => format!("{cell:>width$}"),
        });
        text.push_str(&line(padded.collect()));
    }
    text.push_str(&format!("({} row{})\n", jobs.len(), if jobs.len() == 1 { "" } else { "s" }));
    text
}
