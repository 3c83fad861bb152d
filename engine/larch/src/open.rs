//! Opens a database: reads the manifest, recovers commits from logs, and starts the background work. An open reads
//! no page of any SST. This module does not know how a log is read.

mod begin;
pub mod idle;
pub mod jobs;

use crate::base::error::{Error, Result};
use crate::base::event::Event;
use crate::base::options::{Follow, Options};
use crate::base::table::{IndexInfo, IndexState, TableId};
use crate::core::Core;
use crate::core::background::BackgroundClose;
use crate::core::environment::Environment;
use crate::core::files_only::{hold, opener, show_files};
use crate::core::page_cache::new_cache;
use crate::core::writer::log_path;
use crate::files::outside::check_outside;
use crate::follow;
use crate::levels::offers::exchange::Exchange;
use crate::manifest::db_file::{FileOpener, sst_name};
use crate::manifest::directory::lease::Lease;
use crate::manifest::directory::listing::{ListedFile, list};
use crate::manifest::directory::names::{LIST, LOCK};
use crate::manifest::log::manifest_name;
use crate::manifest::{Edit, FileSet, ManifestLog, ManifestTail};
use crate::view::View;
use crate::warm::state;
use crate::write::{flush, subscribe};
use begin::{Beginning, Begun};
use os::sync::Arc;
use os::{Lock, Machine};
use pages::PageCache;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Opens the database in `directory` with `cache`, or with a new cache of its own.
///
/// # Errors
///
/// [`Error::NotADatabase`] if the directory has no database and none may be created; [`Error::WithinDatabase`] if a
/// new database would be inside another one; [`Error::UnfinishedCopy`] if the directory has a copy that was not
/// completed; [`Error::Locked`] if the database is already open for writing; [`Error::NoThreads`] if no thread can be
/// started; [`Error::BadOptions`] if the options are refused; an error if the manifest or a log is damaged; an error
/// of the disk.
pub fn open(
    machine: Machine,
    directory: PathBuf,
    options: Options,
    cache: Option<&Arc<PageCache>>,
) -> Result<Arc<Core>> {
    let is_own = cache.is_none();
    let own_cache = || new_cache(options.cache, options.open_files, &machine);
    let cache = cache.map_or_else(own_cache, Arc::clone);
    if let Some(bytes) = options.in_memory_bytes.filter(|_| is_own) {
        cache.set_kept_bytes(bytes);
    }
    options.check()?;
    let has_database = ManifestLog::exists(&machine, &directory)?;
    if !has_database && ManifestLog::is_unfinished_copy(&machine, &directory)? {
        return Err(Error::UnfinishedCopy(directory));
    }
    if !has_database {
        check_outside(&*machine.disk, &directory)?;
    }
    // A writer looks for the database again after it has taken the lock. This first look avoids making a directory
    // for an open that will be refused.
    if (options.read_only || !options.create) && !has_database {
        return Err(Error::NotADatabase(directory));
    }
    if options.read_only {
        open_read_only(machine, directory, options, cache)
    } else {
        open_writer(machine, directory, options, cache)
    }
}

/// Opens the files that the manifest names, without a lock, threads or logs. Commits that are not in files yet are
/// not visible, unless the database follows its writer.
fn open_read_only(machine: Machine, directory: PathBuf, options: Options, cache: Arc<PageCache>) -> Result<Arc<Core>> {
    let begin_time = machine.clock.now();
    let machine = hold(&machine, &directory)?;
    let opener = opener(&machine, &directory, &options, cache);
    let core = match options.follow {
        None => {
            let files = ManifestTail::open(&machine, &directory, &opener)?.into_files();
            files.check_codecs()?;
            show_files(machine, directory, options, opener, files)
        }
        Some(follow) => open_follower(machine, directory, options, opener, follow)?,
    };
    core.env.report(|| Event::Opened {
        with: core.env.options.to_string(),
        files: file_count(&core),
        logs: 0,
        commits: 0,
        recovered_files: 0,
        version: core.views.visible(),
        time: core.env.machine.clock.now() - begin_time,
    });
    Ok(core)
}

