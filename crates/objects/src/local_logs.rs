//! Logs on a disk of this machine, beside the journal: a sync of a log waits for this disk alone, and the journal gets the bytes
//! soon after. It does not know what a log is, beyond the end of its name.
//!
//! ```text
//! LOCK                held by the writer
//! 7/00000031.log      a log of the writer with epoch 7, which is this machine's
//! ```
//!
//! What is lost: nothing when the process or the machine ends, and the next writer is on this machine and nobody else has taken
//! over since. Otherwise what the journal did not get yet: about the time of two puts. What is left is a prefix of all commits,
//! because the journal gets bytes in the order in which they were written.

use crate::grown_file::GrownFile;
use crate::journal::Journal;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use os::{Access, Disk, File, Lock};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The end of the names of logs.
pub const LOG: &str = ".log";

/// The logs of one database on this machine.
#[derive(Debug)]
pub struct LocalLogs {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// That of this writer.
    epoch: AtomicU64,
}

impl LocalLogs {
    /// Logs in `directory`, which belongs to this database alone.
    pub fn new(disk: Arc<dyn Disk>, directory: &Path) -> LocalLogs {
        LocalLogs { disk, directory: directory.to_owned(), epoch: AtomicU64::new(0) }
    }

    /// Makes sure that no other process of this machine writes logs here: what it has promised would not be brought.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is one; the disk's.
    pub fn lock(&self) -> io::Result<Box<dyn Lock>> {
        self.disk.create_dir(&self.directory)?;
        self.disk.lock(&self.directory.join("LOCK"))
    }

    fn folder(&self, epoch: u64) -> PathBuf {
        self.directory.join(epoch.to_string())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder(self.epoch.load(Ordering::Relaxed)).join(name)
    }

    /// Names and contents of the logs that the writer of this epoch has left here.
    pub fn bring(&self, epoch: u64) -> io::Result<Vec<(String, Vec<u8>)>> {
        let folder = self.folder(epoch);
        let entries = match self.disk.list(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed?,
        };
        let logs = entries.into_iter().filter(|entry| entry.name.ends_with(LOG));
        logs.map(|entry| Ok((entry.name.clone(), self.disk.read_all(&folder.join(entry.name))?))).collect()
    }

    /// Begins the folder of a writer, once the journal has what was brought, and removes those of all others.
    pub fn begin(&self, epoch: u64) -> io::Result<()> {
        self.epoch.store(epoch, Ordering::Relaxed);
        self.disk.create_dir(&self.folder(epoch))?;
        for folder in self.disk.list(&self.directory)? {
            if folder.name.parse::<u64>().is_ok_and(|other| other != epoch) {
                let folder = self.directory.join(folder.name);
                for log in self.disk.list(&folder)? {
                    self.disk.remove(&folder.join(log.name))?;
                }
                self.disk.remove_dir(&folder)?;
            }
        }
        Ok(())
    }

    /// Removes a log, if it is here. Its name in the journal is taken away after this.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match self.disk.remove(&self.path(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Makes a log.
    pub fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = self.disk.open(&self.path(name), Access::Create)?;
        self.disk.sync_dir(&self.folder(self.epoch.load(Ordering::Relaxed)))?;
        Ok(file)
    }

    /// Opens a log of this writer; `None` if it is not here.
    pub fn open(&self, name: &str) -> io::Result<Option<Arc<dyn File>>> {
        match self.disk.open(&self.path(name), Access::Write) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Puts what was written soon, in the background.
#[derive(Debug)]
pub struct Uploads {
    journal: Arc<Journal>,
    is_begun: AtomicBool,
}

impl Uploads {
    pub fn new(journal: &Arc<Journal>) -> Arc<Uploads> {
        Arc::new(Uploads { journal: journal.clone(), is_begun: AtomicBool::new(false) })
    }

    /// Begins to put what was written, unless that was begun.
    fn begin(self: &Arc<Uploads>) {
        if self.is_begun.swap(true, Ordering::AcqRel) {
            return;
        }
        let uploads = Arc::clone(self);
        self.journal.outside.threads.hand_over(Box::new(move || {
            loop {
                // If it fails, the next write to a log says so.
                uploads.journal.sync().ok();
                uploads.is_begun.store(false, Ordering::Release);
                // What was written meanwhile may have found that it was begun.
                if uploads.journal.is_synced() || uploads.is_begun.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        }));
    }
}

/// A log in the journal and on this machine.
#[derive(Debug)]
pub struct LocalLog {
    pub grown: GrownFile,
    pub local: Arc<dyn File>,
    pub uploads: Arc<Uploads>,
}

impl File for LocalLog {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.local.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        // The journal first: a writer that was fenced writes no more here, either.
        self.grown.write_at(bytes, offset)?;
        self.local.write_at(bytes, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let offset = self.local.len()?;
        self.write_at(bytes, offset)?;
        Ok(offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.local.sync()?;
        self.uploads.begin();
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.local.len()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.grown.set_len(bytes)?;
        self.local.set_len(bytes)
    }

    fn allocate_ahead(&self, bytes: u64) -> io::Result<()> {
        self.local.allocate_ahead(bytes)
    }

    fn is_direct(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
