//! A disk in memory that forgets what was not synced when it crashes. It does not know what the bytes mean.
//!
//! What is promised to survive a crash, and nothing more:
//! - bytes and length of a file as of its last sync; of what was written since, any part, the last of it torn;
//! - names in a directory as of its last sync; of what was changed since, the first few changes. Syncing a file does
//!   not save its name, and a name saved without its file synced may stand for an empty file;
//! - a directory made by `create_dir`, at once.

use super::content::{SimContent, Spared};
use super::faults::{Faults, crashed};
use super::file::{SimFile, SimLock};
use super::names::{FileId, Names, SimNode, normal, parent};
use crate::failure::cannot;
use crate::sync::{Arc, Mutex};
use crate::{Access, DirectoryEntry, Disk, File, Lock};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Input and output so far; of reads and writes those that succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Calls of `read_at`.
    pub reads: u64,
    /// Bytes they returned.
    pub read_bytes: u64,
    /// Calls of `write_at` and `append`.
    pub writes: u64,
    /// Bytes they took.
    pub write_bytes: u64,
    /// Calls of `sync`, and for a whole disk of `sync_dir`.
    pub syncs: u64,
}

/// A disk in memory. Thread safe, but only one thread makes it repeatable.
pub struct SimDisk {
    state: Arc<Mutex<SimDiskState>>,
}

impl SimDisk {
    /// An empty disk whose crashes follow from `seed`.
    pub fn new(seed: u64) -> Arc<SimDisk> {
        SimDisk::from(SimDiskState {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            start: 0,
            names: Names::default(),
            files: BTreeMap::new(),
            next_file: 0,
            locks: BTreeSet::new(),
            faults: Faults::default(),
            failed_syncs_lose_writes: false,
            capacity_bytes: u64::MAX,
            counts: DiskCounts::default(),
        })
    }

    fn from(state: SimDiskState) -> Arc<SimDisk> {
        Arc::new(SimDisk { state: Arc::new(Mutex::new(state)) })
    }

    /// Crashes the machine and starts it again: of what was not synced, the seed decides what is left. Open files and
    /// locks of before are void, and faults are taken back; the capacity stays.
    pub fn crash(&self) {
        self.state.lock().crash(Spared::Some);
    }

    /// As [`SimDisk::crash`], with nothing left of what was not synced.
    pub fn crash_keeping_nothing(&self) {
        self.state.lock().crash(Spared::Nothing);
    }

    /// As [`SimDisk::crash`], with all left of what was not synced, as when only the process dies.
    pub fn crash_keeping_everything(&self) {
        self.state.lock().crash(Spared::Everything);
    }

    /// A copy of the disk with its unsynced writes, without its open files, locks and faults: to be crashed or opened
    /// while the original goes on.
    pub fn image(&self) -> Arc<SimDisk> {
        let mut copy = self.state.lock().clone();
        copy.locks.clear();
        copy.faults.clear();
        for file in copy.files.values_mut() {
            file.handles = 0;
        }
        SimDisk::from(copy)
    }

    /// Starts the random choices again from `seed`, to crash one image in many ways.
    pub fn reseed(&self, seed: u64) {
        self.state.lock().rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    }

    /// Fails the `n`-th operation from now, once; 1 is the next. Operations are all calls except `len`, `exists` and
    /// `lock`.
    pub fn fail_operation(&self, n: u64, kind: ErrorKind) {
        self.state.lock().faults.fail_operation(n, kind);
    }

    /// Fails every operation after the next `n`.
    pub fn fail_all_after(&self, n: u64, kind: ErrorKind) {
        self.state.lock().faults.fail_all_after(n, kind);
    }

    /// Fails to open and to create every file whose name ends with `end`.
    pub fn fail_opens(&self, end: &str, kind: ErrorKind) {
        self.state.lock().faults.fail_opens(end, kind);
    }

    /// Fails the `n`-th sync from now, of a file or a directory, once; 1 is the next.
    pub fn fail_sync(&self, n: u64, kind: ErrorKind) {
        self.state.lock().faults.fail_sync(n, kind);
    }

    /// Makes the `n`-th read from now return fewer bytes than there are.
    pub fn shorten_read(&self, n: u64) {
        self.state.lock().faults.shorten_read(n);
    }

    /// Fails the `n`-th sync from now, of a file or a directory, and everything after it, as if the machine had crashed
    /// during it. The crash function that is called next decides what that leaves on the disk.
    pub fn crash_at_sync(&self, n: u64) {
        self.state.lock().faults.crash_at_sync(n);
    }

