//! The directory into which new files are written. This module does not know what kind of files they are.

use super::leftovers::Leftovers;
use os::Disk;
use os::sync::Arc;
use std::path::{Path, PathBuf};

/// Where new files are written: in the directory of the database, or in the directory of a copy, which may be on
/// another disk.
#[derive(Clone, Debug)]
pub struct Place {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// The directory.
    pub directory: PathBuf,
    /// Removes files that work has written in this directory before it failed.
    pub leftovers: Arc<Leftovers>,
}

impl Place {
    /// A directory outside the database. If work fails and its files here cannot be removed, no later open removes
    /// them.
    pub fn outside(disk: &Arc<dyn Disk>, directory: &Path) -> Self {
        Self { disk: disk.clone(), directory: directory.to_owned(), leftovers: Leftovers::new(disk.clone()) }
    }
}
