//! Makes a backup of a database at one moment, copying only files that earlier backups do not have. This module does
//! not know how backups are restored, or where they are stored.

use super::list::{BackupList, Lies, StoredFile};
use super::moment::{Moment, Written};
use super::store::{Found, Store};
use crate::base::error::{Error, Result};
use crate::base::kept::AsOf;
use crate::base::watch::Watch;
use crate::core::Core;
use crate::files::copied_file::{Content, copy_whole, read_file};
use crate::files::outside::check_outside;
use crate::manifest::DbFile;
use crate::manifest::db_file::sst_name;
use crate::manifest::directory::place::Place;
use os::sync::Arc;
use os::{Disk, Lock};
use sst::Version;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

/// What a backup consists of, and how much of it was new.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BackupReport {
    /// The number of the backup.
    pub number: u64,
    /// The backup has all commits up to this version, and none after it.
    pub version: Version,
    /// Files of the backup.
    pub files: u64,
    /// Bytes in these files.
    pub bytes: u64,
    /// Files that no earlier backup has.
    pub new_files: u64,
    /// Bytes in the new files.
    pub new_bytes: u64,
    /// Bytes of new files that were written because files of the database have rows that are newer than the backup.
    pub rewritten_bytes: u64,
    /// Indexes that the backup lacks, because they were made after its version.
    pub left_out_indexes: u64,
}

/// Adds a backup to `store`, of the version that `when` stands for, or of the newest one. `watch` is called with the
/// number of bytes done so far.
///
/// # Errors
///
/// The errors of [`Database::backup`](crate::Database::backup), or [`Error::Cancelled`] if `watch` has ended the
/// work.
pub fn backup(core: &Arc<Core>, mut store: Store, when: Option<&AsOf>, watch: &Watch<'_>) -> Result<BackupReport> {
    core.env.check_origin()?;
    check_outside(&*store.disk, &store.directory)?;
    let lock = store.lock()?;
    let store = &store;
    store.clean()?;
    let mut new = NewBackup::after(store, &*lock)?;
    let mut attempts = 0;
    let outcome = loop {
        attempts += 1;
        let mut moment = Moment::at(core, when)?;
        match new.make(core, &mut moment, watch) {
            // The next attempt gets a directory of its own, because some file names in this one are taken now. It
            // uses the files that were already copied from where they are.
            Err(error) if moment.is_outdated(&error) => new.number += 1,
            outcome => break outcome,
        }
    };
    if outcome.is_err() || attempts > 1 {
        // Removes files that no backup needs. If this fails, the next backup does it.
        store.clean().ok();
    }
    outcome
}

/// A backup that is being made.
struct NewBackup<'s> {
    store: &'s Store,
    lock: &'s dyn Lock,
    number: u64,
    /// The database of the earlier backups, or `None` if there are none.
    database: Option<u64>,
    /// Files of earlier backups and files copied for this one, by name and id: where each is stored, and what it
    /// contains.
    known: BTreeMap<(String, u64), (Lies, Content)>,
}

impl<'s> NewBackup<'s> {
    /// Begins the backup after those in `store`.
    fn after(store: &'s Store, lock: &'s dyn Lock) -> Result<Self> {
        // A lock has a holder number only in a store. There, a late request may still remove a file of an old
        // directory, so the new directory gets a name that was never used before.
        let mut new = Self { store, lock, number: lock.holder().unwrap_or(1), database: None, known: BTreeMap::new() };
        let mut listed = BTreeMap::new();
        for (number, found) in store.find()? {
            new.number = new.number.max(number + 1);
            let Found::Whole(list) = found else { continue };
            new.database = Some(list.database);
            for (file, path) in list.files.iter().zip(store.paths(&list)) {
                let Some(identity) = file.identity() else { continue };
                let directory = path.parent().expect("a file is in a directory").to_owned();
                let there = match listed.entry(directory) {
                    Entry::Occupied(there) => there.into_mut(),
                    Entry::Vacant(new) => {
                        // A missing directory counts as an empty one.
                        let there = store.names_if_there(new.key())?;
                        new.insert(there)
                    }
                };
                // A listed file that is missing stays unknown, and is copied again.
                if there.get(&file.stored_name()) == Some(&file.content.bytes) {
                    new.known.insert(identity, (file.lies, file.content));
                }
            }
        }
        Ok(new)
    }

