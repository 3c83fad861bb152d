//! The report of a repair. This module does not know how files are read.

use std::path::PathBuf;

/// What a repair has saved, lost and guessed.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RepairReport {
    /// The number of tables that were created in the new database.
    pub tables: u64,
    /// The number of rows that were saved to the new database.
    pub rows: u64,
    /// The number of SSTs that were read.
    pub files: u64,
    /// The number of commits that were replayed from logs.
    pub commits: u64,
    /// Everything that could not be read; empty if nothing was lost.
    pub lost: Vec<Loss>,
    /// A sentence for each guess that the repair had to make: about names of tables, the order of commits, or rows
    /// that may have been erased.
    pub guesses: Vec<String>,
}

/// Rows that could not be read, or something else that is missing in the new database.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Loss {
    /// The damaged file. Empty if a value was read, but the new database does not accept it.
    pub file: PathBuf,
    /// The table, if it is known.
    pub table: Option<String>,
    /// The key range of the lost rows: from the first key to before the second, which is `None` if the end is
    /// unknown. `None` if nothing is known about the keys.
    pub keys: Option<(Vec<u8>, Option<Vec<u8>>)>,
    /// How many rows were lost, according to the counts in the file. Other files may have newer or older versions
    /// of these rows.
    pub rows: u64,
    /// What is wrong, in words, with the page and its offset.
    pub why: String,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(table) = &self.table {
            write!(f, "table {table:?}: ")?;
        }
        write!(f, "{} rows", self.rows)?;
        if let Some((low, high)) = &self.keys {
            write!(f, " from {}", low.escape_ascii())?;
            match high {
                Some(high) => write!(f, " to before {}", high.escape_ascii())?,
                None => f.write_str(" on")?,
            }
        }
        write!(f, ": {}", self.why)
    }
}
