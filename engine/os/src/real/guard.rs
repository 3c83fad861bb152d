//! The lock file that guards a held directory. This module does not know what the lock is for.

use super::place::Place;
use crate::failure::lost;
use crate::sync::Arc;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// The lock file of a held directory. While it has its name, no other process can hold a lock of this name.
#[derive(Debug)]
pub(super) struct Guard {
    /// Its name in the directory.
    name: PathBuf,
    /// The path that the directory had when the lock was taken.
    directory: PathBuf,
    file: Arc<fs::File>,
    /// Whether the file system counts the names of a file, so that a removed file has none. All file systems that we
    /// know do. On one that reports 0 names (`st_nlink`) for every file, [`Guard::check`] always succeeds.
    counts_names: bool,
}

impl Guard {
    pub(super) fn new(name: &Path, directory: &Path, file: &Arc<fs::File>) -> io::Result<Guard> {
        let counts_names = rustix::fs::fstat(&**file)?.st_nlink > 0;
        let (name, directory) = (name.to_owned(), directory.to_owned());
        Ok(Guard { name, directory, file: file.clone(), counts_names })
    }

    /// Fails if the lock file has no name any more.
    pub(super) fn check(&self) -> io::Result<()> {
        match rustix::fs::fstat(&*self.file) {
            Ok(stat) if stat.st_nlink > 0 || !self.counts_names => Ok(()),
            Ok(_) => Err(lost(&self.directory)),
            Err(error) => Err(error.into()),
        }
    }

    /// Its name in the directory.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// Fails if the lock file's name in `directory` is missing or leads to another file.
    pub(super) fn check_name(&self, directory: &fs::File) -> io::Result<()> {
        let name = Place::in_directory(directory.as_fd(), &self.name, &self.directory);
        if name.is_name_of(&self.file)? { Ok(()) } else { Err(lost(&self.directory)) }
    }
}
