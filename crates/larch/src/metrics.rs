//! Counters and sizes as plain values. What they cost to keep is a relaxed addition here and there.

use crate::core::Core;
use crate::manifest::{LEVELS, TableId};
use os::sync::atomic::{AtomicU64, Ordering};
use pages::PageKind;
use pages::cache::CacheUsage;
use pages::counters::Snapshot;

/// A database's counters since it was opened, and its sizes now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// Pages read from disk, of all kinds, for all reasons.
    pub page_reads: u64,
    /// Pages found in memory.
    pub page_hits: u64,
    /// Bytes of the pages read from disk.
    pub page_read_bytes: u64,
    /// Of the pages read, index nodes and flat indexes.
    pub index_page_reads: u64,
    /// Of the pages read, those that hold rows and values.
    pub data_page_reads: u64,
    /// Pages by reason and kind.
    pub pages: Snapshot,
    /// The page cache.
    pub cache: CacheUsage,
    /// Memory of rows not yet in files, in bytes.
    pub memtable_bytes: u64,
    /// Bytes appended to the log.
    pub log_bytes: u64,
    /// Bytes of files written by flushes.
    pub flush_bytes: u64,
    /// Bytes of files written by compactions.
    pub compaction_bytes: u64,
    /// Bytes of files written by imports.
    pub import_bytes: u64,
    /// Flushes done.
    pub flushes: u64,
    /// Compactions done, files moved without rewriting not among them.
    pub compactions: u64,
    /// Files moved to a deeper level without rewriting.
    pub trivial_moves: u64,
    /// Time commits were slowed because background work was behind, in microseconds.
    pub slowed_micros: u64,
    /// Snapshots and ranges that keep a version.
    pub pinned_versions: usize,
    /// Files in all tables.
    pub files: u64,
    /// Their bytes.
    pub file_bytes: u64,
}

impl Metrics {
    pub(crate) fn of(core: &Core) -> Self {
        let view = core.view();
        let pages = core.cache.counters().snapshot();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let written = &core.written;
        let files = || view.files.tables.values().flat_map(|table| table.files());
        Self {
            page_reads: pages.total().faults,
            page_hits: pages.total().hits,
            page_read_bytes: pages.total().read_bytes,
            index_page_reads: pages.index_reads(),
            data_page_reads: pages.data_reads(),
            pages,
            cache: core.cache.usage(),
            memtable_bytes: view.memory.iter().map(|memory| memory.bytes()).sum(),
            log_bytes: load(&written.log),
            flush_bytes: load(&written.flush),
            compaction_bytes: load(&written.compaction),
            import_bytes: load(&written.import),
            flushes: load(&written.flushes),
            compactions: load(&written.compactions),
            trivial_moves: load(&written.trivial_moves),
            slowed_micros: load(&written.slowed_micros),
            pinned_versions: core.snapshots.count(),
            files: files().count() as u64,
            file_bytes: files().map(|(_, file)| file.bytes()).sum(),
        }
    }

    /// Bytes of pages of one kind in memory.
    pub fn cached_bytes(&self, kind: PageKind) -> u64 {
        self.cache.bytes_of(kind)
    }
}

/// Sizes of a table, from the manifest. Rows in memory are not counted; a key in several files is counted in each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableStats {
    /// Newest versions in files.
    pub rows: u64,
    /// Of these, erases.
    pub erased_rows: u64,
    /// Older versions in files.
    pub history_rows: u64,
    /// Data pages.
    pub data_pages: u64,
    /// Stored bytes of data pages.
    pub data_bytes: u64,
    /// Stored bytes of all indexes.
    pub index_bytes: u64,
    /// Of these, B-trees.
    pub btree_bytes: u64,
    /// Of these, flat lists.
    pub flat_bytes: u64,
    /// Stored bytes of older versions.
    pub history_bytes: u64,
    /// Stored bytes of values outside data pages.
    pub value_bytes: u64,
    /// Stored bytes of range erases.
    pub range_erase_bytes: u64,
    /// Bytes of keys and values as they were given.
    pub user_bytes: u64,
    /// Files.
    pub files: u64,
    /// Bytes of files.
    pub file_bytes: u64,
    /// Levels with files, from the top.
    pub levels: Vec<LevelStats>,
    /// Index pages between the manifest and a data page, in the tallest file.
    pub index_height: u8,
    /// Rows not yet in files, all versions counted.
    pub memtable_rows: u64,
    /// Their memory in bytes.
    pub memtable_bytes: u64,
}

/// Sizes of a level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LevelStats {
    /// Its number.
    pub level: usize,
    /// Files in it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Rows in them.
    pub rows: u64,
}

impl TableStats {
    pub(crate) fn of(core: &Core, table: TableId) -> Option<Self> {
        let view = core.view();
        let files = view.files.tables.get(&table)?;
        let mut stats = Self::default();
        for memtable in view.memory.iter().filter_map(|memory| memory.table(table)) {
            stats.memtable_rows += memtable.rows();
            stats.memtable_bytes += memtable.bytes();
        }
        for level in 0..LEVELS {
            let mut here = LevelStats { level, ..LevelStats::default() };
            for file in files.levels[level].iter() {
                let meta = &file.sst.meta;
                here.files += 1;
                here.bytes += file.bytes();
                here.rows += meta.rows();
                if let Some(main) = meta.main {
                    stats.erased_rows += main.totals.erased;
                    stats.data_pages += main.data_pages;
                    stats.data_bytes += main.totals.bytes;
                    let height = main.root(file.sst.prefer_flat).height;
                    stats.index_height = stats.index_height.max(height);
                }
                for (_, tree) in meta.trees() {
                    stats.btree_bytes += tree.btree.map_or(0, |root| root.index_bytes);
                    stats.flat_bytes += tree.flat.map_or(0, |root| root.index_bytes);
                }
                stats.history_rows += meta.history.map_or(0, |tree| tree.totals.rows);
                stats.history_bytes += meta.history.map_or(0, |tree| tree.totals.bytes);
                stats.range_erase_bytes += meta.range_erases.map_or(0, |tree| tree.totals.bytes);
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
        Some(stats)
    }
}
