//! Memory by owner. Whatever the engine keeps belongs to one owner, so that the sum is what the process grew by when the
//! database was opened and worked with, but for what takes a few KiB however much there is to do.

use super::cached::Cached;
use crate::core::Core;
use crate::manifest::TableFiles;
use os::sync::atomic::Ordering;
use pages::cache::CacheUsage;

/// What a range that is being read takes besides its pages: cursors, keys, and what its session notes. 2.4 KiB over one level.
const RANGE_BYTES: u64 = 3 << 10;

/// Memory of a database at one moment, by owner, in bytes. What is in the cache is that of all databases that share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Pages in memory: index nodes and flat indexes. What stands around a page in the cache's tables counts with it,
    /// here and in the three below.
    pub cached_index_bytes: u64,
    /// Pages in memory: data, parts of column groups, values outside them, range erases.
    pub cached_data_bytes: u64,
    /// Pages in memory: older versions.
    pub cached_history_bytes: u64,
    /// Pages in memory: filters.
    pub cached_filter_bytes: u64,
    /// Reserved for pages that are being read.
    pub in_flight_bytes: u64,
    /// What the cache has and no page fills: memory of pages that went, tables with room for more. At least so much: pages
    /// beyond 1 MiB and beyond the budget, whose memory is not the cache's own, hide as much of it.
    pub cache_spare_bytes: u64,
    /// Rows not yet in files, with the lists that they stand in.
    pub memtable_bytes: u64,
    /// What the log keeps to lay out records in.
    pub log_buffer_bytes: u64,
    /// Files being written by flushes, compactions and imports: open pages, closed index nodes, filters, range erases that
    /// are being merged, and what is gathered for the disk. To 64 KiB a file or so.
    pub builder_bytes: u64,
    /// Pages that compactions and merges of imports read, outside the cache.
    pub compaction_bytes: u64,
    /// Rows of imports that wait to be sorted, and what is known of their files.
    pub import_bytes: u64,
    /// What is known of files and tables, and what the manifest keeps to lay out records in.
    pub manifest_bytes: u64,
    /// Ranges being read, about, without their pages.
    pub session_bytes: u64,
    /// Of the pages in memory, those that somebody refers to. Not an owner.
    pub pinned_bytes: u64,
}

impl Memory {
    pub(super) fn of(core: &Core, cache: &CacheUsage) -> Self {
        let view = core.views.newest();
        let cached = Cached::of(|kind| cache.bytes_of(kind));
        let load = |bytes: &os::sync::atomic::AtomicU64| bytes.load(Ordering::Relaxed);
        let files = view.files.tables.values().flat_map(|table| table.files());
        let files: u64 = files.map(|(_, file)| file.memory_bytes()).sum();
        // A table is in two trees, with its name in one of them; a node is about 64 bytes besides.
        let table =
            |table: &TableFiles| size_of_val(table) + size_of_val(&*table.info) + 2 * table.info.name.len() + 2 * 64;
        let tables: usize = view.files.tables.values().map(table).sum();
        Self {
            cached_index_bytes: cached.index,
            cached_data_bytes: cached.data,
            cached_history_bytes: cached.history,
            cached_filter_bytes: cached.filter,
            in_flight_bytes: cache.in_flight_bytes,
            cache_spare_bytes: (cache.backed_bytes + cache.overhead_bytes).saturating_sub(cache.used_bytes),
            memtable_bytes: view.memory.iter().map(|memory| memory.bytes()).sum(),
            log_buffer_bytes: load(&core.env.held.log),
            builder_bytes: core.env.held.builders.bytes(),
            compaction_bytes: core.env.held.compactions.used_bytes(),
            import_bytes: core.env.held.imports.bytes(),
            manifest_bytes: load(&core.env.held.manifest) + files + tables as u64,
            session_bytes: core.views.ranges.count() as u64 * RANGE_BYTES,
            pinned_bytes: cache.pinned_bytes,
        }
    }

    /// Every owner with its bytes, named as in [`Metrics::to_json`](super::Metrics::to_json) and
    /// [`Metrics::to_prometheus`](super::Metrics::to_prometheus). Nothing is in two of them.
    pub fn owners(&self) -> [(&'static str, u64); 13] {
        [
            ("cached_index", self.cached_index_bytes),
            ("cached_data", self.cached_data_bytes),
            ("cached_history", self.cached_history_bytes),
            ("cached_filter", self.cached_filter_bytes),
            ("in_flight", self.in_flight_bytes),
            ("cache_spare", self.cache_spare_bytes),
            ("memtables", self.memtable_bytes),
            ("log_buffers", self.log_buffer_bytes),
            ("builders", self.builder_bytes),
            ("compactions", self.compaction_bytes),
            ("imports", self.import_bytes),
            ("manifest", self.manifest_bytes),
            ("sessions", self.session_bytes),
        ]
    }

    /// The sum of all owners.
    pub fn total_bytes(&self) -> u64 {
        self.owners().iter().map(|(_, bytes)| bytes).sum()
    }
}
