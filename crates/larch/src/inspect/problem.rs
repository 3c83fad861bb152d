//! Something wrong that a check or a scrub found.

use crate::error::Error;
use std::path::PathBuf;

/// Something a check found wrong.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Whose file it is.
    pub table: String,
    /// The file.
    pub file: PathBuf,
    /// What is wrong.
    pub error: Error,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "table {:?}: {}", self.table, self.error)
    }
}
