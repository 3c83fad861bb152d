//! What a repair reports. This module does not know how files are read.

use std::path::PathBuf;

/// What a repair saved, and what it could not save.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RepairReport {
    /// The number of tables that were made in the new database.
    pub tables: u64,
    /// The number of rows that were saved into the new database.
    pub rows: u64,
    /// The number of SSTs that were read.
    pub files: u64,
    /// The number of commits that were replayed from logs.
    pub commits: u64,
    /// Everything that could not be read; empty if nothing was lost.
    pub lost: Vec<Loss>,
    /// A sentence for each guess that the repair had to make. Guesses are about names of tables, about the order
    /// of commits, and about rows that may have been erased.
    pub guesses: Vec<String>,
}

/// One loss: rows that could not be read, or something else that is missing in the new database.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Loss {
    /// The damaged file. It is empty if the loss is a value that was read but that the new database does not
    /// accept.
    pub file: PathBuf,
    /// The table, if it is known.
    pub table: Option<String>,
    /// The key range in which rows are lost: from the first key to before the second key. The second key is `None`
    /// if the end of the range is not known. The whole field is `None` if nothing is known about the keys.
    pub keys: Option<(Vec<u8>, Option<Vec<u8>>)>,
    /// How many rows were lost, according to the counts in the file. Other files may have newer or older versions
    /// of these rows.
    pub rows: u64,
    /// What is wrong, in words; this text also names the page and its offset.
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
