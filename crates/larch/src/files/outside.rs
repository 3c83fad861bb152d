//! Checks that a new directory does not lie within a database. If the new directory lay within a database, its files
//! would belong to that database. Moving, copying or removing the database would affect these files, and a repair of
//! the database would find files of another database. This module does not know what the new directory is for.

use crate::base::error::{Error, Result};
use crate::manifest::directory::names::CURRENT;
use os::Disk;
use std::path::{Path, PathBuf, absolute};

/// Refuses a directory that lies in the directory of a database. A store has only names and no directories, and the
/// names of databases are not nested. So in a store nothing is refused.
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

/// Does the same as [`check_outside`], and also refuses a directory within the directory `database`, even if most
/// files of that database are missing.
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

/// The directories that contain a directory. First come the directories that its path names. If this path is
/// relative, the current directory and the directories that contain it follow.
fn directories_above(directory: &Path) -> Vec<PathBuf> {
    let named = directory.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).map(Path::to_owned);
    let begin = if directory.is_relative() { absolute(directory).ok() } else { None };
    let whole = begin.iter().flat_map(|begin| begin.ancestors().skip(1).map(Path::to_owned));
    named.chain(whole).collect()
}
