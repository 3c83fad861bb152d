//! Runs a compaction that a program asks for. Before the compaction, all rows in memory are written to files.

use crate::base::error::Result;
use crate::base::table::TableId;
use crate::base::watch::Watch;
use crate::compact;
use crate::core::Core;
use crate::write::flush::flush_all;
use os::sync::Arc;

/// Writes all rows in memory to files. Then merges all files of a table into its deepest level. `watch` can end the
/// work early. `watch` is told how many bytes were read.
///
/// # Errors
///
/// Fails as [`compact::compact_table`] does, or if the flush fails.
pub fn flush_and_compact(core: &Arc<Core>, table: TableId, watch: &Watch<'_>) -> Result<()> {
    watch.check()?;
    flush_all(core)?;
    compact::compact_table(core, table, watch)
}
