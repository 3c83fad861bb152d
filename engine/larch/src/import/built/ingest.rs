//! Ingests built files into a table: checks the files, brings them into the directory of the database, and adds all
//! of them to the manifest in one record. This module does not know how the files were built.
//!
//! ```text
//! list, footers            compared; nothing has changed yet
//! 00000052-9.sst …         second names or copies, under new numbers; then they and their names are durable
//! MANIFEST                 one record with all files of all directories
//! ```
//!
//! Other commits go on until the last step. A crash before it leaves files that the manifest does not name, which the
//! next open removes.

use super::directory::BuiltFiles;
use super::list::BuiltFile;
use crate::base::error::{Error, Result};
use crate::base::event::Event;
use crate::base::expiry::Expiry;
use crate::base::release::{Format, Release};
use crate::base::table::TableInfo;
use crate::base::watch::Watch;
use crate::core::Core;
use crate::core::handle::TableHandle;
use crate::files::copied_file::{copy_whole, share_file};
use crate::import::check_table;
use crate::import::sort::SortedRun;
use crate::import::take_in::take_in;
use crate::inspect::check::check_file;
use crate::write::define::note_other_options;
use crate::write::times;
use os::Access;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use sst::format::features;
use sst::{Sst, Version};
use std::path::{Path, PathBuf};

/// The name of this work in errors.
pub const WORK: &str = "the ingest";

/// Options of an ingest, see [`Table::ingest`](crate::Table::ingest).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestOptions {
    /// Whether to read and check every byte of the files first. Otherwise only lengths and footers are compared with
    /// the list, and a damaged page goes unnoticed in a file that gets a second name. The checksum of a file that has
    /// to be copied is always verified. The default is false.
    pub verify: bool,
    /// Whether to remove the directories once the table has the files. The default is false.
    pub remove: bool,
}

/// The result of an ingest.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct IngestReport {
    /// The number of rows in the files. A key in several directories counts once for each.
    pub rows: u64,
    /// The number of files that the table now has.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
    /// How many of these bytes were copied, because the file system could not share their files.
    pub copied_bytes: u64,
    /// How many of these bytes the ingest has not read: without [`IngestOptions::verify`], those of all files that
    /// got a second name. A damaged page in them is found by [`Table::check`](crate::Table::check), or by the first
    /// read that needs it.
    pub unread_bytes: u64,
    /// The first version at which reads see all the rows; `None` if no files were ingested.
    pub version: Option<Version>,
    /// Directories that could not be removed completely, with the reasons. The table has their files nevertheless.
    pub not_removed: Vec<(PathBuf, String)>,
}

/// Ingests the files of all `directories`. `watch` is called with the number of bytes done so far.
///
/// # Errors
///
/// The errors of [`Table::ingest`](crate::Table::ingest); [`Error::Cancelled`] if `watch` ends the work.
pub fn ingest(
    table: &TableHandle,
    directories: &[&Path],
    options: IngestOptions,
    watch: &Watch<'_>,
) -> Result<IngestReport> {
    let core = table.core();
    check_table(table, WORK)?;
    let disk = &core.env.machine.disk;
    let mut shards = Vec::new();
    for directory in directories {
        watch.check()?;
        let shard = BuiltFiles::read(&**disk, directory)?;
        check_fit(core.env.options.compat, &table.info(), &shard)?;
        shard.check_files(&**disk)?;
        shards.push(shard);
    }
    let sum = |of: fn(&BuiltFiles) -> u64| shards.iter().map(of).sum();
    let mut report = IngestReport {
        rows: sum(BuiltFiles::rows),
        files: sum(BuiltFiles::files),
        bytes: sum(BuiltFiles::bytes),
        ..IngestReport::default()
    };
    // Verification is a pass of its own over all bytes.
    let total = report.bytes * if options.verify { 2 } else { 1 };
    let mut place = Placing { core, watch, done: 0, total };
    if options.verify {
        shards.iter().try_for_each(|shard| place.verify(shard))?;
    }
    if report.files > 0 {
        core.writes.reserve.fill()?;
    }
    if shards.iter().any(BuiltFiles::has_times) {
        times::allow(core)?;
    }
    let mut runs = Vec::new();
    for shard in &shards {
        let (run, copied_bytes) = place.bring(shard)?;
        report.copied_bytes += copied_bytes;
        runs.push(run);
    }
    report.unread_bytes = if options.verify { 0 } else { report.bytes - report.copied_bytes };
    disk.sync_dir(&core.env.directory).map_err(|error| Error::io("sync", &core.env.directory, error))?;
    if shards.iter().any(|shard| shard.files() > 0 && !shard.options().writes_like(&table.info().options)) {
        // Some files were built with other options than the table has, so compactions have to rewrite them later.
        note_other_options(core, &table.identity)?;
    }
    watch.check()?;
    let fits = |now: &TableInfo| shards.iter().try_for_each(|shard| check_times(now, shard));
    report.version = take_in(core, &table.info(), runs, WORK, fits)?;
    core.env.written.import.fetch_add(report.copied_bytes, Ordering::Relaxed);
    let name = || table.identity.name.clone();
    core.env.report(|| Event::Imported { table: name(), files: report.files, bytes: report.bytes });
    if options.remove {
        let failed = |shard: &BuiltFiles| Some((shard.directory.clone(), shard.remove_on(&**disk).err()?.to_string()));
        report.not_removed = shards.iter().filter_map(failed).collect();
    }
    Ok(report)
}

