//! Counters and sizes as plain values. This module only reads the counters: other modules count events, with a
//! relaxed atomic addition for each.

use crate::base::error::Result;
use crate::base::event::StallReason;
use crate::base::table::{LEVELS, TableInfo};
use crate::core::Core;
use crate::core::background::trouble::Trouble;
use cached::Cached;
use os::store::Bill;
use os::sync::atomic::{AtomicU64, Ordering};
use pages::PageKind;
use pages::cache::CacheUsage;
use pages::counters::CounterSnapshot;
use sst::{GroupTrees, Tree};
use std::collections::HashMap;

mod cached;
mod export;
mod memory;

pub use memory::Memory;

/// The counters of a database since it was opened, and its current sizes, from
/// [`Database::metrics`](crate::Database::metrics). That call reads nothing from disk, but takes time proportional to
/// the number of files and of pages in memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// Pages of all kinds that were read from disk, for all reasons.
    pub page_reads: u64,
    /// Pages that were found in memory.
    pub page_hits: u64,
    /// Bytes of the pages that were read from disk.
    pub page_read_bytes: u64,
    /// Index nodes and flat indexes that were read from disk.
    pub index_page_reads: u64,
    /// Pages with rows and values that were read from disk.
    pub data_page_reads: u64,
    /// The counts of pages, by reason and kind.
    pub pages: CounterSnapshot,
    /// The current use of the page cache.
    pub cache: CacheUsage,
    /// Memory of index nodes and flat indexes, in bytes. This and the next three sizes cover all pages in the
    /// cache, of all databases that share it.
    pub cached_index_bytes: u64,
    /// Memory of data pages, pages of column groups, values outside pages and range erases, in bytes.
    pub cached_data_bytes: u64,
    /// Memory of pages of older versions, in bytes.
    pub cached_history_bytes: u64,
    /// Memory of filters, in bytes.
    pub cached_filter_bytes: u64,
    /// Memory of rows that are not in files yet, in bytes.
    pub memtable_bytes: u64,
    memory: Memory,
    /// Memory of pages that are kept because their tables are [to be in memory](crate::TableOptions::in_memory), in
    /// bytes, for all databases that share the cache.
    pub kept_bytes: u64,
    /// Memory of pages that were loaded after the open because they were in memory at the last close, in bytes. See
    /// [`crate::Builder::warm_from_last`].
    pub restored_bytes: u64,
    /// Warm states of the last close that could not be used, because they were incomplete or damaged, or belonged to
    /// another database.
    pub refused_states: u64,
    /// Bytes of the commits appended to the log, with the heads of their records.
    pub log_bytes: u64,
    /// Bytes of files written by flushes.
    pub flush_bytes: u64,
    /// Bytes of files written by compactions.
    pub compaction_bytes: u64,
    /// Bytes of files written by imports.
    pub import_bytes: u64,
    /// Flushes that succeeded.
    pub flushes: u64,
    /// Compactions that succeeded, without moves of files.
    pub compactions: u64,
    /// How many of these compactions were done by [workers](crate::Builder::compaction_workers).
    pub worker_compactions: u64,
    /// Bytes of files written by workers, which are not in [`Metrics::compaction_bytes`].
    pub worker_compaction_bytes: u64,
    /// Compactions that were left to a worker and not done by it: the worker died or failed, or the compaction was no
    /// longer needed.
    pub failed_worker_compactions: u64,
    /// Files that were moved to a deeper level without being rewritten.
    pub trivial_moves: u64,
    /// Files that nothing needs any more and that could not be removed yet. Every later install and the next open
    /// try again to remove them.
    pub leftover_files: u64,
    /// Files that no table needs any more, but that are kept because a [follower](crate::Builder::follow) may still
    /// read them.
    pub held_files: u64,
    /// Failed attempts to remove files, or to replace a manifest that has grown. The database tries again later.
    pub failed_cleanups: u64,
    /// How long commits were slowed down because background work was behind, in microseconds.
    pub slowed_micros: u64,
    /// How long compactions slept to leave the processors to commits, in microseconds.
    pub yielded_micros: u64,
    /// Commits, flushes and imports that waited because level 0 of a table had too many files.
    pub level0_stalls: u64,
    /// How long these commits, flushes and imports waited in all, in microseconds.
    pub level0_stall_micros: u64,
    /// Commits that waited because the write buffer was full.
    pub write_buffer_stalls: u64,
    /// How long these commits waited in all, in microseconds.
    pub write_buffer_stall_micros: u64,
    /// Background work that failed and has not succeeded since: what failed, why, how often, and when it is tried
    /// again.
    pub troubles: Vec<Trouble>,
    /// Attempts to flush that failed.
    pub failed_flushes: u64,
    /// Attempts to compact that failed.
    pub failed_compactions: u64,
    /// Bytes of pages that [the background scrub](crate::Builder::scrub_bytes_per_second) has read.
    pub scrubbed_bytes: u64,
    /// Rounds of the scrub through all files.
    pub scrub_rounds: u64,
    /// Pages that the scrub found damaged.
    pub damaged_pages: u64,
    /// Snapshots and ranges that pin a version.
    pub pinned_versions: usize,
    /// Files of all tables.
    pub files: u64,
    /// The length of the files of all tables, in bytes.
    pub file_bytes: u64,
    /// The requests to the store since it was opened, and their prices if they are known. `None` if the database is
    /// not in a store that counts its requests.
    pub store: Option<Bill>,
}

