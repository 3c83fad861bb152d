//! Registers files with a cache, and tells which of their pages are resident. Each file gets a slot of its own.
//! This module does not know how pages are found or read.

use super::PagedFile;
use crate::{FilesUsage, PageCache, ResidentPage};
use os::io::CallerReads;
use os::sync::Arc;
use os::{Disk, Machine, Reads};
use std::path::PathBuf;

impl PageCache {
    /// Registers a file without opening it. Its pages are read by the threads that ask for them. `id` seeds the
    /// checksums of the pages. A file that is registered twice is cached twice.
    pub fn register(self: &Arc<Self>, path: impl Into<PathBuf>, id: u64, disk: Arc<dyn Disk>) -> Arc<PagedFile> {
        self.register_with(path.into(), id, disk, Arc::new(CallerReads))
    }

    /// Like [`PageCache::register`], but for a file on the disk of `machine`, whose reads can make many reads at
    /// once.
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

    /// The resident pages of `files`. A file that is given twice counts once. Pages that the cache does not keep
    /// are not counted: those of sessions that pass pages through or exceed the budget, and those of dead files.
    ///
    /// For statistics, not for hot paths: the cost grows with all pages in the cache, not only those of `files`.
    /// Each stripe is locked while its pages are visited.
    pub fn usage_of<'f>(&self, files: impl IntoIterator<Item = &'f Arc<PagedFile>>) -> FilesUsage {
        let at_home = |file: &&Arc<PagedFile>| {
            debug_assert!(file.is_at_home(self), "{file:?} is registered with another cache");
        };
        self.usage_in_slots(&slots_of(files.into_iter().inspect(at_home)))
    }

    /// At most `most` of the resident pages of `files`, in no order. Pages that [serve
    /// many](crate::PageKind::serves_many) take precedence, and then those that were used most.
    ///
    /// For background work, not for hot paths: each stripe is locked twice while its pages are visited.
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
