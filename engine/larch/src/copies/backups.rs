//! The backups in a directory, as programs use them: list them, restore one, verify all, or remove old ones. This
//! module does not know how a backup is made.

use super::list::BackupList;
use super::store::{Found, Store};
use crate::base::error::{Error, Result};
use crate::base::watch::{GoOn, Progress, Watch};
use crate::files::copied_file::{Content, copy_whole, read_file};
use crate::files::new_directory::NewDirectory;
use crate::files::outside::check_outside_of;
use os::Machine;
use sst::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The backups of one database in a directory, as [`Database::backup`](crate::Database::backup) makes them. They
/// share files: an SST is stored only once, however many backups have it. If the backups are in a store, the disk of
/// the [`Machine`] is this store.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let (here, kept, there) = (directory.path().join("here"), directory.path().join("kept"), directory.path().join("there"));
/// let db = larch::Database::open(&here)?;
/// db.table("fruit")?.insert("apple", "red")?;
/// let first = db.backup(&kept)?;
/// db.table("fruit")?.insert("apple", "green")?;
/// db.backup(&kept)?;
/// let backups = larch::backup::Backups::at(&kept);
/// assert_eq!(backups.list()?.len(), 2);
/// assert!(backups.verify(|_| {})?.problems.is_empty());
/// backups.restore(Some(first.number), &there, |_| {})?;
/// let restored = larch::Database::open(&there)?;
/// assert_eq!(restored.table("fruit")?.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Backups {
    machine: Machine,
    directory: PathBuf,
}

/// A backup.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BackupInfo {
    /// The number of the backup. Backups that were made later have larger numbers, also if they are of an older
    /// version.
    pub number: u64,
    /// The backup has all commits up to this version, and none after it.
    pub version: Version,
    /// When the backup was made, as the time since the Unix epoch.
    pub time: Duration,
    /// Files of the backup, including those it shares with other backups.
    pub files: u64,
    /// Bytes in these files.
    pub bytes: u64,
    /// Why the list of the backup cannot be read, if it cannot. Then only `number` is valid besides this. Says
    /// nothing about the other files of the backup, which [`Backups::verify`] checks.
    pub damage: Option<String>,
}

/// The result of [`Backups::verify`].
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct VerifyReport {
    /// Backups that were verified.
    pub backups: u64,
    /// Files that were read. A file that several backups share is counted once.
    pub files: u64,
    /// Bytes in these files.
    pub bytes: u64,
    /// The files that are missing or damaged. If there are none, every backup can be restored.
    pub problems: Vec<BackupProblem>,
    /// Numbers of backups that were begun and never finished. The next backup removes them.
    pub unfinished: Vec<u64>,
}

/// A file of one or more backups that is missing or damaged.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BackupProblem {
    /// The file.
    pub file: PathBuf,
    /// The backups that have this file.
    pub backups: Vec<u64>,
    /// What is wrong.
    pub why: String,
}

impl std::fmt::Display for BackupProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let numbers: Vec<String> = self.backups.iter().map(u64::to_string).collect();
        let backups = if numbers.len() == 1 { "backup" } else { "backups" };
        write!(f, "{}, of {backups} {}: {}", self.file.display(), numbers.join(", "), self.why)
    }
}

impl From<&BackupList> for BackupInfo {
    fn from(list: &BackupList) -> Self {
        let (files, bytes) = (list.files.len() as u64, list.bytes());
        Self { number: list.number, version: list.version, time: list.time, files, bytes, damage: None }
    }
}

impl Backups {
    /// The backups in `directory`.
    pub fn at(directory: impl AsRef<Path>) -> Self {
        Self { machine: Machine::real(), directory: directory.as_ref().to_owned() }
    }

    /// The same backups on another machine, whose disk may be a store.
    pub fn on(self, machine: &Machine) -> Self {
        Self { machine: machine.clone(), ..self }
    }

    /// Opens the directory of the backups, which may not exist yet.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be opened.
    pub(crate) fn store(&self) -> Result<Store> {
        Store::new(&self.machine, &self.directory)
    }

    /// All backups, oldest first.
    ///
    /// # Errors
    ///
    /// [`Error::NotBackups`] if the directory has other files, and nothing that belongs to backups; an error if the
    /// directory cannot be read.
    pub fn list(&self) -> Result<Vec<BackupInfo>> {
        let info = |(number, found)| match found {
            Found::Whole(list) => Some(BackupInfo::from(&list)),
            Found::Damaged(error) | Found::Newer(error) => {
                Some(BackupInfo { number, damage: Some(error.to_string()), ..BackupInfo::default() })
            }
            Found::Unfinished => None,
        };
        Ok(self.store()?.find()?.into_iter().filter_map(info).collect())
    }

