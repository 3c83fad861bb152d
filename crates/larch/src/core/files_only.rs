//! Databases that show files and have no lock, no log and no threads. They serve reads beside a writer, copies, and
//! files that are built without a database. It does not know which files a database has.

use super::Core;
use super::environment::Environment;
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

/// A machine like `machine`, whose disk stays with the directory that has the path `directory` now. If that
/// directory is moved, the disk uses its new place. If another directory gets the path, the disk does not use that
/// directory. If no directory has this path, returns `machine` itself.
///
/// # Errors
///
/// What the disk refuses.
pub fn hold(machine: &Machine, directory: &Path) -> Result<Machine> {
    match os::hold(&machine.disk, directory) {
        Ok(disk) => Ok(Machine { disk, ..machine.clone() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(machine.clone()),
        Err(error) => Err(Error::io("open", directory, error)),
    }
}

/// Opens the files of the database in `directory`.
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

/// A database that shows these files, and has neither lock nor log nor threads.
pub fn show_files(
    machine: Machine,
    directory: PathBuf,
    options: Options,
    opener: FileOpener,
    files: FileSet,
) -> Arc<Core> {
    let visible = files.flushed_version;
    let view = View { generation: 0, memory: Vec::new(), files: Arc::new(files) };
    let env = Environment::new(machine, directory, options, opener, view.files.epoch);
    Arc::new(Core::new(env, None, view, visible))
}

/// A database without tables, files, log and lock in `directory`, in which files for other databases can be built.
///
/// # Errors
///
/// [`Error::BadOptions`], [`Error::NoThreads`].
pub fn open_empty(machine: Machine, directory: PathBuf, options: Options) -> Result<Arc<Core>> {
    options.check()?;
    machine.threads.start().map_err(|error| Error::NoThreads(error.to_string()))?;
    let cache = PageCache::new(options.cache_bytes, options.open_files, sst::validate);
    let opener = opener(&machine, &directory, &options, cache);
    // Files that are built without a database get different names: if two had one name, copying one over the other
    // would change a file that a database shares.
    let mut files = FileSet::new(machine.random.next_u64());
    files.next_number = number_distance(machine.random.next_u64());
    Ok(show_files(machine, directory, Options { read_only: true, ..options }, opener, files))
}

/// `core` is open read-only. Opens the newest files of its database once more: with unused numbers for new files,
/// and for readers of the release that the database was written for.
///
/// # Errors
///
/// The manifest cannot be read.
pub fn open_beside(core: &Core) -> Result<Arc<Core>> {
    let (env, view) = (&core.env, core.views.newest());
    let opener = env.opener.knowing(view.files.files_by_number());
    let files = ManifestTail::open(&env.machine, &env.directory, &opener)?.into_files();
    let written_for = files.written_for.as_ref().and_then(|release| release.parse().ok());
    let options = Options { compat: written_for.unwrap_or(env.options.compat), ..env.options.clone() };
    Ok(show_files(env.machine.clone(), env.directory.clone(), options, opener, files))
}
