//! Where work writes files that only this process reads, and only for a while: the sorted runs of an import and of a
//! new index, and the writes of a large transaction. Mostly this place is the directory of the database. If the disk
//! says that its files are far away, the place is a directory on a disk of this machine, so that these bytes do not
//! cross the network twice. It does not know what the files are.
//!
//! ```text
//! SCRATCH/larch-0123456789abcdef/LOCK             held as long as the database is open here
//! SCRATCH/larch-0123456789abcdef/00000012-3.sst
//! ```
//!
//! The first use makes the directory, which only this user can read, and removes the directories of processes that
//! have died. SCRATCH may be shared with other databases, users and programs.
//!
//! Thread safe.

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

/// How often making a directory is tried. Each try fails only if another process has taken the new directory for one
/// that a dead process has left.
const ATTEMPTS: u32 = 100;

/// Where such files are.
#[derive(Debug)]
pub struct Scratch {
    machine: Machine,
    /// The disk of this machine, and the directory there, if the files are not beside those of the database.
    near: Option<(Arc<dyn Disk>, PathBuf)>,
    opener: FileOpener,
    made: Mutex<Option<Arc<ScratchPlace>>>,
}

/// A directory for such files.
#[derive(Debug)]
pub struct ScratchPlace {
    /// Where they are written.
    pub place: Place,
    /// Opens them.
    pub opener: FileOpener,
    /// Whether they can become files of the database as they are.
    pub is_database: bool,
    /// The directory on another disk.
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
            // If it cannot be removed now, another process finds it unlocked and removes it.
            remove(&*self.disk, &self.directory).ok();
        }
    }
}

impl Scratch {
    /// The scratch of the database in `directory`, whose files `opener` opens.
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

    /// The directory, which exists. If another program has removed the old one, for example to clean up old files,
    /// this is a new directory.
    ///
    /// # Errors
    ///
    /// It cannot be made.
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
    /// Whether files can be made in it. For the directory of the database this is not asked here: its lock is
    /// checked by those who write.
    fn is_there(&self) -> bool {
        self.own.as_ref().is_none_or(|own| own.disk.exists(&own.directory.join(LOCK)).unwrap_or(true))
    }
}

/// Makes a directory in `parent`, and removes those there whose processes have died.
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
            // Another process has removed it before it was locked.
            Ok((_, false)) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock) => last = Some(error),
            Err(error) => {
                // Only this call uses this name. The lock is free again here, or was not taken.
                disk.remove(&lock_path).ok();
                disk.remove_dir(&directory).ok();
                return Err(error);
            }
        }
    }
    Err(last.unwrap_or_else(|| ErrorKind::NotFound.into()))
}

/// Removes each directory in `parent`, except `own`, that no process has locked. If a directory cannot be removed, it
/// stays for the next process.
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

/// Removes a directory and the files in it, the lock last.
fn remove(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    for entry in disk.list(directory)?.into_iter().filter(|entry| entry.name != LOCK) {
        disk.remove(&directory.join(entry.name))?;
    }
    disk.remove(&directory.join(LOCK))?;
    disk.remove_dir(directory)
}
