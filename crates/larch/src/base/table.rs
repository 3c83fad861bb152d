//! What is known of a table besides its files: its id, its name, its options, and which index it is, if it is one. It
//! knows no rows.

use super::options::TableOptions;
use os::sync::Arc;
use sst::Version;

/// How many levels a table has: level 0 and six sorted ones.
pub const LEVELS: usize = 7;

/// The id of a table, which is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

impl TableId {
    /// Stands for the table that files are built for without a database. No table of a database has this id.
    pub const ELSEWHERE: Self = Self(u32::MAX);
}

/// What is known of a table besides its files.
#[derive(Debug)]
pub struct TableInfo {
    /// Its id.
    pub id: TableId,
    /// Its name. The name of an index is only for people: it names no table.
    pub name: String,
    /// How it is stored now. The column groups never change, other options may be altered.
    pub options: TableOptions,
    /// Files with smaller numbers may have been written under other options.
    pub since: u64,
    /// If its rows are the entries of an index: of which one.
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
    /// Whether two rows may not have the same key in it.
    pub is_unique: bool,
    /// Whether it has the entries of all rows.
    pub state: IndexState,
    /// Once it is ready: the version from which it has them. Readers of older versions, which it may lack entries for,
    /// do not outlive the process, so the manifest does not name it, and it is 0 after an open.
    pub since: Version,
    /// What its keys are made of, for the program that registers extractors.
    pub declaration: Vec<u8>,
}

/// How far an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// It has the entries of rows that were written since it was made, and perhaps not those of older rows.
    Building,
    /// It has the entries of all rows.
    Ready,
}
