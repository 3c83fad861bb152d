//! A database that cells read. The database is made only once, and cells that write get copies of the database.
//! Files with rows never change, so a copy has only links to these files. The small files are really copied. So a
//! copy takes no time and no room, and every cell begins with the same files. This module does not know what the
//! database holds.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "databases of real files, never simulated")]

use crate::ground::Ground;
use harness::Failure;
use harness::directory::failure;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// A database that is closed and complete.
#[derive(Debug)]
pub struct Made {
    place: PathBuf,
}

impl Made {
    /// Opens the database `name`. If the database does not exist or was not finished, `make` makes it. `make`
    /// returns whether the database is complete. If ^C kept `make` from completing the database, the result is
    /// `None`.
    ///
    /// # Errors
    ///
    /// Returns the errors of `make`. Also returns an error if a file cannot be written.
    pub fn open(
        ground: &Ground,
        name: &str,
        make: impl FnOnce(&Path) -> Result<bool, Failure>,
    ) -> Result<Option<Self>, Failure> {
        let place = ground.data(name)?;
        let mark = ground.data(&format!("{name}.complete"))?;
        if !mark.exists() {
            remove(&place)?;
            if !make(&place)? {
                return Ok(None);
            }
            fs::write(&mark, "").map_err(|error| failure(&error, "write", &mark))?;
        }
        Ok(Some(Self { place }))
    }

    /// Its directory.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// A copy that may be written to.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be linked or copied.
    pub fn copy(&self) -> Result<Copy, Failure> {
        let mut name = self.place.file_name().expect("it has a name").to_owned();
        name.push(".copy");
        let place = self.place.with_file_name(name);
        remove(&place)?;
        copy(&self.place, &place)?;
        Ok(Copy { place })
    }

    /// The lengths of the database's files with rows, in bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be read.
    pub fn file_bytes(&self) -> Result<Vec<u64>, Failure> {
        let cannot = |error: std::io::Error| failure(&error, "read", &self.place);
        let mut lengths = Vec::new();
        for entry in fs::read_dir(&self.place).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            if has_rows(&entry.path()) {
                lengths.push(entry.metadata().map_err(cannot)?.len());
            }
        }
        Ok(lengths)
    }
}

/// A copy of a database. It is removed when it is dropped.
#[derive(Debug)]
pub struct Copy {
    place: PathBuf,
}

impl Copy {
    /// Its directory.
    pub fn place(&self) -> &Path {
        &self.place
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // If files cannot be removed now, they are removed before the next copy is made, or at the end together with
        // all databases.
        fs::remove_dir_all(&self.place).unwrap_or_default();
    }
}

/// Whether a file of a database holds rows, and so never changes.
fn has_rows(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sst")
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir(to).map_err(|error| failure(&error, "make", to))?;
    let cannot = |error: std::io::Error| failure(&error, "read", from);
    for entry in fs::read_dir(from).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().map_err(cannot)?.is_dir() {
            copy(&path, &target)?;
        } else if has_rows(&path) {
            fs::hard_link(&path, &target).map_err(|error| failure(&error, "link", &path))?;
        } else {
            fs::copy(&path, &target).map_err(|error| failure(&error, "copy", &path))?;
        }
    }
    Ok(())
}

/// Removes a directory that may be there.
///
/// # Errors
///
/// Returns an error if the system refuses to remove the directory.
pub fn remove(place: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failure(&error, "remove", place)),
        _ => Ok(()),
    }
}
