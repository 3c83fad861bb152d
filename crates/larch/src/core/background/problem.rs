//! A problem that a check or a scrub found. It does not know how it was found.

use crate::base::error::Error;
use std::path::PathBuf;

/// Damage that a check or the background scrub found.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The name of a table that sees the file.
    pub table: String,
    /// The file.
    pub file: PathBuf,
    /// What is wrong, with page and offset.
    pub error: Error,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "table {:?}: {}", self.table, self.error)
    }
}
