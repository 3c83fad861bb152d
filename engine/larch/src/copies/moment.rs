//! A moment is what a copy will show: a version, files, and rows that are not in files yet. The files stay until the
//! copy is done. This module does not know where the copy goes.
//!
//! A database that is open for writing keeps the files of a view as long as anything refers to the view. In a
//! database that is open read-only, a writer in another process may remove a file at any time; the copy then starts
//! over with the newest files.

use super::beside::{self, OpenLog};
use super::older::{self, Older};
use crate::base::error::{Error, Result};
use crate::base::kept::AsOf;
use crate::base::retention::Showing;
use crate::base::watch::Watch;
use crate::core::Core;
use crate::core::snapshots::PinnedVersion;
use crate::core::writer::log_path;
use crate::files::copied_file::copy_file;
use crate::manifest::db_file::{EarlyFiles, FileOpener, number_distance, sst_name};
use crate::manifest::directory::fresh::FreshFiles;
use crate::manifest::directory::listing::list;
use crate::manifest::directory::place::Place;
use crate::manifest::log::manifest_name;
use crate::manifest::new_files::NewFiles;
use crate::manifest::{DbFile, Edit, FileSet, ManifestLog, ManifestTail};
use crate::memtable::set::MemSet;
use crate::write::flush::write_version_to;
use crate::write::keep;
use crate::write::recovery::replay;
use os::Machine;
use os::sync::Arc;
use sst::Version;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What a copy shows.
pub struct Moment {
    /// The database that is copied. If it is open read-only, another read-only database in the same directory,
    /// opened with the newest files.
    core: Arc<Core>,
    files: Arc<FileSet>,
    rest: Rest,
    /// The version that the copy shows, if it is not to be the newest one.
    through: Option<Version>,
    /// Keeps this version until the copy is made.
    _pin: Option<PinnedVersion>,
}

/// The rows that are not in files yet.
enum Rest {
    /// The rows in memory, up to a version.
    Memory(Vec<Arc<MemSet>>, Version),
    /// The rows in the logs of a writer in another process.
    Logs(Vec<OpenLog>),
}

/// What was written to the copy besides the files of the moment.
pub struct Written {
    /// The copy has all commits up to this version, and none after it.
    pub version: Version,
    /// The name of the copy's manifest.
    pub manifest: String,
    /// The names of the new files, which hold the rows that were in no file.
    pub names: Vec<String>,
    /// The files of the database that are files of the copy, too, sorted by number.
    pub shared: Vec<Arc<DbFile>>,
    /// Bytes of new files that take the place of files with newer rows.
    pub rewritten_bytes: u64,
    /// Indexes that the copy lacks, because they were made after its version.
    pub left_out_indexes: u64,
    /// All files that were written for the copy. Dropping this value removes those that were not taken out.
    pub fresh: FreshFiles,
}

impl Moment {
    /// The moment that reads see now.
    ///
    /// # Errors
    ///
    /// [`Error::Forked`] in a child of the process that opened the database. If the database is open read-only, also
    /// an error of the disk, or an error if the manifest is damaged.
    pub fn now(core: &Arc<Core>) -> Result<Self> {
        core.env.check_origin()?;
        if core.env.options.read_only {
            let (core, logs) = beside::look(core)?;
            let files = core.views.newest().files.clone();
            return Ok(Self { core, files, rest: Rest::Logs(logs), through: None, _pin: None });
        }
        loop {
            let view = core.views.newest();
            let visible = core.views.visible();
            // If the view is still the newest one, it has all commits up to `visible`, and its files have no later
            // commits. The exception is an import or a large batch, which makes its files visible before its
            // version: the version after `visible`.
            if core.views.generation() == view.generation {
                let version = visible.max(view.files.last_version);
                let rest = Rest::Memory(view.memory.clone(), version);
                let files = view.files.clone();
                return Ok(Self { core: core.clone(), files, rest, through: None, _pin: None });
            }
        }
    }

    /// The database as of `when`, or else as of now.
    ///
    /// # Errors
    ///
    /// As [`Moment::now`]; [`Error::NoSuchKept`], [`Error::NoTime`] and [`Error::NotKept`] if reads cannot see that
    /// version.
    pub fn at(core: &Arc<Core>, when: Option<&AsOf>) -> Result<Self> {
        let Some(when) = when.filter(|when| !keep::is_newest(core, when)) else { return Self::now(core) };
        core.env.check_origin()?;
        if !core.env.options.read_only {
            let version = keep::version_of(core, when)?;
            let not_kept = || Error::NotKept { version, newest: core.views.visible() };
            let pin = core.views.pin_at(version).filter(PinnedVersion::is_whole).ok_or_else(not_kept)?;
            return Ok(Self { through: Some(version), _pin: Some(pin), ..Self::now(core)? });
        }
        let (core, mut logs) = beside::look(core)?;
        let files = core.views.newest().files.clone();
        let version = keep::version_of(&core, when)?;
        if version <= files.flushed_version {
            check_kept(&files, version, files.flushed_version)?;
            // All commits up to this version are in files.
            logs.clear();
        }
        Ok(Self { core, files, rest: Rest::Logs(logs), through: Some(version), _pin: None })
    }

