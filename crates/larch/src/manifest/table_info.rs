//! What is known of a table besides its files: its id, its name and its options. It knows no rows.

use crate::options::TableOptions;

/// How many levels a table has: level 0 and six sorted ones.
pub const LEVELS: usize = 7;

/// The id of a table, which is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// What is known of a table besides its files.
#[derive(Debug)]
pub struct TableInfo {
    /// Its id.
    pub id: TableId,
    /// Its name.
    pub name: String,
    /// How it is stored now. The column groups never change, other options may be altered.
    pub options: TableOptions,
    /// Files with smaller numbers may have been written under other options.
    pub since: u64,
}
