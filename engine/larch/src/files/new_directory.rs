//! Fills a new directory with files. Only the last step makes the directory valid, as a database or a directory of
//! built files. This module does not know where the files come from.
//!
//! ```text
//! LOCK                 held until the end, as by an open database
//! UNFINISHED           the next file, which stays until the last step
//! SSTs, manifest       in any order; then they and their names are durable
//! CURRENT              UNFINISHED with another name; for files of no database that of their list
//! ```
//!
//! After a crash, the directory has the file `UNFINISHED`, so it cannot be opened as a database. The next copy into
//! it first removes the files that are left. After an error, the directory is as it was before, except that `LOCK`
//! stays if the directory existed. If the files cannot be removed, it is left as after a crash.
//!
//! In a store, even an error leaves the directory as a crash would, and it has to be dropped. A store removes a
//! file only some time after the request, and until then no other file may have its name.

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

/// A directory that is being filled. Dropping this value before the last step removes all that was written.
#[derive(Debug)]
pub struct NewDirectory {
    place: Place,
    /// Whether the directory did not exist before.
    is_made: bool,
    is_finished: bool,
    lock: Option<Box<dyn Lock>>,
}

impl NewDirectory {
    /// Begins to fill a directory, which must not exist, or be empty, or have only files left from an earlier
    /// attempt.
    ///
    /// # Errors
    ///
    /// [`Error::CopyTarget`] if the directory has other files; [`Error::UnfinishedCopy`] if it is in a store and
    /// has files of an earlier attempt; [`Error::WithinDatabase`] if it lies within a database;
    /// [`Error::CopyLocked`] if it is locked, here or by another process; an error if the disk refuses something.
    pub fn begin(disk: &Arc<dyn Disk>, directory: &Path) -> Result<Self> {
        let io = |action| move |error| Error::io(action, directory, error);
        check_outside(&**disk, directory)?;
        let is_made = !disk.exists(directory).map_err(io("look for"))?;
        if is_made {
            disk.create_dir(directory).map_err(io("create directory"))?;
        } else {
            // Check before taking the lock, so that no lock file is made in a directory with other files.
            check_left(&**disk, directory)?;
        }
        // The new `disk` goes on using this directory, even if another directory gets its path later.
        let disk = &os::hold(disk, directory).map_err(io("open"))?;
        // The leftovers of this place are not those of the database, because a later copy may write files with the
        // same names.
        let place = Place::outside(disk, directory);
        let mut new = Self { place, is_made, is_finished: false, lock: None };
        let lock = directory.join(LOCK);
        new.lock = Some(disk.lock(&lock).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => Error::CopyLocked(directory.to_owned()),
            _ => Error::io("lock", &lock, error),
        })?);
        // Another process may have written files before this process got the lock.
        check_left(&**disk, directory)?;
        clear(&**disk, directory)?;
        let mark = directory.join(UNFINISHED);
        disk.open(&mark, Access::Create).map_err(|error| Error::io("create", &mark, error))?;
        disk.sync_dir(directory).map_err(io("sync"))?;
        Ok(new)
    }

    /// Where to write the files. The disk of this place goes on using the directory even if it is moved.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Makes the directory a database with this manifest. The bytes of all files must be durable.
    ///
    /// # Errors
    ///
    /// Fails as [`NewDirectory::finish_as`] does.
    pub fn finish(self, manifest: &str) -> Result<()> {
        self.finish_as(CURRENT, current_text(manifest).as_bytes())
    }

    /// Writes the last file, with this name and these bytes, which makes the directory valid. The bytes of all
    /// other files must be durable.
    ///
    /// # Errors
    ///
    /// Fails if the disk refuses something. The directory is then as it was before, except that it may be complete
    /// and valid after a crash if the last sync fails and the rename cannot be undone.
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
            // The error says that the directory is not finished, so undo the rename.
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
        // If the removal fails, the next copy into this directory removes the files. An empty directory does no
        // harm.
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

/// Refuses a directory if no new attempt to fill it may begin.
///
/// # Errors
///
/// [`Error::CopyTarget`] if the directory has files that no attempt writes; [`Error::UnfinishedCopy`] if the
/// directory is in a store and has files of an attempt; an error if the disk refuses something.
fn check_left(disk: &dyn Disk, directory: &Path) -> Result<()> {
    let is_empty = left_files(disk, directory)?.is_empty();
    if is_empty || disk.keeps_removed().is_none() { Ok(()) } else { Err(Error::UnfinishedCopy(directory.to_owned())) }
}

/// Removes what an unfinished attempt has left in `directory`, the file `UNFINISHED` last, so that the directory
/// counts as unfinished as long as it has any files.
///
/// # Errors
///
/// [`Error::CopyTarget`] if the directory has other files; an error if the disk refuses something.
fn clear(disk: &dyn Disk, directory: &Path) -> Result<()> {
    let io = |action| move |error| Error::io(action, directory, error);
    let names = left_files(disk, directory)?;
    if names.is_empty() {
        return Ok(());
    }
    // A rename of `CURRENT` back to `UNFINISHED` must be durable before the files are removed, or a crash could
    // bring back a `CURRENT` without its files.
    disk.sync_dir(directory).map_err(io("sync"))?;
    let remove = |name: &str| {
        let path = directory.join(name);
        disk.remove(&path).map_err(|error| Error::io("remove", &path, error))
    };
    names.iter().filter(|name| *name != UNFINISHED).try_for_each(|name| remove(name))?;
    disk.sync_dir(directory).map_err(io("sync"))?;
    remove(UNFINISHED)
}

/// The names of the files that an unfinished attempt has left in `directory`, except the lock.
///
/// # Errors
///
/// Fails as [`clear`] does.
fn left_files(disk: &dyn Disk, directory: &Path) -> Result<Vec<String>> {
    let listed = disk.list(directory).map_err(|error| Error::io("list", directory, error))?;
    let names: Vec<String> = listed.into_iter().map(|entry| entry.name).filter(|name| name != LOCK).collect();
    let is_ours = |name: &String| name == UNFINISHED || is_of_database(name);
    let is_left = names.iter().any(|name| name == UNFINISHED) && names.iter().all(is_ours);
    if names.is_empty() || is_left { Ok(names) } else { Err(Error::CopyTarget(directory.to_owned())) }
}
