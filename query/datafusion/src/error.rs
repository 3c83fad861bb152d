//! The errors of queries on tables of Larch, besides those of the engine and of DataFusion.

use datafusion::error::DataFusionError;
use std::fmt;

/// A row that does not fit the columns of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// The table.
    pub table: String,
    /// The key of the row as text.
    pub key: String,
    /// The column, or `None` if the bytes as a whole are wrong.
    pub column: Option<String>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for BadRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, key, column, what } = self;
        write!(out, "table {table}, row {key}")?;
        if let Some(column) = column {
            write!(out, ", column {column}")?;
        }
        write!(out, ": {what}; correct the row, or declare other columns with CREATE EXTERNAL TABLE")
    }
}

impl std::error::Error for BadRow {}

/// Wraps an error of another crate, so that DataFusion can pass it on.
pub fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
