//! Statistics of a table: how much a range holds, how its rows are spread, and where to cut it. Estimates come from
//! memory and index nodes. Where only one file has keys, exact numbers need two of its data pages. Where several
//! files have keys, exact numbers need a merge.

pub mod estimate;
pub mod exact;
pub mod memory;
pub mod shape;
pub mod stretches;
pub mod types;
