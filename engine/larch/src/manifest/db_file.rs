//! A file of the database as one table sees it. Opening a file registers its name and reads nothing. This module
//! does not know the level of the file.

use super::directory::leftovers::Leftovers;
use super::edit::NewFile;
use os::Machine;
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use os::sync::{Arc, Mutex};
use pages::{PageCache, PagedFile};
use sst::{KnownGap, Meta, Slice, Sst};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A file on the disk, which one or several tables see. It is removed when no table sees it and no reader uses it
/// any more.
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
    /// The number of the file. A file that was created later has a larger number.
    pub number: u64,
    /// The epoch of the writer that created the file.
    pub epoch: u64,
    /// The part of the file that the table sees.
    pub sst: Arc<Sst>,
    /// The file's range erases up to this version were processed: rows that they hide in other files were cut off
    /// by slices, where that was worth the work. See [`cut`](crate::compact::cut).
    pub cut_through: AtomicU64,
    /// An estimate of the bytes in this file's slice that range erases in newer files hide.
    pub hidden_bytes: AtomicU64,
    /// An estimate of the bytes of rows within the file's own range erases with versions up to `cut_through`. A
    /// flush or a merge kept such rows because a reader could still need them.
    pub self_hidden_bytes: AtomicU64,
    on_disk: Arc<DiskFile>,
}

impl DbFile {
    /// The length of the whole file, in bytes.
    pub fn bytes(&self) -> u64 {
        self.sst.meta.file_bytes
    }

    /// The memory of the file's description, without its pages, in bytes: about 1 KiB. It counts for each table
    /// that sees the file.
    pub fn memory_bytes(&self) -> u64 {
        /// Memory besides the values: two reference counts for each of five `Arc`s, an allocator header for each of
        /// nine allocations, and a lock around the handle of an open file.
        const BESIDE_BYTES: usize = 5 * 16 + 9 * 16 + 64;
        let Sst { file, meta, slice, known_gap, .. } = &*self.sst;
        let fixed = size_of::<Self>() + size_of::<Sst>() + size_of::<DiskFile>() + size_of::<PagedFile>();
        let slice = slice
            .as_ref()
            .map_or(0, |slice| size_of::<Slice>() + slice.bounds.heap_bytes() + slice.rows.memory_bytes());
        let known_gap = known_gap.as_ref().map_or(0, |gap| size_of::<KnownGap>() + gap.heap_bytes());
        (fixed + file.path().as_os_str().len() + meta.heap_bytes() + known_gap + slice + BESIDE_BYTES) as u64
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.sst.file.path()
    }

    /// Lets the file be removed from the disk once no reader uses it. Call this only for a file that is not in the
    /// newest file set.
    pub fn discard(&self) {
        self.on_disk.obsolete.store(true, Ordering::Release);
        self.sst.file.kill();
    }

    /// A pointer that identifies the file on the disk, the same for all tables that see it.
    pub(super) fn identity(&self) -> *const PagedFile {
        Arc::as_ptr(&self.on_disk.file)
    }

    /// Whether `key` may be in this file.
    pub fn may_contain(&self, key: &[u8]) -> bool {
        self.sst.bounds().contains(key)
    }

    /// The newest version in this file.
    pub fn age(&self) -> u64 {
        self.sst.meta.newest.0 + self.sst.version_offset
    }

    /// The oldest version in this file.
    pub fn oldest(&self) -> u64 {
        self.sst.meta.oldest.0 + self.sst.version_offset
    }

    /// Whether some rows of the file may have expired at `now`, in milliseconds since 1970.
    pub fn has_expired_by(&self, now: u64) -> bool {
        self.sst.meta.expiry.as_ref().is_some_and(|expiry| expiry.earliest().millis() <= now)
    }

    /// The same file for a table that sees only `slice` of it; `None` means the whole file.
    pub fn sliced(&self, slice: Option<Slice>) -> Self {
        Self {
            number: self.number,
            epoch: self.epoch,
            sst: Arc::new(self.sst.sliced(slice)),
            cut_through: AtomicU64::new(self.cut_through.load(Ordering::Relaxed)),
            hidden_bytes: AtomicU64::new(self.hidden_bytes.load(Ordering::Relaxed)),
            self_hidden_bytes: AtomicU64::new(self.self_hidden_bytes.load(Ordering::Relaxed)),
            on_disk: self.on_disk.clone(),
        }
    }
}

