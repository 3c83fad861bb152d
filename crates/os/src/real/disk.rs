//! The system's file system. It does not know how a file reads and writes.

use super::file::RealFile;
use crate::failure::cannot;
use crate::process::ProcessOrigin;
use crate::sync::Arc;
use crate::{Access, DirectoryEntry, Disk, File, Lock};
#[cfg(target_os = "linux")]
use rustix::io::Errno;
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// The system's file system.
#[derive(Clone, Copy, Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let file = match access {
            Access::Read => RealFile::read(path),
            Access::ReadDirect => RealFile::read_direct(path),
            Access::Create => RealFile::create(path),
            Access::CreateDirect => RealFile::create_direct(path),
            Access::Write => RealFile::write(path),
        };
        let action = if matches!(access, Access::Create | Access::CreateDirect) { "create" } else { "open" };
        Ok(Arc::new(file.map_err(|error| cannot(action, path, error))?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to).map_err(|error| cannot("rename", from, error))
    }

    #[cfg(unix)]
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        use rustix::fs::{AtFlags, CWD, linkat};
        // A second name of a symbolic link would stand for whatever the link leads to later.
        let linked = linkat(CWD, from, CWD, to, AtFlags::SYMLINK_FOLLOW);
        linked.map_err(|error| cannot("link", from, error.into()))
    }

    #[cfg(not(unix))]
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to).map_err(|error| cannot("link", from, error))
    }

    #[cfg(target_os = "linux")]
    fn copy_sharing(&self, from: &Path, to: &Path) -> io::Result<()> {
        let source = fs::File::open(from).map_err(|error| cannot("open", from, error))?;
        let copy = OpenOptions::new().write(true).create_new(true).open(to);
        let copy = copy.map_err(|error| cannot("create", to, error))?;
        let copied = match rustix::fs::ioctl_ficlone(&copy, &source) {
            // What file systems without such copies say, and what all say about two file systems.
            Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::XDEV | Errno::NOSYS) => {
                Err(io::ErrorKind::Unsupported.into())
            }
            Err(error) => Err(error.into()),
            Ok(()) => copy.sync_all(),
        };
        copied.map_err(|error| {
            // If it cannot be removed either, the error is still that of the copy.
            fs::remove_file(to).ok();
            cannot("copy", from, error)
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path).map_err(|error| cannot("remove", path, error))
    }

    /// A name that is not UTF-8 was not given by us; it is listed with replacement characters.
    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        let failed = |error| cannot("list", directory, error);
        let mut entries = Vec::new();
        for entry in fs::read_dir(or_here(directory)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            match entry.metadata() {
                Ok(metadata) => entries.push(DirectoryEntry {
                    name: entry.file_name().to_string_lossy().into_owned(),
                    bytes: if metadata.is_dir() { 0 } else { metadata.len() },
                }),
                // Removed since the directory was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        or_here(path).try_exists().map_err(|error| cannot("look for", path, error))
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        let directory = or_here(directory);
        if directory.is_dir() {
            return Ok(());
        }
        let parent = directory.parent().unwrap_or(Path::new(""));
        self.create_dir(parent)?;
        match fs::create_dir(directory) {
            Ok(()) => self.sync_dir(parent),
            // Another process created it meanwhile.
            Err(_) if directory.is_dir() => Ok(()),
            Err(error) => Err(cannot("create directory", directory, error)),
        }
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        fs::remove_dir(directory).map_err(|error| cannot("remove directory", directory, error))
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        fs::File::open(or_here(directory))
            .and_then(|directory| directory.sync_all())
            .map_err(|error| cannot("sync directory", directory, error))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let failed = |error| cannot("lock", path, error);
        for _ in 0..LOCK_ATTEMPTS {
            let file = open_lock(path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(failed(io::Error::new(io::ErrorKind::WouldBlock, "another process has it open")));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            let lock = RealLock { file, origin: ProcessOrigin::here() };
            // Each round that ends without a lock means that another process has removed the file meanwhile.
            if is_named(&lock.file, path).map_err(failed)? {
                return Ok(Box::new(lock));
            }
        }
        Err(failed(io::Error::other(
            "the file is another one each time it is locked; use a file system with stable inodes",
        )))
    }
}

/// How often taking a lock is tried. Each try fails only if another process has removed the file meanwhile.
const LOCK_ATTEMPTS: u32 = 1000;

pub(super) fn open_lock(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Whether `path` is the name of the open file. The process that held the lock before may have removed the file between the opening
/// and the locking; then another process can have locked a new file of this name.
#[cfg(unix)]
pub(super) fn is_named(file: &fs::File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let locked = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (locked.dev(), locked.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Elsewhere a name stays taken as long as the file is open.
#[cfg(not(unix))]
pub(super) fn is_named(_: &fs::File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// The parent of a bare relative name is the empty path, which the system does not take for the current directory.
fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// A locked file (flock). The lock belongs to the open file, which a child process shares from its fork until it ends or runs
/// another program. So the process that took the lock releases it, and does not leave that to the last descriptor.
#[derive(Debug)]
struct RealLock {
    file: fs::File,
    origin: ProcessOrigin,
}

impl Lock for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        if self.origin.is_here() {
            // If it cannot be released here, it is when the last descriptor is closed.
            self.file.unlock().ok();
        }
    }
}