/// Saves the list of pages that are in memory, if the next open is to load them.
fn save_warm_state(core: &Core) {
    if core.env.options.warm_from_last {
        // An error is ignored: without the file, the next open loads no pages early, and only its first reads are
        // slower.
        state::save(&core.env, &core.views.newest()).ok();
    }
}

/// The number of files of all tables.
fn file_count(core: &Core) -> u64 {
    core.views.newest().files.tables.values().map(|table| table.files().count() as u64).sum()
}

fn open_follower(
    machine: Machine,
    directory: PathBuf,
    options: Options,
    opener: FileOpener,
    follow: Follow,
) -> Result<Arc<Core>> {
    machine.threads.start().map_err(|error| Error::NoThreads(error.to_string()))?;
    let has_leases = machine.disk.keeps_removed().is_none();
    let lease = if has_leases { Lease::new(&machine, &directory)? } else { None };
    let manifest = ManifestTail::open(&machine, &directory, &opener)?;
    let files = manifest.files().clone();
    files.check_codecs()?;
    let core = show_files(machine, directory, options, opener, files);
    core.begin_to_follow(follow, lease, manifest)?;
    follow::jobs::begin(&core);
    Ok(core)
}

fn open_writer(machine: Machine, directory: PathBuf, options: Options, cache: Arc<PageCache>) -> Result<Arc<Core>> {
    let begin_time = machine.clock.now();
    // Threads are started before files and directories are made: without threads, writers would wait forever for
    // flushes.
    machine.threads.start().map_err(|error| Error::NoThreads(error.to_string()))?;
    machine.disk.create_dir(&directory).map_err(|error| Error::io("create", &directory, error))?;
    // `hold` returns a machine that keeps finding the files of the database even if the directory is moved later.
    let machine = hold(&machine, &directory)?;
    let lock = lock(&machine, &directory)?;
    let opener = opener(&machine, &directory, &options, cache);
    let listed = list(&*machine.disk, &directory)?;
    let mut files = if ManifestLog::exists(&machine, &directory)? {
        ManifestLog::read(&machine, &ManifestLog::current(&machine, &directory)?, &opener)?
    } else if ManifestLog::is_unfinished_copy(&machine, &directory)? {
        // After the first look, another process began a copy here and ended before the copy was complete.
        return Err(Error::UnfinishedCopy(directory));
    } else if machine.disk.exists(&directory.join(LIST)).map_err(|error| Error::io("look in", &directory, error))? {
        // The directory has files that were built for other databases; they are not the remains of a database.
        return Err(Error::NotADatabase(directory));
    } else if listed.iter().any(|name| !matches!(name, ListedFile::Manifest(_))) {
        // An unfinished creation of a database leaves only manifests.
        return Err(ManifestLog::current_is_missing(&directory));
    } else if !options.create {
        return Err(Error::NotADatabase(directory));
    } else {
        FileSet::new(machine.random.next_u64())
    };
    machine.disk.bind(files.database);
    let dropped = drop_unfinished_indexes(&mut files, &opener);
    files.check_readable_by(options.compat)?;
    files.check_codecs()?;
    files.written_for = Some(options.compat.to_string());
    // In an object store, another process may be opening the database at the same time. It gets another epoch, so
    // the files of the two processes have different names.
    files.epoch = lock.holder().map_or(files.epoch + 1, |holder| holder.max(files.epoch + 1));
    // Start above the numbers of all files that an earlier writer may have left, so that none of them is
    // overwritten.
    files.next_number =
        listed.iter().filter_map(ListedFile::number).map(|number| number + 1).fold(files.next_number, u64::max);
    let last = files.last_version;
    let env = Environment::new(machine, directory, options, opener, files.epoch);
    env.row_clock.raise(files.latest_time());
    if files.has_times() {
        env.row_clock.note_times();
    }
    let view = View { generation: 0, memory: Vec::new(), files: Arc::new(files), rules: env.read_rules() };
    let core = Arc::new(Core::new(env, Some(lock), view, last));
    if core.env.options.compaction_workers {
        Exchange { disk: &*core.env.machine.disk, database: &core.env.directory }.remove_jobs_before(core.env.epoch);
    }
    let tables: Vec<TableId> = dropped.iter().map(|(table, _)| *table).collect();
    let begun = Beginning { core: &core, listed: &listed, dropped: &tables }.begin()?;
    // If the old manifest is continued, it names the files of a dropped index until the next edit is written. So
    // these files are kept.
    let kept = dropped.into_iter().flat_map(|(_, names)| names).filter(|_| begun.is_old_manifest);
    remove_orphans(&core, listed, kept.collect(), &begun);
    core.env.report(|| Event::Opened {
        with: core.env.options.to_string(),
        files: file_count(&core),
        logs: begun.logs_read,
        commits: begun.commits,
        recovered_files: begun.files,
        version: core.views.visible(),
        time: core.env.machine.clock.now() - begin_time,
    });
    jobs::begin(&core);
    core.at_close.set(at_close).expect("a database is opened once");
    if core.views.newest().memory.len() > 1 {
        // Flush the recovered rows now if possible. A process that ends soon would otherwise leave this work to the
        // next one.
        flush::attempt(&core);
    }
    // If the reserve cannot be filled, the next put reports that the disk is full.
    core.writes.reserve.fill().ok();
    core.warm_kept_tables();
    if core.env.options.warm_from_last {
        core.background.warmth.request_state();
        core.background.wake_warm();
    }
    Ok(core)
}

