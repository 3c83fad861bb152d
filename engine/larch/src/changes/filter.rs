//! Which changes a feed gives, and what it knows of the tables. This module does not know where changes are found.

use crate::base::table::{TableId, TableInfo};
use os::sync::Arc;
use os::sync::atomic::AtomicBool;
use sst::KeyRange;
use std::collections::HashMap;

/// Descriptions of tables, also of some that were dropped meanwhile.
pub type Infos = HashMap<TableId, Arc<TableInfo>>;

/// The name of the work in the error [`Error::Cancelled`](crate::Error::Cancelled), with which a look for changes ends
/// after the program has dropped the feed. The job that looks discards the error.
pub const WHAT: &str = "the feed";

/// Which changes a feed gives.
pub struct Filter<'f> {
    /// The tables; `None` means all.
    pub tables: Option<&'f [TableId]>,
    /// The keys.
    pub keys: &'f KeyRange,
    /// The program sets this when it drops the feed.
    pub is_dropped: &'f AtomicBool,
}

impl Filter<'_> {
    /// Whether the table's changes are given. Those of indexes are not: they follow from the rows.
    pub fn has(&self, table: &TableInfo) -> bool {
        table.index.is_none() && self.tables.is_none_or(|tables| tables.contains(&table.id))
    }
}
