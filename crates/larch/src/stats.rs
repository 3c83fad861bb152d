//! Statistics of a table: how much a range holds, how it is spread, where to cut it. From memory and index nodes; what is
//! exact reads two data pages a file where one alone has keys, and merges where several have.

pub mod estimate;
pub mod exact;
pub mod memory;
pub mod shape;
pub mod stretches;
pub mod types;
