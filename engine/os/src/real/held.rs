//! A file system that holds directories: paths in a held directory keep leading to the directory that was opened, even
//! if it is moved and another directory gets its path. This module does not know what the files are.
//!
//! ```text
//! hold(/data/db)          a descriptor of the directory
//! lock(/data/db/LOCK)     the guard: from now on changes need it
//!
//! mv /data/db /old        reads and changes go on, in /old
//! rm -rf /data/db         the guard has no name, and the directory none: every change is refused, and so is the end of every sync
//! rm /data/db/LOCK        the same, although the directory is there: another process can have taken a new lock
//! ```
//!
//! - Names in the directory are looked up relative to its descriptor, so no call reaches another directory at the old
//!   path.
//! - A call that creates, changes or removes a name in the directory, or opens a file for writing, first checks that
//!   the guard still has its name.
//! - A sync succeeds only if the guard still has a name afterwards. This costs one `fstat` for each sync.
//!
//! The check of the guard and the change are not atomic. If somebody removes the lock file by hand between the two,
//! another process can take a new lock in the same directory, and this process still makes its change. If the whole
//! directory is removed or moved, this cannot happen.
//!
//! Thread safe. Clones of the disk share the directories that they hold.

use super::file::RealFile;
use super::guard::Guard;
use super::lock::RealLock;
use super::place::Place;
use crate::failure::{cannot, lost};
use crate::sync::{Arc, Mutex};
use crate::{Access, DirectoryEntry, Disk, File, Lock};
use rustix::fs::OFlags;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// The file system, with some held directories.
#[derive(Clone, Debug)]
pub(super) struct HeldDirectory {
    /// The directory that was held last comes first. A path is looked up in the first directory that contains it. So if
    /// a directory is held after one that contains it, its files are looked up in it.
    held: Vec<Arc<Held>>,
}

/// A directory that is held.
#[derive(Debug)]
pub(super) struct Held {
    /// The path that the directory had when it was opened.
    path: PathBuf,
    directory: fs::File,
    guard: Mutex<Option<Arc<Guard>>>,
}

impl Held {
    fn guard(&self) -> Option<Arc<Guard>> {
        self.guard.lock().clone()
    }

    /// Fails if the lock file has lost its name, because another process may then use the directory. This is also the
    /// case if the directory was removed.
    fn check(&self) -> io::Result<()> {
        self.guard().map_or(Ok(()), |guard| guard.check_name(&self.directory))
    }

    /// Whether the directory was removed.
    fn is_removed(&self) -> bool {
        rustix::fs::fstat(&self.directory).is_ok_and(|stat| stat.st_nlink == 0)
    }

    fn check_there(&self) -> io::Result<()> {
        if self.is_removed() { Err(lost(&self.path)) } else { Ok(()) }
    }

    /// Replaces `NotFound` with an error that says that the directory is lost, if it is.
    fn explain(&self, error: io::Error) -> io::Error {
        if error.kind() == ErrorKind::NotFound && (self.is_removed() || self.check().is_err()) {
            return lost(&self.path);
        }
        error
    }
}

/// A path, and the held directory in which it lies.
struct Found<'p> {
    place: Place<'p>,
    held: Option<&'p Arc<Held>>,
    /// The name relative to the held directory.
    within: &'p Path,
}

impl Found<'_> {
    fn check(&self) -> io::Result<()> {
        self.held.map_or(Ok(()), |held| held.check())
    }

    /// The held directory, if the path names the directory itself.
    fn itself(&self) -> Option<&Arc<Held>> {
        self.held.filter(|_| self.within.as_os_str().is_empty())
    }

    /// Explains the error as `cause` does, and adds the action and the path.
    fn explain(&self, action: &'static str, error: io::Error) -> io::Error {
        cannot(action, self.place.path, self.cause(error))
    }

    fn cause(&self, error: io::Error) -> io::Error {
        match self.held {
            Some(held) => held.explain(error),
            None => error,
        }
    }
}

impl HeldDirectory {
    /// The file system, with `directory` as its first held directory.
    pub(super) fn first(directory: &Path) -> io::Result<HeldDirectory> {
        HeldDirectory { held: Vec::new() }.and(directory)
    }

    /// The same file system with one more held directory.
    fn and(&self, directory: &Path) -> io::Result<HeldDirectory> {
        let place = self.find(directory).place;
        let opened =
            place.open(OFlags::RDONLY | OFlags::DIRECTORY).map_err(|error| cannot("open", directory, error))?;
        let held = Held { path: directory.to_owned(), directory: opened, guard: Mutex::new(None) };
        Ok(HeldDirectory { held: [Arc::new(held)].into_iter().chain(self.held.iter().cloned()).collect() })
    }