/// Opens the files that edits name. Opening a file registers its name and reads nothing.
#[derive(Clone, Debug)]
pub struct FileOpener {
    /// The directory of the files.
    pub directory: PathBuf,
    /// The machine whose disk has the files.
    pub machine: Machine,
    /// The cache for the pages of the files.
    pub cache: Arc<PageCache>,
    /// See [`Sst::prefer_flat`].
    pub prefer_flat: bool,
    /// Files opened before an edit names them.
    pub early: EarlyFiles,
    /// The open files of a file set that was read earlier, by number. They are not opened again.
    pub known: Arc<HashMap<u64, Arc<DbFile>>>,
    /// Removes files that are in no file set any more.
    pub leftovers: Arc<Leftovers>,
}

/// Files that are open although no edit names them yet, by number, so that their pages can be loaded before the
/// install.
#[derive(Clone, Debug, Default)]
pub struct EarlyFiles(Arc<Mutex<HashMap<u64, Arc<DbFile>>>>);

impl FileOpener {
    /// This opener, with `files`, by number, as the files that are open already.
    pub fn knowing(&self, files: HashMap<u64, Arc<DbFile>>) -> Self {
        Self { known: Arc::new(files), ..self.clone() }
    }

    /// The path of a file.
    pub fn path(&self, number: u64, epoch: u64) -> PathBuf {
        self.directory.join(sst_name(number, epoch))
    }

    /// Opens a file that an edit will name later, and whose number no other file has had. The next [`Self::open`]
    /// with this number returns the same file.
    pub fn open_early(&self, new: &NewFile) -> Arc<DbFile> {
        let file = self.open(new.number, new.epoch, new.version_offset, new.meta.clone());
        self.early.0.lock().insert(new.number, file.clone());
        file
    }

    /// Forgets files that were opened early and were not named by an edit.
    pub fn forget_early(&self, numbers: impl IntoIterator<Item = u64>) {
        let forgotten: Vec<_> = {
            let mut early = self.early.0.lock();
            numbers.into_iter().filter_map(|number| early.remove(&number)).collect()
        };
        drop(forgotten);
    }

    /// Opens a file. This reads nothing.
    pub fn open(&self, number: u64, epoch: u64, version_offset: u64, meta: Meta) -> Arc<DbFile> {
        if let Some(early) = self.early.0.lock().remove(&number) {
            return early;
        }
        if let Some(known) = self.known.get(&number).filter(|known| known.epoch == epoch) {
            return Arc::new(known.sliced(None));
        }
        let on_disk = self.register(number, epoch, meta.file_id);
        self.open_on(on_disk, (number, epoch, version_offset), meta)
    }

    /// Opens the parts of a file that no edit names.
    pub fn open_parts(&self, parts: &[NewFile]) -> Vec<Arc<DbFile>> {
        let Some(first) = parts.first() else { return Vec::new() };
        let on_disk = self.register(first.number, first.epoch, first.meta.file_id);
        let open = |part: &NewFile| {
            let place = (part.number, part.epoch, part.version_offset);
            self.open_on(on_disk.clone(), place, part.meta.clone())
        };
        parts.iter().map(open).collect()
    }

    fn register(&self, number: u64, epoch: u64, file_id: u64) -> Arc<DiskFile> {
        let file = self.cache.register_on(self.path(number, epoch), file_id, &self.machine);
        Arc::new(DiskFile { file, leftovers: self.leftovers.clone(), obsolete: AtomicBool::new(false) })
    }

    fn open_on(
        &self,
        on_disk: Arc<DiskFile>,
        (number, epoch, version_offset): (u64, u64, u64),
        meta: Meta,
    ) -> Arc<DbFile> {
        let sst = Arc::new(Sst::new(on_disk.file.clone(), meta, version_offset, self.prefer_flat));
        let [cut_through, hidden_bytes, self_hidden_bytes] = Default::default();
        Arc::new(DbFile { number, epoch, sst, cut_through, hidden_bytes, self_hidden_bytes, on_disk })
    }
}

/// The file name of an SST.
pub fn sst_name(number: u64, epoch: u64) -> String {
    format!("{number:08}-{epoch}.sst")
}

/// How many file numbers a writer skips when another writer, for example in a copy of the database, may also use
/// the next numbers. Then two different files hardly ever get the same name. `random` may be any number.
pub fn number_distance(random: u64) -> u64 {
    1 + (random >> 20)
}

/// The name of an SST in a directory that several databases share. It adds the file's id to `name`, which comes
/// from [`sst_name`], because two copies of a database may make different files with the same number and epoch.
pub fn shared_name(name: &str, file_id: u64) -> String {
    format!("{}-{file_id:016x}.sst", name.trim_end_matches(".sst"))
}
