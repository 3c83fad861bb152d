//! Checks that a new directory does not lie within a database. Moving, copying or removing that database would
//! affect its files, too, and a repair of the database would find files of another one. This module does not know
//! what the new directory is for.

use crate::base::error::{Error, Result};
use crate::manifest::directory::names::CURRENT;
use os::Disk;
use std::path::{Path, PathBuf, absolute};

/// Refuses a directory within the directory of a database. In a store, nothing is refused, because it has no
/// directories, and the names of databases are not nested.
///
/// # Errors
///
/// Fails with [`Error::WithinDatabase`], or if the disk cannot be read.
pub fn check_outside(disk: &dyn Disk, directory: &Path) -> Result<()> {
    if disk.keeps_removed().is_some() {
        return Ok(());
    }
    for above in directories_above(directory) {
        let current = above.join(CURRENT);
        if disk.exists(&current).map_err(|error| Error::io("look for", &current, error))? {
            return Err(Error::WithinDatabase { directory: directory.into(), database: above.into() });
        }
    }
    Ok(())
}

/// Like [`check_outside`], but also refuses a directory within `database`, even if that has lost most of its files.
///
/// # Errors
///
/// Fails as [`check_outside`] does.
pub fn check_outside_of(disk: &dyn Disk, directory: &Path, database: &Path) -> Result<()> {
    check_outside(disk, directory)?;
    let is_database =
        |above: &PathBuf| above == database || absolute(database).is_ok_and(|database| *above == database);
    match directories_above(directory).iter().any(is_database) {
        true => Err(Error::WithinDatabase { directory: directory.into(), database: database.into() }),
        false => Ok(()),
    }
}

/// The directories that contain a directory: those that its path names and, if the path is relative, those of its
/// absolute path.
fn directories_above(directory: &Path) -> Vec<PathBuf> {
    let named = directory.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).map(Path::to_owned);
    let begin = if directory.is_relative() { absolute(directory).ok() } else { None };
    let whole = begin.iter().flat_map(|begin| begin.ancestors().skip(1).map(Path::to_owned));
    named.chain(whole).collect()
}
