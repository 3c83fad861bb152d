//! The state of a simulated disk, and what operations and crashes do to it. This module does not know what an open
//! file may do, or which thread asks.

use super::content::{SimContent, Spared};
use super::faults::{Faults, crashed};
use super::names::{FileId, Names, SimNode, moved, normal, parent};
use super::random::Draws;
use crate::DirectoryEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Input and output so far. Only reads and writes that succeeded count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Calls of `read_at`.
    pub reads: u64,
    /// Bytes that the reads returned.
    pub read_bytes: u64,
    /// Calls of `write_at` and `append`.
    pub writes: u64,
    /// Bytes that were written.
    pub write_bytes: u64,
    /// Calls of `sync`. For a whole disk, calls of `sync_dir` count, too.
    pub syncs: u64,
}

/// The state of the disk. Its functions take paths as [`normal`] spells them.
#[derive(Clone)]
pub(super) struct SimDiskState {
    pub(super) draws: Draws,
    /// How often the machine has restarted.
    pub(super) start: u64,
    pub(super) names: Names,
    pub(super) files: BTreeMap<FileId, Inode>,
    next_file: u64,
    /// The files that were locked since the last start and still are. A removed file stays locked, but its former name
    /// is free.
    pub(super) locks: BTreeSet<FileId>,
    pub(super) faults: Faults,
    /// The held directories, by number, with their current paths, or `None` if they were removed.
    held: BTreeMap<u64, Option<PathBuf>>,
    next_held: u64,
    /// How many machines have used the disk.
    pub(super) machines: u64,
    pub(super) failed_syncs_lose_writes: bool,
    /// Whether files keep only one copy of their bytes.
    pub(super) never_crashes: bool,
    pub(super) capacity_bytes: u64,
    pub(super) counts: DiskCounts,
}

/// A file, whatever its name.
#[derive(Clone, Default)]
pub(super) struct Inode {
    pub(super) content: SimContent,
    /// How often the file is open.
    pub(super) handles: usize,
    pub(super) counts: DiskCounts,
}

impl SimDiskState {
    /// An empty disk whose crashes follow from `seed`.
    pub(super) fn new(seed: u64) -> SimDiskState {
        SimDiskState {
            draws: Draws::new(seed),
            start: 0,
            names: Names::default(),
            files: BTreeMap::new(),
            next_file: 0,
            locks: BTreeSet::new(),
            faults: Faults::default(),
            held: BTreeMap::new(),
            next_held: 0,
            machines: 0,
            failed_syncs_lose_writes: false,
            never_crashes: false,
            capacity_bytes: u64::MAX,
            counts: DiskCounts::default(),
        }
    }

    pub(super) fn crash(&mut self, spared: Spared) {
        self.start += 1;
        self.names.crash(spared, &mut self.draws);
        for file in self.files.values_mut() {
            file.content.crash(spared, &mut self.draws);
            file.handles = 0;
        }
        self.locks.clear();
        self.faults.clear();
        self.failed_syncs_lose_writes = false;
        self.drop_unreachable();
    }

    /// Frees the contents of files that neither a process nor a crash can reach again.
    fn drop_unreachable(&mut self) {
        let reachable = self.names.reachable();
        self.files.retain(|id, file| file.handles > 0 || reachable.contains(id));
    }

    pub(super) fn check_running(&self) -> io::Result<()> {
        if self.faults.has_crashed() { Err(crashed()) } else { Ok(()) }
    }

    /// The disk, for an operation that changes names or opens a file for writing. Fails if a fault makes such
    /// operations fail.
    pub(super) fn may_change(&mut self) -> io::Result<&mut Self> {
        self.faults.change().map(|()| self)
    }

    /// Fails if `start`, at which something was opened, is not the last start of the machine.
    pub(super) fn check_start(&self, start: u64) -> io::Result<()> {
        self.check_running()?;
        if start == self.start { Ok(()) } else { Err(crashed()) }
    }

    /// Begins to hold a directory, and returns its number.
    pub(super) fn hold(&mut self, directory: &Path) -> io::Result<u64> {
        self.check_running()?;
        self.check_directory(directory)?;
        self.next_held += 1;
        self.held.insert(self.next_held, Some(directory.to_owned()));
        Ok(self.next_held)
    }

    pub(super) fn let_go(&mut self, held: u64) {
        self.held.remove(&held);
    }

    /// The current path of a held directory.
    pub(super) fn place_of(&self, held: u64) -> Option<&Path> {
        self.held.get(&held)?.as_deref()
    }

    /// Moves a directory with everything in it, as `mv` does.
    pub(super) fn move_directory(&mut self, from: &Path, to: &Path) {
        assert!(self.names.get(to).is_none(), "{} is free", to.display());
        self.names.move_tree(from, to);
        for place in self.held.values_mut().flatten() {
            *place = moved(place, from, to);
        }
    }