/// Checks that the files fit the table and the release.
fn check_fit(release: Release, table: &TableInfo, shard: &BuiltFiles) -> Result<()> {
    let (theirs, ours) = (&shard.options().groups, &table.options.groups);
    if theirs != ours {
        let (directory, table) = (shard.directory.as_path().into(), table.name.as_str().into());
        let (built, groups) = (theirs.as_slice().into(), ours.as_slice().into());
        return Err(Error::OtherGroups { directory, built, table, groups });
    }
    shard.options().check_codec()?;
    check_times(table, shard)?;
    let known = release.features(Format::Sst);
    for file in &shard.list.files {
        let unknown = file.meta.features() & features::REQUIRED & !known;
        if unknown != 0 {
            return Err(Error::BadOptions(format!(
                "compat {release}: {} has {}, which Larch {release} does not read; build the files with compat {release}, or open the \
                 database without compat",
                shard.path(file).display(),
                features::named(unknown)
            )));
        }
    }
    Ok(())
}

/// Checks that the rows in the files have the times that the table gives to its rows.
fn check_times(table: &TableInfo, shard: &BuiltFiles) -> Result<()> {
    let (theirs, ours) = (&shard.options().expiry, &table.options.expiry);
    if *ours == Expiry::Never || theirs == ours {
        return Ok(());
    }
    Err(Error::BadOptions(format!(
        "table {} gives times to its rows (expiry {ours:?}), and the files in {} were built without them (expiry \
         {theirs:?}); build the files with the same option expiry, import the rows, or alter the table",
        table.name,
        shard.directory.display()
    )))
}

/// Brings files into the directory of the database.
struct Placing<'p, 'w> {
    core: &'p Arc<Core>,
    watch: &'p Watch<'w>,
    /// The bytes that are done.
    done: u64,
    /// All bytes to do.
    total: u64,
}

impl Placing<'_, '_> {
    /// Reads and checks every byte of the files.
    ///
    /// # Errors
    ///
    /// [`Error::BadBuiltFiles`] if a file is damaged; [`Error::Cancelled`] if `watch` ends the work; an error if a
    /// file cannot be read.
    fn verify(&mut self, shard: &BuiltFiles) -> Result<()> {
        let env = &self.core.env;
        for file in &shard.list.files {
            let path = shard.path(file);
            let paged = env.cache.register_on(&*path, file.meta.file_id, &env.machine);
            let sst = Sst::new(paged, file.meta.clone(), 0, env.options.prefer_flat_index);
            let tell = &mut |done| {
                self.watch.tell(self.done + done, self.total);
            };
            let found = check_file(&self.core.env, &sst, self.watch, tell);
            sst.file.kill();
            match found? {
                Ok(_) => {}
                Err(error @ pages::Error::Io { .. }) => return Err(error.into()),
                Err(error) => return Err(Error::BadBuiltFiles { file: path, why: error.to_string() }),
            }
            self.done += file.meta.file_bytes;
        }
        Ok(())
    }

    /// Gives each file of `shard` a second name in the directory of the database, or copies it there, and makes its
    /// bytes durable. Returns the files, and the number of copied bytes.
    ///
    /// # Errors
    ///
    /// [`Error::BadBuiltFiles`] if a copied file does not have its checksum; [`Error::Cancelled`] if `watch` ends the
    /// work; an error if a file cannot be linked, copied or synced.
    fn bring(&mut self, shard: &BuiltFiles) -> Result<(SortedRun, u64)> {
        let (mut run, mut copied_bytes) = (SortedRun::none(&self.core.env.opener.leftovers), 0);
        for file in &shard.list.files {
            self.watch.check()?;
            let (number, env) = (self.core.writes.new_number(), &self.core.env);
            let copy = env.opener.path(number, env.epoch);
            if env.machine.disk.exists(&copy).map_err(|error| Error::io("look for", &copy, error))? {
                return Err(Error::io("create", &copy, std::io::ErrorKind::AlreadyExists.into()));
            }
            run.fresh.add(copy.clone());
            copied_bytes += self.bring_file((shard, file), &copy)?;
            run.files.push(env.opener.open(number, env.epoch, 0, file.meta.clone()));
            self.done += file.meta.file_bytes;
            self.watch.tell(self.done, self.total);
        }
        Ok((run, copied_bytes))
    }

    fn bring_file(&mut self, (shard, file): (&BuiltFiles, &BuiltFile), copy: &Path) -> Result<u64> {
        let (disk, path) = (&self.core.env.machine.disk, shard.path(file));
        if share_file(&**disk, &path, copy)? {
            // The program that brought the file to this machine may not have synced it.
            let opened = disk.open(copy, Access::Read).map_err(|error| Error::io("open", copy, error))?;
            opened.sync().map_err(|error| Error::io("sync", copy, error))?;
            return Ok(0);
        }
        let mut done = self.done;
        let content = copy_whole((&**disk, &path), (&**disk, copy), self.watch, &mut |bytes| {
            done += bytes;
            self.watch.tell(done, self.total);
        })?;
        if content == file.content() {
            return Ok(content.bytes);
        }
        let why = "its bytes do not have the checksum that the list says".to_owned();
        Err(Error::BadBuiltFiles { file: path, why })
    }
}