    /// Whether the sync given to [`SimDisk::crash_at_sync`] was reached.
    pub fn has_crashed(&self) -> bool {
        self.state.lock().faults.has_crashed()
    }

    /// Makes a sync that a fault fails lose some of the writes it should have saved: they are still read, and no later
    /// sync saves them. Linux does so.
    pub fn lose_writes_of_failed_syncs(&self) {
        self.state.lock().failed_syncs_lose_writes = true;
    }

    /// Takes back every fault asked for.
    pub fn clear_faults(&self) {
        let mut state = self.state.lock();
        state.faults.clear();
        state.failed_syncs_lose_writes = false;
    }

    /// How many open files there are: what descriptors are on a real disk. A lock is not among them.
    pub fn open_handles(&self) -> usize {
        self.state.lock().files.values().map(|file| file.handles).sum()
    }

    /// Room for the contents of all files. A write beyond it fails with `StorageFull`, maybe after a part of it.
    pub fn set_capacity(&self, bytes: u64) {
        self.state.lock().capacity_bytes = bytes;
    }

    /// Room taken: files that have a name or are open.
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().used_bytes()
    }

    /// Flips a bit (0 is the lowest) of a byte of a file, on the platter too.
    pub fn flip_bit(&self, path: impl AsRef<Path>, byte: u64, bit: u32) {
        let byte = usize::try_from(byte).expect("files in memory are addressed in memory");
        let mut state = self.state.lock();
        let content = &mut state.file_at(path.as_ref()).content;
        assert!(byte < content.len(), "byte {byte} of {} bytes", content.len());
        content.flip_bit(byte, bit);
    }

    /// Cuts the newest unsynced write of a file to its first `keep_bytes` bytes on its way to the platter; the process
    /// goes on seeing all of it.
    pub fn tear_last_write(&self, path: impl AsRef<Path>, keep_bytes: usize) {
        let path = path.as_ref();
        let torn = self.state.lock().file_at(path).content.tear_last_write(keep_bytes);
        assert!(torn, "{} has an unsynced write", path.display());
    }

    /// Operations so far, as [`SimDisk::fail_operation`] counts them.
    pub fn operation_count(&self) -> u64 {
        self.state.lock().faults.operations()
    }

    /// Syncs so far, as [`SimDisk::crash_at_sync`] counts them.
    pub fn sync_count(&self) -> u64 {
        self.state.lock().faults.syncs()
    }

    /// Input and output of the whole disk.
    pub fn counts(&self) -> DiskCounts {
        self.state.lock().counts
    }

    /// Input and output of the file that has this name now.
    pub fn counts_of(&self, path: impl AsRef<Path>) -> DiskCounts {
        self.state.lock().file_at(path.as_ref()).counts
    }

    /// Reads of the file that has this name now.
    pub fn reads_of(&self, path: impl AsRef<Path>) -> u64 {
        self.counts_of(path).reads
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        let (action, opened) = match access {
            Access::Create | Access::CreateDirect => ("create", state.create(&normal(path))),
            Access::Read | Access::ReadDirect | Access::Write => ("open", state.open(&normal(path))),
        };
        let id = opened.map_err(|error| cannot(action, path, error))?;
        Ok(Arc::new(SimFile::new(self.state.clone(), id, state.start, access, path)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.state.lock().rename(&normal(from), &normal(to)).map_err(|error| cannot("rename", from, error))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.state.lock().remove(&normal(path)).map_err(|error| cannot("remove", path, error))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        self.state.lock().list(&normal(directory)).map_err(|error| cannot("list", directory, error))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state.lock();
        state.check_running().map_err(|error| cannot("look for", path, error))?;
        Ok(state.names.get(&normal(path)).is_some())
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.create_dir(&normal(directory)).map_err(|error| cannot("create directory", directory, error))
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.remove_dir(&normal(directory)).map_err(|error| cannot("remove directory", directory, error))
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.sync_dir(&normal(directory)).map_err(|error| cannot("sync directory", directory, error))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let mut state = self.state.lock();
        let name = normal(path);
        state.take_lock(&name).map_err(|error| cannot("lock", path, error))?;
        Ok(Box::new(SimLock::new(self.state.clone(), name, state.start)))
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDisk").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// Everything about the disk. Its functions take normal paths.
#[derive(Clone)]
pub(super) struct SimDiskState {
    rng: Xoshiro256PlusPlus,
    /// How often the machine has started again.
    start: u64,
    names: Names,
    files: BTreeMap<FileId, Inode>,
    next_file: u64,
    /// Held now, all taken since the last start.
    locks: BTreeSet<PathBuf>,
    faults: Faults,
    failed_syncs_lose_writes: bool,
    capacity_bytes: u64,
    counts: DiskCounts,
}

/// A file, whatever its name.
#[derive(Clone, Default)]
struct Inode {
    content: SimContent,
    /// Open files of this start of the machine.
    handles: usize,
    counts: DiskCounts,
}

impl SimDiskState {
    fn crash(&mut self, spared: Spared) {
        self.start += 1;
        self.names.crash(spared, &mut self.rng);
        for file in self.files.values_mut() {
            file.content.crash(spared, &mut self.rng);
            file.handles = 0;
        }
        self.locks.clear();
        self.faults.clear();
        self.failed_syncs_lose_writes = false;
        self.drop_unreachable();
    }

    /// Frees the contents of files that no process and no crash can get at again.
    fn drop_unreachable(&mut self) {
        let reachable = self.names.reachable();
        self.files.retain(|id, file| file.handles > 0 || reachable.contains(id));
    }

    fn check_running(&self) -> io::Result<()> {
        if self.faults.has_crashed() { Err(crashed()) } else { Ok(()) }
    }

    /// Fails what was opened before the last start.
    pub(super) fn check_start(&self, start: u64) -> io::Result<()> {
        self.check_running()?;
        if start == self.start { Ok(()) } else { Err(crashed()) }
    }

    fn file(&mut self, id: FileId) -> &mut Inode {
        self.files.get_mut(&id).expect("a file that is open or has a name is kept")
    }

    /// Counts for the file and for the disk.
    fn count(&mut self, id: FileId, add: impl Fn(&mut DiskCounts)) {
        add(&mut self.counts);
        add(&mut self.file(id).counts);
    }

    /// For tests, which know the names of their files.
    fn file_at(&mut self, path: &Path) -> &mut Inode {
        match self.names.get(&normal(path)) {
            Some(SimNode::File(id)) => self.file(id),
            _ => panic!("{} is a file on the simulated disk", path.display()),
        }
    }

    fn used_bytes(&self) -> u64 {
        let named = self.names.named();
        let taken = self.files.iter().filter(|(id, file)| file.handles > 0 || named.contains(id));
        taken.map(|(_, file)| file.content.len() as u64).sum()
    }

    /// Bytes that a file of `len` bytes can grow by.
    fn room(&self) -> usize {
        if self.capacity_bytes == u64::MAX {
            return usize::MAX;
        }
        usize::try_from(self.capacity_bytes.saturating_sub(self.used_bytes())).unwrap_or(usize::MAX)
    }

    fn check_parent(&self, path: &Path) -> io::Result<()> {
        match self.names.get(parent(path)) {
            Some(SimNode::Directory) => Ok(()),
            Some(SimNode::File(_)) => Err(ErrorKind::NotADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn existing_file(&self, path: &Path) -> io::Result<FileId> {
        match self.names.get(path) {
            Some(SimNode::File(id)) => Ok(id),
            Some(SimNode::Directory) => Err(ErrorKind::IsADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn open(&mut self, path: &Path) -> io::Result<FileId> {
        self.faults.open(path)?;
        let id = self.existing_file(path)?;
        self.file(id).handles += 1;
        Ok(id)
    }

    fn create(&mut self, path: &Path) -> io::Result<FileId> {
        self.faults.open(path)?;
        let id = self.link_file(path)?;
        self.file(id).handles += 1;
        Ok(id)
    }

    /// A new empty file.
    fn link_file(&mut self, path: &Path) -> io::Result<FileId> {
        self.check_parent(path)?;
        if self.names.get(path).is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let id = FileId(self.next_file);
        self.next_file += 1;
        self.files.insert(id, Inode::default());
        self.names.link(path, SimNode::File(id));
        Ok(id)
    }

    pub(super) fn close(&mut self, id: FileId, start: u64) {
        if start == self.start {
            self.file(id).handles -= 1;
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.faults.operation()?;
        self.existing_file(from)?;
        self.check_parent(to)?;
        if parent(from) != parent(to) {
            return Err(io::Error::new(ErrorKind::Unsupported, "a simulated disk renames within one directory only"));
        }
        if self.names.get(to) == Some(SimNode::Directory) {
            return Err(ErrorKind::IsADirectory.into());
        }
        if from != to {
            self.names.rename(from, to);
        }
        Ok(())
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.faults.operation()?;
        self.existing_file(path)?;
        self.names.unlink(path);
        Ok(())
    }

    fn list(&mut self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        self.faults.operation()?;
        self.check_directory(directory)?;
        let entries = self.names.within(directory).map(|(path, node)| DirectoryEntry {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            bytes: node.file().map_or(0, |id| self.files[&id].content.len() as u64),
        });
        Ok(entries.collect())
    }

    fn check_directory(&self, directory: &Path) -> io::Result<()> {
        match self.names.get(directory) {
            Some(SimNode::Directory) => Ok(()),
            Some(SimNode::File(_)) => Err(ErrorKind::NotADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn create_dir(&mut self, directory: &Path) -> io::Result<()> {
        self.faults.operation()?;
        let mut missing = Vec::new();
        let mut path = directory;
        loop {
            match self.names.get(path) {
                Some(SimNode::Directory) => break,
                Some(SimNode::File(_)) => return Err(ErrorKind::NotADirectory.into()),
                None => missing.push(path),
            }
            path = parent(path);
        }
        for path in missing.into_iter().rev() {
            self.names.link_directory(path);
        }
        Ok(())
    }

    fn remove_dir(&mut self, directory: &Path) -> io::Result<()> {
        self.faults.operation()?;
        self.check_directory(directory)?;
        if self.names.within(directory).next().is_some() {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        self.names.unlink(directory);
        Ok(())
    }

    fn sync_dir(&mut self, directory: &Path) -> io::Result<()> {
        self.faults.sync()?;
        self.check_directory(directory)?;
        self.names.sync(directory);
        self.counts.syncs += 1;
        self.drop_unreachable();
        Ok(())
    }

    fn take_lock(&mut self, path: &Path) -> io::Result<()> {
        self.check_running()?;
        if self.names.get(path).is_none() {
            self.link_file(path)?;
        }
        self.existing_file(path)?;
        if !self.locks.insert(path.to_owned()) {
            return Err(io::Error::new(ErrorKind::WouldBlock, "another process has it open"));
        }
        Ok(())
    }

    pub(super) fn unlock(&mut self, path: &Path, start: u64) {
        if start == self.start {
            self.locks.remove(path);
        }
    }

    pub(super) fn len(&self, id: FileId) -> usize {
        self.files[&id].content.len()
    }

    pub(super) fn read(&mut self, id: FileId, buffer: &mut [u8], offset: usize) -> io::Result<usize> {
        let short = self.faults.read()?;
        let mut read = self.file(id).content.read(buffer, offset);
        if short && read > 0 {
            read = self.rng.random_range(0..read);
        }
        self.count(id, |counts| {
            counts.reads += 1;
            counts.read_bytes += read as u64;
        });
        Ok(read)
    }

    pub(super) fn write(&mut self, id: FileId, bytes: &[u8], offset: usize) -> io::Result<()> {
        self.faults.operation()?;
        let fits = self.len(id).saturating_add(self.room()).saturating_sub(offset);
        if bytes.len() > fits {
            let part = self.rng.random_range(0..=fits);
            self.file(id).content.write(&bytes[..part], offset);
            return Err(ErrorKind::StorageFull.into());
        }
        self.file(id).content.write(bytes, offset);
        self.count(id, |counts| {
            counts.writes += 1;
            counts.write_bytes += bytes.len() as u64;
        });
        Ok(())
    }

    pub(super) fn set_len(&mut self, id: FileId, len: usize) -> io::Result<()> {
        self.faults.operation()?;
        if len > self.len(id).saturating_add(self.room()) {
            return Err(ErrorKind::StorageFull.into());
        }
        self.file(id).content.set_len(len);
        Ok(())
    }

    pub(super) fn sync(&mut self, id: FileId) -> io::Result<()> {
        if let Err(error) = self.faults.sync() {
            if self.failed_syncs_lose_writes {
                let file = self.files.get_mut(&id).expect("a file that is open is kept");
                file.content.lose_unsynced(&mut self.rng);
            }
            return Err(error);
        }
        self.file(id).content.sync();
        self.count(id, |counts| counts.syncs += 1);
        Ok(())
    }
}
