//! Memory cgroups: limit a process's memory together with the page cache of its files.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "control groups are the system's, never simulated"
)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A memory cgroup. Dropping this removes the group; its processes must have ended by then.
#[derive(Debug)]
pub struct MemoryLimit {
    folder: PathBuf,
    is_first_version: bool,
}

impl MemoryLimit {
    /// Creates the group `name` with a limit of `bytes`.
    pub fn new(name: &str, bytes: u64) -> Result<Self, String> {
        let first = Path::new("/sys/fs/cgroup/memory");
        let second = Path::new("/sys/fs/cgroup");
        let is_first_version = first.join("memory.limit_in_bytes").exists();
        let folder = if is_first_version { first } else { second }.join(name);
        let made = Self { folder, is_first_version };
        made.set_up(bytes).map_err(|error| format!("no memory cgroup: {}: {error}", made.folder.display()))?;
        Ok(made)
    }

    fn set_up(&self, bytes: u64) -> io::Result<()> {
        fs::create_dir(&self.folder).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        })?;
        let limit = if self.is_first_version { "memory.limit_in_bytes" } else { "memory.max" };
        fs::write(self.folder.join(limit), bytes.to_string())?;
        if !self.is_first_version && self.folder.join("memory.swap.max").exists() {
            fs::write(self.folder.join("memory.swap.max"), "0")?;
        }
        Ok(())
    }

    /// Moves a process into the group. Call it before the process does anything: memory that it already has is not
    /// charged to the group.
    pub fn admit(&self, process: u32) -> Result<(), String> {
        fs::write(self.folder.join("cgroup.procs"), process.to_string())
            .map_err(|error| format!("cannot put a process into {}: {error}", self.folder.display()))
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // Fails while a process is left in the group. A later group of the same name then reuses it.
        fs::remove_dir(&self.folder).unwrap_or_default();
    }
}
