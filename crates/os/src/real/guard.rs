//! The lock file that guards a directory which is held. It does not know what it guards.

use super::place::Place;
use crate::failure::lost;
use crate::sync::Arc;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// The lock file of a directory that is held. While it has its name, no other process can have a lock of that name.
#[derive(Debug)]
pub(super) struct Guard {
    /// Its name in the directory.
    name: PathBuf,
    /// The directory, as it was called then.
    directory: PathBuf,
    file: Arc<fs::File>,
    /// Whether the file system says of a file that was removed that it has no names. All that we know do; one that says
    /// so of every file is not asked.
    counts_names: bool,
}

impl Guard {
    pub(super) fn new(name: &Path, directory: &Path, file: &Arc<fs::File>) -> io::Result<Guard> {
        let counts_names = rustix::fs::fstat(&**file)?.st_nlink > 0;
        let (name, directory) = (name.to_owned(), directory.to_owned());
        Ok(Guard { name, directory, file: file.clone(), counts_names })
    }

    /// Fails if the lock file was removed.
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

    /// Fails if its name in the directory, which is open as `directory`, is missing or that of another file.
    pub(super) fn check_name(&self, directory: &fs::File) -> io::Result<()> {
        let name = Place::in_directory(directory.as_fd(), &self.name, &self.directory);
        if name.is_name_of(&self.file)? { Ok(()) } else { Err(lost(&self.directory)) }
    }
}
