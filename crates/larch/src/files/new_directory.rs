//! A directory that is filled with files, and counts only after the last step: as a database, or as files for one. It
//! does not know where the files come from.
//!
//! ```text
//! LOCK                 held until the end, as by an open database
//! UNFINISHED           the next file, which stays until the last step
//! SSTs, manifest       in any order; then they and their names are durable
//! CURRENT              UNFINISHED with another name; for files of no database that of their list
//! ```
//!
//! A crash leaves a directory with `UNFINISHED`, which no open takes for a database. The next copy into it removes
//! what is there. After an error the directory is as it was before, except that `LOCK` stays if the directory
//! existed. If restoring it fails, too, it is left as after a crash.
//!
//! In a store the directory is always left as after a crash, and has to be dropped: a store removes a file some time
//! after the request, and meanwhile no other file may have its name.

use super::outside::check_outside;
use crate::base::error::{Error, Result};
use crate::manifest::directory::listing::is_of_database;
use crate::manifest::directory::names::{CURRENT, LOCK, UNFINISHED};
use crate::manifest::directory::place::Place;
use crate::manifest::log::current_text;
use os::sync::Arc;
use os::{Access, Disk, Lock};
use std::io::ErrorKind;
use std::path::Path;

/// A directory that is being filled. If it is dropped before it is finished, what was written to it is removed.
#[derive(Debug)]
pub struct NewDirectory {
    place: Place,
    /// Whether the directory was not there before.
    is_made: bool,
    is_finished: bool,
    lock: Option<Box<dyn Lock>>,
}

impl NewDirectory {
    /// Begins with a directory that does not exist yet, is empty, or has files that an earlier attempt has left.
    ///
    /// # Errors
    ///
    /// [`Error::CopyTarget`] if other files are in it; [`Error::UnfinishedCopy`] if an earlier attempt has left files
    /// in a store; [`Error::WithinDatabase`]; [`Error::CopyLocked`]; what the disk refuses.
    pub fn begin(disk: &Arc<dyn Disk>, directory: &Path) -> Result<Self> {
        let io = |action| move |error| Error::io(action, directory, error);
        check_outside(&**disk, directory)?;
        let is_made = !disk.exists(directory).map_err(io("look for"))?;
        if is_made {
            disk.create_dir(directory).map_err(io("create directory"))?;
        } else {
            // No lock file is made beside other files.
            check_left(&**disk, directory)?;
        }
        // From here on `disk` uses this directory, even if another one gets its name.
        let disk = &os::hold(disk, directory).map_err(io("open"))?;
        // Not the leftovers of the database: a later copy may have files with the same names.
        let place = Place::outside(disk, directory);
        let mut new = Self { place, is_made, is_finished: false, lock: None };
        let lock = directory.join(LOCK);
        new.lock = Some(disk.lock(&lock).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => Error::CopyLocked(directory.to_owned()),
            _ => Error::io("lock", &lock, error),
        })?);
        // Another process may have been there before this one got the lock.
        check_left(&**disk, directory)?;
        clear(&**disk, directory)?;
        let mark = directory.join(UNFINISHED);
        disk.open(&mark, Access::Create).map_err(|error| Error::io("create", &mark, error))?;
        disk.sync_dir(directory).map_err(io("sync"))?;
        Ok(new)
    }

    /// Where its files are written. The disk of this place stays with the directory, even if the directory is moved.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Makes it a database with the manifest of this name. The bytes of all files are durable.
    ///
    /// # Errors
    ///
    /// As [`NewDirectory::finish_as`].
    pub fn finish(self, manifest: &str) -> Result<()> {
        self.finish_as(CURRENT, current_text(manifest).as_bytes())
    }

    /// Ends the filling with a last file of this name and with these bytes. The bytes of all other files are durable.
    ///
    /// # Errors
    ///
    /// What the disk refuses. Then the directory is as it was before. If the last sync fails and the step cannot be
    /// taken back either, the directory may be finished after a crash, with all its files.
    pub fn finish_as(mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let Place { disk, directory, .. } = &self.place;
        let (mark, last) = (directory.join(UNFINISHED), directory.join(name));
        let io = |action| move |error| Error::io(action, directory, error);
        let file = disk.open(&mark, Access::Write).map_err(|error| Error::io("open", &mark, error))?;
        let written = file.write_at(bytes, 0).and_then(|()| file.sync());
        written.map_err(|error| Error::io("write", &mark, error))?;
        disk.sync_dir(directory).map_err(io("sync"))?;
        disk.rename(&mark, &last).map_err(|error| Error::io("rename", &mark, error))?;
        if let Err(error) = disk.sync_dir(directory) {
            // The directory becomes unfinished again, so that the error for the caller is true.
            disk.rename(&last, &mark).ok();
            return Err(io("sync")(error));
        }
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        if self.is_finished || self.place.disk.keeps_removed().is_some() {
            return;
        }
        let Place { disk, directory, .. } = &self.place;
        // What cannot be removed is removed by the next copy into this directory. An empty directory does no harm.
        if self.lock.is_some() && clear(&**disk, directory).is_err() {
            return;
        }
        if self.is_made {
            if self.lock.is_some() {
                disk.remove(&directory.join(LOCK)).ok();
            }
            disk.remove_dir(directory).ok();
        }
    }
}

/// Refuses a directory in which another attempt may not begin.
///
/// # Errors
///
/// [`Error::CopyTarget`] if other files than those of an attempt are in it; [`Error::UnfinishedCopy`] if any are, in a
/// store; what the disk refuses.
fn check_left(disk: &dyn Disk, directory: &Path) -> Result<()> {
    let is_empty = left_files(disk, directory)?.is_empty();
    if is_empty || disk.keeps_removed().is_none() { Ok(()) } else { Err(Error::UnfinishedCopy(directory.to_owned())) }
}

/// Removes what an attempt that was not finished has left in `directory`. The mark is removed last: as long as any
/// file is left, the mark says what it is.
///
/// # Errors
///
/// [`Error::CopyTarget`] if anything else is in it; what the disk refuses.
fn clear(disk: &dyn Disk, directory: &Path) -> Result<()> {
    let io = |action| move |error| Error::io(action, directory, error);
    let names = left_files(disk, directory)?;
    if names.is_empty() {
        return Ok(());
    }
    // The files are removed now. So a crash must not bring back a `CURRENT` that was taken back.
    disk.sync_dir(directory).map_err(io("sync"))?;
    let remove = |name: &str| {
        let path = directory.join(name);
        disk.remove(&path).map_err(|error| Error::io("remove", &path, error))
    };
    names.iter().filter(|name| *name != UNFINISHED).try_for_each(|name| remove(name))?;
    disk.sync_dir(directory).map_err(io("sync"))?;
    remove(UNFINISHED)
}

/// The names of the files that an unfinished attempt has left in `directory`, without the lock.
///
/// # Errors
///
/// As [`clear`].
fn left_files(disk: &dyn Disk, directory: &Path) -> Result<Vec<String>> {
    let listed = disk.list(directory).map_err(|error| Error::io("list", directory, error))?;
    let names: Vec<String> = listed.into_iter().map(|entry| entry.name).filter(|name| name != LOCK).collect();
    let is_ours = |name: &String| name == UNFINISHED || is_of_database(name);
    let is_left = names.iter().any(|name| name == UNFINISHED) && names.iter().all(is_ours);
    if names.is_empty() || is_left { Ok(names) } else { Err(Error::CopyTarget(directory.to_owned())) }
}
