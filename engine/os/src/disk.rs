//! File systems as the engine uses them: disks, files and locks. This module does not know what the bytes mean.

mod directory_store;
mod file;
mod reader;

pub use directory_store::DirectoryStore;
pub use file::{File, OpenSource, ReadSource};
pub use reader::FileReader;

use crate::store::Bill;
use crate::sync::Arc;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// An existing file that is read through the system's page cache.
    Read,
    /// An existing file that is read around the system's page cache (direct I/O), or through the cache if the file
    /// system has no direct I/O.
    ReadDirect,
    /// A new file for writing and reading; fails with `AlreadyExists` if the name is taken.
    Create,
    /// As `Create`, but the file is written around the system's page cache if the file system allows this.
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

/// An advisory exclusive lock, held until this value is dropped. If the process dies, the system releases the lock.
pub trait Lock: Send + Sync + Debug {
    /// The fencing number of this holder, greater than that of every earlier holder. Only locks that another process
    /// can take over while they are held have one, such as the lock of a store. All others return `None`.
    fn holder(&self) -> Option<u64> {
        None
    }

    /// Checks that the lock is still held. Long jobs call this again and again, so an implementation may really look
    /// at the lock only now and then.
    ///
    /// # Errors
    ///
    /// An error if another process has taken the lock, or if the call cannot find out whether one has.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A file system. Thread safe. The methods return the system's errors, with the path added to their text.
pub trait Disk: Send + Sync + Debug {
    /// Opens or creates a file.
    ///
    /// # Errors
    ///
    /// `NotFound` if no such file exists, `AlreadyExists` for [`Access::Create`] and [`Access::CreateDirect`] if
    /// the file exists, and other errors of the system.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>>;
    /// Renames a file within its directory, and atomically replaces a file that already has the new name. The rename
    /// is durable only after `sync_dir` of the directory.
    ///
    /// # Errors
    ///
    /// `NotFound` if no file `from` exists, and other errors of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name on the same file system (a hard link). The file exists until its last name is
    /// removed. The second name is durable only after `sync_dir` of the directory of `to`.
    ///
    /// # Errors
    ///
    /// `NotFound` if no file `from` exists, `AlreadyExists` if the name `to` is taken; `CrossesDevices`,
    /// `TooManyLinks`, `Unsupported` or `PermissionDenied` if the file system cannot give the file a second name;
    /// and other errors of the system.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Creates `to` as a copy of `from` that shares its disk blocks until one of the two files is written to (a
    /// reflink). The bytes are durable on return. The name is durable after `sync_dir` of its directory.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the file system cannot make such copies, or if `to` is on another file system;
    /// `AlreadyExists` if the name `to` is taken; and other errors of the system. After an error, no new file `to`
    /// is left.
    fn copy_sharing(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Removes a file. The removal is durable only after `sync_dir` of the directory.
    ///
    /// # Errors
    ///
    /// `NotFound` if no such file exists, and other errors of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory, sorted.
    ///
    /// # Errors
    ///
    /// `NotFound` if no such directory exists, and other errors of the system.
    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>>;
    /// The names in a directory that end with `ending`, sorted. This may be cheaper than [`Disk::list`] on a disk
    /// where a listing costs more the more names it returns.
    ///
    /// # Errors
    ///
    /// The errors of [`Disk::list`].
    fn list_ending(&self, directory: &Path, ending: &str) -> io::Result<Vec<DirectoryEntry>> {
        Ok(self.list(directory)?.into_iter().filter(|entry| entry.name.ends_with(ending)).collect())
    }
    /// How long a file can still be read after its writer has removed it. `None` on disks where a reader instead
    /// writes a lease beside the files, which keeps them for as long as the lease exists.
    fn keeps_removed(&self) -> Option<Duration> {
        None
    }
    /// The requests made so far to the store that holds the files. `None` if the files are not in a store, or if the
    /// store does not count its requests.
    fn bill(&self) -> Option<Bill> {
        None
    }
    /// How many more bytes the files of `directory` may take, as far as the disk can tell. Other programs, or a
    /// reserve of the system, may leave less. `None` if the disk cannot tell.
    ///
    /// # Errors
    ///
    /// The system's error.
    fn free_bytes(&self, _directory: &Path) -> io::Result<Option<u64>> {
        Ok(None)
    }
    /// Tells the disk who owns its files: `owner` is a number that no other owner has. The caller must call this
    /// before it first reads an immutable file. A disk that caches what it reads puts this number into its cache
    /// keys, because an earlier owner may have used the same file names.
    fn bind(&self, _owner: u64) {}
    /// A local disk, and a directory on it for temporary files that one process writes and reads back, if the files
    /// of this disk are far away. The directory need not exist yet, and several processes may use the same one.
    /// `None` means that temporary files should lie beside the other files of this disk.
    fn scratch(&self) -> Option<(Arc<dyn Disk>, PathBuf)> {
        None
    }
    /// Whether a file or directory has this name.
    ///
    /// # Errors
    ///
    /// The system's error, if the system cannot find out whether the name exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Creates a directory and its parents. They are durable on return. The call also succeeds if the directory
    /// exists.
    ///
    /// # Errors
    ///
    /// The system's error.
    fn create_dir(&self, directory: &Path) -> io::Result<()>;
    /// As [`Disk::create_dir`], but on a system with users, no other user can read the new directory. Missing parents
    /// are created as [`Disk::create_dir`] creates them.
    ///
    /// # Errors
    ///
    /// The errors of [`Disk::create_dir`].
    fn create_private_dir(&self, directory: &Path) -> io::Result<()> {
        self.create_dir(directory)
    }
    /// Removes an empty directory. The removal is durable only after `sync_dir` of the parent of the directory.
    ///
    /// # Errors
    ///
    /// `DirectoryNotEmpty` if the directory is not empty, and other errors of the system.
    fn remove_dir(&self, directory: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory durable. A sync of a new file makes its bytes durable, but
    /// not its name.
    ///
    /// # Errors
    ///
    /// The system's error. After an error it is unknown which of the changes are durable.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;
    /// Locks the file `path`, and creates it if it is missing. A lock file that lies directly in a
    /// [held](Disk::hold) directory guards this directory.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the lock is held already, and other errors of the system.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;
    /// Returns the same file system, but *holding* `directory`: paths in `directory` keep leading to the directory
    /// that has this path now, even if it is moved and another directory gets its path. The directory must exist.
    /// `None` where a directory is only a name, as in a store. The caller then goes on with this disk.
    ///
    /// Once a lock has been taken in the held directory, the disk creates, changes and removes names there only
    /// while the lock file still has its name, and a sync succeeds only if the lock file still has it afterwards.
    /// Once the lock file has lost its name, another process can take a new lock under this name, so changes and
    /// syncs by this process fail with `StaleNetworkFileHandle`. So do calls that do not find a file because the
    /// directory was removed.
    ///
    /// # Errors
    ///
    /// `NotFound` if no such directory exists, and other errors of the system.
    fn hold(&self, _directory: &Path) -> io::Result<Option<Arc<dyn Disk>>> {
        Ok(None)
    }
    /// Creates a file with these bytes for another process to read. That process may see the file before all bytes
    /// are in it. The file is not synced, so a power failure may lose it.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if the name is taken, and other errors of the system. After an error, a partly written file
    /// may be left.
    fn create_with(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.open(path, Access::Create)?;
        if bytes.is_empty() { Ok(()) } else { file.write_at(bytes, 0) }
    }
    /// Whole contents of a file.
    ///
    /// # Errors
    ///
    /// The errors of [`Disk::open`] and [`File::read_at`].
    fn read_all(&self, path: &Path) -> io::Result<Vec<u8>> {
        read_whole(&*self.open(path, Access::Read)?)
    }
}

/// Returns `disk` [holding](Disk::hold) `directory`, or `disk` itself if it cannot hold directories.
///
/// # Errors
///
/// The errors of [`Disk::hold`].
pub fn hold(disk: &Arc<dyn Disk>, directory: &Path) -> io::Result<Arc<dyn Disk>> {
    Ok(disk.hold(directory)?.unwrap_or_else(|| disk.clone()))
}

/// Whole contents of a file.
///
/// # Errors
///
/// The errors of [`File::len`] and [`File::read_at`].
pub fn read_whole(file: &dyn File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.len()?).expect("a file read whole fits in memory")];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
mod held_tests;
#[cfg(test)]
mod tests;
