//! Statistics of a table: how much a range contains, how its rows are spread over the keys, and where to split it.
//! Estimates use only memory and index nodes. Exact numbers also read data pages: where only one file has keys, two
//! pages of this file; where several files have keys, a merge of their keys.

pub mod estimate;
pub mod exact;
pub mod memory;
pub mod shape;
pub mod stretches;
pub mod types;
