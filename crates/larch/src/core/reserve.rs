//! The reserve: disk space kept back for erases, as a file without content. The file is removed when an erase finds the
//! disk full, and is made again before the next put (`docs/decisions/0026-erases-find-room-on-a-full-disk.md`). It does
//! not know what a commit holds.
//!
//! Thread safe.

use crate::base::error::{Error, Result, is_disk_full};
use crate::manifest::directory::names::RESERVE;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};
use os::{Access, Disk};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The reserve of one database.
#[derive(Debug)]
pub struct Reserve {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    bytes: u64,
    /// Whether the file is there with all its bytes.
    is_full: AtomicBool,
}

impl Reserve {
    /// A reserve of `bytes`; 0 means no reserve. This call does not look for the file yet.
    pub fn new(disk: Arc<dyn Disk>, directory: &Path, bytes: u64) -> Self {
        Self { disk, path: directory.join(RESERVE), bytes, is_full: AtomicBool::new(bytes == 0) }
    }

    /// Whether all of the space is kept back.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Makes the file, if it is not there with all its bytes.
    ///
    /// # Errors
    ///
    /// The disk is full. If the file cannot be made for another reason, the database has no reserve, and that is no
    /// error.
    pub fn fill(&self) -> Result<()> {
        if self.is_full.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.make() {
            Ok(()) => self.is_full.store(true, Ordering::Relaxed),
            Err(error) if is_disk_full(&error) => return Err(Error::io("keep room for erases in", &self.path, error)),
            Err(_) => {}
        }
        Ok(())
    }

    fn make(&self) -> io::Result<()> {
        let file = match self.disk.open(&self.path, Access::Create) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.disk.open(&self.path, Access::Write)?,
            opened => opened?,
        };
        if file.len()? == self.bytes {
            return Ok(());
        }
        let made = file.set_len(0).and_then(|()| file.allocate(self.bytes));
        drop(file);
        // A file with only a part of the bytes would take space that `give_back` does not return.
        made.inspect_err(|_| self.disk.remove(&self.path).unwrap_or_default())
    }

    /// Gives back the space that an earlier process has kept. An open calls it if it finds the disk full and has not
    /// looked for the file yet.
    pub fn give_back_left(&self) {
        // If it is missing or cannot be removed, the disk has no more room than before.
        self.disk.remove(&self.path).ok();
    }

    /// Gives the space back to the disk, and returns whether it had any.
    pub fn give_back(&self) -> bool {
        self.bytes > 0 && self.is_full.swap(false, Ordering::Relaxed) && self.disk.remove(&self.path).is_ok()
    }
}
