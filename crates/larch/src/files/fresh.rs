//! Files that no manifest names yet, and which an error therefore removes.

use super::leftovers::Leftovers;
use os::sync::Arc;
use std::path::PathBuf;

/// Files that were just written and that no manifest names. They are removed when this is dropped; an install takes them.
#[derive(Debug)]
pub struct FreshFiles {
    leftovers: Arc<Leftovers>,
    paths: Vec<PathBuf>,
}

impl FreshFiles {
    /// None yet.
    pub fn new(leftovers: &Arc<Leftovers>) -> Self {
        Self { leftovers: leftovers.clone(), paths: Vec::new() }
    }

    /// None, of the same database.
    pub fn empty(&self) -> Self {
        Self { leftovers: self.leftovers.clone(), paths: Vec::new() }
    }

    /// Takes a file that is about to be created.
    pub fn add(&mut self, path: PathBuf) {
        self.paths.push(path);
    }

    /// Takes all files of another.
    pub fn append(&mut self, mut other: FreshFiles) {
        self.paths.append(&mut other.paths);
    }

    /// Leaves them to the manifest that names them; the caller removes them no more.
    pub fn take_paths(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.paths)
    }

    /// Memory of their names.
    pub fn memory_bytes(&self) -> u64 {
        self.paths.iter().map(|path| (size_of::<PathBuf>() + path.as_os_str().len()) as u64).sum()
    }
}

impl Drop for FreshFiles {
    fn drop(&mut self) {
        self.paths.iter().for_each(|path| self.leftovers.remove(path));
    }
}
