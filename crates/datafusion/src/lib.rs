//! SQL over a Larch database: its tables as tables of Apache DataFusion.
//!
//! * [`Columns`] says which columns the rows of a table have, where they lie and what types they have.
//! * [`LarchTable`] is a table at one version. A query reads only the keys that its filters leave, and only the
//!   column groups of its columns. Counts, and the least and the greatest key, come from the index.
//! * [`LarchScan`] is the scan in a physical plan. What it reads is a plain value, a [`ScanSpec`].
//! * [`BuiltFormat`] writes the rows of a query as files that a table takes in.
//! * [`MergeJoinFilters`] is a rule for sessions that plan merge joins, which works around a fault of DataFusion.
//!
//! It knows the engine by its public interface alone, and the engine does not know it.

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
