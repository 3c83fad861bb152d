//! An open file of a simulated disk, and a lock. Neither knows what a crash does; each only notices that the machine
//! has crashed since it was opened.

use super::names::FileId;
use super::state::SimDiskState;
use crate::failure::{cannot, lost};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard};
use crate::{Access, File, Lock};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An open file.
pub(super) struct SimFile {
    state: Arc<Mutex<SimDiskState>>,
    id: FileId,
    /// The start of the machine during which the file was opened.
    start: u64,
    access: Access,
    /// The path at the time of opening, for messages only: the file may have been renamed since.
    path: PathBuf,
    /// The lock file that must have a name after a sync, and the directory that it guards.
    guard: Option<(FileId, PathBuf)>,
    /// One more than [`Names::changes`](super::names::Names::changes) when the lock file was last seen to have a
    /// name; 0 before that.
    named_at: AtomicU64,
}

impl SimFile {
    /// Opens `id`, which `state` knows already.
    pub(super) fn new(state: Arc<Mutex<SimDiskState>>, id: FileId, start: u64, access: Access, path: &Path) -> SimFile {
        SimFile { state, id, start, access, path: path.to_owned(), guard: None, named_at: AtomicU64::new(0) }
    }

    /// Makes the syncs of the file fail once the lock file that guards its directory is gone.
    pub(super) fn guarded_by(mut self, guard: Option<(FileId, PathBuf)>) -> SimFile {
        self.guard = guard;
        self
    }

    /// Runs `operation` on the disk, unless the machine crashed since the file was opened.
    fn on_disk<T>(
        &self,
        action: &'static str,
        operation: impl FnOnce(&mut MutexGuard<'_, SimDiskState>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.state.lock();
        state
            .check_start(self.start)
            .and_then(|()| operation(&mut state))
            .map_err(|error| cannot(action, &self.path, error))
    }

    fn check_writable(&self) -> io::Result<()> {
        if matches!(self.access, Access::Read | Access::ReadDirect) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is open for reading"));
        }
        Ok(())
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.on_disk("read", |state| state.read(self.id, buffer, position(offset)?))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.on_disk("write", |state| {
            self.check_writable()?;
            state.write(self.id, bytes, position(offset)?)
        })
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        self.on_disk("write", |state| {
            self.check_writable()?;
            let end = state.len(self.id);
            state.write(self.id, bytes, end)?;
            Ok(end as u64)
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.on_disk("sync", |state| {
            state.sync(self.id)?;
            let Some((lock, directory)) = &self.guard else { return Ok(()) };
            // Names change far less often than files are synced, so the lock file is looked up only if names have
            // changed since the last time.
            let now = state.names.changes() + 1;
            if self.named_at.load(Ordering::Relaxed) != now {
                if !state.names.is_named(*lock) {
                    return Err(lost(directory));
                }
                self.named_at.store(now, Ordering::Relaxed);
            }
            Ok(())
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.on_disk("measure", |state| state.measure(self.id))
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.on_disk("resize", |state| {
            self.check_writable()?;
            state.set_len(self.id, position(bytes)?)
        })
    }

    /// On this disk, `set_len` also reserves the space.
    fn allocate(&self, bytes: u64) -> io::Result<()> {
        if bytes > self.len()? { self.set_len(bytes) } else { Ok(()) }
    }

    fn is_direct(&self) -> bool {
        matches!(self.access, Access::ReadDirect | Access::CreateDirect)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.state.lock().close(self.id, self.start);
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimFile").field("path", &self.path).field("access", &self.access).finish_non_exhaustive()
    }
}

/// A position in a file as a position in memory.
fn position(bytes: u64) -> io::Result<usize> {
    usize::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

/// A held lock.
pub(super) struct SimLock {
    state: Arc<Mutex<SimDiskState>>,
    id: FileId,
    /// The start of the machine during which the lock was taken. A later start has released it.
    start: u64,
    /// For messages only: the file may have been removed since.
    path: PathBuf,
}

impl SimLock {
    /// Holds `id`, which `state` has locked already.
    pub(super) fn new(state: Arc<Mutex<SimDiskState>>, id: FileId, start: u64, path: &Path) -> SimLock {
        SimLock { state, id, start, path: path.to_owned() }
    }
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.state.lock().unlock(self.id, self.start);
    }
}

impl fmt::Debug for SimLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimLock").field("path", &self.path).finish_non_exhaustive()
    }
}
