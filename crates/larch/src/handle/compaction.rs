//! A compaction that a program asks for: what is in memory goes to files first.

use crate::base::cancel::Limit;
use crate::base::error::Result;
use crate::base::table::TableId;
use crate::compact;
use crate::core::Core;
use crate::write::flush::flush_all;
use os::sync::Arc;

/// Writes all rows in memory to files, and merges everything that a table has into its deepest level, unless `limit`
/// ends it before. `progress` receives the bytes that were read and the bytes to read in all.
///
/// # Errors
///
/// As [`compact::compact_table`]; why the flush failed.
pub fn flush_and_compact(
    core: &Arc<Core>,
    table: TableId,
    limit: &Limit,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    limit.check(compact::WORK)?;
    flush_all(core)?;
    compact::compact_table(core, table, limit, progress)
}