    fn find<'p>(&'p self, path: &'p Path) -> Found<'p> {
        let within = |held: &'p Arc<Held>| Some((held, path.strip_prefix(&held.path).ok()?));
        match self.held.iter().find_map(within) {
            Some((held, within)) => {
                let place = Place::in_directory(held.directory.as_fd(), within, path);
                Found { place, held: Some(held), within }
            }
            None => Found { place: Place::named(path), held: None, within: path },
        }
    }
}

impl Disk for HeldDirectory {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let found = self.find(path);
        let changes = !matches!(access, Access::Read | Access::ReadDirect);
        if changes {
            found.check().map_err(|error| cannot("open", path, error))?;
        }
        let file = RealFile::open(&found.place, access).map_err(|error| found.cause(error))?;
        let guard = found.held.filter(|_| changes).and_then(|held| held.guard());
        Ok(Arc::new(file.guarded_by(guard)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, new) = (self.find(from), self.find(to));
        let renamed = old.check().and_then(|()| new.check()).and_then(|()| old.place.rename(&new.place));
        renamed.map_err(|error| old.explain("rename", error))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, new) = (self.find(from), self.find(to));
        let linked = new.check().and_then(|()| old.place.link(&new.place));
        linked.map_err(|error| old.explain("link", error))
    }

    #[cfg(target_os = "linux")]
    fn copy_sharing(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, new) = (self.find(from), self.find(to));
        new.check().map_err(|error| cannot("create", to, error))?;
        old.place.copy_sharing(&new.place)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let found = self.find(path);
        let removed = found.check().and_then(|()| found.place.remove());
        removed.map_err(|error| found.explain("remove", error))?;
        if let Some(held) = found.held {
            // A process that removes its own lock file no longer has a guard.
            held.guard.lock().take_if(|guard| guard.name() == found.within);
        }
        Ok(())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        let found = self.find(directory);
        // The listing of a removed directory would be empty, and not fail.
        let there = found.itself().map_or(Ok(()), |held| held.check_there());
        there.and_then(|()| found.place.list()).map_err(|error| found.explain("list", error))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let found = self.find(path);
        let there = found.place.exists().and_then(|is_there| match found.held {
            Some(held) if !is_there || found.itself().is_some() => held.check_there().map(|()| is_there),
            _ => Ok(is_there),
        });
        there.map_err(|error| found.explain("look for", error))
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        let found = self.find(directory);
        if let Some(held) = found.itself() {
            return held.check_there().map_err(|error| cannot("create directory", directory, error));
        }
        let made = found.check().and_then(|()| found.place.create_dir());
        made.map_err(|error| found.cause(error))
    }

    fn free_bytes(&self, directory: &Path) -> io::Result<Option<u64>> {
        self.find(directory).place.free_bytes().map(Some)
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        let found = self.find(directory);
        let Some(held) = found.itself() else {
            let removed = found.check().and_then(|()| found.place.remove_dir());
            return removed.map_err(|error| found.explain("remove directory", error));
        };
        // The directory's own name lies in its parent, which is not held.
        let named = Place::named(directory);
        let is_named = named.is_name_of(&held.directory);
        let removed = is_named.and_then(|is| if is { named.remove_dir() } else { Err(lost(&held.path)) });
        removed.map_err(|error| cannot("remove directory", directory, error))
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let found = self.find(directory);
        let synced = match found.itself() {
            Some(held) => held.directory.sync_all(),
            None => found.place.sync_dir(),
        };
        let kept = |()| found.held.and_then(|held| held.guard()).map_or(Ok(()), |guard| guard.check());
        synced.and_then(kept).map_err(|error| found.explain("sync directory", error))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let found = self.find(path);
        let taken = RealLock::take(&found.place).map_err(|error| found.cause(error))?;
        if let Some(held) = found.held.filter(|_| found.within.components().count() == 1) {
            let guard =
                Guard::new(found.within, &held.path, taken.file()).map_err(|error| cannot("lock", path, error))?;
            *held.guard.lock() = Some(Arc::new(guard));
        }
        Ok(Box::new(taken))
    }

    fn hold(&self, directory: &Path) -> io::Result<Option<Arc<dyn Disk>>> {
        Ok(Some(Arc::new(self.and(directory)?)))
    }
}
