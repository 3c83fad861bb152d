//! The directory that holds the backups of a database: which backups exist, and what a killed process has left
//! there. This module does not know how a backup is made. `docs/format/backup.md` describes the directory.
//!
//! ```text
//! LOCK                               held by a process that makes or removes a backup
//! backup-3/LIST                      what backup 3 consists of; written last
//! backup-3/00000024-9.sst            SSTs that backup 3 has copied, each for all backups whose lists name it
//! backup-3/MANIFEST-00000031         a file of backup 3 alone
//! files/00000024-9-<id>.sst          SSTs of lists without the feature bit
//! ```
//!
//! Invariant: a file that a list names exists and does not change while any list names it. A directory without a
//! list is not a backup; it stays while it has files of other backups.

use super::list::{BackupList, Lies};
use crate::base::error::{Error, Result};
use crate::base::sealed;
use crate::core::files_only::hold;
use crate::manifest::directory::listing::is_of_database;
use os::sync::Arc;
use os::{Access, Clock, Disk, Lock, Machine};
use sst::format::features::Unreadable;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LOCK: &str = "LOCK";
const FILES: &str = "files";
const LIST: &str = "LIST";
const LIST_NEW: &str = "LIST.new";
const BACKUP: &str = "backup-";
const SST: &str = ".sst";

/// A request to a store whose sender has died is done within this time or never.
const LATEST_REQUEST: Duration = Duration::from_secs(3600);

/// The directory that holds the backups.
pub struct Store {
    pub disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    pub directory: PathBuf,
}

/// The state of the directory of one backup.
pub enum Found {
    /// A backup.
    Whole(BackupList),
    /// A backup whose list cannot be read.
    Damaged(Error),
    /// A backup whose list a newer release has written.
    Newer(Error),
    /// Files without a list: the making or the removal of a backup was not finished.
    Unfinished,
}

impl Found {
    /// The list of a whole backup.
    fn list(&self) -> Option<&BackupList> {
        match self {
            Self::Whole(list) => Some(list),
            Self::Damaged(_) | Self::Newer(_) | Self::Unfinished => None,
        }
    }
}

/// The state of each backup, by number.
pub type AllFound = BTreeMap<u64, Found>;

impl Store {
    /// The directory at the path `directory`, which may not exist yet. If it exists, this value keeps using it even
    /// if it is moved and another directory gets the path.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened.
    pub fn new(machine: &Machine, directory: &Path) -> Result<Self> {
        let (disk, clock) = (hold(machine, directory)?.disk, machine.clock.clone());
        Ok(Self { disk, clock, directory: directory.to_owned() })
    }

