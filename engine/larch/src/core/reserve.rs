//! The reserve: a file without content that keeps disk space back for erases. An erase that finds the disk full
//! removes the file; the next put first makes it again (`docs/decisions/0026-erases-find-room-on-a-full-disk.md`).
//! This module does not know what a commit contains.
//!
//! This module is thread-safe.

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
    /// Whether the file exists with its full length.
    is_full: AtomicBool,
}

impl Reserve {
    /// A reserve of `bytes` bytes; 0 means none. Does not look for the file yet.
    pub fn new(disk: Arc<dyn Disk>, directory: &Path, bytes: u64) -> Self {
        Self { disk, path: directory.join(RESERVE), bytes, is_full: AtomicBool::new(bytes == 0) }
    }

    /// Whether the file exists with its full length now.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Makes the file, unless it exists with its full length.
    ///
    /// # Errors
    ///
    /// Fails if the disk is full. If the file cannot be made for another reason, the call succeeds and the database
    /// goes without a reserve.
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
        // Remove a file that did not get its full length: `give_back` would not remove it, so its space would be
        // lost.
        made.inspect_err(|_| self.disk.remove(&self.path).unwrap_or_default())
    }

    /// Frees the reserve that an earlier process has made. For an open that finds the disk full before it has looked
    /// for the file.
    pub fn give_back_left(&self) {
        // If the file does not exist or cannot be removed, nothing is freed.
        self.disk.remove(&self.path).ok();
    }

    /// Frees the reserve. Returns whether there was space to free.
    pub fn give_back(&self) -> bool {
        self.bytes > 0 && self.is_full.swap(false, Ordering::Relaxed) && self.disk.remove(&self.path).is_ok()
    }
}