    /// Keeps the newest `count` whole backups, which are those with the greatest numbers. Removes all older backups
    /// with the files that only they have, and returns their numbers. If there are fewer than `count` whole backups,
    /// removes nothing. A backup made by a newer release is never removed. If the process crashes during this call,
    /// each backup is either whole or removed.
    ///
    /// # Errors
    ///
    /// [`Error::NotBackups`] if the directory has other files, and nothing that belongs to backups;
    /// [`Error::BackupsLocked`] if a backup is being made or removed there; an error if the directory does not
    /// exist, or if the disk fails.
    ///
    /// # Panics
    ///
    /// Panics if `count` is 0.
    pub fn keep(&self, count: u64) -> Result<Vec<u64>> {
        assert!(count > 0, "at least one backup is kept");
        let mut store = self.store()?;
        // Fails if the directory does not exist. Taking the lock would create it.
        store.names()?;
        let _lock = store.lock()?;
        let found = store.find()?;
        let is_whole = |number: &u64| matches!(found[number], Found::Whole(_));
        let others = usize::try_from(count - 1).unwrap_or(usize::MAX);
        let kept = found.keys().rev().copied().filter(is_whole).nth(others);
        let is_old = |number: &u64| kept.is_some_and(|kept| *number < kept);
        let is_known = |number: &u64| matches!(found[number], Found::Whole(_) | Found::Damaged(_));
        let removed: Vec<u64> = found.keys().copied().filter(|number| is_old(number) && is_known(number)).collect();
        removed.iter().try_for_each(|number| store.forget(*number))?;
        store.clean()?;
        Ok(removed)
    }

    /// Restores backup `number`, or the newest one, which is that with the greatest number, to `directory`, which
    /// must be empty or not exist yet. Verifies the checksum of each file. `watch` is called with the number of bytes
    /// done so far, and decides whether to go on.
    ///
    /// When the call succeeds, the restored database is durable. If an error or a crash ends the call, `directory`
    /// has no database, and the next call with the same directory first removes what is left there. In a store, the
    /// next call fails instead: first drop the database in this directory.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchBackup`] if there is no such backup; [`Error::BadBackup`] if a file of it is missing or
    /// damaged; [`Error::NewerBackup`] if a newer release made it; [`Error::CopyTarget`] if `directory` is not
    /// empty; [`Error::WithinDatabase`] if it is inside a database or inside the backups; [`Error::UnfinishedCopy`]
    /// if it is in a store and another call has left files in it; [`Error::CopyLocked`] if it is locked;
    /// [`Error::Cancelled`] if `watch` ends the restore; an error if the disk fails.
    pub fn restore<G: GoOn>(
        &self,
        number: Option<u64>,
        directory: impl AsRef<Path>,
        watch: impl FnMut(Progress) -> G,
    ) -> Result<BackupInfo> {
        self.restore_on(&self.machine, number, directory, watch)
    }

    /// Like [`Backups::restore`], but to a directory on another machine: restores into a store, or from a store to a
    /// directory of this machine.
    ///
    /// # Errors
    ///
    /// The errors of [`Backups::restore`].
    pub fn restore_on<G: GoOn>(
        &self,
        machine: &Machine,
        number: Option<u64>,
        directory: impl AsRef<Path>,
        watch: impl FnMut(Progress) -> G,
    ) -> Result<BackupInfo> {
        let (store, watch) = (self.store()?, Watch::new("the restore", watch));
        let list = self.find(&store, number)?;
        let total = list.bytes();
        if machine.disk.keeps_removed().is_none() {
            check_outside_of(&*machine.disk, directory.as_ref(), &self.directory)?;
        }
        let new = NewDirectory::begin(&machine.disk, directory.as_ref())?;
        let mut done = 0;
        for (file, path) in list.files.iter().zip(store.paths(&list)) {
            let copy = new.place().directory.join(&file.name);
            let copied = copy_whole((&*store.disk, &path), (&*new.place().disk, &copy), &watch, &mut |bytes| {
                done += bytes;
                watch.tell(done, total);
            });
            let why = match copied {
                Ok(content) if content == file.content => continue,
                Ok(content) => difference(content.bytes, file.content.bytes),
                Err(error) if error.missing_file() == Some(&path) => MISSING.to_owned(),
                Err(error) => return Err(error),
            };
            // If the backup was removed meanwhile, this returns an error that says so.
            self.find(&store, Some(list.number))?;
            return Err(Error::BadBackup { file: path, why });
        }
        new.finish(list.manifest())?;
        Ok(BackupInfo::from(&list))
    }

