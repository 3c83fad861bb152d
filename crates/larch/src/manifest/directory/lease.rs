//! Leases: with a lease, a follower makes the writer keep the files that the follower reads. A lease is a file in
//! the directory `followers`. Its follower holds a lock on this file. The lease names the oldest file set that
//! readers of the follower still use.
//!
//! ```text
//!   follower                                   writer
//!   makes its lease: it keeps everything       makes an edit durable that a file is not in
//!   reads the manifest                         looks at the leases
//!   writes what it shows into the lease        removes the file if no lease is older than the edit
//! ```
//!
//! A follower makes its lease before it reads the manifest. So if the follower has not read an edit, its lease
//! existed before the edit, and the writer sees the lease when it looks at the leases. The lock is released when
//! the process of the follower ends. If another process gets the lock of a lease, it removes the lease.
//!
//! The directory `followers` also has the file `newest-log`. This file says to which log commits are appended now,
//! so that no follower has to list the directory of the database. A writer writes to this file only if the file
//! exists.
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

/// How often a follower tries to make a lease. A try fails only if another process has found no lease in the
/// directory `followers` and is removing the directory at this moment.
const ATTEMPTS: u32 = 100;

/// The lease of one follower. The lease is removed when this value is dropped.
#[derive(Debug)]
pub struct Lease {
    disk: Arc<dyn Disk>,
    origin: ProcessOrigin,
    path: PathBuf,
    file: Arc<dyn File>,
    #[expect(dead_code, reason = "it tells others that the follower lives, until it is dropped")]
    lock: Box<dyn Lock>,
    /// The position that the lease holds.
    said: Mutex<Position>,
}

impl Lease {
    /// Makes a lease in the directory of a database. Until [`Lease::say`] is called, the lease keeps all files.
    /// `None` if this process cannot make a file there: the file system is read-only or full, or the process has
    /// no right to write. Without a lease, the writer does not know of this follower and may remove files that it
    /// reads.
    ///
    /// # Errors
    ///
    /// The lease cannot be written, for another reason than these.
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
                // Another process has removed the file or its directory before this process could lock the file.
                Ok((_, false)) => {}
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock) => last = Some(error),
                Err(error) => {
                    // The file may exist in spite of the error. No other call uses its name, so the file can be
                    // removed.
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

    /// Writes `position` into the lease: the follower uses no file set that is older than the file set at this
    /// position.
    ///
    /// # Errors
    ///
    /// The lease cannot be written. After this error, the lease keeps the same files as before this call, or all
    /// files.
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
        // In a forked child, the lease still belongs to the parent process.
        if self.origin.is_here() {
            // If the lease cannot be removed, the writer finds it unlocked and removes it.
            self.disk.remove(&self.path).ok();
            remove_if_unused(&*self.disk, self.path.parent().unwrap_or(Path::new("")));
        }
    }
}

/// If the directory `followers` has no lease, removes the files in it and the directory itself. The next follower
/// makes the directory and the files again.
fn remove_if_unused(disk: &dyn Disk, followers: &Path) {
    let is_unused = |entries: Vec<os::DirectoryEntry>| entries.iter().all(|entry| entry.name == NEWEST_LOG);
    if disk.list(followers).is_ok_and(is_unused) {
        disk.remove(&followers.join(NEWEST_LOG)).ok();
        disk.remove_dir(followers).ok();
    }
}

/// What the file `newest-log` says about the log to which commits are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewestLog {
    /// The writer has written the number of this log.
    Is(u64),
    /// The writer has written no number, because no log has begun since a follower made the file.
    NotSaid,
    /// The file did not exist. If this call has made the file, the writer writes the number of each later log into
    /// it. This time, the caller has to look for logs in the directory of the database.
    AskedNow,
}

/// Asks the writer to which log commits are appended now, through the file `newest-log`.
///
/// # Errors
///
/// The file cannot be read or made.
pub fn newest_log(disk: &dyn Disk, directory: &Path) -> Result<NewestLog> {
    let followers = directory.join(FOLLOWERS);
    let path = followers.join(NEWEST_LOG);
    let text = match disk.read_all(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let made = disk.create_dir(&followers).and_then(|()| disk.open(&path, Access::Create));
            // Writing a number now allocates the disk space of the file. So the writer can write a number later
            // even if the disk is full.
            let made = made.and_then(|file| file.write_at(number_text(0).as_bytes(), 0));
            return match made {
                // Another process has just removed the directory. The next call of this function tries again.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(NewestLog::AskedNow),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(NewestLog::AskedNow),
                // This process may not write here, so it cannot make the file. The caller looks for logs in the
                // directory after each call.
                Err(error) if is_write_refused(&error) => Ok(NewestLog::AskedNow),
                made => made.map(|_| NewestLog::AskedNow).map_err(|error| Error::io("create", &path, error)),
            };
        }
        read => read.map_err(|error| Error::io("read", &path, error))?,
    };
    // If the text is incomplete, the writer is writing it at this moment.
    let number = std::str::from_utf8(&text).ok().and_then(|text| text.strip_suffix('\n')?.parse().ok());
    Ok(number.filter(|number| *number > 0).map_or(NewestLog::NotSaid, NewestLog::Is))
}

/// The text of `newest-log`. It always has the same length, so a newer number replaces an older number in place.
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
    /// The leases of the database in `directory`. This call does not look at them yet.
    pub fn of(disk: Arc<dyn Disk>, directory: &Path) -> Self {
        Self { disk, followers: directory.join(FOLLOWERS) }
    }

    /// The position of the oldest file set that any follower uses; `None` if no follower has a lease. This call
    /// also removes the leases of followers that have died. If the leases cannot be read, the result is the oldest
    /// possible position, because a follower may use any file set.
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

    /// The position that a lease holds; `None` if its follower has died.
    fn position_of(&self, path: &Path) -> Option<Position> {
        match self.disk.lock(path) {
            Ok(lock) => {
                // While this process holds the lock, no follower can take the file for its own lease.
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

    /// Tells followers that commits go to log `number` from now on. It does so only if a follower has asked.
    pub fn tell_newest_log(&self, number: u64) {
        if let Ok(file) = self.disk.open(&self.followers.join(NEWEST_LOG), Access::Write) {
            // If this write fails, followers find the log when they read the next change of the manifest.
            file.write_at(number_text(number).as_bytes(), 0).ok();
        }
    }
}
