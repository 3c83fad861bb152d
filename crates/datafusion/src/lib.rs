//! SQL over a Larch database, whose tables become tables of Apache DataFusion.
//!
//! * [`Columns`] says which columns the rows of a table have, where these columns lie in the rows, and what types
//!   they have.
//! * [`LarchTable`] is a table of the database as it is at one version. A query reads only the keys that its
//!   filters allow, and only the column groups that contain its columns. The number of rows, the least key and the
//!   greatest key are found through the index.
//! * [`LarchScan`] is the scan in a physical plan. A [`ScanSpec`] describes as a plain value what the scan reads.
//! * [`BuiltFormat`] writes the rows of a query as files that a table can take in.
//! * [`MergeJoinFilters`] is a planning rule for sessions that use merge joins. It works around a fault of
//!   DataFusion.
//!
//! This crate uses only the public interface of the engine, and the engine does not know this crate.

mod columns;
#[cfg(feature = "cli")]
pub mod command;
mod error;
mod factory;
mod fill;
mod key_set;
mod merge_join;
#[cfg(feature = "cli")]
mod minus;
mod narrow;
mod outline;
mod read;
mod scan;
mod sink;
mod table;
mod table_source;
mod write;

pub use columns::{BadColumns, Columns, Field, Form, Source, Step};
pub use error::BadRow;
pub use factory::{FORMAT, LarchFactory, Provide};
pub use key_set::KeyRange;
pub use merge_join::MergeJoinFilters;
pub use scan::{LarchScan, ScanSpec};
pub use sink::BuiltFormat;
pub use table::LarchTable;
pub use write::Unwritable;
