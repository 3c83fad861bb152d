//! SQL over a Larch database, whose tables become tables of Apache DataFusion.
//!
//! * [`Columns`] declares the columns of a table: where they lie in its rows, and their types.
//! * [`LarchTable`] is a table of the database at one version. A query reads only the keys that its filters allow
//!   and the column groups of its columns. The index gives the number of rows and the least and greatest key.
//! * [`LarchScan`] is the scan in a physical plan. A [`ScanSpec`] describes, as plain values, what it reads.
//! * [`BuiltFormat`] writes the rows of a query as files that a table can ingest.
//! * [`Minus`] and [`mark_minus`] let a session negate unsigned columns, which DataFusion refuses.
//! * [`MergeJoinFilters`] is a planning rule for sessions that use merge joins. It works around a fault of
//!   DataFusion.
//!
//! This crate uses only the public interface of the engine, and the engine does not know this crate.

mod columns;
mod elsewhere;
mod error;
mod factory;
mod fill;
mod key_set;
mod merge_join;
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
pub use elsewhere::Elsewhere;
pub use error::BadRow;
pub use factory::{FORMAT, LarchFactory, Provide};
pub use key_set::KeyRange;
pub use merge_join::MergeJoinFilters;
pub use minus::{Minus, mark_minus};
pub use scan::{LarchScan, ScanSpec};
pub use sink::BuiltFormat;
pub use table::LarchTable;
pub use write::Unwritable;
