//! A disk in memory, which forgets unsynced changes when it crashes. This module does not know what the bytes mean.
//!
//! Only the following is sure to survive a crash:
//! - the bytes and the length of a file at its last sync. Any of the later writes may survive, and one of these may be
//!   torn;
//! - the names of a directory at its last sync. A prefix of the later changes may survive. A sync of a file does not
//!   make its name durable, and a file with a durable name that was never synced may be empty;
//! - a directory that `create_dir` has made.

use super::content::Spared;
use super::file::{SimFile, SimLock};
use super::names::{FileId, SimNode, moved, normal};
use super::random::Draws;
use super::state::{DiskCounts, SimDiskState};
use crate::failure::{cannot, lost};
use crate::sync::{Arc, Mutex};
use crate::{Access, DirectoryEntry, Disk, File, Lock};
use std::fmt;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A disk in memory. Thread safe, but its choices are repeatable only if a single thread uses it.
pub struct SimDisk {
    state: Arc<Mutex<SimDiskState>>,
    /// The directories that are held, the newest first.
    held: Vec<Arc<SimHeld>>,
}

impl SimDisk {
    /// An empty disk whose crashes follow from `seed`.
    pub fn new(seed: u64) -> Arc<SimDisk> {
        SimDisk::from(SimDiskState::new(seed))
    }

    /// An empty disk that never crashes, and so keeps only one copy of its bytes.
    pub fn that_never_crashes() -> Arc<SimDisk> {
        let mut state = SimDiskState::new(0);
        state.never_crashes = true;
        SimDisk::from(state)
    }

    fn from(state: SimDiskState) -> Arc<SimDisk> {
        Arc::new(SimDisk { state: Arc::new(Mutex::new(state)), held: Vec::new() })
    }

    /// Crashes the machine and starts it again. The seed decides which unsynced changes survive. Open files and locks
    /// become invalid, and faults are cleared. The capacity stays.
    pub fn crash(&self) {
        self.state.lock().crash(Spared::Some);
    }

    /// As [`SimDisk::crash`], but no unsynced change survives.
    pub fn crash_keeping_nothing(&self) {
        self.state.lock().crash(Spared::Nothing);
    }

    /// As [`SimDisk::crash`], but all unsynced changes survive, as when only the process dies.
    pub fn crash_keeping_everything(&self) {
        self.state.lock().crash(Spared::Everything);
    }

    /// A copy of the disk with its unsynced writes, but without its open files, locks and faults. The copy can be
    /// crashed or opened while the original goes on.
    pub fn image(&self) -> Arc<SimDisk> {
        let mut copy = self.state.lock().clone();
        copy.locks.clear();
        copy.faults.clear();
        for file in copy.files.values_mut() {
            file.handles = 0;
        }
        SimDisk::from(copy)
    }

    /// Notes that one more machine uses this disk, and returns how many machines used it before.
    pub fn count_machine(&self) -> u64 {
        let mut state = self.state.lock();
        state.machines += 1;
        state.machines - 1
    }

    /// Restarts the random choices from `seed`, so that one image can be crashed in many ways.
    pub fn reseed(&self, seed: u64) {
        self.state.lock().draws = Draws::new(seed);
    }

    /// Fails the `n`-th operation from now, once; 1 is the next operation. All calls except `len`, `exists`, `lock`
    /// and `hold` count as operations.
    pub fn fail_operation(&self, n: u64, kind: ErrorKind) {
        self.fail_operations(n..n + 1, kind);
    }

    /// Fails the operations with these numbers, counted from now; 1 is the next operation.
    pub fn fail_operations(&self, some: Range<u64>, kind: ErrorKind) {
        self.state.lock().faults.fail_operations(some, kind);
    }

    /// Fails every operation after the next `n`.
    pub fn fail_all_after(&self, n: u64, kind: ErrorKind) {
        self.state.lock().faults.fail_all_after(n, kind);
    }

    /// Fails to open and to create every file whose name ends with `end`.
    pub fn fail_opens(&self, end: &str, kind: ErrorKind) {
        self.state.lock().faults.fail_opens(end, kind);
    }

    /// Fails every link, as between two file systems (`CrossesDevices`).
    pub fn fail_links(&self, kind: ErrorKind) {
        self.state.lock().faults.fail_links(kind);
    }

    /// Fails about one in `one_in` looks; the seed decides which. Looks are reads, opens of existing files, listings
    /// and queries of lengths.
    pub fn fail_looks(&self, one_in: u32, kind: ErrorKind) {
        self.state.lock().faults.fail_looks(one_in, kind);
    }

    /// Fails every call that would create, rename, remove or lock a file or directory, or open a file for writing, as
    /// on a read-only file system (`ReadOnlyFilesystem`), or where the process may only read (`PermissionDenied`).
    pub fn fail_changes(&self, kind: ErrorKind) {
        self.state.lock().faults.fail_changes(kind);
    }

    /// Fails the `n`-th sync of a file or a directory from now, once; 1 is the next sync.
    pub fn fail_sync(&self, n: u64, kind: ErrorKind) {
        self.state.lock().faults.fail_sync(n, kind);
    }

