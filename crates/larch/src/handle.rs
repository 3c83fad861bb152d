//! What a program holds: databases, tables, selections, batches and snapshots. Wiring only; the work is done below.

pub mod database;
pub mod selection;
pub mod table;
