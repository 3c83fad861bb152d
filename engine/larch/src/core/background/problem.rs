//! Damage in a file of the database, found by a check or the background scrub. This module does not know how it was
//! found.

use crate::base::error::Error;
use std::path::PathBuf;

/// Damage that a check or the background scrub has found.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Problem {
    /// The name of a table that uses the file.
    pub table: String,
    /// The damaged file.
    pub file: PathBuf,
    /// What is wrong, with the page and the offset.
    pub error: Error,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "table {:?}: {}", self.table, self.error)
    }
}
