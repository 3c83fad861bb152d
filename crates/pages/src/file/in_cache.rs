//! How files are added to a cache, and how a caller finds out which of their pages are in the cache. Each file
//! gets a slot of its own in the cache. This module does not know how pages are found or read.

use super::PagedFile;
use crate::{FilesUsage, PageCache, ResidentPage};
use os::io::CallerReads;
use os::sync::Arc;
use os::{Disk, Machine, Reads};
use std::path::PathBuf;

impl PageCache {
    /// Makes the pages of a file known to the cache, without opening the file. A page is read by the thread that
    /// asks for it. `id` seeds the checksums of the pages. A file that is registered twice is cached twice.
    pub fn register(self: &Arc<Self>, path: impl Into<PathBuf>, id: u64, disk: Arc<dyn Disk>) -> Arc<PagedFile> {
        self.register_with(path.into(), id, disk, Arc::new(CallerReads))
    }

    /// Registers a file as [`PageCache::register`] does. The file is on the disk of `machine`. The reads of
    /// `machine` can read many pages at once.
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

    /// The pages of `files` that are in the cache now. Each file counts once. Pages that the cache does not keep
    /// are not counted. These are pages of sessions that only pass pages through or that exceed the budget, and
    /// pages of dead files.
    ///
    /// This call is for statistics and not for hot paths: its cost grows with the number of pages in the whole
    /// cache, not only of these files. Each stripe is locked while its pages are looked at.
    pub fn usage_of<'f>(&self, files: impl IntoIterator<Item = &'f Arc<PagedFile>>) -> FilesUsage {
        let at_home = |file: &&Arc<PagedFile>| {
            debug_assert!(file.is_at_home(self), "{file:?} is registered with another cache");
        };
        self.usage_in_slots(&slots_of(files.into_iter().inspect(at_home)))
    }

    /// At most `most` pages of `files` that are in the cache now, in no order. The call first takes the pages that
    /// [serve many](crate::PageKind::serves_many), then the pages that were used most.
    ///
    /// This call is for background work and not for hot paths: each stripe is locked twice while its pages are
    /// looked at.
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
