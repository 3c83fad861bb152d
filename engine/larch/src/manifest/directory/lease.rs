//! Leases, with which followers make the writer keep the files that they read. A lease is a file in the directory
//! `followers`, on which its follower holds a lock. It names the oldest file set that the follower's readers still
//! use.
//!
//! ```text
//!   follower                                   writer
//!   makes its lease: it keeps everything       makes an edit durable that a file is not in
//!   reads the manifest                         looks at the leases
//!   writes what it shows into the lease        removes the file if no lease is older than the edit
//! ```
//!
//! A follower makes its lease before it reads the manifest. So if it has not read an edit, its lease is older than
//! the edit, and the writer sees it. The system releases the lock when the follower's process ends. A writer that
//! gets the lock of a lease removes the lease.
//!
//! The file `newest-log` in the same directory says which log takes commits now, so that followers need not list
//! the directory of the database. A writer updates it only if it exists.
//!
//! Thread safe.

use super::names::FOLLOWERS;
use super::position::Position;
use crate::base::error::{Error, Result, is_write_refused};
use os::process::ProcessOrigin;
use os::sync::{Arc, Mutex};
use os::{Access, Disk, File, Lock, Machine};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const NEWEST_LOG: &str = "newest-log";
const LEASE: &str = "lease";

/// How often a follower tries to make a lease. An attempt is repeated only if another process is just removing the
/// file, or the directory `followers`, in which it has found no lease.
const ATTEMPTS: u32 = 100;

/// The lease of one follower, removed when this value is dropped.
#[derive(Debug)]
pub struct Lease {
    disk: Arc<dyn Disk>,
    origin: ProcessOrigin,
    path: PathBuf,
    file: Arc<dyn File>,
    #[expect(dead_code, reason = "it tells others that the follower lives, until it is dropped")]
    lock: Box<dyn Lock>,
    /// The position that the lease names.
    said: Mutex<Position>,
}

impl Lease {
    /// Makes a lease in the directory of a database, which keeps all files until [`Lease::say`] is called. Returns
    /// `None` if this process cannot make a file there, because the file system is read-only or full, or the
    /// process has no right to write there. Without a lease, the writer does not know of this follower, and may
    /// remove files that it reads.
    ///
    /// # Errors
    ///
    /// An error if the lease cannot be written for any other reason.
    pub fn new(machine: &Machine, directory: &Path) -> Result<Option<Self>> {
        let (disk, followers) = (&machine.disk, directory.join(FOLLOWERS));
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let path = followers.join(format!("{:016x}.{LEASE}", machine.random.next_u64()));
            let made = disk.create_dir(&followers).and_then(|()| disk.lock(&path));
            match made.and_then(|lock| Ok((lock, disk.exists(&path)?))) {
                Ok((lock, true)) => {
                    let file = disk.open(&path, Access::Write).map_err(|error| {
                        disk.remove(&path).ok();
                        remove_if_unused(&**disk, &followers);
                        Error::io("open", &path, error)
                    })?;
                    let said = Mutex::new(Position::default());
                    return Ok(Some(Self {
                        disk: disk.clone(),
                        origin: ProcessOrigin::here(),
                        path,
                        file,
                        lock,
                        said,
                    }));
                }
                // Another process has removed the file or its directory before it was locked.
                Ok((_, false)) => {}
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock) => last = Some(error),
                Err(error) => {
                    // The file may exist in spite of the error. Nobody else uses its name, so remove it.
                    disk.remove(&path).ok();
                    remove_if_unused(&**disk, &followers);
                    if is_write_refused(&error) {
                        return Ok(None);
                    }
                    return Err(Error::io("write a lease in", &followers, error));
                }
            }
        }
        let error = last.unwrap_or_else(|| ErrorKind::NotFound.into());
        Err(Error::io("write a lease in", &followers, error))
    }

    /// Writes `position` into the lease: the follower uses no older file set.
    ///
    /// # Errors
    ///
    /// An error if the lease cannot be written. It then keeps the same files as before, or all files.
    pub fn say(&self, position: Position) -> Result<()> {
        let mut said = self.said.lock();
        if *said != position {
            let text = position.to_text();
            self.file.write_at(text.as_bytes(), 0).map_err(|error| Error::io("write", &self.path, error))?;
            *said = position;
        }
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // In a forked child, the lease is still that of the parent process.
        if self.origin.is_here() {
            // If the lease cannot be removed, the writer finds it unlocked and removes it.
            self.disk.remove(&self.path).ok();
            remove_if_unused(&*self.disk, self.path.parent().unwrap_or(Path::new("")));
        }
    }
}

