//! The types that a program uses: databases, caches, tables, selections, batches and snapshots. They check arguments
//! and call the code that does the work.

pub mod async_writes;
pub mod attempt;
pub mod attempts;
pub mod batch;
pub mod cache;
pub mod changes;
pub mod commit;
pub mod compaction;
pub mod conditional;
pub mod database;
pub mod diff;
pub mod expected;
pub mod expiry;
pub mod explain;
pub mod filtering;
pub mod give_way;
pub mod index;
pub mod index_build;
pub mod indexes;
pub mod keep;
pub mod own_thread;
pub mod readable;
pub mod selection;
pub mod snapshot;
pub mod statistics;
pub mod subscription;
pub mod table;
pub mod transact;
pub mod transaction;
pub mod writes;
