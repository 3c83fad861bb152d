//! Reading: a view of memory and files at one moment, and what it says about a key or a range at a version.

pub mod level;
pub mod merge;
pub mod point;
pub mod precharge;
pub mod range;
pub mod value;
pub mod view;

pub use precharge::Prefetched;
pub use range::{Range, RowRef};
pub use value::{Key, Value};
pub use view::{MemSet, View};
