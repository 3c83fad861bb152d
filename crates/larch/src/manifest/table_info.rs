//! What is known of a table besides its files.

use crate::options::TableOptions;

/// Levels of a table, 0 and six sorted ones.
pub const LEVELS: usize = 7;

/// A table, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// What is known of a table besides its files.
#[derive(Debug)]
pub struct TableInfo {
    /// Identity.
    pub id: TableId,
    /// Name.
    pub name: String,
    /// How it is stored now. The groups stay, the rest may be altered.
    pub options: TableOptions,
    /// Files with smaller numbers may have been written under other options.
    pub since: u64,
}
