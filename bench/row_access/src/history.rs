//! The table of runs. Each session has one row, which is written when the session begins and again when it ends.

use kit::time::{Timestamp, interval};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// A row of the table of runs. Its columns are the same as in ybio. The end is missing if the session still runs or
/// has died.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The job's number; 0 before the job has a number.
    pub job_id: i64,
    /// When the session began.
    pub start_time: Timestamp,
    /// When the session ended.
    pub end_time: Option<Timestamp>,
    /// The number of batches that the session read or updated.
    pub num_batches: Option<i64>,
    /// The number of rows that were read or updated.
    pub num_rows: Option<i64>,
    /// The percentage of rows that were to be updated.
    pub pct_update: i64,
    /// The greatest `scratch` that was seen.
    pub max_scratch: Option<i64>,
    /// Whether statements were prepared.
    pub prepared: bool,
    /// Whether only the index was read.
    pub index_only: bool,
    /// The number of rows among which ranges were drawn.
    pub tab_rows: i64,
    /// The number of rows that were accessed together.
    pub batch_size: i64,
    /// The table.
    pub table_name: String,
    /// The number of rows in the table, if the session counted them.
    pub table_rows: Option<i64>,
    /// The greatest `scratch` in the table.
    pub table_scratch: Option<i64>,
    /// A note.
    pub comments: Option<String>,
}

impl Job {
    /// Rows per second of a job that has ended.
    pub fn riops(&self) -> Option<i64> {
        let seconds = self.end_time?.since(self.start_time).as_secs_f64();
        (seconds > 0.0).then(|| (self.num_rows.unwrap_or(0) as f64 / seconds).round() as i64)
    }

    fn pct_scratch(&self) -> Option<i64> {
        let (seen, all) = (self.max_scratch?, self.table_scratch.filter(|all| *all != 0)?);
        Some((100.0 * seen as f64 / all as f64).round() as i64)
    }

    /// How much of the table was read: as a share (` 45 %`), or, above 100 %, as a number of times (` x2.5`). The
    /// text has at least six characters.
    fn coverage(&self) -> Option<String> {
        let (read, all) = (self.num_rows?, self.table_rows.filter(|all| *all > 0)?);
        let text = match read > all {
            true => format!("x{:.1}", read as f64 / all as f64),
            false => format!("{} %", 100 * read / all),
        };
        Some(format!("{text:>6}"))
    }
}

/// The side to which the values of a column are aligned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A column of the results: its name, its alignment, and what it shows of a job.
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

/// The name and the text of each column of a job.
pub fn cells(job: &Job) -> impl Iterator<Item = (&'static str, String)> {
    COLUMNS.iter().map(|(name, _, show)| (*name, show(job)))
}

/// The result of ybio's query for results, as psql prints it.
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