/// The last writes of a close. If they fail, the feed gives again what was acknowledged, and the next open warms less.
fn at_close(core: &Core) {
    subscribe::make_durable(core).ok();
    save_warm_state(core);
}

/// Drops the indexes that were still being built when the database was closed or the process ended. Returns the
/// tables of their entries, each with the names of its files. The manifest that this open writes does not contain
/// these indexes.
fn drop_unfinished_indexes(files: &mut FileSet, opener: &FileOpener) -> Vec<(TableId, Vec<String>)> {
    let unfinished = |files: &FileSet| {
        let mut indexes = files.tables.indexes();
        let is_unfinished = |index: &IndexInfo| index.state == IndexState::Building;
        let found = indexes.find(|table| table.info.index.as_ref().is_some_and(|index| is_unfinished(index)))?;
        Some((found.info.id, found.files().map(|(_, file)| sst_name(file.number, file.epoch)).collect()))
    };
    let mut dropped = Vec::new();
    while let Some((table, names)) = unfinished(files) {
        // The files of the index are removed later, because no manifest will name them.
        let outcome = files.apply(&Edit::DropTable(table), opener, &mut Vec::new());
        outcome.expect("the index is there, and has no index itself");
        dropped.push((table, names));
    }
    dropped
}

/// Takes the lock of the directory. If it is held because this process is still closing the same database, waits
/// until that close is done.
fn lock(machine: &Machine, directory: &Path) -> Result<Box<dyn Lock>> {
    let path = directory.join(LOCK);
    loop {
        let seen = BackgroundClose::ended();
        match machine.disk.lock(&path) {
            Ok(lock) => return Ok(lock),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if !BackgroundClose::wait_for_next(seen) {
                    return Err(Error::Locked(directory.to_owned()));
                }
            }
            Err(error) => return Err(Error::io("lock", &path, error)),
        }
    }
}

/// Removes files that earlier writers left behind: SSTs in `listed` that are neither in the manifest nor in `kept`,
/// and the manifests and logs that this open does not need.
fn remove_orphans(core: &Core, listed: Vec<ListedFile>, kept: Vec<String>, begun: &Begun) {
    let view = core.views.newest();
    let live: BTreeSet<String> = view
        .files
        .tables
        .values()
        .flat_map(|table| table.files())
        .map(|(_, file)| sst_name(file.number, file.epoch))
        .chain(kept)
        .collect();
    for listed in listed {
        let path = match listed {
            ListedFile::Sst(name, _) if !live.contains(&name) => core.env.directory.join(name),
            ListedFile::Log(number) if !begun.logs.contains(&number) => log_path(&core.env.directory, number),
            ListedFile::Manifest(number) if number != begun.manifest => core.env.directory.join(manifest_name(number)),
            _ => continue,
        };
        core.env.opener.leftovers.remove(&path);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
