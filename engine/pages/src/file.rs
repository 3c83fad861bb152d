//! A file whose pages are read by address. This module does not know what the pages mean, or which of them are kept
//! in memory.
//!
//! * Making a `PagedFile` opens nothing. The file is opened when the first read is made, not when it is asked for.
//!   The cache limits how many files are open at once, whether kept open or being read.
//! * Each file has a slot in its cache: a number that is never given to another file. So a page of a dropped file
//!   is never mistaken for a page of another file.
//! * A dead file (see [`PagedFile::kill`]) has no pages in the cache and gets none, but it can still be read as
//!   long as the disk has it.
//!
//! Thread safe.

mod around;
mod in_cache;

use crate::cache::FileState;
use crate::open_files::{FileHandle, OpenFiles};
use crate::page::{Undecoded, verify_address};
use crate::{Address, Error, PageCache, PageKind, Result};
use os::io::CallerReads;
use os::store::StoreObject;
use os::sync::{Arc, Weak};
use os::{Access, BLOCK_BYTES, Buffer, Disk, File, OpenSource, ReadSource, Reads};
use std::error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An immutable file of pages. Two values are equal only if they come from the same registration.
pub struct PagedFile {
    slot: u32,
    id: u64,
    path: PathBuf,
    disk: Arc<dyn Disk>,
    reads: Arc<dyn Reads>,
    handle: Arc<FileHandle>,
    pool: Arc<OpenFiles>,
    /// The cache with which the file is registered, as long as the cache lives.
    home: Weak<PageCache>,
    state: FileState,
}

/// The stored bytes of a page, within the whole blocks around it that were read.
pub(crate) struct StoredPage {
    /// What was read.
    pub buffer: Buffer,
    /// The offset of the page in the buffer.
    pub start: usize,
}

impl PagedFile {
    /// A file outside every cache, for tools and tests. `id` seeds the checksums of its pages.
    pub fn alone(path: impl Into<PathBuf>, id: u64, disk: Arc<dyn Disk>) -> Arc<Self> {
        let (reads, pool) = (Arc::new(CallerReads), Arc::new(OpenFiles::new(1)));
        Arc::new(Self::new(0, id, path.into(), disk, reads, pool, Weak::new()))
    }

    /// See [`PageCache::register`].
    pub(crate) fn new(
        slot: u32,
        id: u64,
        path: PathBuf,
        disk: Arc<dyn Disk>,
        reads: Arc<dyn Reads>,
        pool: Arc<OpenFiles>,
        home: Weak<PageCache>,
    ) -> Self {
        Self { slot, id, path, disk, reads, handle: Arc::default(), pool, home, state: FileState::new() }
    }

    /// The file's number in its cache, which the cache never gives to another file. 0 for a file outside every
    /// cache.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Seed of the checksums of its pages.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length in bytes. Opens the file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be opened or measured.
    pub fn len(&self) -> Result<u64> {
        self.with_open(|file| file.len()).map_err(|error| self.io_error("measure", error))
    }

    /// Whether the file has no bytes. Opens the file.
    ///
    /// # Errors
    ///
    /// As [`PagedFile::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Says that the file will not be read again. Its pages leave the cache, the pinned ones once they are
    /// unpinned, and its descriptor is closed. Dropping the last reference to the file does the same.
    pub fn kill(&self) {
        if !self.state.kill() {
            self.pool.close(&self.handle);
            if let Some(cache) = self.home.upgrade() {
                cache.forget(self.slot);
            }
        }
    }

    /// Sets whether the file's pages, once in the cache, stay there as long as any other page can be evicted. This
    /// holds within the share for kept pages; see [`PageCache::set_kept_bytes`]. When the file is no longer kept,
    /// its resident pages are evicted like any other.
    pub fn keep(&self, kept: bool) {
        let before = self.state.keep(kept);
        if before
            && !kept
            && let Some(cache) = self.home.upgrade()
        {
            cache.keep_no_more(self.slot);
        }
    }

    /// Whether pages of the file are kept.
    pub fn is_kept(&self) -> bool {
        self.state.is_kept()
    }

    /// Whether the file was killed.
    pub fn is_dead(&self) -> bool {
        self.state.is_dead()
    }

    /// What the cache has to know about the file.
    pub(crate) fn state(&self) -> &FileState {
        &self.state
    }

    /// An error about the bytes of a page of this file.
    pub fn corrupt(&self, kind: PageKind, offset: u64, why: impl Into<String>) -> Error {
        Error::Corrupt { file: self.path.clone(), page: kind.name(), offset, why: why.into() }
    }

    /// An error about a page of this file that could not be decoded.
    pub fn undecoded(&self, kind: PageKind, offset: u64, why: Undecoded) -> Error {
        match why {
            Undecoded::Damaged(why) => self.corrupt(kind, offset, why),
            Undecoded::MissingFeature(feature) => Error::MissingFeature { file: self.path.clone(), feature },
        }
    }

    /// Whether the file is registered with `cache`.
    pub(crate) fn is_at_home(&self, cache: &PageCache) -> bool {
        std::ptr::eq(Weak::as_ptr(&self.home), cache)
    }

