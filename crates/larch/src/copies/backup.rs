//! Makes a backup: of the files of a moment, only those are copied that no earlier backup has. It does not know how backups are
//! restored.

use super::copied_file::{Content, copy_whole, read_file};
use super::list::{BackupList, StoredFile};
use super::moment::{Moment, Written};
use super::store::{Found, Store};
use crate::cancel::Limit;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::files::leftovers::Leftovers;
use crate::files::output::Place;
use crate::manifest::DbFile;
use crate::manifest::db_file::{shared_name, sst_name};
use os::sync::Arc;
use sst::Version;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What a backup consists of, and what it has added to the backups before it.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct BackupReport {
    /// Its number.
    pub number: u64,
    /// It has all commits up to this version, and none after it.
    pub version: Version,
    /// Its files.
    pub files: u64,
    /// The bytes in them.
    pub bytes: u64,
    /// How many of the files no earlier backup has.
    pub new_files: u64,
    /// The bytes in these.
    pub new_bytes: u64,
}

/// Adds a backup to those in `directory`. `progress` gets how many bytes are in place, and how many there are.
///
/// # Errors
///
/// As [`Database::backup`](crate::Database::backup); the error of the limit.
pub fn backup(
    core: &Arc<Core>,
    directory: &Path,
    limit: &Limit,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<BackupReport> {
    core.env.check_origin()?;
    let store = Store::new(core.env.machine.disk.clone(), directory);
    let _lock = store.lock()?;
    store.clean()?;
    let mut new = NewBackup::after(&store)?;
    let mut attempts = 0;
    let outcome = loop {
        attempts += 1;
        let mut moment = Moment::now(core)?;
        match new.make(core, &mut moment, limit, progress) {
            Err(error) if moment.is_outdated(&error) => new.begin_again()?,
            outcome => break outcome,
        }
    };
    if outcome.is_err() || attempts > 1 {
        // What cannot be removed now is removed by the next backup.
        store.clean().ok();
    }
    outcome
}

/// A backup that is being made.
struct NewBackup<'s> {
    store: &'s Store,
    number: u64,
    /// The database that the backups before it are of, if there are any.
    database: Option<u64>,
    /// The files that backups share, by their names in the store.
    known: BTreeMap<String, Content>,
}

impl<'s> NewBackup<'s> {
    /// The backup after those in `store`.
    fn after(store: &'s Store) -> Result<Self> {
        let mut new = Self { store, number: 1, database: None, known: BTreeMap::new() };
        let there = store.names_in(&store.shared_directory())?;
        for (number, found) in store.find()? {
            new.number = number + 1;
            let Found::Whole(list) = found else { continue };
            new.database = Some(list.database);
            for file in &list.files {
                // A file that was lost is copied again.
                let name = file.shared_name().filter(|name| there.get(name) == Some(&file.content.bytes));
                new.known.extend(name.map(|name| (name, file.content)));
            }
        }
        Ok(new)
    }

    /// Forgets the files of this backup alone. Those that it would share with later ones stay.
    fn begin_again(&self) -> Result<()> {
        let directory = self.store.directory_of(self.number);
        for name in self.store.names_in(&directory)?.into_keys() {
            self.store.remove(&directory.join(name))?;
        }
        Ok(())
    }

    fn make(
        &mut self,
        core: &Arc<Core>,
        moment: &mut Moment,
        limit: &Limit,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<BackupReport> {
        let (store, disk) = (self.store, &core.env.machine.disk);
        if self.database.is_some_and(|database| database != moment.database()) {
            return Err(Error::OtherDatabase(store.directory.clone()));
        }
        let directory = store.directory_of(self.number);
        disk.create_dir(&directory).map_err(|error| Error::io("create", &directory, error))?;
        // Not those of the database: they would be removed later, when another backup may have files with these names.
        let place = Place { directory: directory.clone(), leftovers: Leftovers::new(disk.clone()) };
        let Written { version, manifest, names, mut fresh } = moment.write_rest(&place, limit)?;
        let files = moment.files();
        let total = files.iter().map(|file| file.bytes()).sum();
        let (mut done, mut report) = (0, BackupReport { number: self.number, version, ..BackupReport::default() });
        let mut stored = Vec::new();
        for file in &files {
            let (new, copied) = self.store_file(&**disk, file, limit, &mut |bytes| progress(done + bytes, total))?;
            report.new_files += u64::from(copied);
            report.new_bytes += if copied { new.content.bytes } else { 0 };
            stored.push(new);
            done += file.bytes();
            progress(done, total);
        }
        for name in names.into_iter().chain([manifest]) {
            let content = read_file(&**disk, &directory.join(&name), limit, &mut |_| {})?;
            report.new_files += 1;
            report.new_bytes += content.bytes;
            stored.push(StoredFile { name, shared: None, content });
        }
        store.sync_dir(&store.shared_directory())?;
        moment.make_durable(version)?;
        let time = Duration::from_secs(core.env.machine.clock.wall().as_secs());
        let list = BackupList { database: moment.database(), number: self.number, version, time, files: stored };
        // If the last step fails and cannot be taken back, the backup is whole and needs them. Otherwise the store removes them.
        fresh.take_paths();
        store.write_list(&list)?;
        Ok(BackupReport { files: list.files.len() as u64, bytes: list.bytes(), ..report })
    }

    /// Copies a file, unless it is there. Returns its entry in the list, and whether it was copied.
    fn store_file(
        &mut self,
        disk: &dyn os::Disk,
        file: &DbFile,
        limit: &Limit,
        tell: &mut dyn FnMut(u64),
    ) -> Result<(StoredFile, bool)> {
        let (name, id) = (sst_name(file.number, file.epoch), file.sst.meta.file_id);
        let stored = shared_name(&name, id);
        let entry = |content| StoredFile { name, shared: Some(id), content };
        if let Some(content) = self.known.get(&stored) {
            return Ok((entry(*content), false));
        }
        // A list that cannot be read may name a file that is there already, so it is replaced in one step.
        let (new, path) = (self.store.new_shared(&stored), self.store.shared_directory().join(&stored));
        let mut copied = 0;
        let content = copy_whole(disk, file.path(), &new, limit, &mut |bytes| {
            copied += bytes;
            tell(copied);
        })?;
        if content.bytes != file.bytes() {
            let why = format!("the file has {} bytes, and the manifest says {}", content.bytes, file.bytes());
            let (file, page, offset) = (file.path().to_owned(), "last", content.bytes);
            return Err(pages::Error::Corrupt { file, page, offset, why }.into());
        }
        disk.rename(&new, &path).map_err(|error| Error::io("rename", &new, error))?;
        self.known.insert(stored, content);
        Ok((entry(content), true))
    }
}