/// Removes the directory `followers`, with `newest-log`, if it has no lease. The next follower makes them again.
fn remove_if_unused(disk: &dyn Disk, followers: &Path) {
    let is_unused = |entries: Vec<os::DirectoryEntry>| entries.iter().all(|entry| entry.name == NEWEST_LOG);
    if disk.list(followers).is_ok_and(is_unused) {
        disk.remove(&followers.join(NEWEST_LOG)).ok();
        disk.remove_dir(followers).ok();
    }
}

/// What the file `newest-log` says about which log takes commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewestLog {
    /// The log with this number takes commits.
    Is(u64),
    /// The writer has written no number yet, because no log has begun since a follower made the file.
    NotSaid,
    /// The file did not exist, and the caller has to look for logs in the directory of the database. If this call
    /// could make the file, the writer will put the number of each later log into it.
    AskedNow,
}

/// Asks the writer, through the file `newest-log`, which log takes commits.
///
/// # Errors
///
/// An error if the file cannot be read or made.
pub fn newest_log(disk: &dyn Disk, directory: &Path) -> Result<NewestLog> {
    let followers = directory.join(FOLLOWERS);
    let path = followers.join(NEWEST_LOG);
    let text = match disk.read_all(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let made = disk.create_dir(&followers).and_then(|()| disk.open(&path, Access::Create));
            // Write a number now to allocate the file's disk space, so that the writer can update it even on a full
            // disk.
            let made = made.and_then(|file| file.write_at(number_text(0).as_bytes(), 0));
            return match made {
                // Another process has just removed the directory. The next call tries again.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(NewestLog::AskedNow),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(NewestLog::AskedNow),
                // This process may not write here. The caller has to look for logs in the directory each time.
                Err(error) if is_write_refused(&error) => Ok(NewestLog::AskedNow),
                made => made.map(|_| NewestLog::AskedNow).map_err(|error| Error::io("create", &path, error)),
            };
        }
        read => read.map_err(|error| Error::io("read", &path, error))?,
    };
    // If the text is incomplete, the writer is just writing it.
    let number = std::str::from_utf8(&text).ok().and_then(|text| text.strip_suffix('\n')?.parse().ok());
    Ok(number.filter(|number| *number > 0).map_or(NewestLog::NotSaid, NewestLog::Is))
}

/// The text of `newest-log`, always of the same length, so that a newer number overwrites an older one in place.
fn number_text(number: u64) -> String {
    format!("{number:020}\n")
}

/// The leases of a database, as its writer sees them.
#[derive(Debug)]
pub struct Leases {
    disk: Arc<dyn Disk>,
    followers: PathBuf,
}

impl Leases {
    /// The leases of the database in `directory`. Does not look at them yet.
    pub fn of(disk: Arc<dyn Disk>, directory: &Path) -> Self {
        Self { disk, followers: directory.join(FOLLOWERS) }
    }

    /// The position of the oldest file set that any follower uses; `None` if no follower has a lease. Removes the
    /// leases of followers that have died. If the leases cannot be read, returns the oldest possible position,
    /// because a follower may use any file set.
    pub fn oldest(&self) -> Option<Position> {
        let entries = match self.disk.list(&self.followers) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(_) => return Some(Position::default()),
        };
        let names = entries.into_iter().filter(|entry| entry.name.ends_with(LEASE)).map(|entry| entry.name);
        let oldest = names.filter_map(|name| self.position_of(&self.followers.join(name))).min();
        if oldest.is_none() {
            remove_if_unused(&*self.disk, &self.followers);
        }
        oldest
    }

    /// The position that a lease names. If its follower has died, removes the lease and returns `None`.
    fn position_of(&self, path: &Path) -> Option<Position> {
        match self.disk.lock(path) {
            Ok(lock) => {
                // Remove the file under the lock, so that no follower can take it for its own lease.
                self.disk.remove(path).ok();
                drop(lock);
                None
            }
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(_) => {
                Some(self.disk.read_all(path).ok().and_then(|text| Position::from_text(&text)).unwrap_or_default())
            }
        }
    }

    /// Tells followers, if one has asked, that log `number` takes commits from now on.
    pub fn tell_newest_log(&self, number: u64) {
        if let Ok(file) = self.disk.open(&self.followers.join(NEWEST_LOG), Access::Write) {
            // If this fails, followers find the log when they read the next edit of the manifest.
            file.write_at(number_text(number).as_bytes(), 0).ok();
        }
    }
}
