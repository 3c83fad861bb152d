//! The goals of the index, each beside what is measured of it. A file here measures one subject and knows nothing of the
//! others; what the engine cannot do yet is said to be so, and is no failure.

mod allocations;
mod cold_scan;
mod erased_rows;
mod eviction;
mod index_bytes;
mod level;
mod not_yet;
mod opening;
mod page_search;
mod point_reads;
mod precharged;
mod readers;
mod small_cache;

use crate::workplace::Workplace;
use crate::{Result, Size};
use serde::Serialize;

/// A goal beside what was measured.
#[derive(Serialize)]
pub struct Line {
    /// What is measured.
    pub metric: &'static str,
    /// What it should be.
    pub goal: String,
    /// What it is.
    pub measured: String,
    /// Whether that is enough.
    pub verdict: Verdict,
    /// What one must know to read the figure.
    pub notes: Vec<String>,
}

/// Whether a goal is reached.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is.
    Ok,
    /// It is not.
    FallsShort,
    /// The engine cannot do it yet.
    NotYet,
}

impl Verdict {
    /// As it stands in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::FallsShort => "FALLS SHORT",
            Self::NotYet => "not yet",
        }
    }
}

impl Line {
    fn new(metric: &'static str, goal: impl Into<String>, measured: impl Into<String>, is_reached: bool) -> Self {
        let verdict = if is_reached { Verdict::Ok } else { Verdict::FallsShort };
        Self { metric, goal: goal.into(), measured: measured.into(), verdict, notes: Vec::new() }
    }

    fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// Measures one subject.
pub type Goal = fn(&Workplace, Size) -> Result<Vec<Line>>;

/// In the order of the goals.
pub const ALL: [Goal; 15] = [
    point_reads::measure,
    index_bytes::measure,
    opening::resident_memory,
    level::measure,
    page_search::measure,
    allocations::measure,
    opening::measure,
    not_yet::statistics,
    precharged::measure,
    cold_scan::measure,
    readers::measure,
    not_yet::sharing,
    eviction::measure,
    small_cache::measure,
    erased_rows::measure,
];
