//! Statistics of a table: how much a range contains, how its rows are spread over the keys, and where to cut the
//! range. Estimates use only memory and index nodes. If only one file has keys in a part of the range, exact
//! numbers need two data pages of this file. If several files have keys there, exact numbers need a merge.

pub mod estimate;
pub mod exact;
pub mod memory;
pub mod shape;
pub mod stretches;
pub mod types;
