//! Files that were just written and that no manifest names yet. They are removed if the work that wrote them fails.
//! This module does not know what the files contain.

use super::leftovers::Leftovers;
use os::sync::Arc;
use std::path::PathBuf;

/// Files that were just written and that no manifest names yet. Dropping this value removes the files, unless an
/// install has taken them.
#[derive(Debug)]
pub struct FreshFiles {
    leftovers: Arc<Leftovers>,
    paths: Vec<PathBuf>,
}

impl FreshFiles {
    /// No files yet.
    pub fn new(leftovers: &Arc<Leftovers>) -> Self {
        Self { leftovers: leftovers.clone(), paths: Vec::new() }
    }

    /// A value without files, for the same database.
    pub fn empty(&self) -> Self {
        Self { leftovers: self.leftovers.clone(), paths: Vec::new() }
    }

    /// Adds a file that is about to be created.
    pub fn add(&mut self, path: PathBuf) {
        self.paths.push(path);
    }

    /// Adds all files of `other`.
    pub fn append(&mut self, mut other: FreshFiles) {
        self.paths.append(&mut other.paths);
    }

    /// Takes the paths, for a caller whose manifest names the files. They are no longer removed on drop.
    pub fn take_paths(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.paths)
    }

    /// The memory that the paths take, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.paths.iter().map(|path| (size_of::<PathBuf>() + path.as_os_str().len()) as u64).sum()
    }
}

impl Drop for FreshFiles {
    fn drop(&mut self) {
        self.paths.iter().for_each(|path| self.leftovers.remove(path));
    }
}
