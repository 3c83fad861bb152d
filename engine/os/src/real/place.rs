//! All system calls that take a path. A path is looked up relative to a directory that is held open, or relative to
//! the current directory of the process. This module does not know who holds a directory, or why.
//!
//! ```text
//! RealDisk           Place { base: the current directory, name: "/data/db/00000031.log" }    the name at the time of the call
//! HeldDirectory      Place { base: descriptor of /data/db, name: "00000031.log" }            that directory, wherever it is by now
//! ```

use crate::DirectoryEntry;
use crate::failure::cannot;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::path::Path;

/// A path, relative to a base directory. Made for one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'p> {
    base: BorrowedFd<'p>,
    /// Relative to the base, unless it is absolute.
    name: &'p Path,
    /// The path as the caller knows it, for messages.
    pub(super) path: &'p Path,
}

impl<'p> Place<'p> {
    /// `path`, as the process looks it up at the time of the call.
    pub(super) fn named(path: &'p Path) -> Place<'p> {
        Place { base: CWD, name: path, path }
    }

    /// `name` in the directory `base`, which the caller knows as `path`.
    pub(super) fn in_directory(base: BorrowedFd<'p>, name: &'p Path, path: &'p Path) -> Place<'p> {
        Place { base, name, path }
    }

    /// The name for a system call: `.` in place of the empty name, which means the base directory itself.
    fn name(&self) -> &'p Path {
        if self.name.as_os_str().is_empty() { Path::new(".") } else { self.name }
    }

    fn parent(&self) -> Place<'p> {
        Place {
            name: self.name.parent().unwrap_or(Path::new("")),
            path: self.path.parent().unwrap_or(Path::new("")),
            ..*self
        }
    }

    /// Opens the file with the given flags, and with the close-on-exec flag as the standard library does.
    pub(super) fn open(&self, flags: OFlags) -> io::Result<fs::File> {
        let mode = Mode::from_raw_mode(0o666);
        let opened = retry_on_intr(|| rustix::fs::openat(self.base, self.name(), flags | OFlags::CLOEXEC, mode));
        Ok(fs::File::from(opened?))
    }

    /// Opens the lock file, and creates it if it is missing.
    pub(super) fn open_lock(&self) -> io::Result<fs::File> {
        self.open(OFlags::RDWR | OFlags::CREATE)
    }

    /// Whether this path leads to the open file.
    pub(super) fn is_name_of(&self, file: &fs::File) -> io::Result<bool> {
        let opened = rustix::fs::fstat(file)?;
        match rustix::fs::statat(self.base, self.name(), AtFlags::empty()) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn exists(&self) -> io::Result<bool> {
        match rustix::fs::statat(self.base, self.name(), AtFlags::empty()) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn is_dir(&self) -> bool {
        let stat = rustix::fs::statat(self.base, self.name(), AtFlags::empty());
        stat.is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir())
    }

    pub(super) fn rename(&self, to: &Place<'_>) -> io::Result<()> {
        Ok(rustix::fs::renameat(self.base, self.name(), to.base, to.name())?)
    }

    pub(super) fn link(&self, to: &Place<'_>) -> io::Result<()> {
        // Symbolic links are followed, so that the second name is one of the file itself. A second name of a link
        // would follow later changes of where the link leads.
        Ok(rustix::fs::linkat(self.base, self.name(), to.base, to.name(), AtFlags::SYMLINK_FOLLOW)?)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn copy_sharing(&self, to: &Place<'_>) -> io::Result<()> {
        let source = self.open(OFlags::RDONLY).map_err(|error| cannot("open", self.path, error))?;
        let copy = to.open(OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL);
        let copy = copy.map_err(|error| cannot("create", to.path, error))?;
        let copied = match rustix::fs::ioctl_ficlone(&copy, &source) {
            // One of these errors is returned if the file system has no reflinks, or if the two files are on
            // different file systems.
            Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::XDEV | Errno::NOSYS) => {
                Err(ErrorKind::Unsupported.into())
            }
            Err(error) => Err(error.into()),
            Ok(()) => copy.sync_all(),
        };
        copied.map_err(|error| {
            // The error of the copy is the one to report, even if the removal fails, too.
            to.remove().ok();
            cannot("copy", self.path, error)
        })
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.base, self.name(), AtFlags::empty())?)
    }

    pub(super) fn remove_dir(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.base, self.name(), AtFlags::REMOVEDIR)?)
    }

    /// Lists the directory. A name that is not UTF-8, which this program never creates, is listed with replacement
    /// characters.
    pub(super) fn list(&self) -> io::Result<Vec<DirectoryEntry>> {
        let directory = self.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => entries.push(DirectoryEntry {
                    name: name.to_string_lossy().into_owned(),
                    bytes: match rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() {
                        true => 0,
                        false => u64::try_from(stat.st_size).unwrap_or(0),
                    },
                }),
                // The file was removed after the directory was read.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Creates the directory and its missing parents, durably.
    pub(super) fn create_dir(&self) -> io::Result<()> {
        self.make_dir(0o777)
    }

    /// As [`Place::create_dir`], but only this user can read the new directory.
    pub(super) fn create_private_dir(&self) -> io::Result<()> {
        self.make_dir(0o700)
    }

    fn make_dir(&self, mode: u32) -> io::Result<()> {
        if self.is_dir() {
            return Ok(());
        }
        let parent = self.parent();
        parent.create_dir()?;
        match rustix::fs::mkdirat(self.base, self.name(), Mode::from_raw_mode(mode)) {
            Ok(()) => parent.sync_dir().map_err(|error| cannot("sync directory", parent.path, error)),
            // Another process created it meanwhile.
            Err(_) if self.is_dir() => Ok(()),
            Err(error) => Err(cannot("create directory", self.path, error.into())),
        }
    }

    /// How many bytes users may still write to the file system of the directory.
    pub(super) fn free_bytes(&self) -> io::Result<u64> {
        let found = rustix::fs::fstatvfs(self.open(OFlags::RDONLY | OFlags::DIRECTORY)?)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    pub(super) fn sync_dir(&self) -> io::Result<()> {
        self.open(OFlags::RDONLY)?.sync_all()
    }
}
