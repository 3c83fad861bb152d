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
pub trait Lock: Send + Sync + Debug {
    /// Where another process may take the lock although it is held, as on a store: a number greater than that of every
    /// earlier holder. `None` where a lock that is held is refused.
    fn holder(&self) -> Option<u64> {
        None
    }

    /// Whether it is still held, for work that takes long: asked again and again, it looks now and then.
    ///
    /// # Errors
    ///
    /// Another process has taken it; it cannot be found out.
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
    /// Renames a file within its directory, replacing the target in one step. Durable only after `sync_dir` of the
    /// directory.
    ///
    /// # Errors
    ///
    /// `NotFound` if no file `from` exists, and other errors of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name, on the same file system. Both names stand for the same bytes, and the file is there
    /// until the last of them is removed. Durable only after `sync_dir` of the directory of `to`.
    ///
    /// # Errors
    ///
    /// `NotFound` if no file `from` exists, `AlreadyExists` if the name `to` is taken; `CrossesDevices`,
    /// `TooManyLinks`, `Unsupported` or `PermissionDenied` where the file system cannot have a second name; and other
    /// errors of the system.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Makes `to` a new file with the bytes of `from`, which the file system stores once until either of them is
    /// written to. The bytes are durable on return, and the name is after `sync_dir` of its directory.
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
    /// Those names in a directory that end with `ending`, sorted. Where listing costs by the number of names, this may
    /// cost less than [`Disk::list`].
    ///
    /// # Errors
    ///
    /// As [`Disk::list`].
    fn list_ending(&self, directory: &Path, ending: &str) -> io::Result<Vec<DirectoryEntry>> {
        Ok(self.list(directory)?.into_iter().filter(|entry| entry.name.ends_with(ending)).collect())
    }
    /// How long a file can be read after its writer has removed it, where readers have no other way to keep it than
    /// this time. `None` where a reader can write a lease beside the files.
    fn keeps_removed(&self) -> Option<Duration> {
        None
    }
    /// What the store was asked in which the files are, if they are in one that counts it.
    fn bill(&self) -> Option<Bill> {
        None
    }
    /// Says what the files belong to, by a number that nothing else has, before files that never change are read. A
    /// disk that keeps what was read near needs it: a name may have stood for another file once.
    fn bind(&self, _owner: u64) {}
    /// A disk of this machine and a directory there, which need not be there yet, for files that one process writes and
    /// reads again for a while, if the files of this disk are far away. Several processes may use it. `None` where such
    /// files lie beside the others.
    fn scratch(&self) -> Option<(Arc<dyn Disk>, PathBuf)> {
        None
    }
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
    /// As [`Disk::create_dir`], of a directory that no other user can read, on systems with users. Its parents are as
    /// always.
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
    /// Makes creations, renames and removals in a directory durable. Syncing a new file does not: its bytes are then
    /// safe, and its name is not.
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
    /// The same file system, on which paths in `directory`, which must exist, keep to the directory that has this path
    /// now: if it is moved, its new place is used, and a directory that comes to its old place is not. `None` where a
    /// directory is nothing but its name, as in a store: then the caller goes on with this disk.
    ///
    /// Once a lock is taken in the directory, names in it are made, changed and removed only while the lock file has
    /// its name, and a sync succeeds only if it had one afterwards: another process that takes a lock of this name
    /// meets no change of this one. After that these calls fail with `StaleNetworkFileHandle`, and so do calls that
    /// miss a file because the directory was removed.
    ///
    /// # Errors
    ///
    /// `NotFound` if no such directory exists, and other errors of the system.
    fn hold(&self, _directory: &Path) -> io::Result<Option<Arc<dyn Disk>>> {
        Ok(None)
    }
    /// Makes a file with these bytes, for another process to read. The other process may see it before all bytes are in
    /// it, and a power failure may remove it.
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

/// `disk` with `directory` held, if it can be held there.
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
