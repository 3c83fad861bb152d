//! Reading: a view of memory and files at one moment, and what it says about a key or a range at a version.

pub mod again;
mod cover;
mod found;
pub mod level;
pub mod merge;
pub mod multi;
pub mod point;
pub mod precharge;
pub mod range;
mod scan;
mod tried;
mod value;
pub mod view;
mod wanted;

pub use found::Found;
pub use precharge::Prefetched;
pub use range::{PartRange, Range, RowRef};
pub use scan::{PartScan, Scan};
pub use tried::Tried;
pub use value::{Key, Parts, Value};
pub use view::{MemSet, View};
pub use wanted::Wanted;

#[cfg(test)]
mod tests;
