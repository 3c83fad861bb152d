//! Whether a new directory lies within a database. Files there would belong to that database: moving, copying or
//! removing the database would also affect the new directory, and a repair of the database would find files of
//! another database. It does not know what the new directory is for.

use crate::base::error::{Error, Result};
use crate::manifest::directory::names::CURRENT;
use os::Disk;
use std::path::{Path, PathBuf, absolute};

/// Refuses a directory that lies in the directory of a database. A store has no directories, only names, and
/// databases lie beside each other.
///
/// # Errors
///
/// [`Error::WithinDatabase`]; the disk cannot be looked at.
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

/// As [`check_outside`]. It also refuses a directory in the directory of `database`, even if little is left of that
/// database.
///
/// # Errors
///
/// As [`check_outside`].
pub fn check_outside_of(disk: &dyn Disk, directory: &Path, database: &Path) -> Result<()> {
    check_outside(disk, directory)?;
    let is_database =
        |above: &PathBuf| above == database || absolute(database).is_ok_and(|database| *above == database);
    match directories_above(directory).iter().any(is_database) {
        true => Err(Error::WithinDatabase { directory: directory.into(), database: database.into() }),
        false => Ok(()),
    }
}

/// The directories in which a directory lies: first as its path names them, then those in which a relative path
/// begins.
fn directories_above(directory: &Path) -> Vec<PathBuf> {
    let named = directory.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).map(Path::to_owned);
    let begin = if directory.is_relative() { absolute(directory).ok() } else { None };
    let whole = begin.iter().flat_map(|begin| begin.ancestors().skip(1).map(Path::to_owned));
    named.chain(whole).collect()
}
