//! Filters, which judge rows while compactions read them, see [`Table::filter`](crate::Table::filter).

pub use crate::base::filter::{CompactionFilter, FilterCounts, JudgedRow, Verdict};
pub use crate::handle::filtering::Filtering;