    /// Backup `number`, or the newest backup if `number` is `None`.
    fn find(&self, store: &Store, number: Option<u64>) -> Result<BackupList> {
        let mut found = store.find()?;
        let is_one = |found: &Found| !matches!(found, Found::Unfinished);
        let numbers: Vec<u64> = found.iter().filter(|(_, found)| is_one(found)).map(|(number, _)| *number).collect();
        let chosen = number.or(numbers.last().copied()).and_then(|number| found.remove(&number));
        match chosen {
            Some(Found::Whole(list)) => Ok(list),
            Some(Found::Damaged(error) | Found::Newer(error)) => Err(error),
            Some(Found::Unfinished) | None => {
                Err(Error::NoSuchBackup { directory: self.directory.clone(), number, there: numbers })
            }
        }
    }

    /// Reads every byte of every backup, and compares each file with the length and the checksum in the lists.
    /// Damage is not an error: the report lists it. `watch` is told how many bytes were read, and decides whether to
    /// go on.
    ///
    /// # Errors
    ///
    /// [`Error::NotBackups`] if the directory has other files, and nothing that belongs to backups;
    /// [`Error::Cancelled`] if `watch` ends the verification; an error if the directory cannot be listed.
    pub fn verify<G: GoOn>(&self, watch: impl FnMut(Progress) -> G) -> Result<VerifyReport> {
        let watch = Watch::new("the verification", watch);
        let (store, mut report) = (self.store()?, VerifyReport::default());
        // For each file, what the lists say it contains, and which backups have it.
        let mut files: BTreeMap<PathBuf, BTreeMap<_, Vec<u64>>> = BTreeMap::new();
        let (mut unfinished, mut holders) = (Vec::new(), BTreeSet::new());
        for (number, found) in store.find()? {
            match found {
                Found::Unfinished => unfinished.push(number),
                Found::Damaged(error) | Found::Newer(error) => {
                    report.backups += 1;
                    let (file, why) = (store.list_of(number), error.to_string());
                    report.problems.push(BackupProblem { file, backups: vec![number], why });
                }
                Found::Whole(list) => {
                    report.backups += 1;
                    holders.extend(list.files.iter().filter_map(|file| file.lies.with()));
                    for (file, path) in list.files.iter().zip(store.paths(&list)) {
                        let Content { bytes, checksum } = file.content;
                        files.entry(path).or_default().entry((bytes, checksum)).or_default().push(number);
                    }
                }
            }
        }
        // The directory of a removed backup may still have files that other backups use. In a store, it may also
        // linger after it has become empty.
        unfinished.retain(|number| !holders.contains(number));
        for number in unfinished {
            if !store.names_if_there(&store.directory_of(number))?.is_empty() {
                report.unfinished.push(number);
            }
        }
        let lengths = files.values().flat_map(|said| said.keys().next()).map(|(bytes, _)| *bytes);
        let total = lengths.fold(0, u64::saturating_add);
        let mut done = 0;
        for (path, said) in files {
            let found = read_file(&*self.machine.disk, &path, &watch, &mut |bytes| {
                done += bytes;
                watch.tell(done, total);
            });
            watch.check()?;
            report.files += 1;
            report.bytes += found.as_ref().map_or(0, |content| content.bytes);
            for ((bytes, checksum), mut backups) in said {
                let why = match &found {
                    Ok(content) if *content == (Content { bytes, checksum }) => continue,
                    Ok(content) => difference(content.bytes, bytes),
                    Err(error) if error.missing_file().is_some() => MISSING.to_owned(),
                    Err(error) => error.to_string(),
                };
                // Missing files of a backup that was removed meanwhile do not matter.
                backups.retain(|number| self.machine.disk.exists(&store.list_of(*number)).unwrap_or(true));
                if backups.is_empty() {
                    continue;
                }
                report.problems.push(BackupProblem { file: path.clone(), backups, why });
            }
        }
        Ok(report)
    }
}

const MISSING: &str = "it is missing";

/// Describes how a file differs from its entry in the list: in length, or only in its bytes.
fn difference(bytes: u64, expected: u64) -> String {
    if bytes == expected {
        "its bytes do not have the checksum that the list of the backup says".to_owned()
    } else {
        format!("it has {bytes} bytes, and the list of the backup says {expected}")
    }
}
