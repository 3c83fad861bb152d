//! What the engine asks of a file system. It does not know what the bytes mean.

mod reader;

pub use reader::FileReader;

use crate::ReadSource;
use crate::sync::Arc;
use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Unit of direct I/O: offsets, lengths and buffer addresses are multiples of it.
pub const BLOCK_BYTES: usize = 4096;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// An existing file, read through the system's page cache.
    Read,
    /// An existing file, read around the system's page cache where the file system allows it, through it elsewhere.
    ReadDirect,
    /// A new file for writing and reading; fails with `AlreadyExists` if the name is taken.
    Create,
    /// As `Create`, written around the system's page cache where the file system allows it.
    CreateDirect,
    /// An existing file for reading and writing.
    Write,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// File name without its directory.
    pub name: String,
    /// Length of the file in bytes, 0 for a directory.
    pub bytes: u64,
}

/// An advisory exclusive lock, held until dropped and released by the system when the process dies.
pub trait Lock: Send + Sync + Debug {}

/// A file system. Thread safe. Errors are the system's, with the path added to their text.
pub trait Disk: Send + Sync + Debug {
    /// Opens or creates a file.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such file, `AlreadyExists` for [`Access::Create`] and [`Access::CreateDirect`] if
    /// there is one, and other errors of the system.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>>;
    /// Renames a file within its directory, replacing the target in one step. Durable only after `sync_dir` of the
    /// directory.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no file `from`, and other errors of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Durable only after `sync_dir` of the directory.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such file, and other errors of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory, sorted.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such directory, and other errors of the system.
    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>>;
    /// Whether a file or directory has this name.
    ///
    /// # Errors
    ///
    /// The system's, if it cannot say.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Creates a directory and its parents, durable on return; succeeds if it exists.
    ///
    /// # Errors
    ///
    /// The system's.
    fn create_dir(&self, directory: &Path) -> io::Result<()>;
    /// Removes an empty directory. Durable only after `sync_dir` of its parent.
    ///
    /// # Errors
    ///
    /// `DirectoryNotEmpty` if the directory is not empty, and other errors of the system.
    fn remove_dir(&self, directory: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory durable. Syncing a new file does not: its bytes are then
    /// safe, and its name is not.
    ///
    /// # Errors
    ///
    /// The system's. After an error it is unknown which of the changes are durable.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;
    /// Takes the lock file `path`, which is created if it is missing.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the lock is held already, and other errors of the system.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;
    /// Whole contents of a file.
    ///
    /// # Errors
    ///
    /// As [`Disk::open`] and [`File::read_at`].
    fn read_all(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, Access::Read)?;
        let mut bytes = vec![0; usize::try_from(file.len()?).expect("a file read whole fits in memory")];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}

/// An open file. Thread safe; positions are explicit, there is no cursor. It is a [`ReadSource`] that is always open.
pub trait File: ReadSource {
    /// Fills `buffer` from `offset`; returns fewer bytes only at the end of the file. Any alignment is accepted; on a
    /// direct file, aligned offset, length and buffer (see [`crate::Buffer`]) avoid a copy.
    ///
    /// # Errors
    ///
    /// The system's. The contents of `buffer` are unspecified then.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`, extending the file if needed. A direct file wants aligned arguments and
    /// falls back to the system's page cache for others.
    ///
    /// # Errors
    ///
    /// The system's, among them `StorageFull`. Any part of `bytes` may be in the file then.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Writes all of `bytes` at the end and returns the offset they start at.
    ///
    /// # Errors
    ///
    /// The system's, among them `StorageFull`. Any part of `bytes` may be in the file then.
    fn append(&self, bytes: &[u8]) -> io::Result<u64>;
    /// Makes everything written so far durable, including the length.
    ///
    /// # Errors
    ///
    /// The system's. After an error it is unknown what is durable, and a later sync that succeeds does not change that.
    fn sync(&self) -> io::Result<()>;
    /// Length in bytes.
    ///
    /// # Errors
    ///
    /// The system's.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    ///
    /// # Errors
    ///
    /// As [`File::len`].
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Cuts or extends (with zeros) the file.
    ///
    /// # Errors
    ///
    /// The system's.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// Extends the file to `bytes`, with room on the disk behind all of them: no write below that finds the disk full. What is
    /// in the new bytes is not said. After an error the file may have any length up to that.
    ///
    /// # Errors
    ///
    /// The system's, among them `StorageFull`. The file may have any length up to `bytes` then.
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
    /// What reads of whole blocks can be made from without asking the file: as long as the file lives, the same bytes,
    /// by aligned offset, length and address. `None` if there is none, and the file makes all its reads itself. A
    /// caller whose read fails or is cut short asks the file, which reads in another way or reports the error.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[cfg(test)]
mod tests;
