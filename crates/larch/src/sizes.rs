//! Statistics of a table: how much a range holds, how it is spread, where to cut it. Estimates come from memory and
//! index nodes. Exact numbers need two data pages of a file where only this file has keys, and a merge where several
//! files have keys.

pub mod estimate;
pub mod exact;
pub mod memory;
pub mod shape;
pub mod stretches;
pub mod types;
