//! What a program holds: databases, tables, selections, batches and snapshots. Wiring only; the work is done below.

pub mod batch;
pub mod database;
pub mod readable;
pub mod selection;
pub mod snapshot;
pub mod statistics;
pub mod table;
pub mod until;
