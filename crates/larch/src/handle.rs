//! What a program holds: databases, caches, tables, selections, batches and snapshots. Wiring only; the work is done below.

pub mod batch;
pub mod cache;
pub mod database;
pub mod readable;
pub mod selection;
pub mod snapshot;
pub mod statistics;
pub mod table;
pub mod until;
