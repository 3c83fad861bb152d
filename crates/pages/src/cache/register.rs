//! How a cache is given files: each gets a slot of its own. It does not know how their pages are found or read.

use super::PageCache;
use crate::PagedFile;
use os::io::CallerReads;
use os::sync::Arc;
use os::sync::atomic::Ordering;
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
        let slot = self.next_slot.fetch_add(1, Ordering::Relaxed);
        assert!(slot != 0, "four billion files were registered with one cache");
        Arc::new(PagedFile::new(slot, id, path, disk, reads, Arc::clone(&self.open_files), Arc::downgrade(self)))
    }
}