    /// Makes the `n`-th read from now return fewer bytes than the file has.
    pub fn shorten_read(&self, n: u64) {
        self.state.lock().faults.shorten_read(n);
    }

    /// Fails the `n`-th sync of a file or a directory from now, and every operation after it, as if the machine had
    /// crashed during this sync. The next call of a `crash` function decides what survives.
    pub fn crash_at_sync(&self, n: u64) {
        self.state.lock().faults.crash_at_sync(n);
    }

    /// Whether the sync given to [`SimDisk::crash_at_sync`] was reached.
    pub fn has_crashed(&self) -> bool {
        self.state.lock().faults.has_crashed()
    }

    /// Makes syncs that fail lose some of their writes, as on Linux: these writes can still be read, but no later sync
    /// makes them durable.
    pub fn lose_writes_of_failed_syncs(&self) {
        self.state.lock().failed_syncs_lose_writes = true;
    }

    /// Clears all faults.
    pub fn clear_faults(&self) {
        let mut state = self.state.lock();
        state.faults.clear();
        state.failed_syncs_lose_writes = false;
    }

    /// The number of open files, as descriptors would be counted on a real disk. Locks do not count.
    pub fn open_handles(&self) -> usize {
        self.state.lock().files.values().map(|file| file.handles).sum()
    }

    /// Limits the bytes of all files. A write that needs more room fails with `StorageFull`, perhaps after a part of
    /// it was written.
    pub fn set_capacity(&self, bytes: u64) {
        self.state.lock().capacity_bytes = bytes;
    }

    /// The bytes of all files that have a name or are open.
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().used_bytes()
    }

    /// The memory that the contents of all files take in this process.
    pub fn memory_bytes(&self) -> usize {
        self.state.lock().memory_bytes()
    }

    /// Flips a bit of a file, also on the platter. Bit 0 is the lowest.
    pub fn flip_bit(&self, path: impl AsRef<Path>, byte: u64, bit: u32) {
        let byte = usize::try_from(byte).expect("files in memory are addressed in memory");
        let mut state = self.state.lock();
        let content = &mut state.file_at(path.as_ref()).content;
        assert!(byte < content.len(), "byte {byte} of {} bytes", content.len());
        content.flip_bit(byte, bit);
    }

    /// Lets only the first `keep_bytes` bytes of the newest unsynced write of a file reach the platter. The process
    /// still sees the whole write.
    pub fn tear_last_write(&self, path: impl AsRef<Path>, keep_bytes: usize) {
        let path = path.as_ref();
        let torn = self.state.lock().file_at(path).content.tear_last_write(keep_bytes);
        assert!(torn, "{} has an unsynced write", path.display());
    }

    /// The number of operations so far, as [`SimDisk::fail_operation`] counts them.
    pub fn operation_count(&self) -> u64 {
        self.state.lock().faults.operations()
    }

    /// The number of syncs so far, as [`SimDisk::crash_at_sync`] counts them.
    pub fn sync_count(&self) -> u64 {
        self.state.lock().faults.syncs()
    }

    /// The input and output of the whole disk.
    pub fn counts(&self) -> DiskCounts {
        self.state.lock().counts
    }

    /// The input and output of the file that is at `path` now.
    pub fn counts_of(&self, path: impl AsRef<Path>) -> DiskCounts {
        self.state.lock().file_at(path.as_ref()).counts
    }

    /// The number of reads of the file that is at `path` now.
    pub fn reads_of(&self, path: impl AsRef<Path>) -> u64 {
        self.counts_of(path).reads
    }
}

/// Where a path leads.
struct Place {
    path: PathBuf,
    /// The held directory in which the path lies.
    held: Option<Arc<SimHeld>>,
}

/// A directory that is held until this value is dropped.
struct SimHeld {
    state: Arc<Mutex<SimDiskState>>,
    number: u64,
    /// The start of the machine during which the directory was opened.
    start: u64,
    /// The path that the directory had when it was opened.
    path: PathBuf,
    /// The lock file in the directory and its name, if this process has locked it.
    guard: Mutex<Option<(PathBuf, FileId)>>,
}

impl SimHeld {
    /// Where the directory is now.
    fn place(&self, state: &SimDiskState) -> io::Result<PathBuf> {
        state.check_start(self.start)?;
        state.place_of(self.number).map(Path::to_owned).ok_or_else(|| lost(&self.path))
    }

    fn guard(&self) -> Option<(PathBuf, FileId)> {
        self.guard.lock().clone()
    }
}

impl Drop for SimHeld {
    fn drop(&mut self) {
        self.state.lock().let_go(self.number);
    }
}

impl SimDisk {
    /// Where `path` leads now.
    fn look(&self, state: &SimDiskState, path: &Path) -> io::Result<Place> {
        let path = normal(path);
        for held in &self.held {
            if path.starts_with(&held.path) {
                let path = moved(&path, &held.path, &held.place(state)?);
                return Ok(Place { path, held: Some(held.clone()) });
            }
        }
        Ok(Place { path, held: None })
    }