    /// Reads the stored bytes of the page at `at`, and does not verify them.
    pub(crate) fn read(&self, at: &Address, kind: PageKind) -> Result<StoredPage> {
        verify_address(at).map_err(|why| self.corrupt(kind, at.offset, why))?;
        let start = (at.offset % BLOCK_BYTES as u64) as usize;
        let mut buffer = Buffer::zeroed((start + at.bytes as usize).next_multiple_of(BLOCK_BYTES));
        let read = self.with_open(|file| file.read_at(&mut buffer, at.offset - start as u64));
        let stored = self.stored(buffer, start, read)?;
        self.check_end(&stored, at.offset - start as u64, at, kind)?;
        Ok(stored)
    }

    /// The outcome of a read into `buffer`, in which the page starts at `start`.
    pub(crate) fn stored(&self, mut buffer: Buffer, start: usize, read: io::Result<usize>) -> Result<StoredPage> {
        let read = read.map_err(|error| self.io_error("read", error))?;
        buffer.set_len_within_capacity(read);
        Ok(StoredPage { buffer, start })
    }

    /// Checks that the bytes read from `offset` on reach to the end of the page. A read comes back short only at
    /// the end of the file.
    pub(crate) fn check_end(&self, stored: &StoredPage, offset: u64, at: &Address, kind: PageKind) -> Result<()> {
        let end = offset + stored.buffer.len() as u64;
        if at.end() <= end {
            return Ok(());
        }
        Err(self.corrupt(kind, at.offset, format!("the file ends at {end}, the page at {}", at.end())))
    }

    /// The store object behind this file, if it is one. Its bytes may have been damaged on the way from the store,
    /// so a second read may bring intact ones. `None` for other files, and while too many files are open.
    pub(crate) fn object(self: &Arc<Self>) -> Option<StoreObject> {
        let open = Arc::clone(self).try_open().ok()??;
        open.file().object()
    }

    /// Reads into `buffer` from `offset` on once more, after the first read brought damaged bytes. `None` if a
    /// second read cannot bring other bytes. See [`Store::begin_read_anew`](os::Store::begin_read_anew).
    pub fn read_anew(self: &Arc<Self>, buffer: &mut [u8], offset: u64) -> Option<io::Result<usize>> {
        let object = self.object()?;
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        // This function waits for the answer, so the receiver still exists when the read ends.
        let done = move |read: io::Result<&[&[u8]]>| sender.send(read.map(<[_]>::concat)).unwrap_or_default();
        object.store.begin_read_anew(&object.name, offset..offset + buffer.len() as u64, Box::new(done));
        let read = receiver.recv().unwrap_or_else(|_| Err(io::Error::other("the read was given up")));
        Some(read.map(|bytes| {
            buffer[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        }))
    }

    /// Makes the reads of this file.
    pub(crate) fn reads(&self) -> &Arc<dyn Reads> {
        &self.reads
    }

    /// Calls `act` with the open file. `act` must not open another file.
    fn with_open<T>(&self, act: impl FnOnce(&dyn File) -> io::Result<T>) -> io::Result<T> {
        let opened = self.pool.get(&self.handle, || self.open_on_disk());
        // Declared before the file, and so dropped after it, even if `act` panics.
        let _closing = GivesBack(&self.pool);
        let file = opened.map_err(not_opened)?;
        act(&*file)
    }

    /// The error of a failed `action`, or of the open before it.
    fn io_error(&self, action: &'static str, error: io::Error) -> Error {
        match error.downcast::<NotOpened>() {
            Ok(NotOpened(why)) => Error::io("open", &self.path, why),
            Err(error) => Error::io(action, &self.path, error),
        }
    }

    fn open_on_disk(&self) -> io::Result<Arc<dyn File>> {
        self.disk.open(&self.path, Access::ReadDirect)
    }
}

/// Each read opens the file when the read is made. Whoever waits for a read holds something that keeps the file on
/// the disk. If nobody waits any more, the read may find that the file is gone, and its error is dropped.
impl ReadSource for PagedFile {
    fn open(self: Arc<Self>) -> io::Result<OpenSource> {
        let file = self.pool.get(&self.handle, || self.open_on_disk()).map_err(not_opened)?;
        Ok(OpenSource::new(file, self))
    }

    fn try_open(self: Arc<Self>) -> io::Result<Option<OpenSource>> {
        let file = self.pool.try_get(&self.handle, || self.open_on_disk()).map_err(not_opened)?;
        Ok(file.map(|file| OpenSource::new(file, self)))
    }

    fn closed(&self) {
        self.pool.given_back();
    }
}

/// Notifies the pool that a file was given back.
struct GivesBack<'p>(&'p OpenFiles);

impl Drop for GivesBack<'_> {
    fn drop(&mut self) {
        self.0.given_back();
    }
}

/// Why a file could not be opened for a read.
#[derive(Debug)]
struct NotOpened(io::Error);

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl error::Error for NotOpened {}

fn not_opened(why: io::Error) -> io::Error {
    io::Error::new(why.kind(), NotOpened(why))
}

impl Drop for PagedFile {
    fn drop(&mut self) {
        self.kill();
        // A late reader may have opened the file again after the file was killed.
        self.pool.close(&self.handle);
    }
}

impl fmt::Debug for PagedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PagedFile")
            .field("path", &self.path)
            .field("id", &self.id)
            .field("slot", &self.slot)
            .field("dead", &self.is_dead())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
