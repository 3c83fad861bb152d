//! A store that is a directory of a disk. This module does not know what the objects hold.
//!
//! ```text
//! sst/00000024-9.sst             an object
//! sst/00000024-9.sst.unfinished  one that is being written
//! ```
//!
//! Each object is first written to a file with a temporary name. Once this file is synced, it gets the name of the
//! object. If a process dies, its unfinished files stay, but the store does not list them.
//! [`DirectoryStore::remove_unfinished`] removes them.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::{Access, BLOCK_BYTES, Buffer, Disk, File, Store, StoredObject, Upload};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

const UNFINISHED: &str = ".unfinished";

/// Smaller pieces are collected until one write has this many bytes.
const WRITE_BYTES: usize = 1 << 20;

/// Objects as files in a directory.
#[derive(Debug)]
pub struct DirectoryStore {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// The number in the temporary name of the next file.
    puts: AtomicU64,
    /// Unique among the clients of the directory.
    client: u64,
}

impl DirectoryStore {
    /// Keeps objects in `directory`, which is created when it is needed. `client` must be unique among the clients of
    /// the directory.
    pub fn new(disk: Arc<dyn Disk>, directory: &Path, client: u64) -> DirectoryStore {
        DirectoryStore { disk, directory: directory.to_owned(), puts: AtomicU64::new(0), client }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A new temporary path, for an object that does not have its name yet.
    fn unfinished(&self, name: &str) -> PathBuf {
        let number = self.puts.fetch_add(1, Ordering::Relaxed);
        self.directory.join(format!("{name}.{:016x}-{number}{UNFINISHED}", self.client))
    }

    /// Creates the folder of an object.
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path.parent().expect("an object lies in the directory"))
    }

    /// Removes the unfinished files that dead processes have left in a folder. No other process may be writing to
    /// the folder.
    ///
    /// # Errors
    ///
    /// The disk's error.
    pub fn remove_unfinished(&self, folder: &str) -> io::Result<()> {
        let directory = self.path(folder);
        for entry in listed(&*self.disk, &directory)? {
            if entry.name.ends_with(UNFINISHED) {
                self.disk.remove(&directory.join(entry.name))?;
            }
        }
        Ok(())
    }
}

/// Gives the file `new` the name `path`, and makes this name durable. Fails if another file has the name.
fn give_name(disk: &dyn Disk, new: &Path, path: &Path) -> io::Result<()> {
    let linked = disk.link(new, path);
    // If this removal fails, `remove_unfinished` removes the file later.
    disk.remove(new).ok();
    if let Err(error) = &linked
        && error.kind() != ErrorKind::AlreadyExists
    {
        return linked;
    }
    // If the name is taken, it may be from an earlier attempt of this caller, which then failed to sync the
    // directory. The caller may accept that object as its own, so the name must become durable here.
    disk.sync_dir(path.parent().expect("an object lies in the directory"))?;
    linked
}

/// The entries of a directory, which need not exist.
fn listed(disk: &dyn Disk, directory: &Path) -> io::Result<Vec<crate::DirectoryEntry>> {
    match disk.list(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}

impl Store for DirectoryStore {
    fn create(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        let path = self.path(name);
        self.make_folder(&path)?;
        let new = self.unfinished(name);
        let file = match self.disk.open(&new, Access::CreateDirect) {
            // The file system has no direct writes.
            Err(error) if error.kind() == ErrorKind::InvalidInput => self.disk.open(&new, Access::Create)?,
            opened => opened?,
        };
        let buffer = Buffer::zeroed(WRITE_BYTES);
        Ok(Box::new(DirectoryUpload {
            disk: self.disk.clone(),
            file: Some(file),
            new,
            path,
            buffer,
            filled: 0,
            end: 0,
        }))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(name);
        self.make_folder(&path)?;
        let new = self.unfinished(name);
        let file = self.disk.open(&new, Access::Create)?;
        let written = file.write_at(bytes, 0).and_then(|()| file.sync());
        if written.is_err() {
            self.disk.remove(&new).ok();
        }
        written?;
        give_name(&*self.disk, &new, &path)
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.disk.read_all(&self.path(name))
    }

    fn read_at(&self, name: &str, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.open(&self.path(name), Access::ReadDirect)?.read_at(buffer, offset)
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.disk.open(&self.path(name), Access::Read)?.len()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.disk.remove(&self.path(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>> {
        let folder = folder.trim_end_matches('/');
        let entries = listed(&*self.disk, &self.path(folder))?.into_iter();
        let whole = entries.filter(|entry| !entry.name.ends_with(UNFINISHED));
        let name = |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        Ok(whole.map(|entry| StoredObject { name: name(&entry.name), bytes: entry.bytes }).collect())
    }
}

/// A file that gets its final name in `finish`.
#[derive(Debug)]
struct DirectoryUpload {
    disk: Arc<dyn Disk>,
    /// `None` once the upload is finished.
    file: Option<Arc<dyn File>>,
    new: PathBuf,
    path: PathBuf,
    buffer: Buffer,
    filled: usize,
    /// The bytes in the file, not counting those in the buffer.
    end: u64,
}

impl DirectoryUpload {
    /// Writes the first bytes of the buffer.
    fn flush(&mut self, bytes: usize) -> io::Result<()> {
        let file = self.file.as_ref().expect("it is finished once");
        file.write_at(&self.buffer[..bytes], self.end)?;
        self.end += bytes as u64;
        self.buffer.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
        Ok(())
    }
}

impl Upload for DirectoryUpload {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.buffer.len() - self.filled));
            self.buffer[self.filled..][..now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == self.buffer.len() {
                self.flush(self.filled)?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        // The whole blocks go first, in a write of their own, because only whole blocks can go around the page cache.
        let whole = self.filled / BLOCK_BYTES * BLOCK_BYTES;
        if whole > 0 {
            self.flush(whole)?;
        }
        if self.filled > 0 {
            self.flush(self.filled)?;
        }
        self.file.as_ref().expect("it is finished once").sync()?;
        self.file = None;
        give_name(&*self.disk, &self.new, &self.path)
    }
}

impl Drop for DirectoryUpload {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // If this removal fails, `remove_unfinished` removes the file later.
            self.disk.remove(&self.new).ok();
        }
    }
}

#[cfg(test)]
mod tests;
