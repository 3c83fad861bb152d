//! A limit on the memory of one process, with what the system caches of its files: a memory cgroup.

#![allow(clippy::disallowed_methods, reason = "control groups are files of the system, never simulated")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A control group with a memory limit; gone when dropped, once its processes have ended.
#[derive(Debug)]
pub struct MemoryLimit {
    folder: PathBuf,
    is_first_version: bool,
}

impl MemoryLimit {
    /// A group called `name` of at most `bytes`. The error says what stands in the way.
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

    /// Puts a process into it. What it had before stays where it was: admit it before it does anything.
    pub fn admit(&self, process: u32) -> Result<(), String> {
        fs::write(self.folder.join("cgroup.procs"), process.to_string())
            .map_err(|error| format!("cannot put a process into {}: {error}", self.folder.display()))
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // A group that still has a process cannot go; the next run takes it over.
        fs::remove_dir(&self.folder).unwrap_or_default();
    }
}
