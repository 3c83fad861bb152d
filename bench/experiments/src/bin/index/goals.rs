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
use experiments::outcome::Goal;
use kit::Scratch;

/// Measures the goals of one subject.
pub type Measure = fn(&Scratch, Extent) -> Result<Vec<Goal>>;

/// A subject's name on the command line, and its function.
pub type Named = (&'static str, Measure);

/// All subjects, in the order of the report.
pub const ALL: [Named; 12] = [
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