impl Metrics {
    pub(crate) fn of(core: &Core) -> Self {
        let view = core.views.newest();
        let pages = core.env.cache.counters().snapshot();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let written = &core.env.written;
        let troubles = &core.background.troubles;
        let stalls = |reason| core.background.stalls.totals(reason);
        let (level0, write_buffer) = (stalls(StallReason::Level0), stalls(StallReason::WriteBuffer));
        // A file that several tables use is counted only once.
        let files = view.files.tables.values().flat_map(|table| table.files());
        let files: HashMap<u64, u64> = files.map(|(_, file)| (file.number, file.bytes())).collect();
        let cache = core.env.cache.usage();
        let memory = Memory::of(core, &cache);
        let workers = core.writes.offers.totals();
        Self {
            page_reads: pages.total().faults,
            page_hits: pages.total().hits,
            page_read_bytes: pages.total().read_bytes,
            index_page_reads: pages.index_reads(),
            data_page_reads: pages.data_reads(),
            pages,
            cache,
            cached_index_bytes: memory.cached_index_bytes,
            cached_data_bytes: memory.cached_data_bytes,
            cached_history_bytes: memory.cached_history_bytes,
            cached_filter_bytes: memory.cached_filter_bytes,
            memtable_bytes: memory.memtable_bytes,
            memory,
            kept_bytes: core.env.cache.kept_bytes(),
            restored_bytes: load(&core.background.warmth.restored_bytes),
            refused_states: load(&core.background.warmth.refused),
            scrubbed_bytes: load(&core.background.damage.bytes),
            scrub_rounds: load(&core.background.damage.rounds),
            damaged_pages: load(&core.background.damage.damaged_pages),
            log_bytes: load(&written.log),
            flush_bytes: load(&written.flush),
            compaction_bytes: load(&written.compaction),
            import_bytes: load(&written.import),
            flushes: load(&written.flushes),
            compactions: load(&written.compactions),
            worker_compactions: workers.installed,
            worker_compaction_bytes: workers.bytes,
            failed_worker_compactions: workers.withdrawn,
            trivial_moves: load(&written.trivial_moves),
            leftover_files: core.env.opener.leftovers.count(),
            held_files: core.env.opener.leftovers.held(),
            failed_cleanups: core.env.opener.leftovers.failures() + load(&written.failed_renewals),
            slowed_micros: load(&written.slowed_nanos) / 1000,
            yielded_micros: load(&written.yielded_nanos) / 1000,
            level0_stalls: level0.0,
            level0_stall_micros: level0.1,
            write_buffer_stalls: write_buffer.0,
            write_buffer_stall_micros: write_buffer.1,
            troubles: troubles
                .all(|table| Some(core.views.table_info(table)?.name.clone()), core.env.machine.clock.now()),
            failed_flushes: troubles.failed_flushes(),
            failed_compactions: troubles.failed_compactions(),
            pinned_versions: core.views.snapshots.count(),
            files: files.len() as u64,
            file_bytes: files.values().sum(),
            store: core.env.machine.disk.bill(),
        }
    }