    /// The files of the moment, sorted by number, each listed once even if several tables use it.
    #[cfg(test)]
    pub fn files(&self) -> Vec<Arc<DbFile>> {
        let mut files: Vec<_> = self.files.files_by_number().into_values().collect();
        files.sort_unstable_by_key(|file| file.number);
        files
    }

    /// The identity of the database.
    pub fn database(&self) -> u64 {
        self.files.database
    }

    /// Writes the rows that are not in files yet, and the manifest, to `place`. After that, the moment no longer
    /// needs the rows in memory.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written, if a log is damaged, or if `watch` has ended the work.
    /// [`Error::NotKept`] if the logs show that reads cannot see the version of the moment.
    pub fn write_rest(&mut self, place: &Place, watch: &Watch<'_>) -> Result<Written> {
        let core = self.core.clone();
        match std::mem::replace(&mut self.rest, Rest::Logs(Vec::new())) {
            Rest::Memory(memory, newest) => {
                let version = self.through.unwrap_or(newest);
                let mut copied = self.cut(&self.files, version, place, watch)?;
                let memory = memory.into_iter().filter(|memory| memory.oldest() <= version);
                for memory in memory {
                    watch.check()?;
                    copied.new.append(write_version_to(&core, &memory, (&copied.files, version), place)?);
                }
                self.finish(copied, version, place)
            }
            Rest::Logs(logs) => {
                // The writer gives the next file numbers to its own files, so the copy uses numbers far away from
                // them. Then no name stands for two different files, even if the copy later replaces the database in
                // a store.
                core.writes.new_numbers(number_distance(core.env.machine.random.next_u64()));
                let (mut rows, newest) = match self.through {
                    Some(_) if logs.is_empty() => (NewFiles::none(place), Version(0)),
                    _ => rows_of_logs(&core, &logs, place, watch)?,
                };
                self.rest = Rest::Logs(logs);
                let newest = newest.max(self.files.last_version);
                let Some(version) = self.through else {
                    let files = FileSet::clone(&self.files);
                    let copied = Older { files, new: rows, rewritten_bytes: 0, left_out_indexes: 0 };
                    return self.finish(copied, newest, place);
                };
                if version > self.files.flushed_version {
                    check_kept(&self.files, version, newest)?;
                }
                let files = with_files(&core, &self.files, &rows, place);
                let mut copied = self.cut(&files, version, place, watch)?;
                drop(files);
                // Files that were made of the logs and are not files of the copy go at once.
                let here = copied.files.files_by_number();
                rows.files.retain(|file| here.contains_key(&file.number));
                let names: Vec<String> = rows.files.iter().map(|file| sst_name(file.number, file.epoch)).collect();
                let is_needed = |path: &PathBuf| names.iter().any(|name| path.ends_with(name));
                let (needed, useless): (Vec<_>, Vec<_>) = rows.fresh.take_paths().into_iter().partition(is_needed);
                needed.into_iter().for_each(|path| copied.new.fresh.add(path));
                for path in useless {
                    place.disk.remove(&path).map_err(|error| Error::io("remove", &path, error))?;
                }
                let mut written = self.finish(copied, version, place)?;
                written.names.extend(names);
                Ok(written)
            }
        }
    }

    /// The files that the copy has of `files` if its newest version is `version`.
    fn cut(&self, files: &FileSet, version: Version, place: &Place, watch: &Watch<'_>) -> Result<Older> {
        if self.through.is_some() {
            return older::older(&self.core, files, version, place, watch);
        }
        let (files, new) = (FileSet::clone(files), NewFiles::none(place));
        Ok(Older { files, new, rewritten_bytes: 0, left_out_indexes: 0 })
    }

