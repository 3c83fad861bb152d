//! Runs a compaction that the program asked for, after a flush of all rows in memory.

use crate::base::error::Result;
use crate::base::table::TableId;
use crate::base::watch::Watch;
use crate::compact;
use crate::core::Core;
use crate::write::flush::flush_all;
use os::sync::Arc;

/// Flushes all rows in memory, and then merges all files of `table` into its deepest level. `watch` is told how
/// many bytes were read, and can end the work early.
///
/// # Errors
///
/// Fails as [`compact::compact_table`] does, or if the flush fails.
pub fn flush_and_compact(core: &Arc<Core>, table: TableId, watch: &Watch<'_>) -> Result<()> {
    watch.check()?;
    flush_all(core)?;
    compact::compact_table(core, table, watch)
}
