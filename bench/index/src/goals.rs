//! The goals of the index, each beside its measurement. Each file here measures one subject and knows nothing of
//! the other subjects. Some facts hold on every machine, such as the pages that a read takes or the allocations of
//! a cached get. Such facts are no goals here, because tests of the engine check them.

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

use crate::{Result, Size};
use kit::Scratch;
use serde::Serialize;

/// A goal beside what was measured.
#[derive(Serialize)]
pub struct MeasuredGoal {
    /// What is measured.
    pub metric: &'static str,
    /// What it should be.
    pub goal: String,
    /// What it is.
    pub measured: String,
    /// Whether that is enough.
    #[serde(rename = "verdict", serialize_with = "serialize_verdict")]
    pub is_reached: bool,
    /// What one must know to read the figure.
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
pub type Goal = fn(&Scratch, Size) -> Result<Vec<MeasuredGoal>>;

/// A goal that can be asked for by name.
pub type Named = (&'static str, Goal);

/// In the order of the goals.
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

/// The goals with these `names`, in the order of all goals. If `names` is empty, all goals.
pub fn named(names: &[String]) -> Result<Vec<Named>> {
    if let Some(name) = names.iter().find(|name| ALL.iter().all(|(known, _)| known != name)) {
        return Err(format!("no goal is called {name}; there are {}", ALL.map(|(name, _)| name).join(", ")).into());
    }
    let is_asked = |(known, _): &Named| names.is_empty() || names.iter().any(|name| name == known);
    Ok(ALL.into_iter().filter(is_asked).collect())
}
