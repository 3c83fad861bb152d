//! Where new files are written. It does not know what they are.

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
    /// Removes files there that failed work has left.
    pub leftovers: Arc<Leftovers>,
}

impl Place {
    /// A directory outside of the database that is filled. The database does not care about files that failed work
    /// leaves in it.
    pub fn outside(disk: &Arc<dyn Disk>, directory: &Path) -> Self {
        Self { disk: disk.clone(), directory: directory.to_owned(), leftovers: Leftovers::new(disk.clone()) }
    }
}