    /// Writes the manifest of a copy with these files.
    fn finish(&self, copied: Older, version: Version, place: &Place) -> Result<Written> {
        let core = &self.core;
        let Older { files, new: mut all, rewritten_bytes, left_out_indexes } = copied;
        let number = core.writes.new_number();
        let names = all.files.iter().map(|file| sst_name(file.number, file.epoch)).collect();
        let mut edits: Vec<Edit> = all.files.into_iter().map(Edit::AddFile).collect();
        // Number 0 means that no log is needed.
        edits.extend([Edit::OldestLog(0), Edit::NextNumber(core.writes.next_number())]);
        edits.extend([Edit::LastVersion(version), Edit::FlushedVersion(version)]);
        // The copy gives versions after its own to commits of its own.
        edits.extend(files.names_after(version).into_iter().map(Edit::Forget));
        let manifest = manifest_name(number);
        all.fresh.add(place.directory.join(&manifest));
        let machine = Machine { disk: place.disk.clone(), ..core.env.machine.clone() };
        let compat = core.env.options.compat;
        ManifestLog::write_copy(&machine, &place.directory, (number, &files, compat), &edits)?;
        let mut shared: Vec<_> = files.files_by_number().into_values().collect();
        shared.retain(|file| file.path().parent() != Some(&*place.directory));
        shared.sort_unstable_by_key(|file| file.number);
        Ok(Written { version, manifest, names, shared, rewritten_bytes, left_out_indexes, fresh: all.fresh })
    }

    /// The copy has all commits up to `version`. Makes them durable in the database itself, too: otherwise the
    /// database could be older than its copy after a crash.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`] if a sync has failed. In a read-only database, the error of the sync itself.
    pub fn make_durable(&self, version: Version) -> Result<()> {
        let core = &self.core;
        if let Rest::Logs(logs) = &self.rest {
            let sync = |log: &OpenLog| log.file.sync().map_err(|error| Error::io("sync", &log.path, error));
            logs.iter().try_for_each(sync)?;
        }
        // If reads do not see `version` yet, it is the version of an import, which is durable before it becomes
        // visible.
        core.make_durable(version.min(core.views.visible()))
    }

    /// Whether a copy of this moment that failed with `error` has to start over with a newer moment: a writer in
    /// another process has removed a file of the moment, and the newest manifest does not name this file.
    pub fn is_outdated(&self, error: &Error) -> bool {
        let (env, files) = (&self.core.env, &self.files);
        let is_of_moment = |file: &&Path| env.options.read_only && files.has_file_at(file);
        let Some(missing) = error.missing_file().filter(is_of_moment) else { return false };
        let opener = env.opener.knowing(files.files_by_number());
        let newest = ManifestTail::open(&env.machine, &env.directory, &opener);
        newest.is_ok_and(|newest| !newest.files().has_file_at(missing))
    }
}

/// Returns an error if reads cannot see `version` in the files of a database whose newest version is `newest`.
fn check_kept(files: &FileSet, version: Version, newest: Version) -> Result<()> {
    let is_there = version == newest || version < newest && files.showing(version) == Some(Showing::All);
    if is_there { Ok(()) } else { Err(Error::NotKept { version, newest }) }
}

/// The file set with `rows`, which lie at `place`.
fn with_files(core: &Core, files: &FileSet, rows: &NewFiles, place: &Place) -> FileSet {
    let opener = FileOpener {
        directory: place.directory.clone(),
        machine: Machine { disk: place.disk.clone(), ..core.env.machine.clone() },
        early: EarlyFiles::default(),
        known: Arc::default(),
        leftovers: place.leftovers.clone(),
        ..core.env.opener.clone()
    };
    let mut files = FileSet::clone(files);
    for file in &rows.files {
        let added = files.apply(&Edit::AddFile(file.clone()), &opener, &mut Vec::new());
        added.expect("the recovery has written rows of tables that are there");
    }
    files
}

/// Copies `logs` to `place`, because recovery may shorten them. Then replays the copies to files in `place`. Returns
/// the new files and the newest version in them.
fn rows_of_logs(core: &Arc<Core>, logs: &[OpenLog], place: &Place, watch: &Watch<'_>) -> Result<(NewFiles, Version)> {
    let disk = &place.disk;
    let mut copies = FreshFiles::new(&place.leftovers);
    for log in logs {
        let path = log_path(&place.directory, log.number);
        copies.add(path.clone());
        let content = copy_file((&*log.file, &log.path), log.bytes, &**disk, &path, watch, &mut |_| {})?;
        if content.bytes != log.bytes {
            let why =
                io::Error::new(ErrorKind::UnexpectedEof, "it was removed while it was copied; begin the copy again");
            return Err(Error::io("copy", &log.path, why));
        }
    }
    let listed = list(&**disk, &place.directory)?;
    let recovered = replay(core, &place.directory, &listed, place)?;
    // Remove the copied logs: a copy of a database has no logs.
    for path in logs.iter().map(|log| log_path(&place.directory, log.number)) {
        disk.remove(&path).map_err(|error| Error::io("remove", &path, error))?;
    }
    copies.take_paths();
    Ok((recovered.rows, recovered.newest))
}
