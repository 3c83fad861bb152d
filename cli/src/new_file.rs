//! A file that gets its name only when it is complete. If the command fails or is stopped before, no file with this
//! name is left, and a file that had the name before stays as it was.

#![allow(clippy::disallowed_methods, reason = "asks the system what a path of this machine is; never simulated")]

use crate::failure::{CommandFailure, Result};
use os::{Access, Disk, File, Machine};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The ending that the file's name has until the file is complete.
const UNFINISHED: &str = ".part";

/// A file that is being written.
pub struct NewFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    unfinished: PathBuf,
    file: Arc<dyn File>,
    bytes: u64,
    is_finished: bool,
}

impl NewFile {
    /// Begins a file. If `may_replace`, it takes the place of an existing one.
    ///
    /// # Errors
    ///
    /// Returns [`CommandFailure::Usage`] if the path cannot be that of a new file.
    pub fn create(path: &Path, may_replace: bool) -> Result<Self> {
        let shown = path.display();
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(CommandFailure::Usage(format!("{shown}: {error}; name another file"))),
            Ok(found) if found.is_dir() => {
                return Err(CommandFailure::Usage(format!("{shown} is a directory; name a file in it")));
            }
            Ok(found) if !found.is_file() => {
                return Err(CommandFailure::Usage(format!(
                    "{shown} is no plain file, so no file can take its place; name another file, or send the standard output \
                     there"
                )));
            }
            Ok(_) if !may_replace => {
                return Err(CommandFailure::Usage(format!(
                    "{shown} exists; name another file, or say --overwrite to replace it"
                )));
            }
            Ok(_) => {}
        }
        let Some(name) = path.file_name() else {
            return Err(CommandFailure::Usage(format!("{shown} names no file; write the name of a file")));
        };
        let mut unfinished = OsString::from(name);
        unfinished.push(UNFINISHED);
        let unfinished = path.with_file_name(unfinished);
        let disk = Machine::real().disk;
        // A killed command may have left such a file.
        disk.remove(&unfinished).ok();
        let file = disk.open(&unfinished, Access::Create).map_err(|error| {
            CommandFailure::Usage(format!(
                "{error}; name a file in a directory that is there and that you may write to"
            ))
        })?;
        Ok(Self { disk, path: path.to_owned(), unfinished, file, bytes: 0, is_finished: false })
    }

    /// Makes the file durable and gives it its name. Returns its length.
    ///
    /// # Errors
    ///
    /// The errors of the system.
    pub fn finish(mut self) -> io::Result<u64> {
        self.file.sync()?;
        self.disk.rename(&self.unfinished, &self.path)?;
        self.is_finished = true;
        let directory = self.path.parent().filter(|directory| !directory.as_os_str().is_empty());
        self.disk.sync_dir(directory.unwrap_or(Path::new(".")))?;
        Ok(self.bytes)
    }
}

impl io::Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(bytes, self.bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_finished {
            // The error that stopped the command is reported. If the rest of the file cannot be removed, it stays.
            self.disk.remove(&self.unfinished).ok();
        }
    }
}
