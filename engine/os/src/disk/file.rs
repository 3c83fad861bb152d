//! Files, and the sources that reads open to get at a file. This module does not know how files are found, or what
//! bounds the number of open files.
//!
//! A source is opened when a read is made, not when it is queued, so a queued read holds no descriptor. The thread
//! that makes a read opens its source, reads, and closes the source before it calls the read's callback. A thread
//! never waits to open a source while it has another one open.
//!
//! Files and sources share a module because each needs the other: a file is a source that is always open, and any
//! other source yields a file while it is open.

use crate::BLOCK_BYTES;
use crate::store::StoreObject;
use crate::sync::Arc;
use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;

/// An open file. Thread safe. A file has no cursor: the caller passes the position. A file is a [`ReadSource`] that
/// is always open.
pub trait File: ReadSource {
    /// Fills `buffer` from `offset`, and returns the number of bytes read, which is less than `buffer.len()` only at
    /// the end of the file. Any alignment is accepted. On a direct file, an aligned offset, length and buffer (see
    /// [`crate::Buffer`]) avoid a copy.
    ///
    /// # Errors
    ///
    /// The system's error. After an error, the contents of `buffer` are unspecified.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`, and extends the file if needed. On a direct file, an unaligned write goes
    /// through the system's page cache.
    ///
    /// # Errors
    ///
    /// The system's error, for example `StorageFull`. After an error, any part of `bytes` may be in the file.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at the end, and returns the offset at which they start.
    ///
    /// # Errors
    ///
    /// The system's error, for example `StorageFull`. After an error, any part of `bytes` may be in the file.
    fn append(&self, bytes: &[u8]) -> io::Result<u64>;
    /// Makes all bytes written so far durable, and the length of the file with them.
    ///
    /// # Errors
    ///
    /// The system's error. After an error it is unknown which bytes are durable, and a later sync that succeeds
    /// proves nothing about them.
    fn sync(&self) -> io::Result<()>;
    /// Length in bytes.
    ///
    /// # Errors
    ///
    /// The system's error.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    ///
    /// # Errors
    ///
    /// The errors of [`File::len`].
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts the file, or extends it with zeros.
    ///
    /// # Errors
    ///
    /// The system's error.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Asks the file system to reserve space for the first `bytes` bytes, so that later writes need not allocate. The
    /// length of the file stays the same. The call may do nothing, and does nothing if the disk is nearly full. The
    /// file system frees the space beyond the end when the file is removed or when `set_len` is called, even with
    /// the current length.
    ///
    /// # Errors
    ///
    /// The system's error, for example `StorageFull`. After an error, space may be reserved for some of the bytes.
    fn allocate_ahead(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }
    /// Extends the file to `bytes`, and allocates disk space for all of them, so that no later write below that
    /// length fails because the disk is full. The contents of the new bytes are unspecified.
    ///
    /// # Errors
    ///
    /// The system's error, for example `StorageFull`. After an error, the file may have any length up to `bytes`.
    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let zeros = [0; BLOCK_BYTES];
        let mut end = self.len()?;
        while end < bytes {
            let count = (bytes - end).min(BLOCK_BYTES as u64);
            self.write_at(&zeros[..count as usize], end)?;
            end += count;
        }
        Ok(())
    }
    /// Whether reads go around the system's page cache.
    fn is_direct(&self) -> bool;
    /// A descriptor from which a caller can read aligned blocks into aligned memory by itself, as long as the file
    /// lives. `None` if the file must make all its reads itself. If a read from the descriptor fails or is short,
    /// the caller repeats it with [`File::read_at`], which reads in another way or reports the error.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// The object, if this file is an object of a store. Reads of an object are asynchronous: no thread has to wait
    /// while they are under way.
    fn object(&self) -> Option<StoreObject> {
        None
    }
}

/// Something that can be opened for a read. Thread safe. Two reads have the same source if their `Arc`s point to the
/// same value. Every [`File`] is a source that is always open.
pub trait ReadSource: Send + Sync + Debug {
    /// Opens the source. The call may wait for other reads to end, so the caller must have no other source open.
    ///
    /// # Errors
    ///
    /// The system's error if it refuses to open the source.
    fn open(self: Arc<Self>) -> io::Result<OpenSource>;

    /// Opens the source without waiting for other reads. `None` if that would need a wait.
    ///
    /// # Errors
    ///
    /// The errors of [`ReadSource::open`].
    fn try_open(self: Arc<Self>) -> io::Result<Option<OpenSource>>;

    /// Whether neighbouring reads of the source can be joined into one. This needs a [descriptor](File::descriptor)
    /// or an [object](File::object). A source that cannot tell before it is opened returns true.
    fn may_join(&self) -> bool {
        true
    }

    /// Called when the result of [`ReadSource::open`] was dropped.
    fn closed(&self) {}
}

impl<F: File + 'static> ReadSource for F {
    fn open(self: Arc<Self>) -> io::Result<OpenSource> {
        Ok(OpenSource { file: self, closing: CloseNotice(None) })
    }

    fn try_open(self: Arc<Self>) -> io::Result<Option<OpenSource>> {
        self.open().map(Some)
    }

    fn may_join(&self) -> bool {
        self.descriptor().is_some() || self.object().is_some()
    }
}

/// An open source. The source is closed when this value is dropped.
#[derive(Debug)]
pub struct OpenSource {
    // Fields are dropped in declaration order, so the source is notified after this reference to the file is gone.
    file: Arc<dyn File>,
    #[expect(dead_code, reason = "it is there to be dropped")]
    closing: CloseNotice,
}

impl OpenSource {
    /// Wraps `file`, which `source` has opened. [`ReadSource::closed`] is called when this value is dropped.
    pub fn new(file: Arc<dyn File>, source: Arc<dyn ReadSource>) -> OpenSource {
        OpenSource { file, closing: CloseNotice(Some(source)) }
    }

    /// The file.
    pub fn file(&self) -> &dyn File {
        &*self.file
    }
}

/// Calls [`ReadSource::closed`] when it is dropped.
#[derive(Debug)]
struct CloseNotice(Option<Arc<dyn ReadSource>>);

impl Drop for CloseNotice {
    fn drop(&mut self) {
        if let Some(source) = &self.0 {
            source.closed();
        }
    }
}
