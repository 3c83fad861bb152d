//! Indexes of tables. An index finds rows by something other than their key.
//!
//! [`Table::create_index`](crate::Table::create_index) makes an [`Index`](crate::Index), which every commit keeps up
//! to date. The engine does not know the types of values: the program registers a function that computes the index
//! keys of a row, see [`Builder::extractors`](crate::Builder::extractors).
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! use larch::index::{IndexKeys, IndexOptions};
//!
//! /// Makes one key of each row: its value.
//! struct ByValue;
//!
//! impl IndexKeys for ByValue {
//!     fn groups(&self) -> &[usize] {
//!         &[0]
//!     }
//!
//!     fn index_keys<'r>(
//!         &self,
//!         _key: &'r [u8],
//!         part: &dyn Fn(usize) -> Option<&'r [u8]>,
//!         emit: &mut dyn FnMut(&[u8]),
//!     ) -> Result<(), String> {
//!         emit(part(0).ok_or("the row has no value")?);
//!         Ok(())
//!     }
//! }
//!
//! let extractors = |_: &[u8]| Ok(Box::new(ByValue) as Box<dyn IndexKeys>);
//! let db = larch::Database::builder(&directory).extractors(extractors).open()?;
//! let fruit = db.table("fruit")?;
//! let by_colour = fruit.create_index("by_colour", b"value", &IndexOptions::default(), |_| {})?;
//! fruit.insert("apple", "red")?;
//! assert_eq!(&*by_colour.get_by("red")?[0].0, b"apple");
//! # Ok(())
//! # }
//! ```

pub use crate::base::extractors::IndexKeys;
pub use crate::handle::indexes::IndexOptions;
pub use crate::indexes::check::{IndexCheck, IndexProblem};
pub use crate::indexes::entry::IndexEntry;
pub use crate::indexes::read::{Entries, IndexRow, RangeBy, ScanBy};
