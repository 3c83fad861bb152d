//! The tables of a Larch database on Apache DataFusion Ballista: a scheduler divides a query into tasks, and
//! executors, each of which opens the database itself, do these tasks. A task is one or more partitions in one stage
//! of a query (decision 75).
//!
//! ```text
//! client       statements ─▶ logical plan        its tables: place, table, columns, version      `table`
//! scheduler    logical plan ─▶ stages of tasks   a scan of a table: ranges of keys, by partition `scan`
//! executor     a task ─▶ rows                    the ranges of the task alone
//! ```
//!
//! * [`Databases`] are the databases that a process has open, with the versions that it can show. A process reads
//!   the version that the client saw, or fails.
//! * [`PlacedTable`] and [`PlacedScan`] are sent between processes, by [`LogicalCodec`] and [`PhysicalCodec`].
//! * [`scheduler`], [`executor`] and [`client`] are the three processes.
//!
//! `larch-datafusion` knows how rows are read, and Ballista knows how tasks are sent.

mod codec;
mod databases;
mod executors;
mod failure;
mod provider;
mod scan;
mod stages;
mod table;
mod unread;
mod work;

pub mod client;
pub mod executor;
pub mod scheduler;

pub use codec::{LogicalCodec, PhysicalCodec};
pub use databases::{Databases, Open, Place, Reads};
pub use scan::PlacedScan;
pub use table::PlacedTable;
pub use work::Work;
