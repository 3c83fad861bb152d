//! What is known about a table besides its files: its id, its name, its options, and which index it is, if it is an
//! index. This module knows no rows.

use super::options::TableOptions;
use os::sync::Arc;
use sst::Version;

/// How many levels a table has: level 0 and six sorted ones.
pub const LEVELS: usize = 7;

/// The id of a table, which is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

impl TableId {
    /// Stands for the table for which files are built without a database. No table of a database has this id.
    pub const ELSEWHERE: Self = Self(u32::MAX);
}

/// What is known about a table besides its files.
#[derive(Debug)]
pub struct TableInfo {
    /// Its id.
    pub id: TableId,
    /// Its name. The name of an index is only for people: it names no table.
    pub name: String,
    /// How the table is stored now. The column groups never change. Other options may be altered.
    pub options: TableOptions,
    /// Files with smaller numbers may have been written under other options.
    pub since: u64,
    /// If the rows of the table are the entries of an index: this index.
    pub index: Option<Arc<IndexInfo>>,
}

/// An index of a table. Its entries are the rows of a table of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// The table of its entries.
    pub id: TableId,
    /// The table of the rows.
    pub table: TableId,
    /// Its name, which no other index of the table has.
    pub name: String,
    /// Whether two rows may not have the same key in the index.
    pub is_unique: bool,
    /// Whether the index has the entries of all rows.
    pub state: IndexState,
    /// Once the index is ready: the version from which on it has all entries. It may lack entries for readers of
    /// older versions. Such readers do not outlive the process, so the manifest does not name this version, and it
    /// is 0 after an open.
    pub since: Version,
    /// What the keys of the index are made of, for the program that registers extractors.
    pub declaration: Vec<u8>,
}

/// How far an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// The index has the entries of rows that were written after it was made, and perhaps not the entries of older
    /// rows.
    Building,
    /// The index has the entries of all rows.
    Ready,
}
