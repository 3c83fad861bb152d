//! What a scan reads from: a table, the version at which it is read, and its columns.

use crate::columns::Columns;
use datafusion::arrow::datatypes::SchemaRef;
use larch::{Snapshot, Table};

/// What a scan reads from.
#[derive(Debug)]
pub struct TableSource {
    pub table: Table,
    pub snapshot: Snapshot,
    pub columns: Columns,
    /// The schema of all columns.
    pub schema: SchemaRef,
}
