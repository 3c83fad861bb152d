//! Statistics of a table: how much a range contains, how its rows are spread over the keys, and where to cut the
//! range. Estimates use only memory and index nodes. For a part of the range in which only one file has keys, an
//! exact number costs two data pages of this file. If several files have keys there, an exact number costs a merge
//! of their keys.

pub mod estimate;
pub mod exact;
pub mod memory;
pub mod shape;
pub mod stretches;
pub mod types;
