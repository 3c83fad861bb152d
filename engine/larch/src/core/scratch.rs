//! The place for temporary files that only this process reads: the sorted runs of an import or a new index, and the
//! writes of a large transaction. Usually this is the directory of the database. If the disk says that its files are
//! on another machine, it is a directory on a local disk instead, so that temporary files do not cross the network.
//! This module does not know what the files contain.
//!
//! ```text
//! SCRATCH/larch-0123456789abcdef/LOCK             held as long as the database is open here
//! SCRATCH/larch-0123456789abcdef/00000012-3.sst
//! ```
//!
//! On first use, makes the directory, readable only by this user, and removes the directories of processes that have
//! ended. Other databases, users and programs may use SCRATCH, too.
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

/// Attempts to make a directory. One fails only if another process takes the new directory for one that a dead
/// process left, and removes it.
const ATTEMPTS: u32 = 100;

/// The place for temporary files of one database.
#[derive(Debug)]
pub struct Scratch {
    machine: Machine,
    /// A disk of this machine, and a directory on it for temporary files. `None` if they go to the directory of the
    /// database.
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
    /// Whether this is the directory of the database, so that a temporary file can become one of its files without a
    /// copy.
    pub is_database: bool,
    /// The directory that was made for temporary files. `None` if this is the directory of the database.
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
            // If this fails, another process finds the directory unlocked and removes it.
            remove(&*self.disk, &self.directory).ok();
        }
    }
}

impl Scratch {
    /// The place for temporary files of the database in `directory`, whose files `opener` opens.
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

    /// The directory for temporary files. Makes it at the first call, and again if another program has removed it,
    /// for example to clean up old files.
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
    /// Whether the directory still exists. Checks nothing for the directory of the database: every write checks its
    /// lock.
    fn is_there(&self) -> bool {
        self.own.as_ref().is_none_or(|own| own.disk.exists(&own.directory.join(LOCK)).unwrap_or(true))
    }
}

/// Makes a directory in `parent`, and removes the directories that dead processes left there.
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
            // Another process removed the new directory before this one could lock it. Try again.
            Ok((_, false)) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock) => last = Some(error),
            Err(error) => {
                // No other process uses this directory, and this one does not hold its lock.
                disk.remove(&lock_path).ok();
                disk.remove_dir(&directory).ok();
                return Err(error);
            }
        }
    }
    Err(last.unwrap_or_else(|| ErrorKind::NotFound.into()))
}

/// Removes all unlocked directories for temporary files in `parent`, except `own`. If one cannot be removed, it is
/// left to another process.
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
