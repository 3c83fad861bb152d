//! A compaction that a program asks for. What is in memory goes to files first.

use crate::base::error::Result;
use crate::base::table::TableId;
use crate::base::watch::Watch;
use crate::compact;
use crate::core::Core;
use crate::write::flush::flush_all;
use os::sync::Arc;

/// Writes all rows in memory to files, and merges everything that a table has into its deepest level. `watch` can
/// end the work early. It sees how many bytes were read.
///
/// # Errors
///
/// As [`compact::compact_table`]; why the flush failed.
pub fn flush_and_compact(core: &Arc<Core>, table: TableId, watch: &Watch<'_>) -> Result<()> {
    watch.check()?;
    flush_all(core)?;
    compact::compact_table(core, table, watch)
}
