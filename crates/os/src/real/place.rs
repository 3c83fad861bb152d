//! What a name stands for. It is looked up relative to a directory that is held open, or as the process looks up
//! any other path. All system calls that take a name are here. This module does not know who holds a directory, or
//! why.
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

/// A name in a directory. It is used for one call only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'p> {
    base: BorrowedFd<'p>,
    /// The name, which is relative to the base unless it is absolute.
    name: &'p Path,
    /// The path as the caller knows it, for messages.
    pub(super) path: &'p Path,
}

impl<'p> Place<'p> {
    /// What `path` stands for now.
    pub(super) fn named(path: &'p Path) -> Place<'p> {
        Place { base: CWD, name: path, path }
    }

    /// `name` in the directory `base`, which the caller knows as `path`.
    pub(super) fn in_directory(base: BorrowedFd<'p>, name: &'p Path, path: &'p Path) -> Place<'p> {
        Place { base, name, path }
    }

    /// The name for a system call. For an empty name, which means the directory itself, system calls need another
    /// name.
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

    /// Opens the file with the given flags and with the flags that the standard library adds.
    pub(super) fn open(&self, flags: OFlags) -> io::Result<fs::File> {
        let mode = Mode::from_raw_mode(0o666);
        let opened = retry_on_intr(|| rustix::fs::openat(self.base, self.name(), flags | OFlags::CLOEXEC, mode));
        Ok(fs::File::from(opened?))
    }

    /// Opens the lock file. The file is made if it is missing.
    pub(super) fn open_lock(&self) -> io::Result<fs::File> {
        self.open(OFlags::RDWR | OFlags::CREATE)
    }

    /// Whether this is a name of the open file.
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
        // The second name is for the file to which a symbolic link leads. A second name of the link itself would
        // stand for whatever the link leads to later.
        Ok(rustix::fs::linkat(self.base, self.name(), to.base, to.name(), AtFlags::SYMLINK_FOLLOW)?)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn copy_sharing(&self, to: &Place<'_>) -> io::Result<()> {
        let source = self.open(OFlags::RDONLY).map_err(|error| cannot("open", self.path, error))?;
        let copy = to.open(OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL);
        let copy = copy.map_err(|error| cannot("create", to.path, error))?;
        let copied = match rustix::fs::ioctl_ficlone(&copy, &source) {
            // A file system that cannot make such copies returns one of these errors. So does any file system if
            // the two files are on different file systems.
            Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::XDEV | Errno::NOSYS) => {
                Err(ErrorKind::Unsupported.into())
            }
            Err(error) => Err(error.into()),
            Ok(()) => copy.sync_all(),
        };
        copied.map_err(|error| {
            // The copy has failed. Even if the new file cannot be removed, the error of the copy is the one to
            // report.
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

    /// Lists the names. A name that is not UTF-8 was not given by this program. It is listed with replacement
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

    /// Makes the directory and its missing parents, durably.
    pub(super) fn create_dir(&self) -> io::Result<()> {
        self.make_dir(0o777)
    }

    /// Makes directories as [`Place::create_dir`] does, but a new directory can be read by this user only.
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

    pub(super) fn sync_dir(&self) -> io::Result<()> {
        self.open(OFlags::RDONLY)?.sync_all()
    }
}