    /// As [`SimDisk::look`], for a call that changes something: also checks that the lock file of the held directory
    /// still has its name.
    fn find(&self, state: &SimDiskState, path: &Path) -> io::Result<Place> {
        let place = self.look(state, path)?;
        if let Some(held) = &place.held
            && let Some((name, lock)) = held.guard()
            && state.names.get(&held.place(state)?.join(name)) != Some(SimNode::File(lock))
        {
            return Err(lost(&held.path));
        }
        Ok(place)
    }

    /// Calls a function with the state of the disk, and adds the action and the path to its error.
    fn on_disk<T>(
        &self,
        action: &'static str,
        path: &Path,
        act: impl FnOnce(&mut SimDiskState) -> io::Result<T>,
    ) -> io::Result<T> {
        act(&mut self.state.lock()).map_err(|error| cannot(action, path, error))
    }

    /// Moves a directory with everything in it, as `mv` does. A process that holds the directory goes on in it.
    pub fn move_directory(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        self.state.lock().move_directory(&normal(from.as_ref()), &normal(to.as_ref()));
    }

    /// Removes a directory with everything in it, as `rm -r` does. Open files stay until they are closed.
    pub fn remove_directory(&self, directory: impl AsRef<Path>) {
        self.state.lock().remove_directory(&normal(directory.as_ref()));
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let changes = !matches!(access, Access::Read | Access::ReadDirect);
        let is_new = matches!(access, Access::Create | Access::CreateDirect);
        self.on_disk(if is_new { "create" } else { "open" }, path, |state| {
            let place = if changes { self.find(state, path)? } else { self.look(state, path)? };
            let state = if changes { state.may_change()? } else { state };
            let id = if is_new { state.create(&place.path)? } else { state.open(&place.path)? };
            let guard = place.held.filter(|_| changes).and_then(|held| Some((held.guard()?.1, held.path.clone())));
            let file = SimFile::new(self.state.clone(), id, state.start, access, path);
            Ok(Arc::new(file.guarded_by(guard)) as Arc<dyn File>)
        })
    }

    fn free_bytes(&self, _: &Path) -> io::Result<Option<u64>> {
        let state = self.state.lock();
        let is_limited = state.capacity_bytes < u64::MAX;
        Ok(is_limited.then(|| state.capacity_bytes.saturating_sub(state.used_bytes())))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.on_disk("rename", from, |state| {
            let (old, new) = (self.find(state, from)?, self.find(state, to)?);
            state.may_change()?.rename(&old.path, &new.path)
        })
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.on_disk("link", from, |state| {
            let (old, new) = (self.look(state, from)?, self.find(state, to)?);
            state.may_change()?.link(&old.path, &new.path)
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.on_disk("remove", path, |state| {
            let place = self.find(state, path)?;
            state.may_change()?.remove(&place.path)?;
            if let Some(held) = place.held {
                // A process that removes its own lock file no longer has a guard.
                let named = held.place(state)?;
                held.guard.lock().take_if(|(name, _)| named.join(name) == place.path);
            }
            Ok(())
        })
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        self.on_disk("list", directory, |state| state.list(&self.look(state, directory)?.path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.on_disk("look for", path, |state| {
            state.check_running()?;
            Ok(state.names.get(&self.look(state, path)?.path).is_some())
        })
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        self.on_disk("create directory", directory, |state| {
            let place = self.find(state, directory)?;
            state.may_change()?.create_dir(&place.path)
        })
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        self.on_disk("remove directory", directory, |state| {
            let place = self.look(state, directory)?;
            state.may_change()?.remove_dir(&place.path)
        })
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.on_disk("sync directory", directory, |state| {
            let place = self.look(state, directory)?;
            state.sync_dir(&place.path)?;
            match place.held.and_then(|held| Some((held.guard()?.1, held.path.clone()))) {
                Some((lock, directory)) if !state.names.is_named(lock) => Err(lost(&directory)),
                _ => Ok(()),
            }
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.on_disk("lock", path, |state| {
            let place = self.look(state, path)?;
            let id = state.may_change()?.take_lock(&place.path)?;
            if let Some(held) = &place.held
                && let Ok(name) = place.path.strip_prefix(held.place(state)?)
                && name.components().count() == 1
            {
                *held.guard.lock() = Some((name.to_owned(), id));
            }
            Ok(Box::new(SimLock::new(self.state.clone(), id, state.start, path)) as Box<dyn Lock>)
        })
    }

    fn hold(&self, directory: &Path) -> io::Result<Option<Arc<dyn Disk>>> {
        let path = normal(directory);
        let (number, start) = self.on_disk("open", directory, |state| {
            let place = self.look(state, directory)?;
            Ok((state.hold(&place.path)?, state.start))
        })?;
        let held = SimHeld { state: self.state.clone(), number, start, path, guard: Mutex::new(None) };
        let held = [Arc::new(held)].into_iter().chain(self.held.iter().cloned()).collect();
        Ok(Some(Arc::new(SimDisk { state: self.state.clone(), held })))
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDisk").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
