//! Memory by owner. All memory of the engine has exactly one owner, so the sum over all owners is what the database
//! adds to the memory of the process. Only things that never take more than a few KiB are not counted. This module
//! does not know how the memory is used.

use super::cached::Cached;
use crate::core::Core;
use crate::manifest::TableFiles;
use os::sync::atomic::Ordering;
use pages::cache::CacheUsage;

/// The memory of a range while it is read: its cursors, its keys, and the notes of its session, but not its pages.
/// With files in one level, 2.4 KiB were measured.
const RANGE_BYTES: u64 = 3 << 10;

/// The memory of a database at one moment, by owner, in bytes. Sizes of the cache cover all databases that share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Index nodes and flat indexes in memory. This size and the next three include the entries of these pages in the
    /// cache's tables.
    pub cached_index_bytes: u64,
    /// Data pages, parts of column groups, values outside pages and range erases in memory.
    pub cached_data_bytes: u64,
    /// Pages of older versions in memory.
    pub cached_history_bytes: u64,
    /// Filters in memory.
    pub cached_filter_bytes: u64,
    /// Memory reserved for pages that are being read.
    pub in_flight_bytes: u64,
    /// Memory of the cache that no page uses now: that of evicted pages, and room for more entries in the cache's
    /// tables. It is a lower bound, too small by the bytes of pages of more than 1 MiB and of pages beyond the
    /// budget, whose memory comes from outside the cache.
    pub cache_spare_bytes: u64,
    /// Memory of zstd decompression states, which is not part of the cache's budget. Each thread that decompresses
    /// needs a state of 96 KiB, so their number is that of the threads that have decompressed at the same time. While
    /// no thread decompresses, at most a sixteenth of the budget is kept in states, but at least one state.
    pub unpacker_bytes: u64,
    /// Memory of rows that are not in files yet, with the lists that hold them. Includes rows that are in files but
    /// are kept in memory by values, long values that merges have made for a reader, and memory allocated for further
    /// rows.
    pub memtable_bytes: u64,
    /// The buffers in which the log encodes records.
    pub log_buffer_bytes: u64,
    /// Memory for files that flushes, compactions and imports are writing: zstd compressors, open pages, closed
    /// index nodes, filters, range erases that are being merged, and bytes that are gathered for the disk. For each
    /// file, the number is off by at most about 64 KiB.
    pub builder_bytes: u64,
    /// Pages that compactions and merges of imports have read around the cache.
    pub compaction_bytes: u64,
    /// Rows of imports that are still to be sorted, and descriptions of the files of imports.
    pub import_bytes: u64,
    /// Descriptions of files and tables, and the buffers in which the manifest encodes records.
    pub manifest_bytes: u64,
    /// An estimate of the memory of ranges that are being read beyond their first pages, without their pages.
    pub session_bytes: u64,
    /// Pages in memory that are pinned. The sizes above include them, so this is not an owner.
    pub pinned_bytes: u64,
}

impl Memory {
    pub(super) fn of(core: &Core, cache: &CacheUsage) -> Self {
        let view = core.views.newest();
        let cached = Cached::of(|kind| cache.bytes_of(kind));
        let load = |bytes: &os::sync::atomic::AtomicU64| bytes.load(Ordering::Relaxed);
        let files = view.files.tables.values().flat_map(|table| table.files());
        let files: u64 = files.map(|(_, file)| file.memory_bytes()).sum();
        // Each table is a node in two trees, of which one also holds the table's name. A node takes about 64 bytes
        // more.
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
            unpacker_bytes: cache.unpacker_bytes,
            memtable_bytes: view.memory.iter().map(|memory| memory.bytes()).sum::<u64>()
                + core.env.held.rows.other_bytes(),
            log_buffer_bytes: load(&core.env.held.log),
            builder_bytes: core.env.held.builders.bytes(),
            compaction_bytes: core.env.held.compactions.used_bytes(),
            import_bytes: core.env.held.imports.bytes(),
            manifest_bytes: load(&core.env.held.manifest) + files + tables as u64,
            session_bytes: core.views.ranges.count() as u64 * RANGE_BYTES,
            pinned_bytes: cache.pinned_bytes,
        }
    }

    /// Every owner with its bytes, under the names of [`Metrics::to_json`](super::Metrics::to_json) and
    /// [`Metrics::to_prometheus`](super::Metrics::to_prometheus). No memory counts for two owners.
    pub fn owners(&self) -> [(&'static str, u64); 14] {
        [
            ("cached_index", self.cached_index_bytes),
            ("cached_data", self.cached_data_bytes),
            ("cached_history", self.cached_history_bytes),
            ("cached_filter", self.cached_filter_bytes),
            ("in_flight", self.in_flight_bytes),
            ("cache_spare", self.cache_spare_bytes),
            ("unpackers", self.unpacker_bytes),
            ("memtables", self.memtable_bytes),
            ("log_buffers", self.log_buffer_bytes),
            ("builders", self.builder_bytes),
            ("compactions", self.compaction_bytes),
            ("imports", self.import_bytes),
            ("manifest", self.manifest_bytes),
            ("sessions", self.session_bytes),
        ]
    }

    /// The sum of the bytes of all owners.
    pub fn total_bytes(&self) -> u64 {
        self.owners().iter().map(|(_, bytes)| bytes).sum()
    }
}
