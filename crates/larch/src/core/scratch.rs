//! The place for temporary files that only this process reads: the sorted runs of an import and of a new index,
//! and the writes of a large transaction. Usually this place is the directory of the database. If the disk says
//! that its files are on another machine, the place is a directory on a disk of this machine. So the bytes of
//! temporary files are not sent over the network and back. This module does not know what the files contain.
//!
//! ```text
//! SCRATCH/larch-0123456789abcdef/LOCK             held as long as the database is open here
//! SCRATCH/larch-0123456789abcdef/00000012-3.sst
//! ```
//!
//! When the place is first used, the directory is made, and only this user can read it. At the same time, the
//! directories of processes that have ended are removed. Other databases, users and programs may use SCRATCH, too.
//!
//! This module is thread-safe.

use crate::base::error::{Error, Result};
use crate::manifest::db_file::{EarlyFiles, FileOpener};
use crate::manifest::directory::leftovers::Leftovers;
use crate::manifest::directory::place::Place;
use os::process::ProcessOrigin;
use os::sync::{Arc, Mutex};
use os::{Disk, Lock, Machine};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

const LOCK: &str = "LOCK";
const PREFIX: &str = "larch-";

/// A process tries at most this many times to make a directory. A try fails only if another process believes that
/// the new directory is left from a process that has ended, and removes it.
const ATTEMPTS: u32 = 100;

/// The place for temporary files of one database.
#[derive(Debug)]
pub struct Scratch {
    machine: Machine,
    /// A disk of this machine, and a directory on it for temporary files. `None` if temporary files are in the
    /// directory of the database.
    near: Option<(Arc<dyn Disk>, PathBuf)>,
    opener: FileOpener,
    made: Mutex<Option<Arc<ScratchPlace>>>,
}

/// A directory for temporary files.
#[derive(Debug)]
pub struct ScratchPlace {
    /// The disk and the directory where temporary files are written.
    pub place: Place,
    /// Opens temporary files for reading.
    pub opener: FileOpener,
    /// Whether a temporary file is in the directory of the database, so that it can become a file of the database
    /// without being copied.
    pub is_database: bool,
    /// The directory for temporary files. `None` if this is the directory of the database.
    own: Option<OwnDirectory>,
}

/// A directory that is removed when this value is dropped.
#[derive(Debug)]
struct OwnDirectory {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    origin: ProcessOrigin,
    #[expect(dead_code, reason = "it tells others that the process lives, until it is dropped")]
    lock: Box<dyn Lock>,
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        if self.origin.is_here() {
            // If the directory cannot be removed now, another process will find that it is not locked, and remove
            // it.
            remove(&*self.disk, &self.directory).ok();
        }
    }
}

impl Scratch {
    /// The place for temporary files of the database in `directory`. `opener` opens the files of this database.
    pub fn new(machine: &Machine, directory: &Path, opener: &FileOpener) -> Self {
        let near = machine.disk.scratch();
        let beside = || {
            let (disk, directory) = (machine.disk.clone(), directory.to_owned());
            let place = Place { disk, directory, leftovers: opener.leftovers.clone() };
            Arc::new(ScratchPlace { place, opener: opener.clone(), is_database: true, own: None })
        };
        let made = Mutex::new(near.is_none().then(beside));
        Self { machine: machine.clone(), near, opener: opener.clone(), made }
    }

    /// The directory for temporary files, which exists when this returns. If another program has removed the
    /// directory, for example to clean up old files, this call makes a new one.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be made.
    pub fn get(&self) -> Result<Arc<ScratchPlace>> {
        let mut made = self.made.lock();
        if let Some(place) = made.as_ref().filter(|place| place.is_there()) {
            return Ok(place.clone());
        }
        let (disk, parent) = self.near.as_ref().expect("without another disk it is made at once");
        let own = make(&self.machine, disk, parent).map_err(|error| Error::io("make a directory in", parent, error))?;
        let machine = Machine { disk: disk.clone(), ..self.machine.clone() };
        let (directory, leftovers) = (own.directory.clone(), Leftovers::new(disk.clone()));
        let opener = FileOpener {
            directory: directory.clone(),
            machine,
            early: EarlyFiles::default(),
            known: Arc::default(),
            leftovers: leftovers.clone(),
            ..self.opener.clone()
        };
        let place = Place { disk: disk.clone(), directory, leftovers };
        let place = Arc::new(ScratchPlace { place, opener, is_database: false, own: Some(own) });
        Ok(made.insert(place).clone())
    }
}

impl ScratchPlace {
    /// Whether the directory still exists. If this is the directory of the database, nothing is checked here,
    /// because every write checks the lock of the database.
    fn is_there(&self) -> bool {
        self.own.as_ref().is_none_or(|own| own.disk.exists(&own.directory.join(LOCK)).unwrap_or(true))
    }
}

/// Makes a directory in `parent`, and removes the directories of dead processes there.
fn make(machine: &Machine, disk: &Arc<dyn Disk>, parent: &Path) -> io::Result<OwnDirectory> {
    disk.create_dir(parent)?;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let directory = parent.join(format!("{PREFIX}{:016x}", machine.random.next_u64()));
        let lock_path = directory.join(LOCK);
        let locked = disk.create_private_dir(&directory).and_then(|()| disk.lock(&lock_path));
        match locked.and_then(|lock| Ok((lock, disk.exists(&lock_path)?))) {
            Ok((lock, true)) => {
                let own = OwnDirectory { disk: disk.clone(), directory, origin: ProcessOrigin::here(), lock };
                remove_left(&**disk, parent, &own.directory);
                return Ok(own);
            }
            // Another process has removed the new directory before this process could lock it, so this is tried
            // again.
            Ok((_, false)) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock) => last = Some(error),
            Err(error) => {
                // No other call uses this directory. This process does not hold its lock.
                disk.remove(&lock_path).ok();
                disk.remove_dir(&directory).ok();
                return Err(error);
            }
        }
    }
    Err(last.unwrap_or_else(|| ErrorKind::NotFound.into()))
}

/// Removes all directories for temporary files in `parent` that no process has locked, except `own`. A directory
/// that cannot be removed stays until another process removes it.
fn remove_left(disk: &dyn Disk, parent: &Path, own: &Path) {
    let is_number = |number: &str| number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_one = |name: &str| name.strip_prefix(PREFIX).is_some_and(is_number);
    for entry in disk.list(parent).unwrap_or_default().into_iter().filter(|entry| is_one(&entry.name)) {
        let directory = parent.join(entry.name);
        if directory != own
            && let Ok(lock) = disk.lock(&directory.join(LOCK))
        {
            remove(disk, &directory).ok();
            drop(lock);
        }
    }
}

/// Removes a directory with its files. The lock file is removed last.
fn remove(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    for entry in disk.list(directory)?.into_iter().filter(|entry| entry.name != LOCK) {
        disk.remove(&directory.join(entry.name))?;
    }
    disk.remove(&directory.join(LOCK))?;
    disk.remove_dir(directory)
}
