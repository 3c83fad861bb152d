//! A file of the database as a table sees it, and how one is opened. Opening registers a name; nothing is read.

use super::edit::NewFile;
use crate::files::leftovers::Leftovers;
use os::Machine;
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use os::sync::{Arc, Mutex};
use pages::{PageCache, PagedFile};
use sst::{KnownGap, Meta, Slice, Sst};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A file on the disk, seen by one table or by several. Removed when no table sees it any more and nobody reads it.
#[derive(Debug)]
struct DiskFile {
    file: Arc<PagedFile>,
    leftovers: Arc<Leftovers>,
    obsolete: AtomicBool,
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            self.leftovers.remove(self.file.path());
        }
    }
}

/// A file of the database as a table sees it.
#[derive(Debug)]
pub struct DbFile {
    /// Its number, growing with age of creation.
    pub number: u64,
    /// The writer that made it.
    pub epoch: u64,
    /// What is seen of its contents.
    pub sst: Arc<Sst>,
    /// Range erases of it up to this version have been turned into slices of the files they hide, as far as that is
    /// worth it.
    pub cut_through: AtomicU64,
    on_disk: Arc<DiskFile>,
}

impl DbFile {
    /// Length in bytes, of all of it.
    pub fn bytes(&self) -> u64 {
        self.sst.meta.file_bytes
    }

    /// Memory of what is known of it, without that of its pages: about 1 KiB. What several tables see is counted for each.
    pub fn memory_bytes(&self) -> u64 {
        /// Two counts before each of five shared values, what the allocator puts before each of nine, and a lock around the
        /// handle of an open file.
        const BESIDE_BYTES: usize = 5 * 16 + 9 * 16 + 64;
        let Sst { file, meta, slice, known_gap, .. } = &*self.sst;
        let fixed = size_of::<Self>() + size_of::<Sst>() + size_of::<DiskFile>() + size_of::<PagedFile>();
        let slice = slice
            .as_ref()
            .map_or(0, |slice| size_of::<Slice>() + slice.bounds.heap_bytes() + slice.rows.memory_bytes());
        let known_gap = known_gap.as_ref().map_or(0, |gap| size_of::<KnownGap>() + gap.heap_bytes());
        (fixed + file.path().as_os_str().len() + meta.heap_bytes() + known_gap + slice + BESIDE_BYTES) as u64
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.sst.file.path()
    }

    /// Removes the file from the disk once nobody reads it. For files that are no longer, or never were, in a set.
    pub fn discard(&self) {
        self.on_disk.obsolete.store(true, Ordering::Release);
        self.sst.file.kill();
    }

    /// The same for all tables that see the file.
    pub(super) fn identity(&self) -> *const PagedFile {
        Arc::as_ptr(&self.on_disk.file)
    }

    /// Whether `key` may be in it.
    pub fn may_contain(&self, key: &[u8]) -> bool {
        self.sst.bounds().contains(key)
    }

    /// Newest version in it.
    pub fn age(&self) -> u64 {
        self.sst.meta.newest.0 + self.sst.version_offset
    }

    /// The same file, of which `slice` is seen; `None`: all.
    pub fn sliced(&self, slice: Option<Slice>) -> Self {
        Self {
            number: self.number,
            epoch: self.epoch,
            sst: Arc::new(self.sst.sliced(slice)),
            cut_through: AtomicU64::new(self.cut_through.load(Ordering::Relaxed)),
            on_disk: self.on_disk.clone(),
        }
    }
}

/// What turns an edit into a live file: a registered name, nothing read.
#[derive(Clone, Debug)]
pub struct FileOpener {
    /// Where files are.
    pub directory: PathBuf,
    /// Where they are read.
    pub machine: Machine,
    /// The cache their pages go through.
    pub cache: Arc<PageCache>,
    /// See [`Sst::prefer_flat`].
    pub prefer_flat: bool,
    /// Files that are opened before they are part of any set.
    pub early: EarlyFiles,
    /// Files by their numbers that are taken over from a set that was read before.
    pub known: Arc<HashMap<u64, Arc<DbFile>>>,
    /// Removes files that are no longer in any set.
    pub leftovers: Arc<Leftovers>,
}

/// Files opened before an edit names them, so that pages of them can be in memory when it does. By their numbers.
#[derive(Clone, Debug, Default)]
pub struct EarlyFiles(Arc<Mutex<HashMap<u64, Arc<DbFile>>>>);

impl FileOpener {
    /// The path of a file.
    pub fn path(&self, number: u64, epoch: u64) -> PathBuf {
        self.directory.join(sst_name(number, epoch))
    }

    /// Opens a file that an edit will name, with a number that was not used before; [`Self::open`] gives the same then.
    pub fn open_early(&self, new: &NewFile) -> Arc<DbFile> {
        let file = self.open(new.number, new.epoch, new.version_offset, new.meta.clone());
        self.early.0.lock().insert(new.number, file.clone());
        file
    }

    /// Gives up files opened early that no edit has named.
    pub fn forget_early(&self, numbers: impl IntoIterator<Item = u64>) {
        let forgotten: Vec<_> = {
            let mut early = self.early.0.lock();
            numbers.into_iter().filter_map(|number| early.remove(&number)).collect()
        };
        drop(forgotten);
    }

    /// A live file; nothing is read.
    pub fn open(&self, number: u64, epoch: u64, version_offset: u64, meta: Meta) -> Arc<DbFile> {
        if let Some(early) = self.early.0.lock().remove(&number) {
            return early;
        }
        if let Some(known) = self.known.get(&number).filter(|known| known.epoch == epoch) {
            return Arc::new(known.sliced(None));
        }
        let file = self.cache.register_on(self.path(number, epoch), meta.file_id, &self.machine);
        let on_disk =
            DiskFile { file: file.clone(), leftovers: self.leftovers.clone(), obsolete: AtomicBool::new(false) };
        let sst = Arc::new(Sst::new(file, meta, version_offset, self.prefer_flat));
        Arc::new(DbFile { number, epoch, sst, cut_through: AtomicU64::new(0), on_disk: Arc::new(on_disk) })
    }
}

/// Name of an SST.
pub fn sst_name(number: u64, epoch: u64) -> String {
    format!("{number:08}-{epoch}.sst")
}