    fn make(&mut self, core: &Arc<Core>, moment: &mut Moment, watch: &Watch<'_>) -> Result<BackupReport> {
        let (store, from) = (self.store, &*core.env.machine.disk);
        if self.database.is_some_and(|database| database != moment.database()) {
            return Err(Error::OtherDatabase(store.directory.clone()));
        }
        let directory = store.directory_of(self.number);
        store.disk.create_dir(&directory).map_err(|error| Error::io("create", &directory, error))?;
        let place = Place::outside(&store.disk, &directory);
        let written = moment.write_rest(&place, watch)?;
        let Written { version, manifest, names, shared: files, mut fresh, rewritten_bytes, left_out_indexes } = written;
        let total = files.iter().map(|file| file.bytes()).sum();
        let (mut done, number) = (0, self.number);
        let mut report = BackupReport { number, version, rewritten_bytes, left_out_indexes, ..BackupReport::default() };
        let mut stored = Vec::new();
        for file in &files {
            // If another process has taken over the lock, this backup cannot be finished, so do not copy more files.
            self.lock.check().map_err(|error| Error::io("make a backup in", &store.directory, error))?;
            let (new, copied) = self.store_file(from, file, watch, &mut |bytes| {
                watch.tell(done + bytes, total);
            })?;
            report.new_files += u64::from(copied);
            report.new_bytes += if copied { new.content.bytes } else { 0 };
            stored.push(new);
            done += file.bytes();
            watch.tell(done, total);
        }
        for name in names.into_iter().chain([manifest]) {
            let content = read_file(&*store.disk, &directory.join(&name), watch, &mut |_| {})?;
            report.new_files += 1;
            report.new_bytes += content.bytes;
            stored.push(StoredFile { name, lies: Lies::Alone, content });
        }
        moment.make_durable(version)?;
        let time = Duration::from_secs(core.env.machine.clock.wall().as_secs());
        let list = BackupList { database: moment.database(), number: self.number, version, time, files: stored };
        // The last step writes the list. If it fails and cannot be undone, the backup may be complete and need the
        // new files, so `fresh` must not remove them. In all other cases the store removes them later.
        fresh.take_paths();
        store.write_list(&list)?;
        Ok(BackupReport { files: list.files.len() as u64, bytes: list.bytes(), ..report })
    }

    /// Copies a file, unless a backup already has it. Returns its entry for the list, and whether it was copied.
    fn store_file(
        &mut self,
        from: &dyn Disk,
        file: &DbFile,
        watch: &Watch<'_>,
        tell: &mut dyn FnMut(u64),
    ) -> Result<(StoredFile, bool)> {
        let (name, id) = (sst_name(file.number, file.epoch), file.sst.meta.file_id);
        if let Some((lies, content)) = self.known.get(&(name.clone(), id)) {
            return Ok((StoredFile { name, lies: *lies, content: *content }, false));
        }
        let copy = self.store.directory_of(self.number).join(&name);
        let mut copied = 0;
        let content = copy_whole((from, file.path()), (&*self.store.disk, &copy), watch, &mut |bytes| {
            copied += bytes;
            tell(copied);
        })?;
        if content.bytes != file.bytes() {
            let why = format!("the file has {} bytes, and the manifest says {}", content.bytes, file.bytes());
            let (file, page, offset) = (file.path().to_owned(), "last", content.bytes);
            return Err(pages::Error::Corrupt { file, page, offset, why }.into());
        }
        let lies = Lies::With { backup: self.number, id };
        self.known.insert((name.clone(), id), (lies, content));
        Ok((StoredFile { name, lies, content }, true))
    }
}
