//! Files that are closed while nobody uses them, so that the log and the manifest of an idle database use no file
//! descriptors. This module does not know what the files contain.
//!
//! ```text
//! create ──► open ──► (rest) ──► synced, closed
//!              ▲                      │
//!              └── write, read, cut ◄─┘
//! ```
//!
//! * A file is closed only when all its bytes are synced and no call on it is running. So a sync of a closed file
//!   has nothing to do.
//! * After a failed sync, every later write and sync of the file fails with the same error, even if the file was
//!   closed in between. The system may have dropped bytes that it could not write, and would not report this loss
//!   to a file that is opened again.
//!
//! Thread safe. The lock of a file's state is held while the file is opened, but not while bytes are written or
//! synced. No two syncs of a file run at the same time.

use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex, OnceLock, Weak};
use os::{Access, DirectoryEntry, Disk, File, Lock};
use std::io;
use std::path::{Path, PathBuf};

/// A disk that can close its files while other code still holds them. The next call on a closed file opens it
/// again.
#[derive(Debug)]
pub struct RestingDisk {
    disk: Arc<dyn Disk>,
    files: Mutex<Vec<Weak<RestingFile>>>,
    activity: Arc<Activity>,
}

/// How the files of one disk are used.
#[derive(Default)]
struct Activity {
    /// How many calls have needed an open file.
    uses: AtomicU64,
    /// Called when a file is opened, because somebody has to close this file later.
    opened: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl std::fmt::Debug for Activity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Activity").field("uses", &self.uses).finish_non_exhaustive()
    }
}

impl RestingDisk {
    /// A disk with the files of `disk`.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, files: Mutex::default(), activity: Arc::default() }
    }

    /// Sets a function that is called each time a file is opened. `opened` is also called once now, because a file
    /// may be open already.
    pub fn on_open(&self, opened: impl Fn() + Send + Sync + 'static) {
        self.activity.opened.set(Box::new(opened)).ok();
        self.activity.opened();
    }

    /// A number that grows with every use of a file.
    pub fn uses(&self) -> u64 {
        self.activity.uses.load(Ordering::Relaxed)
    }

    /// Syncs all open files, and closes the files on which no call is under way.
    ///
    /// # Errors
    ///
    /// The error of the first sync that failed. After this error, every write and sync of the same file fails.
    pub fn rest(&self) -> io::Result<()> {
        let files: Vec<Arc<RestingFile>> = self.files.lock().iter().filter_map(Weak::upgrade).collect();
        files.iter().map(|file| file.rest()).fold(Ok(()), Result::and)
    }
}

impl Activity {
    fn opened(&self) {
        if let Some(opened) = self.opened.get() {
            opened();
        }
    }
}

impl Disk for RestingDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let file = self.disk.open(path, access)?;
        if !matches!(access, Access::Create | Access::Write) {
            return Ok(file);
        }
        let state = FileState { file: Some(file), users: 0, writes: 0, synced: 0 };
        let file = Arc::new(RestingFile {
            disk: self.disk.clone(),
            path: path.to_owned(),
            state: Mutex::new(state),
            syncing: Mutex::new(()),
            failed: OnceLock::new(),
            activity: self.activity.clone(),
        });
        let mut files = self.files.lock();
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&file));
        drop(files);
        self.activity.opened();
        Ok(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        self.disk.list(directory)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        self.disk.create_dir(directory)
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        self.disk.remove_dir(directory)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.disk.sync_dir(directory)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.disk.lock(path)
    }
}

/// A file that may be closed.
#[derive(Debug)]
struct RestingFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    state: Mutex<FileState>,
    /// This lock is held during a sync. If two syncs ran at the same time, the system would report a failure to
    /// only one of them, and the other would succeed.
    syncing: Mutex<()>,
    /// The kind and the message of the error, if a sync of this file has failed.
    failed: OnceLock<(io::ErrorKind, String)>,
    activity: Arc<Activity>,
}

#[derive(Debug)]
struct FileState {
    /// `None` while the file is closed.
    file: Option<Arc<dyn File>>,
    /// How many calls are using the file.
    users: usize,
    /// How many changes to the file have begun.
    writes: u64,
    /// How many of the changes a sync has made durable.
    synced: u64,
}

impl RestingFile {
    fn check(&self) -> io::Result<()> {
        match self.failed.get() {
            Some((kind, why)) => Err(io::Error::new(*kind, why.clone())),
            None => Ok(()),
        }
    }

    fn fail(&self, error: io::Error) -> io::Error {
        self.failed.get_or_init(|| (error.kind(), error.to_string()));
        error
    }

    /// Calls `act` with the file. If the file is closed, opens it first. `changes` says whether `act` changes the
    /// file.
    fn with<T>(&self, changes: bool, act: impl FnOnce(&dyn File) -> io::Result<T>) -> io::Result<T> {
        if changes {
            self.check()?;
        }
        let mut opened = false;
        let file = {
            let mut state = self.state.lock();
            let file = match &state.file {
                Some(file) => file.clone(),
                None => {
                    opened = true;
                    let file = self.disk.open(&self.path, Access::Write)?;
                    state.file = Some(file.clone());
                    file
                }
            };
            state.users += 1;
            state.writes += u64::from(changes);
            file
        };
        self.activity.uses.fetch_add(1, Ordering::Relaxed);
        let _user = User(self);
        let outcome = act(&*file);
        if opened {
            self.activity.opened();
        }
        outcome
    }

    /// Syncs the file, and then closes it unless a call on it is under way.
    fn rest(&self) -> io::Result<()> {
        if self.state.lock().file.is_some() && self.check().is_ok() {
            self.sync()?;
        }
        let gone = {
            let mut state = self.state.lock();
            if state.users == 0 && state.synced == state.writes { state.file.take() } else { None }
        };
        drop(gone);
        Ok(())
    }
}

/// A call that uses the file.
struct User<'f>(&'f RestingFile);

impl Drop for User<'_> {
    fn drop(&mut self) {
        self.0.state.lock().users -= 1;
    }
}

impl File for RestingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(false, |file| file.read_at(buffer, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(true, |file| file.write_at(bytes, offset))
    }

    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        self.with(true, |file| file.append(bytes))
    }

    fn sync(&self) -> io::Result<()> {
        let _syncing = self.syncing.lock();
        self.check()?;
        let (file, writes) = {
            let mut state = self.state.lock();
            // A closed file has no bytes that were not synced, so there is nothing to do.
            let Some(file) = state.file.clone() else { return Ok(()) };
            // Another call may be writing now, and its write may end after this sync has begun. Then this sync may
            // miss the write. So if other calls use the file, no change counts as synced until a later sync.
            let others = state.users;
            state.users += 1;
            (file, if others == 0 { state.writes } else { state.synced })
        };
        let user = User(self);
        file.sync().map_err(|error| self.fail(error))?;
        drop(user);
        let mut state = self.state.lock();
        state.synced = state.synced.max(writes);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.with(false, |file| file.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.with(true, |file| file.set_len(bytes))
    }

    fn allocate_ahead(&self, bytes: u64) -> io::Result<()> {
        self.with(false, |file| file.allocate_ahead(bytes))
    }

    fn is_direct(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