    /// Memory by owner: what this database and the others that share its cache add to the memory of the process.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Memory of the pages of one kind, in bytes.
    pub fn cached_bytes(&self, kind: PageKind) -> u64 {
        self.cache.bytes_of(kind)
    }
}

/// Sizes of a table, from [`Table::stats`](crate::Table::stats). Sizes of files come from the manifest, and sizes of
/// pages in memory from the cache. Only the fields about memtables include rows that are not in files yet. A key in
/// several files counts in each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TableStats {
    /// Rows in files, without older versions.
    pub rows: u64,
    /// How many of these rows are erases.
    pub erased_rows: u64,
    /// About how many bytes of the files are outside the table's slices: rows that were removed as a range, or that
    /// now belong to another table. A compaction does not copy them. All other sizes in bytes include them.
    pub unseen_bytes: u64,
    /// Older versions in files.
    pub history_rows: u64,
    /// Data pages. With column groups, the pages of the main group.
    pub data_pages: u64,
    /// Stored bytes of data pages.
    pub data_bytes: u64,
    /// Stored bytes of pages with newest versions in the other column groups.
    pub group_bytes: u64,
    /// Stored bytes of pages with older versions in the other column groups.
    pub group_history_bytes: u64,
    /// The column groups, the main one first; empty if values are not split into groups.
    pub groups: Vec<GroupStats>,
    /// Stored bytes of all indexes: B-trees and flat indexes.
    pub index_bytes: u64,
    /// Stored bytes of B-trees.
    pub btree_bytes: u64,
    /// Stored bytes of flat indexes.
    pub flat_bytes: u64,
    /// Stored bytes of filters. The nodes above them count as `index_bytes`.
    pub filter_bytes: u64,
    /// Stored bytes of older versions, without those in the other column groups.
    pub history_bytes: u64,
    /// Stored bytes of values outside data pages.
    pub value_bytes: u64,
    /// Stored bytes of range erases.
    pub range_erase_bytes: u64,
    /// Bytes of keys and values, before compression.
    pub user_bytes: u64,
    /// Files of the table.
    pub files: u64,
    /// The length of the files of the table, in bytes.
    pub file_bytes: u64,
    /// The levels that have files, from level 0 down.
    pub levels: Vec<LevelStats>,
    /// The number of index pages above a data page, in the file where it is greatest.
    pub index_height: u8,
    /// Rows that are not in files yet. All versions of a row count.
    pub memtable_rows: u64,
    /// The memory of the rows that are not in files yet, in bytes.
    pub memtable_bytes: u64,
    /// Memory of index nodes and flat indexes, in bytes. This and the next three sizes cover all pages of the table's
    /// files that are in memory.
    pub cached_index_bytes: u64,
    /// Memory of data pages, pages of column groups, values outside pages and range erases, in bytes.
    pub cached_data_bytes: u64,
    /// Memory of pages of older versions, in bytes.
    pub cached_history_bytes: u64,
    /// Memory of filters, in bytes.
    pub cached_filter_bytes: u64,
}

