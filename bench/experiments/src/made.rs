//! A database that is created once and read by many cells. Cells that write get a copy, so every cell starts from
//! the same files. SSTs never change, so a copy hard-links them and copies only the small files, which takes almost
//! no time or space.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "databases of real files, never simulated")]

use crate::ground::Ground;
use harness::Failure;
use harness::directory::failure;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// A complete, closed database.
#[derive(Debug)]
pub struct Made {
    place: PathBuf,
}

impl Made {
    /// Returns the database `name`. If it does not exist or was not finished, `make` creates it and returns whether
    /// it is complete. `None` if ^C kept `make` from completing it.
    ///
    /// # Errors
    ///
    /// Returns the errors of `make`, and fails if a file cannot be written or removed.
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

    /// The directory.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// A copy that may be written to.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be linked or copied.
    pub fn copy(&self) -> Result<Copy, Failure> {
        let mut name = self.place.file_name().expect("it has a name").to_owned();
        name.push(".copy");
        let place = self.place.with_file_name(name);
        remove(&place)?;
        copy(&self.place, &place)?;
        Ok(Copy { place })
    }

    /// The lengths of the database's SSTs, in bytes.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be read.
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

/// A copy of a database, which is removed on drop.
#[derive(Debug)]
pub struct Copy {
    place: PathBuf,
}

impl Copy {
    /// The directory.
    pub fn place(&self) -> &Path {
        &self.place
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // Whatever stays is removed before the next copy, or with all databases at the end.
        fs::remove_dir_all(&self.place).unwrap_or_default();
    }
}

/// Whether a file is an SST, which never changes.
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

/// Removes a directory, if it exists.
///
/// # Errors
///
/// Fails if the directory cannot be removed.
pub fn remove(place: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failure(&error, "remove", place)),
        _ => Ok(()),
    }
}
