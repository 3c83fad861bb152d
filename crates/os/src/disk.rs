//! What the engine asks of a file system. This module does not know what the bytes mean.

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
    /// An existing file that is read around the system's page cache if the file system allows this. On other file
    /// systems, the file is read through the cache.
    ReadDirect,
    /// A new file for writing and reading; fails with `AlreadyExists` if the name is taken.
    Create,
    /// A new file as with `Create`, but it is written around the system's page cache if the file system allows
    /// this.
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

/// An advisory exclusive lock. The lock is held until this value is dropped. If the process dies, the system
/// releases the lock.
pub trait Lock: Send + Sync + Debug {
    /// The number of this holder, which is greater than the number of every earlier holder. Only some locks have
    /// such a number: those that another process may take although they are held, as on a store. Other locks
    /// return `None`.
    fn holder(&self) -> Option<u64> {
        None
    }

    /// Checks that the lock is still held. A job that takes long makes this call again and again. Only some of the
    /// calls really look at the lock.
    ///
    /// # Errors
    ///
    /// The call fails if another process has taken the lock, or if the call cannot find out whether another
    /// process has taken it.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A file system. Thread safe. The methods return the system's errors, with the path added to the text of each
/// error.
pub trait Disk: Send + Sync + Debug {
    /// Opens or creates a file.
    ///
    /// # Errors
    ///
    /// `NotFound` if no such file exists, `AlreadyExists` for [`Access::Create`] and [`Access::CreateDirect`] if
    /// the file exists, and other errors of the system.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>>;
    /// Renames a file within its directory. If another file has the new name, that file is replaced in one step.
    /// The rename is durable only after `sync_dir` of the directory.
    ///
    /// # Errors
    ///
    /// `NotFound` if no file `from` exists, and other errors of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name on the same file system. Both names stand for the same bytes, and the file exists
    /// until its last name is removed. The second name is durable only after `sync_dir` of the directory of `to`.
    ///
    /// # Errors
    ///
    /// `NotFound` if no file `from` exists, `AlreadyExists` if the name `to` is taken; `CrossesDevices`,
    /// `TooManyLinks`, `Unsupported` or `PermissionDenied` if the file system cannot give the file a second name;
    /// and other errors of the system.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes `to` a new file with the bytes of `from`. The file system stores these bytes only once, until one of
    /// the two files is written to. The bytes are durable on return. The name is durable after `sync_dir` of its
    /// directory.
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
    /// The names in a directory that end with `ending`, sorted. If the cost of a listing grows with the number of
    /// names, this call may cost less than [`Disk::list`].
    ///
    /// # Errors
    ///
    /// As [`Disk::list`].
    fn list_ending(&self, directory: &Path, ending: &str) -> io::Result<Vec<DirectoryEntry>> {
        Ok(self.list(directory)?.into_iter().filter(|entry| entry.name.ends_with(ending)).collect())
    }
    /// How long a file can still be read after its writer has removed it. On some disks, a reader can write a
    /// lease beside the files, and the files stay as long as the lease does. On such a disk the result is `None`.
    fn keeps_removed(&self) -> Option<Duration> {
        None
    }
    /// The requests that were made to the store in which the files are. `None` if the files are in no store, or in
    /// a store that does not count its requests.
    fn bill(&self) -> Option<Bill> {
        None
    }
    /// Tells the disk who owns its files: `owner` is a number that no other owner has. The caller must make this
    /// call before it first reads a file of the kind that never changes. A disk that caches what it has read needs
    /// this number, because the same name may earlier have stood for another file.
    fn bind(&self, _owner: u64) {}
    /// If the files of this disk are far away, a local disk and a directory on that local disk. The directory is
    /// for files that one process writes and reads again for a while. The directory need not exist yet, and
    /// several processes may use the same directory. If the result is `None`, such files should lie beside the
    /// other files of this disk.
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
    /// Creates a directory as [`Disk::create_dir`] does, but on a system with users, no other user can read the
    /// directory. Parents that are missing are created as [`Disk::create_dir`] creates them.
    ///
    /// # Errors
    ///
    /// As [`Disk::create_dir`].
    fn create_private_dir(&self, directory: &Path) -> io::Result<()> {
        self.create_dir(directory)
    }
    /// Removes an empty directory. The removal is durable only after `sync_dir` of the parent of the directory.
    ///
    /// # Errors
    ///
    /// `DirectoryNotEmpty` if the directory is not empty, and other errors of the system.
    fn remove_dir(&self, directory: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory durable. Syncing a new file makes its bytes durable, but
    /// not its name.
    ///
    /// # Errors
    ///
    /// The system's error. After an error it is unknown which of the changes are durable.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;
    /// Takes the lock file `path`, which is created if it is missing. A lock file that lies directly in a directory
    /// that is [held](Disk::hold) guards this directory.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the lock is held already, and other errors of the system.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;
    /// Gives the same file system in a form that *holds* `directory`. In this form, paths in `directory` always
    /// mean the directory that has this path now. The directory must exist. If the directory is moved later, these
    /// paths still lead to it. If another directory gets the old path, these paths do not lead to that other
    /// directory. `None` where a directory is only a name, as in a store. The caller then goes on with this disk.
    ///
    /// Once a lock was taken in the held directory, the disk makes, changes and removes names in the directory
    /// only while the lock file still exists under its name. A sync succeeds only if the lock file still exists
    /// under its name after the sync. Another process can take the lock only with a new lock file of this name,
    /// and from then on this process changes nothing in the directory. If the lock file has lost its name, changes
    /// and syncs fail with `StaleNetworkFileHandle`. Calls that do not find a file because the directory was
    /// removed fail with the same error.
    ///
    /// # Errors
    ///
    /// `NotFound` if no such directory exists, and other errors of the system.
    fn hold(&self, _directory: &Path) -> io::Result<Option<Arc<dyn Disk>>> {
        Ok(None)
    }
    /// Makes a file with these bytes, for another process to read. The other process may see the file before all
    /// bytes are in it. A power failure may remove the file.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if the name is taken; other errors of the system. After an error, a part of the file may be
    /// there.
    fn create_with(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.open(path, Access::Create)?;
        if bytes.is_empty() { Ok(()) } else { file.write_at(bytes, 0) }
    }
    /// Whole contents of a file.
    ///
    /// # Errors
    ///
    /// As [`Disk::open`] and [`File::read_at`].
    fn read_all(&self, path: &Path) -> io::Result<Vec<u8>> {
        read_whole(&*self.open(path, Access::Read)?)
    }
}

/// Gives `disk` in the form that [holds](Disk::hold) `directory`, or `disk` itself if it cannot hold directories.
///
/// # Errors
///
/// As [`Disk::hold`].
pub fn hold(disk: &Arc<dyn Disk>, directory: &Path) -> io::Result<Arc<dyn Disk>> {
    Ok(disk.hold(directory)?.unwrap_or_else(|| disk.clone()))
}

/// Whole contents of a file.
///
/// # Errors
///
/// As [`File::len`] and [`File::read_at`].
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
