//! What is known about a table besides its files: its id, its name, its options, and, if it is an index, which
//! index. This module does not know the rows.

use super::options::TableOptions;
use os::sync::Arc;
use sst::Version;

/// The number of levels of a table: level 0 and six sorted levels.
pub const LEVELS: usize = 7;

/// The id of a table. An id is never given to a second table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

impl TableId {
    /// The id that stands for a table without a database, for which files are built. No table of a database has this
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
    /// If the index is ready, this is the version from which on it has all entries. Readers of older versions may
    /// miss entries. Such readers do not outlive the process. So the manifest does not store this version, and it is
    /// 0 after an open.
    pub since: Version,
    /// What the keys of the index are made of. The extractors that the program registers can read this declaration.
    pub declaration: Vec<u8>,
}

/// How complete an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// The index has the entries of all rows written since it was made, but perhaps not those of older rows.
    Building,
    /// The index has the entries of all rows.
    Ready,
}