    /// Removes a directory with everything in it, as `rm -r` does.
    pub(super) fn remove_directory(&mut self, directory: &Path) {
        self.names.remove_tree(directory);
        for place in self.held.values_mut() {
            place.take_if(|place| place.starts_with(directory));
        }
        self.drop_unreachable();
    }

    fn file(&mut self, id: FileId) -> &mut Inode {
        self.files.get_mut(&id).expect("a file that is open or has a name is kept")
    }

    /// Adds to the counts of the file and of the whole disk.
    fn count(&mut self, id: FileId, add: impl Fn(&mut DiskCounts)) {
        add(&mut self.counts);
        add(&mut self.file(id).counts);
    }

    /// The file at `path`, for tests. Panics if no such file exists.
    pub(super) fn file_at(&mut self, path: &Path) -> &mut Inode {
        match self.names.get(&normal(path)) {
            Some(SimNode::File(id)) => self.file(id),
            _ => panic!("{} is a file on the simulated disk", path.display()),
        }
    }

    pub(super) fn used_bytes(&self) -> u64 {
        let named = self.names.named();
        let taken = self.files.iter().filter(|(id, file)| file.handles > 0 || named.contains(id));
        taken.map(|(_, file)| file.content.len() as u64).sum()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.files.values().map(|file| file.content.memory_bytes()).sum()
    }

    /// How many more bytes fit on the disk.
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

    pub(super) fn open(&mut self, path: &Path) -> io::Result<FileId> {
        self.faults.open(path)?;
        self.faults.look(&mut self.draws)?;
        let id = self.existing_file(path)?;
        self.file(id).handles += 1;
        Ok(id)
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<FileId> {
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
        let content = if self.never_crashes { SimContent::that_never_crashes() } else { SimContent::default() };
        self.files.insert(id, Inode { content, ..Inode::default() });
        self.names.link(path, SimNode::File(id));
        Ok(id)
    }

    pub(super) fn close(&mut self, id: FileId, start: u64) {
        if start == self.start {
            self.file(id).handles -= 1;
        }
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
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

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.faults.link()?;
        let id = self.existing_file(from)?;
        self.check_parent(to)?;
        if self.names.get(to).is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.names.link(to, SimNode::File(id));
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.faults.operation()?;
        self.existing_file(path)?;
        self.names.unlink(path);
        Ok(())
    }

    pub(super) fn list(&mut self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        self.faults.operation()?;
        self.faults.look(&mut self.draws)?;
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

    pub(super) fn create_dir(&mut self, directory: &Path) -> io::Result<()> {
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

    pub(super) fn remove_dir(&mut self, directory: &Path) -> io::Result<()> {
        self.faults.operation()?;
        self.check_directory(directory)?;
        if self.names.within(directory).next().is_some() {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        self.names.unlink(directory);
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, directory: &Path) -> io::Result<()> {
        self.faults.sync()?;
        self.check_directory(directory)?;
        self.names.sync(directory);
        self.counts.syncs += 1;
        self.drop_unreachable();
        Ok(())
    }

    /// Locks the file at `path`, and creates it if it is missing.
    pub(super) fn take_lock(&mut self, path: &Path) -> io::Result<FileId> {
        self.check_running()?;
        if self.names.get(path).is_none() {
            self.link_file(path)?;
        }
        let id = self.existing_file(path)?;
        if !self.locks.insert(id) {
            return Err(io::Error::new(ErrorKind::WouldBlock, "another process has it open"));
        }
        Ok(id)
    }

    pub(super) fn unlock(&mut self, id: FileId, start: u64) {
        if start == self.start {
            self.locks.remove(&id);
        }
    }

    /// The length of a file, as a look that may fail.
    pub(super) fn measure(&mut self, id: FileId) -> io::Result<u64> {
        self.faults.look(&mut self.draws)?;
        Ok(self.len(id) as u64)
    }

    pub(super) fn len(&self, id: FileId) -> usize {
        self.files[&id].content.len()
    }

    pub(super) fn read(&mut self, id: FileId, buffer: &mut [u8], offset: usize) -> io::Result<usize> {
        let short = self.faults.read()?;
        self.faults.look(&mut self.draws)?;
        let mut read = self.file(id).content.read(buffer, offset);
        if short && read > 0 {
            read = self.draws.below(read);
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
            let part = self.draws.below(fits + 1);
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
                file.content.lose_unsynced(&mut self.draws);
            }
            return Err(error);
        }
        self.file(id).content.sync();
        self.count(id, |counts| counts.syncs += 1);
        Ok(())
    }
}
