//! The directory of a temporary database, which is removed when the database is closed. It does not know what is in it.

use crate::base::error::{Error, Result};
use os::sync::Arc;
use os::{Disk, Machine};
use std::io;
use std::path::{Path, PathBuf};

/// A directory among the temporary files of the system. It is removed when this value is dropped.
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
    /// What the disk refuses.
    pub fn new(machine: &Machine) -> Result<Self> {
        let directory = std::env::temp_dir().join(format!("larch-{:016x}", machine.random.next_u64()));
        machine.disk.create_private_dir(&directory).map_err(|error| Error::io("create", &directory, error))?;
        Ok(Self { disk: machine.disk.clone(), directory })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.directory
    }
}

/// Removes `directory` with all that is in it.
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
        // Best effort: the system removes temporary files, too.
        remove_all(&*self.disk, &self.directory).ok();
    }
}