    /// Creates the directory if it does not exist, and takes its lock.
    ///
    /// # Errors
    ///
    /// [`Error::NotBackups`] if the directory has other files, and nothing that belongs to backups;
    /// [`Error::BackupsLocked`] if the lock is held, here or by another process; an error if the disk fails.
    pub fn lock(&mut self) -> Result<Box<dyn Lock>> {
        let directory = &self.directory;
        if self.disk.exists(directory).map_err(|error| Error::io("look for", directory, error))? {
            self.names()?;
        } else {
            self.disk.create_dir(directory).map_err(|error| Error::io("create", directory, error))?;
            self.disk = os::hold(&self.disk, directory).map_err(|error| Error::io("open", directory, error))?;
        }
        let lock = directory.join(LOCK);
        self.disk.lock(&lock).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => Error::BackupsLocked(directory.clone()),
            _ => Error::io("lock", &lock, error),
        })
    }

    /// The names in the directory that belong to backups. Leaves out others, such as `lost+found`.
    ///
    /// # Errors
    ///
    /// [`Error::NotBackups`] if the directory has only other names; an error if the directory cannot be listed.
    pub fn names(&self) -> Result<Vec<String>> {
        let entries = self.disk.list(&self.directory).map_err(|error| Error::io("list", &self.directory, error))?;
        let is_of_backups = |name: &String| name == FILES || number_of(name).is_some();
        let (ours, others): (Vec<_>, Vec<_>) =
            entries.into_iter().map(|entry| entry.name).partition(|name| name == LOCK || is_of_backups(name));
        match others.into_iter().next() {
            Some(found) if !ours.iter().any(is_of_backups) => {
                Err(Error::NotBackups { directory: self.directory.clone(), found })
            }
            _ => Ok(ours),
        }
    }

    /// The directory of a backup.
    pub fn directory_of(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{BACKUP}{number}"))
    }

    /// The path of the list of a backup.
    pub fn list_of(&self, number: u64) -> PathBuf {
        self.directory_of(number).join(LIST)
    }

    /// The paths of the files of a backup, in the order of the list.
    pub fn paths(&self, list: &BackupList) -> Vec<PathBuf> {
        let directory = |lies| match lies {
            Lies::Alone => self.directory_of(list.number),
            Lies::With { backup, .. } => self.directory_of(backup),
            Lies::InFiles { .. } => self.directory.join(FILES),
        };
        list.files.iter().map(|file| directory(file.lies).join(file.stored_name())).collect()
    }

    /// Reads the lists of all backups in the directory.
    ///
    /// # Errors
    ///
    /// The errors of [`Store::names`]; an error if a list cannot be read. A damaged list is not an error here.
    pub fn find(&self) -> Result<AllFound> {
        let numbers = self.names()?.into_iter().filter_map(|name| number_of(&name));
        numbers.map(|number| Ok((number, self.find_one(number)?))).collect()
    }

    fn find_one(&self, number: u64) -> Result<Found> {
        let path = self.list_of(number);
        let damaged = |why| Found::Damaged(Error::BadBackup { file: path.clone(), why });
        let bytes = match sealed::read(&*self.disk, &path) {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(why)) => return Ok(damaged(why)),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Unfinished),
            Err(error) => return Err(Error::io("read", &path, error)),
        };
        Ok(match BackupList::decode(&bytes) {
            Ok(list) if list.number == number => Found::Whole(list),
            Ok(list) => damaged(format!("it is the list of backup {}", list.number)),
            Err(Unreadable::Corrupt(why)) => damaged(why),
            Err(newer @ Unreadable::Newer(_)) => {
                Found::Newer(Error::NewerBackup { file: path.clone(), what: newer.to_string() })
            }
        })
    }

    /// Removes files that belong to no backup: those in the directory `files`, or in a directory without a list,
    /// that no list names. While some list cannot be read, all SSTs stay, because that list may name them.
    ///
    /// # Errors
    ///
    /// Fails if a list cannot be read or a file cannot be removed.
    pub fn clean(&self) -> Result<()> {
        let found = self.find()?;
        let mut named: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
        for list in found.values().filter_map(Found::list) {
            for path in self.paths(list) {
                let (directory, name) = (path.parent().expect("it is in one"), path.file_name().expect("it has one"));
                let name = name.to_string_lossy().into_owned();
                named.entry(directory.to_owned()).or_default().insert(name);
            }
        }
        let is_known = !found.values().any(|found| matches!(found, Found::Damaged(_) | Found::Newer(_)));
        let is_useless = |named: Option<&BTreeSet<String>>, name: &String| {
            (is_known || !name.ends_with(SST)) && !named.is_some_and(|named| named.contains(name))
        };
        for (number, _) in found.iter().filter(|(_, found)| matches!(found, Found::Unfinished)) {
            let directory = self.directory_of(*number);
            // The removal of the list must be durable before the files go. Otherwise a crash could bring the list
            // back without its files.
            self.sync_dir(&directory)?;
            let named = named.get(&directory);
            self.remove_of(&directory, &|name| is_useless(named, name))?;
            if self.disk.keeps_removed().is_none() || self.is_settled(*number, &found) {
                self.remove_if_empty(&directory)?;
            }
        }
        let files = self.directory.join(FILES);
        if self.disk.exists(&files).map_err(|error| Error::io("look for", &files, error))? {
            let named = named.get(&files);
            self.remove_of(&files, &|name| is_of_database(name) && is_useless(named, name))?;
            self.sync_dir(&files)?;
        }
        Ok(())
    }

    /// Removes the list of a backup, which ends the backup. A later [`Store::clean`] removes its files.
    ///
    /// # Errors
    ///
    /// Fails if the list cannot be removed durably.
    pub fn forget(&self, number: u64) -> Result<()> {
        self.remove(&self.list_of(number))?;
        self.sync_dir(&self.directory_of(number))
    }

    /// Removes the files in a directory whose names are useless.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed or a file cannot be removed.
    fn remove_of(&self, directory: &Path, is_useless: &dyn Fn(&String) -> bool) -> Result<()> {
        let mut useless = self.names_in(directory)?.into_keys().filter(is_useless);
        useless.try_for_each(|name| self.remove(&directory.join(name)))
    }

    /// Whether no more files can appear in the directory of the unfinished backup `number`, in a store. This is
    /// certain if a later backup was made so long ago that no earlier request to the store can still be under way.
    fn is_settled(&self, number: u64, found: &AllFound) -> bool {
        let later = found.range(number + 1..).filter_map(|(_, found)| found.list());
        later.map(|list| list.time.saturating_add(LATEST_REQUEST)).any(|until| until < self.clock.wall())
    }

    /// Removes a directory if it is empty. Otherwise it stays, because it may have files of other backups or, in a
    /// store, files whose removal was requested but is not done yet.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be removed for another reason.
    fn remove_if_empty(&self, directory: &Path) -> Result<()> {
        match self.disk.remove_dir(directory) {
            Ok(()) => self.sync_dir(&self.directory),
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            Err(error) => Err(Error::io("remove directory", directory, error)),
        }
    }

    /// Writes the list of a backup whose files are all durable. From then on, the backup exists.
    ///
    /// # Errors
    ///
    /// Fails if the list cannot be written. The backup then does not exist.
    pub fn write_list(&self, list: &BackupList) -> Result<()> {
        let directory = self.directory_of(list.number);
        let (new, path) = (directory.join(LIST_NEW), directory.join(LIST));
        let file = self.disk.open(&new, Access::Create).map_err(|error| Error::io("create", &new, error))?;
        file.append(&list.encode()).and_then(|_| file.sync()).map_err(|error| Error::io("write", &new, error))?;
        self.sync_dir(&directory)?;
        self.disk.rename(&new, &path).map_err(|error| Error::io("rename", &new, error))?;
        let synced = self.sync_dir(&directory);
        if synced.is_err() {
            // Rename the list back, so that the backup does not exist, as the error says. If this fails, too, the
            // next backup sees which of the two names the list has.
            self.disk.rename(&path, &new).ok();
        }
        synced
    }

    /// Names and lengths of the files in a directory.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be listed.
    pub fn names_in(&self, directory: &Path) -> Result<BTreeMap<String, u64>> {
        let entries = self.disk.list(directory).map_err(|error| Error::io("list", directory, error))?;
        Ok(entries.into_iter().map(|entry| (entry.name, entry.bytes)).collect())
    }

    /// Like [`Store::names_in`], but returns no names if the directory does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the directory exists and cannot be listed.
    pub fn names_if_there(&self, directory: &Path) -> Result<BTreeMap<String, u64>> {
        match self.names_in(directory) {
            Err(error) if error.missing_file().is_some() => Ok(BTreeMap::new()),
            listed => listed,
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be removed.
    pub fn remove(&self, path: &Path) -> Result<()> {
        self.disk.remove(path).map_err(|error| Error::io("remove", path, error))
    }

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    ///
    /// Fails if the sync fails.
    pub fn sync_dir(&self, directory: &Path) -> Result<()> {
        self.disk.sync_dir(directory).map_err(|error| Error::io("sync", directory, error))
    }
}

/// The backup number in the name of its directory.
fn number_of(name: &str) -> Option<u64> {
    let number: u64 = name.strip_prefix(BACKUP)?.parse().ok()?;
    // The greatest number is refused, so that the next backup can always have a greater one.
    (number < u64::MAX && format!("{BACKUP}{number}") == name).then_some(number)
}
