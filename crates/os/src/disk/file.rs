//! A file, and a source: something that can be opened so that it can be read. A source is opened when a read is
//! made, not when the read is asked for. This module does not know how files are found, or what bounds the number
//! of open files.
//!
//! Files and sources are in one module because each needs the other: a file is a source that is always open, and
//! every other source gives a file while it is open.
//!
//! A read that waits in a queue holds no descriptor. The thread that makes a read opens its source, reads, and closes
//! the source before it reports the end. A thread that has one source open does not wait for another source to be
//! opened.

use crate::BLOCK_BYTES;
use crate::store::StoreObject;
use crate::sync::Arc;
use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;

/// An open file. Thread safe. A file has no cursor: the caller of each method gives the position. A file is a
/// [`ReadSource`] that is always open.
pub trait File: ReadSource {
    /// Fills `buffer` from `offset`, and returns how many bytes it has read. They are fewer than `buffer` holds
    /// only at the end of the file. Any alignment is accepted. On a direct file, an aligned offset, length and
    /// buffer (see [`crate::Buffer`]) avoid a copy.
    ///
    /// # Errors
    ///
    /// The system's error. After an error, the contents of `buffer` are unspecified.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`, and extends the file if needed. For a direct file, the arguments should
    /// be aligned. Other arguments make the write go through the system's page cache.
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
    /// The system's error. After an error it is unknown which bytes are durable. Even if a later sync succeeds,
    /// some of these bytes may not be durable.
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
    /// As [`File::len`].
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts the file, or extends it with zeros.
    ///
    /// # Errors
    ///
    /// The system's error.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Asks the file system to reserve room for the first `bytes` bytes, so that later writes need not look for
    /// room. The length of the file stays the same. The call may do nothing, and if the disk is nearly full it
    /// does nothing. When the file is removed or `set_len` is called, the file system takes back the room beyond
    /// the end of the file. It does so even if `set_len` keeps the current length.
    ///
    /// # Errors
    ///
    /// The system's error, for example `StorageFull`. After an error, room may be reserved for some of the bytes.
    fn allocate_ahead(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }
    /// Extends the file to `bytes`, and takes room on the disk for all of them. So no later write below that length
    /// fails because the disk is full. The contents of the new bytes are unspecified. After an error the file may
    /// have any length up to `bytes`.
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
    /// A descriptor with which a caller can read whole blocks without asking the file. As long as the file lives,
    /// reads of aligned blocks into aligned memory give the same bytes as the file gives. `None` if the file has
    /// no such descriptor. Then the file makes all its reads itself. If a read with the descriptor fails or
    /// returns too few bytes, the caller repeats the read with [`File::read_at`]. Then the file reads without this
    /// descriptor, or reports the error.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// Returns the object if this file is an object of a store. While reads of an object are under way, no thread
    /// has to wait for these reads.
    fn object(&self) -> Option<StoreObject> {
        None
    }
}

/// Something that can be opened for a read. Thread safe. Two reads have the same source if both point to the same
/// value in memory.
///
/// Every [`File`] is a source, and is always open.
pub trait ReadSource: Send + Sync + Debug {
    /// Opens the source. The call may wait until other reads are over, so the caller must have no other source
    /// open.
    ///
    /// # Errors
    ///
    /// The system's error, if the system refuses to open the source.
    fn open(self: Arc<Self>) -> io::Result<OpenSource>;

    /// Opens the source without waiting for other reads. `None` if it would have to wait.
    ///
    /// # Errors
    ///
    /// As [`ReadSource::open`].
    fn try_open(self: Arc<Self>) -> io::Result<Option<OpenSource>>;

    /// Whether it is worth making neighbouring reads of the source as one read. Only a source that has a
    /// [descriptor](File::descriptor) or is an [object](File::object) can make one read of several. A source that
    /// cannot know this before it is opened returns true.
    fn may_join(&self) -> bool {
        true
    }

    /// Notes that the result of [`ReadSource::open`] was dropped.
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
    // Fields are dropped in the order in which they are declared. So the source is notified after this reference to
    // the file is gone.
    file: Arc<dyn File>,
    #[expect(dead_code, reason = "it is there to be dropped")]
    closing: CloseNotice,
}

impl OpenSource {
    /// Holds `file`, which `source` has opened. `source` is notified when this value is dropped.
    pub fn new(file: Arc<dyn File>, source: Arc<dyn ReadSource>) -> OpenSource {
        OpenSource { file, closing: CloseNotice(Some(source)) }
    }

    /// The file.
    pub fn file(&self) -> &dyn File {
        &*self.file
    }
}

/// Notifies a source.
#[derive(Debug)]
struct CloseNotice(Option<Arc<dyn ReadSource>>);

impl Drop for CloseNotice {
    fn drop(&mut self) {
        if let Some(source) = &self.0 {
            source.closed();
        }
    }
}
