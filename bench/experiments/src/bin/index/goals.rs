//! The goals of the index, each with its measurement. Each file here measures one subject. What is the same on every
//! machine, such as the pages that a read needs or the allocations of a cached get, is checked by tests of the
//! engine instead.

mod cold_scan;
mod erased_rows;
mod eviction;
mod filters;
mod index_bytes;
mod level;
mod opening;
mod page_search;
mod range_erases;
mod slices;
mod small_cache;

use crate::{Extent, Result};
use kit::Scratch;
use serde::Serialize;

/// A goal and what was measured.
#[derive(Serialize)]
pub struct MeasuredGoal {
    /// What is measured.
    pub metric: &'static str,
    /// The target.
    pub goal: String,
    /// The measurement.
    pub measured: String,
    /// Whether the measurement reaches the target.
    #[serde(rename = "verdict", serialize_with = "serialize_verdict")]
    pub is_reached: bool,
    /// Notes that explain the figure.
    pub notes: Vec<String>,
}

impl MeasuredGoal {
    fn new(metric: &'static str, goal: impl Into<String>, measured: impl Into<String>, is_reached: bool) -> Self {
        Self { metric, goal: goal.into(), measured: measured.into(), is_reached, notes: Vec::new() }
    }

    fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

fn serialize_verdict<S: serde::Serializer>(is_reached: &bool, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_str(if *is_reached { "ok" } else { "falls_short" })
}

/// Measures one subject.
pub type Goal = fn(&Scratch, Extent) -> Result<Vec<MeasuredGoal>>;

/// A goal's name on the command line, and its function.
pub type Named = (&'static str, Goal);

/// All goals, in the order of the report.
const ALL: [Named; 12] = [
    ("index_bytes", index_bytes::measure),
    ("resident_memory", opening::resident_memory),
    ("level", level::measure),
    ("page_search", page_search::measure),
    ("opening", opening::measure),
    ("cold_scan", cold_scan::measure),
    ("eviction", eviction::measure),
    ("small_cache", small_cache::measure),
    ("erased_rows", erased_rows::measure),
    ("slices", slices::measure),
    ("range_erases", range_erases::measure),
    ("filters", filters::measure),
];

/// The goals called `names`, or all if `names` is empty, in the order of the report.
pub fn named(names: &[String]) -> Result<Vec<Named>> {
    if let Some(name) = names.iter().find(|name| ALL.iter().all(|(known, _)| known != name)) {
        return Err(format!("no goal is called {name}; there are {}", ALL.map(|(name, _)| name).join(", ")).into());
    }
    let is_asked = |(known, _): &Named| names.is_empty() || names.iter().any(|name| name == known);
    Ok(ALL.into_iter().filter(is_asked).collect())
}
