//! The description of a table: its id, name and options and, for a table of index entries, the index. This module
//! does not know the rows.

use super::options::TableOptions;
use os::sync::Arc;
use sst::Version;

/// The number of levels of a table: level 0 and six sorted levels.
pub const LEVELS: usize = 7;

/// The id of a table. Ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

impl TableId {
    /// Stands for the table in files that are built outside of any database. No table of a database has this id.
    pub const ELSEWHERE: Self = Self(u32::MAX);
}

/// The description of a table, without its files.
#[derive(Debug)]
pub struct TableInfo {
    /// Its id.
    pub id: TableId,
    /// Its name. For the table of an index, only shown to people: no table can be found by it.
    pub name: String,
    /// How the table is stored now. The column groups never change. Other options may be altered.
    pub options: TableOptions,
    /// Files with smaller numbers may have been written under other options.
    pub since: u64,
    /// The index whose entries are the rows of this table, if it is one.
    pub index: Option<Arc<IndexInfo>>,
}

/// An index of a table. Its entries are the rows of a table of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// The table that holds the entries of the index.
    pub id: TableId,
    /// The table whose rows the index finds.
    pub table: TableId,
    /// The name of the index, unique among the indexes of the table.
    pub name: String,
    /// Whether the index forbids two rows with the same index key.
    pub is_unique: bool,
    /// Whether the index has the entries of all rows.
    pub state: IndexState,
    /// Once the index is ready, reads at this version or later find all entries; reads at older versions may miss
    /// some. 0 while the index is built, and in manifests without the field.
    pub since: Version,
    /// Describes the keys of the index. Only the extractors that the program registers understand it.
    pub declaration: Vec<u8>,
}

/// How complete an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// The index has the entries of all rows written since it was created, but may lack entries of older rows.
    Building,
    /// The index has the entries of all rows.
    Ready,
}