/// Sizes of a column group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GroupStats {
    /// The name of the column group.
    pub name: String,
    /// Stored bytes of the group's pages with newest versions: for the main group, the data pages, which also have
    /// the keys.
    pub data_bytes: u64,
    /// Stored bytes of the group's pages with older versions.
    pub history_bytes: u64,
}

/// Sizes of a level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LevelStats {
    /// The number of the level.
    pub level: usize,
    /// The number of files in the level.
    pub files: u64,
    /// The length of the files in the level, in bytes.
    pub bytes: u64,
    /// The number of rows in the files of the level.
    pub rows: u64,
}

impl TableStats {
    pub(crate) fn of(core: &Core, table: &TableInfo) -> Result<Self> {
        let view = core.views.newest();
        let files = view.files_of(table)?;
        let group = |name: &String| GroupStats { name: name.clone(), ..GroupStats::default() };
        let mut stats = Self { groups: files.info.options.groups.iter().map(group).collect(), ..Self::default() };
        for memtable in view.memory.iter().filter_map(|memory| memory.table(table.id)) {
            stats.memtable_rows += memtable.rows();
            stats.memtable_bytes += memtable.bytes();
        }
        for level in 0..LEVELS {
            let mut here = LevelStats { level, ..LevelStats::default() };
            for file in files.levels[level].iter() {
                let meta = &file.sst.meta;
                here.files += 1;
                here.bytes += file.bytes();
                here.rows += file.sst.rows().count();
                stats.unseen_bytes += file.bytes() - file.sst.visible_bytes().min(file.bytes());
                if let Some(main) = meta.main {
                    // A table that sees a slice of the file is assumed to see the same share of its erases.
                    let erased = u128::from(main.totals.erased) * u128::from(file.sst.rows().count());
                    stats.erased_rows += (erased / u128::from(main.totals.rows.max(1))) as u64;
                    stats.data_pages += main.data_pages;
                    stats.data_bytes += main.totals.bytes;
                    let height = main.root(file.sst.prefer_flat).height;
                    stats.index_height = stats.index_height.max(height);
                }
                for (_, tree) in meta.trees() {
                    stats.btree_bytes += tree.btree.map_or(0, |root| root.index_bytes);
                    stats.flat_bytes += tree.flat.map_or(0, |root| root.index_bytes);
                }
                let bytes = |tree: Option<Tree>| tree.map_or(0, |tree| tree.totals.bytes);
                stats.history_rows += meta.history.tree().map_or(0, |tree| tree.totals.rows);
                stats.history_bytes += bytes(meta.history.get());
                stats.range_erase_bytes += bytes(meta.range_erases.get());
                stats.filter_bytes += bytes(meta.filter.map(|filter| filter.tree));
                let main = GroupTrees { newest: meta.main, older: meta.history.get() };
                for (group, trees) in stats.groups.iter_mut().zip(std::iter::once(&main).chain(&meta.groups)) {
                    group.data_bytes += bytes(trees.newest);
                    group.history_bytes += bytes(trees.older);
                }
                for trees in &meta.groups {
                    stats.group_bytes += bytes(trees.newest);
                    stats.group_history_bytes += bytes(trees.older);
                }
                stats.value_bytes += meta.value_bytes;
                stats.user_bytes += meta.user_bytes;
            }
            stats.rows += here.rows;
            stats.files += here.files;
            stats.file_bytes += here.bytes;
            if here.files > 0 {
                stats.levels.push(here);
            }
        }
        stats.index_bytes = stats.btree_bytes + stats.flat_bytes;
        let usage = core.env.cache.usage_of(files.files().map(|(_, file)| &file.sst.file));
        let cached = Cached::of(|kind| usage.bytes_of(kind));
        stats.cached_index_bytes = cached.index;
        stats.cached_data_bytes = cached.data;
        stats.cached_history_bytes = cached.history;
        stats.cached_filter_bytes = cached.filter;
        Ok(stats)
    }
}

#[cfg(test)]
mod tests;
