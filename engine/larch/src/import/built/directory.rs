//! A directory of built files: its list, and whether its files match the list. This module does not know how the
//! files were built, or how they are used.

use super::list::{BuiltFile, BuiltList};
use crate::base::error::{Error, Result};
use crate::base::options::TableOptions;
use crate::base::sealed;
use crate::manifest::directory::names::{LIST, LOCK, UNFINISHED};
use os::{Access, Disk, Machine};
use sst::format::features::Unreadable;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A directory of files that [`Builder::build_files`](crate::Builder::build_files) has built without a database.
/// [`Table::ingest`](crate::Table::ingest) makes them part of a table.
#[derive(Clone, Debug)]
pub struct BuiltFiles {
    pub(crate) directory: PathBuf,
    pub(crate) list: BuiltList,
}

impl BuiltFiles {
    /// Reads the list of the files in `directory`, but not the files.
    ///
    /// # Errors
    ///
    /// [`Error::NotBuiltFiles`] if the directory has no list; [`Error::BadBuiltFiles`] if the list is damaged;
    /// [`Error::NewerBuiltFiles`] if a newer release has built the files; an error if the list cannot be read.
    pub fn at(directory: impl AsRef<Path>) -> Result<Self> {
        Self::at_on(directory, &Machine::real())
    }

    /// As [`BuiltFiles::at`], but on another machine, for example a simulated one.
    ///
    /// # Errors
    ///
    /// The errors of [`BuiltFiles::at`].
    pub fn at_on(directory: impl AsRef<Path>, machine: &Machine) -> Result<Self> {
        Self::read(&*machine.disk, directory.as_ref())
    }

    pub(crate) fn read(disk: &dyn Disk, directory: &Path) -> Result<Self> {
        let file = directory.join(LIST);
        let bytes = match sealed::read(disk, &file) {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(why)) => return Err(Error::BadBuiltFiles { file, why }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::NotBuiltFiles(directory.to_owned()));
            }
            Err(error) => return Err(Error::io("read", &file, error)),
        };
        match BuiltList::decode(&bytes) {
            Ok(list) => Ok(Self { directory: directory.to_owned(), list }),
            Err(Unreadable::Corrupt(why)) => Err(Error::BadBuiltFiles { file, why }),
            Err(newer @ Unreadable::Newer(_)) => Err(Error::NewerBuiltFiles { file, what: newer.to_string() }),
        }
    }

    /// The options of the table for which the files were built.
    pub fn options(&self) -> &TableOptions {
        &self.list.options
    }

    /// Whether some row has a time until which it is there.
    pub(crate) fn has_times(&self) -> bool {
        self.list.files.iter().any(|file| file.meta.expiry.is_some())
    }

    /// The number of files.
    pub fn files(&self) -> u64 {
        self.list.files.len() as u64
    }

    /// The number of rows in all files, each with another key.
    pub fn rows(&self) -> u64 {
        self.list.rows()
    }

    /// The length of all files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.list.bytes()
    }

    /// Removes the directory and its files. Call this once no table is to ingest them any more. A table that has
    /// ingested them has copies or second names of them.
    ///
    /// # Errors
    ///
    /// An error if something cannot be removed. The list goes first. After that, the directory counts as unfinished,
    /// and the next build in it removes what is left.
    pub fn remove(&self) -> Result<()> {
        self.remove_on(&*Machine::real().disk)
    }

    pub(crate) fn remove_on(&self, disk: &dyn Disk) -> Result<()> {
        let directory = &self.directory;
        let held = disk.hold(directory).map_err(|error| Error::io("open", directory, error))?;
        let disk = held.as_deref().unwrap_or(disk);
        let remove = |path: &Path| disk.remove(path).map_err(|error| Error::io("remove", path, error));
        let lock = directory.join(LOCK);
        // The directory may be removed only under this lock.
        let _held = disk.lock(&lock).map_err(|error| Error::io("lock", &lock, error))?;
        let (list, unfinished) = (directory.join(LIST), directory.join(UNFINISHED));
        disk.rename(&list, &unfinished).map_err(|error| Error::io("rename", &list, error))?;
        disk.sync_dir(directory).map_err(|error| Error::io("sync", directory, error))?;
        self.list.files.iter().try_for_each(|file| remove(&self.path(file)))?;
        remove(&unfinished)?;
        remove(&lock)?;
        disk.remove_dir(directory).map_err(|error| Error::io("remove directory", directory, error))
    }

    /// The path of a file in the list.
    pub fn path(&self, file: &BuiltFile) -> PathBuf {
        self.directory.join(file.name())
    }

    /// Compares the lengths and the footers of all files with the list.
    ///
    /// # Errors
    ///
    /// [`Error::BadBuiltFiles`] if a file is missing or differs from the list; an error if a file cannot be read.
    pub fn check_files(&self, disk: &dyn Disk) -> Result<()> {
        self.list.files.iter().try_for_each(|file| self.check_file(disk, file))
    }

    fn check_file(&self, disk: &dyn Disk, file: &BuiltFile) -> Result<()> {
        let path = self.path(file);
        let why = match disk.open(&path, Access::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound => "it is missing".to_owned(),
            Err(error) => return Err(Error::io("open", &path, error)),
            Ok(opened) => match sst::read_footer(&*opened, &path) {
                Ok(meta) if meta == file.meta => return Ok(()),
                Ok(_) => "its footer is not the one that the list describes".to_owned(),
                Err(error @ pages::Error::Io { .. }) => return Err(error.into()),
                Err(error) => error.to_string(),
            },
        };
        Err(Error::BadBuiltFiles { file: path, why })
    }
}
