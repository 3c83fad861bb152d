//! What the engine asks of a file system. It does not know what the bytes mean.

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
    /// An existing file, read through the system's page cache.
    Read,
    /// An existing file. It is read around the system's page cache where the file system allows this, and through it
    /// elsewhere.
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

/// An advisory exclusive lock. It is held until it is dropped, and the system releases it when the process dies.
pub trait Lock: Send + Sync + Debug {
    /// A number greater than the number of every earlier holder, where another process may take the lock although it
    /// is held, as on a store. `None` where a lock that is held is refused.
    fn holder(&self) -> Option<u64> {
        None
    }

    /// Checks whether the lock is still held, for work that takes long. Such work calls this again and again; not
    /// every call really looks.
    ///
    /// # Errors
    ///
    /// Another process has taken the lock, or the call cannot find out whether one has.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A file system. Thread safe. Errors are the system's, with the path added to their text.
pub trait Disk: Send + Sync + Debug {
    /// Opens or creates a file.
    ///
    /// # Errors
    ///
    /// `NotFound` if no such file exists, `AlreadyExists` for [`Access::Create`] and [`Access::CreateDirect`] if one
    /// exists, and other errors of the system.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>>;
    /// Renames a file within its directory, and replaces the target in one step. It is durable only after `sync_dir`
    /// of the directory.
    ///
    /// # Errors
    ///
    /// `NotFound` if no file `from` exists, and other errors of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name, on the same file system. Both names stand for the same bytes, and the file exists
    /// until its last name is removed. It is durable only after `sync_dir` of the directory of `to`.
    ///
    /// # Errors
    ///
    /// `NotFound` if no file `from` exists, `AlreadyExists` if the name `to` is taken; `CrossesDevices`,
    /// `TooManyLinks`, `Unsupported` or `PermissionDenied` where the file system cannot have a second name; and other
    /// errors of the system.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes `to` a new file with the bytes of `from`. The file system stores these bytes once until one of the two
    /// files is written to. The bytes are durable on return; the name is durable after `sync_dir` of its directory.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the file system has no such copies, or `to` is on another one; `AlreadyExists` if the name `to`
    /// is taken; and other errors of the system. Then no new file `to` is left.
    fn copy_sharing(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Removes a file. Durable only after `sync_dir` of the directory.
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
    /// The names in a directory that end with `ending`, sorted. Where the cost of a listing grows with the number of
    /// names, this may cost less than [`Disk::list`].
    ///
    /// # Errors
    ///
    /// As [`Disk::list`].
    fn list_ending(&self, directory: &Path, ending: &str) -> io::Result<Vec<DirectoryEntry>> {
        Ok(self.list(directory)?.into_iter().filter(|entry| entry.name.ends_with(ending)).collect())
    }
    /// How long a file can be read after its writer has removed it, if readers have no other way to keep a removed
    /// file. `None` where a reader can write a lease beside the files.
    fn keeps_removed(&self) -> Option<Duration> {
        None
    }
    /// What the store that holds the files was asked, if the files are in a store that counts its requests.
    fn bill(&self) -> Option<Bill> {
        None
    }
    /// Says what the files belong to, by a number that nothing else has. It is called before files that never change
    /// are read. A disk that caches what it read needs the number, because a name may once have stood for another
    /// file.
    fn bind(&self, _owner: u64) {}
    /// A local disk and a directory on it, if the files of this disk are far away. They are for files that one
    /// process writes and reads again for a while. The directory need not exist yet, and several processes may use
    /// it. `None` where such files lie beside the other files.
    fn scratch(&self) -> Option<(Arc<dyn Disk>, PathBuf)> {
        None
    }
    /// Whether a file or directory has this name.
    ///
    /// # Errors
    ///
    /// The system's, if it cannot say.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Creates a directory and its parents, durable on return. It succeeds if the directory exists.
    ///
    /// # Errors
    ///
    /// The system's.
    fn create_dir(&self, directory: &Path) -> io::Result<()>;
    /// As [`Disk::create_dir`], but no other user can read the directory, on systems with users. Its parents are
    /// created as by [`Disk::create_dir`].
    ///
    /// # Errors
    ///
    /// As [`Disk::create_dir`].
    fn create_private_dir(&self, directory: &Path) -> io::Result<()> {
        self.create_dir(directory)
    }
    /// Removes an empty directory. Durable only after `sync_dir` of its parent.
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
    /// The system's. After an error it is unknown which of the changes are durable.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;
    /// Takes the lock file `path`, which is created if it is missing. If it lies directly in a directory that is
    /// [held](Disk::hold), it guards this directory.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the lock is held already, and other errors of the system.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;
    /// The same file system, on which paths in `directory`, which must exist, always mean the directory that has this
    /// path now. If this directory is moved, its new place is used. If another directory comes to the old place, it
    /// is not used. `None` where a directory is only a name, as in a store; then the caller goes on with this disk.
    ///
    /// After a lock was taken in the directory, names in it are made, changed and removed only while the lock file
    /// has its name. A sync succeeds only if the lock file still had its name afterwards. So another process that
    /// takes a lock of this name meets no change by this process. When the lock file has lost its name, these calls
    /// fail with `StaleNetworkFileHandle`. Calls that miss a file because the directory was removed fail with it,
    /// too.
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
    /// `AlreadyExists` if the name is taken; other errors of the system. Then a part of the file may be there.
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

/// `disk` with `directory` held, if `disk` can hold directories.
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
