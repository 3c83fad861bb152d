//! Databases that only show files: without a lock, a log or threads. They serve to read beside a writer, to make
//! copies, and to build files outside of a database. This module does not know which files a database has.

use super::Core;
use super::environment::Environment;
use super::page_cache::new_cache;
use crate::base::error::{Error, Result};
use crate::base::options::Options;
use crate::manifest::db_file::{EarlyFiles, FileOpener, number_distance};
use crate::manifest::directory::leftovers::Leftovers;
use crate::manifest::{FileSet, ManifestTail};
use crate::view::View;
use os::Machine;
use os::sync::Arc;
use pages::PageCache;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Like `machine`, but its disk holds on to the directory that is now at the path `directory`: it still finds this
/// directory after a move, and ignores another directory that gets the old path. If no directory is at the path now,
/// returns a copy of `machine`.
///
/// # Errors
///
/// Fails if the directory cannot be opened.
pub fn hold(machine: &Machine, directory: &Path) -> Result<Machine> {
    match os::hold(&machine.disk, directory) {
        Ok(disk) => Ok(Machine { disk, ..machine.clone() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(machine.clone()),
        Err(error) => Err(Error::io("open", directory, error)),
    }
}

/// Returns the opener for the files of the database in `directory`.
pub fn opener(machine: &Machine, directory: &Path, options: &Options, cache: Arc<PageCache>) -> FileOpener {
    FileOpener {
        directory: directory.to_owned(),
        machine: machine.clone(),
        cache,
        prefer_flat: options.prefer_flat_index,
        early: EarlyFiles::default(),
        known: Arc::default(),
        leftovers: Leftovers::new(machine.disk.clone()),
    }
}

/// A database that shows these files, without a lock, a log or threads.
pub fn show_files(
    machine: Machine,
    directory: PathBuf,
    options: Options,
    opener: FileOpener,
    files: FileSet,
) -> Arc<Core> {
    let visible = files.flushed_version;
    let env = Environment::new(machine, directory, options, opener, files.epoch);
    env.row_clock.raise(files.latest_time());
    let view = View { generation: 0, memory: Vec::new(), files: Arc::new(files), rules: env.read_rules() };
    Arc::new(Core::new(env, None, view, visible))
}

/// A database in `directory` without tables, files, log and lock. It can build files for other databases.
///
/// # Errors
///
/// [`Error::BadOptions`] if the options are refused; [`Error::NoThreads`] if no thread can be started.
pub fn open_empty(machine: Machine, directory: PathBuf, options: Options) -> Result<Arc<Core>> {
    options.check()?;
    machine.threads.start().map_err(|error| Error::NoThreads(error.to_string()))?;
    let cache = new_cache(options.cache, options.open_files, &machine);
    let opener = opener(&machine, &directory, &options, cache);
    // Files that are built without a database get random, distinct names. Otherwise somebody could copy such a file
    // over a file of the same name that a database shares.
    let mut files = FileSet::new(machine.random.next_u64());
    files.next_number = number_distance(machine.random.next_u64());
    Ok(show_files(machine, directory, Options { read_only: true, ..options }, opener, files))
}

/// Opens the newest files of the database of `core`, which is open read-only, as another database. Its own files get
/// numbers that nobody has used, and are written for the same release as those of `core`.
///
/// # Errors
///
/// Fails if the manifest cannot be read.
pub fn open_beside(core: &Core) -> Result<Arc<Core>> {
    let (env, view) = (&core.env, core.views.newest());
    let opener = env.opener.knowing(view.files.files_by_number());
    let files = ManifestTail::open(&env.machine, &env.directory, &opener)?.into_files();
    let written_for = files.written_for.as_ref().and_then(|release| release.parse().ok());
    let options = Options { compat: written_for.unwrap_or(env.options.compat), ..env.options.clone() };
    Ok(show_files(env.machine.clone(), env.directory.clone(), options, opener, files))
}
