//! The directory of a temporary database, which is removed when the database is closed. This module does not know
//! what is in the directory.

use crate::base::error::{Error, Result};
use os::sync::Arc;
use os::{Disk, Machine};
use std::io;
use std::path::{Path, PathBuf};

/// A directory under the system's temporary directory. Dropping this value removes the directory.
#[derive(Debug)]
pub struct TemporaryDirectory {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
}

impl TemporaryDirectory {
    /// Makes a directory that only this user may read.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be made.
    pub fn new(machine: &Machine) -> Result<Self> {
        let directory = std::env::temp_dir().join(format!("larch-{:016x}", machine.random.next_u64()));
        machine.disk.create_private_dir(&directory).map_err(|error| Error::io("create", &directory, error))?;
        Ok(Self { disk: machine.disk.clone(), directory })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.directory
    }
}

/// Removes `directory` and everything in it.
fn remove_all(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    for entry in disk.list(directory)? {
        let path = directory.join(entry.name);
        if disk.remove(&path).is_err() {
            remove_all(disk, &path)?;
        }
    }
    disk.remove_dir(directory)
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // If the removal fails, the files stay until the system cleans up its temporary directory.
        remove_all(&*self.disk, &self.directory).ok();
    }
}
