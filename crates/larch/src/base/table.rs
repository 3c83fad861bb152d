//! What is known about a table besides its files: its id, its name and its options. If the rows of the table are
//! the entries of an index, the index is described, too. This module does not know the rows.

use super::options::TableOptions;
use os::sync::Arc;
use sst::Version;

/// The number of levels of a table: level 0 and six sorted levels.
pub const LEVELS: usize = 7;

/// The id of a table. An id is never given to a second table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

impl TableId {
    /// Stands for the id of a table if files are built outside of any database. No table of a database has this
    /// id.
    pub const ELSEWHERE: Self = Self(u32::MAX);
}

/// What is known about a table besides its files.
#[derive(Debug)]
pub struct TableInfo {
    /// Its id.
    pub id: TableId,
    /// Its name. If the table is an index, the name is only shown to people, and no table can be found by it.
    pub name: String,
    /// How the table is stored now. The column groups never change. Other options may be altered.
    pub options: TableOptions,
    /// Files with smaller numbers than this may have been written under other options.
    pub since: u64,
    /// If the rows of this table are the entries of an index, this describes the index.
    pub index: Option<Arc<IndexInfo>>,
}

/// An index of a table. The entries of the index are the rows of a separate table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// The table that holds the entries of the index.
    pub id: TableId,
    /// The table whose rows the index finds.
    pub table: TableId,
    /// The name of the index, which no other index of the table has.
    pub name: String,
    /// Whether the index forbids two rows with the same index key.
    pub is_unique: bool,
    /// Whether the index has the entries of all rows.
    pub state: IndexState,
    /// If the index is ready, it has all entries for reads at this version or later. A read at an older version
    /// may miss entries. No such read goes on after the process has ended. So the manifest does not store this
    /// version, and after an open the version is 0.
    pub since: Version,
    /// What the keys of the index are made of. The extractors that the program registers know what the declaration
    /// means.
    pub declaration: Vec<u8>,
}

/// How complete an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// The index has the entries of all rows that were written after the index was made. It may lack entries of
    /// older rows.
    Building,
    /// The index has the entries of all rows.
    Ready,
}
