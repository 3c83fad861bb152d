//! How a cache is given files, each of which gets a slot of its own, and is asked for their pages. It does not know how
//! pages are found or read.

use super::PagedFile;
use crate::{FilesUsage, PageCache, ResidentPage};
use os::io::CallerReads;
use os::sync::Arc;
use os::{Disk, Machine, Reads};
use std::path::PathBuf;

impl PageCache {
    /// Makes the pages of a file known to the cache, without opening it; they are read on the thread that asks. `id`
    /// seeds the checksums of its pages. A file registered twice is cached twice.
    pub fn register(self: &Arc<Self>, path: impl Into<PathBuf>, id: u64, disk: Arc<dyn Disk>) -> Arc<PagedFile> {
        self.register_with(path.into(), id, disk, Arc::new(CallerReads))
    }

    /// As [`PageCache::register`], for a file of `machine`, many pages of which may be read at once.
    pub fn register_on(self: &Arc<Self>, path: impl Into<PathBuf>, id: u64, machine: &Machine) -> Arc<PagedFile> {
        self.register_with(path.into(), id, Arc::clone(&machine.disk), Arc::clone(&machine.reads))
    }

    fn register_with(
        self: &Arc<Self>,
        path: PathBuf,
        id: u64,
        disk: Arc<dyn Disk>,
        reads: Arc<dyn Reads>,
    ) -> Arc<PagedFile> {
        let (pool, home) = (Arc::clone(self.open_files()), Arc::downgrade(self));
        Arc::new(PagedFile::new(self.new_slot(), id, path, disk, reads, pool, home))
    }

    /// Pages of `files` in the cache now, each file counted once. Pages that the cache does not keep are not among
    /// them: those of sessions that pass pages through or exceed the budget, and those of dead files.
    ///
    /// For statistics, not for hot paths: the cost grows with the number of pages in the cache, whatever files they are
    /// of, and each shard is locked while its share of them is looked at.
    pub fn usage_of<'f>(&self, files: impl IntoIterator<Item = &'f Arc<PagedFile>>) -> FilesUsage {
        let at_home = |file: &&Arc<PagedFile>| {
            debug_assert!(file.is_at_home(self), "{file:?} is registered with another cache");
        };
        self.usage_in_slots(&slots_of(files.into_iter().inspect(at_home)))
    }

    /// Pages of `files` in the cache now, at most `most`: first those that [serve many](crate::PageKind::serves_many),
    /// then those that were used most. In no order.
    ///
    /// For care, not for hot paths: each shard is locked while its pages are looked at, twice.
    pub fn resident_of<'f>(
        &self,
        files: impl IntoIterator<Item = &'f Arc<PagedFile>>,
        most: usize,
    ) -> Vec<ResidentPage> {
        self.resident_in_slots(&slots_of(files.into_iter()), most)
    }
}

/// The slots of files, sorted.
fn slots_of<'f>(files: impl Iterator<Item = &'f Arc<PagedFile>>) -> Vec<u32> {
    let mut slots: Vec<u32> = files.map(|file| file.slot()).collect();
    slots.sort_unstable();
    slots
}
