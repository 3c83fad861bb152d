//! Logs on a disk of this machine, in addition to the journal: a sync of a log waits only for this disk, and the
//! journal gets the bytes soon after. All that this module knows about logs is how their names end.
//!
//! ```text
//! LOCK                held by the writer
//! 7/00000031.log      a log of the writer with epoch 7, which is this machine's
//! ```
//!
//! If the process or the machine stops, nothing is lost as long as the next writer is on this machine. If another
//! machine takes over first, the bytes are lost that the journal did not get in time, about those of the last two
//! puts. The remaining commits are a prefix of all commits, because the journal gets bytes in the order in which
//! they were written.

use crate::grown_file::GrownFile;
use crate::journal::{Journal, LeftFile};
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex, OnceLock, Weak};
use os::{Access, Disk, File, Job, Lock, Polled, Priority, Worker, hold};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The ending of the names of logs.
pub const LOG: &str = ".log";

/// The logs of one database on this machine.
#[derive(Debug)]
pub struct LocalLogs {
    machine: Arc<dyn Disk>,
    /// The same disk as `machine`, but bound to the directory that was locked last, even if that is moved.
    held: Mutex<Arc<dyn Disk>>,
    directory: PathBuf,
    /// The epoch of this writer.
    epoch: AtomicU64,
}

impl LocalLogs {
    /// Keeps logs in `directory`, which no other database uses.
    pub fn new(disk: Arc<dyn Disk>, directory: &Path) -> LocalLogs {
        let held = Mutex::new(disk.clone());
        LocalLogs { machine: disk, held, directory: directory.to_owned(), epoch: AtomicU64::new(0) }
    }

    fn disk(&self) -> Arc<dyn Disk> {
        self.held.lock().clone()
    }

    /// Keeps other processes of this machine from writing logs here. If two processes did, one of them might
    /// promise commits that the journal never gets.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if another process of this machine writes logs here; an error of the disk.
    pub fn lock(&self) -> io::Result<Box<dyn Lock>> {
        self.machine.create_dir(&self.directory)?;
        let held = hold(&self.machine, &self.directory)?;
        let lock = held.lock(&self.directory.join("LOCK"))?;
        *self.held.lock() = held;
        Ok(lock)
    }

    fn folder(&self, epoch: u64) -> PathBuf {
        self.directory.join(epoch.to_string())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder(self.epoch.load(Ordering::Relaxed)).join(name)
    }

    /// The logs that the writer of `epoch` has left on this machine.
    pub fn left(&self, epoch: u64) -> io::Result<Vec<LeftFile>> {
        let folder = self.folder(epoch);
        let disk = self.disk();
        let entries = match disk.list(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed?,
        };
        let logs = entries.into_iter().filter(|entry| entry.name.ends_with(LOG));
        let open = |name: String| {
            let file = disk.open(&folder.join(&name), Access::Read)?;
            Ok(LeftFile { bytes: file.len()?, name, file })
        };
        logs.map(|entry| open(entry.name)).collect()
    }

    /// Makes the folder of a new writer, and removes those of all other writers. The journal must already have the
    /// logs that earlier writers have left on this machine.
    pub fn begin(&self, epoch: u64) -> io::Result<()> {
        self.epoch.store(epoch, Ordering::Relaxed);
        let disk = self.disk();
        disk.create_dir(&self.folder(epoch))?;
        for folder in disk.list(&self.directory)? {
            if folder.name.parse::<u64>().is_ok_and(|other| other != epoch) {
                let folder = self.directory.join(folder.name);
                for log in disk.list(&folder)? {
                    disk.remove(&folder.join(log.name))?;
                }
                disk.remove_dir(&folder)?;
            }
        }
        Ok(())
    }

    /// Removes a log, if it is on this machine. The caller then removes its name from the journal.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match self.disk().remove(&self.path(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Creates a log.
    pub fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let disk = self.disk();
        let file = disk.open(&self.path(name), Access::Create)?;
        disk.sync_dir(&self.folder(self.epoch.load(Ordering::Relaxed)))?;
        Ok(file)
    }

    /// Opens a log of this writer; `None` if it is not here.
    pub fn open(&self, name: &str) -> io::Result<Option<Arc<dyn File>>> {
        match self.disk().open(&self.path(name), Access::Write) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Puts new bytes of logs to the store soon, in the background. A failed put is tried again after a pause that
/// doubles with each failure. Meanwhile, logs take no writes, because otherwise more and more bytes could be lost.
#[derive(Debug)]
pub struct Uploads {
    journal: Arc<Journal>,
    /// Why the last attempt failed; cleared when an attempt succeeds.
    trouble: Mutex<Option<UploadTrouble>>,
    /// Set once, before anything is written.
    worker: OnceLock<Box<dyn Worker>>,
}

#[derive(Debug)]
struct UploadTrouble {
    kind: ErrorKind,
    why: String,
    /// The pause before the next attempt.
    wait: Duration,
}

/// The pause after the first failure, and the longest pause.
const WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Puts the new bytes of logs to the store.
#[derive(Debug)]
struct UploadJob(Weak<Uploads>);

impl Job for UploadJob {
    fn poll(&self) -> Polled {
        let Some(uploads) = self.0.upgrade() else { return Polled::Idle };
        let outcome = uploads.journal.sync();
        let trouble = &mut *uploads.trouble.lock();
        let Err(error) = outcome else {
            *trouble = None;
            return if uploads.journal.is_synced() { Polled::Idle } else { Polled::Worked };
        };
        if uploads.journal.is_synced() {
            // The journal does not repeat this put, and returns the error from every later call.
            return Polled::Idle;
        }
        let wait = trouble.take().map_or(WAITS.0, |before| (2 * before.wait).min(WAITS.1));
        *trouble = Some(UploadTrouble { kind: error.kind(), why: error.to_string(), wait });
        uploads.worker.get().expect("it is set before anything is polled").wake_after(wait);
        Polled::Idle
    }
}

impl Uploads {
    pub fn new(journal: &Arc<Journal>) -> Arc<Uploads> {
        let (trouble, worker) = (Mutex::new(None), OnceLock::new());
        let uploads = Arc::new(Uploads { journal: journal.clone(), trouble, worker });
        let job = Arc::new(UploadJob(Arc::downgrade(&uploads)));
        uploads.worker.get_or_init(|| journal.outside.threads.sleeping_worker(Priority::High, job));
        uploads
    }

    /// Wakes the upload job now or, after a failure, leaves it to its pause.
    fn begin(&self) {
        let worker = self.worker.get().expect("it is set when this is made");
        if self.trouble.lock().is_none() {
            worker.wake();
        }
        worker.drive();
    }

    /// Makes the attempt that is due, on a machine without threads, where no thread does so.
    #[cfg(test)]
    pub fn drive(&self) {
        self.worker.get().expect("it is set when this is made").drive();
    }

    /// # Errors
    ///
    /// The error of the last attempt, if it failed.
    fn check(&self) -> io::Result<()> {
        match &*self.trouble.lock() {
            Some(UploadTrouble { kind, why, .. }) => {
                Err(io::Error::new(*kind, format!("{why}; no log takes more until the store has what was written")))
            }
            None => Ok(()),
        }
    }

    /// Forgets the failed attempts of a writer that has ended.
    pub fn forget(&self) {
        *self.trouble.lock() = None;
    }
}

/// A log whose bytes go to the journal and to a file on this machine.
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
        self.uploads.check()?;
        // Write to the journal first: if another writer has taken over, it fails before anything is written to the
        // file on this machine.
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
