//! The system's file system. This module does not know how files are read and written.

use super::file::RealFile;
use super::held::HeldDirectory;
use super::lock::RealLock;
use super::place::Place;
use crate::failure::cannot;
use crate::sync::Arc;
use crate::{Access, DirectoryEntry, Disk, File, Lock};
use std::io;
use std::path::Path;

/// The system's file system.
#[derive(Clone, Copy, Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile::open(&Place::named(path), access)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Place::named(from).rename(&Place::named(to)).map_err(|error| cannot("rename", from, error))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Place::named(from).link(&Place::named(to)).map_err(|error| cannot("link", from, error))
    }

    #[cfg(target_os = "linux")]
    fn copy_sharing(&self, from: &Path, to: &Path) -> io::Result<()> {
        Place::named(from).copy_sharing(&Place::named(to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Place::named(path).remove().map_err(|error| cannot("remove", path, error))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        Place::named(directory).list().map_err(|error| cannot("list", directory, error))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Place::named(path).exists().map_err(|error| cannot("look for", path, error))
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        Place::named(directory).create_dir()
    }

    fn create_private_dir(&self, directory: &Path) -> io::Result<()> {
        Place::named(directory).create_private_dir()
    }

    fn remove_dir(&self, directory: &Path) -> io::Result<()> {
        Place::named(directory).remove_dir().map_err(|error| cannot("remove directory", directory, error))
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        Place::named(directory).sync_dir().map_err(|error| cannot("sync directory", directory, error))
    }

    fn free_bytes(&self, directory: &Path) -> io::Result<Option<u64>> {
        Place::named(directory).free_bytes().map(Some)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(RealLock::take(&Place::named(path))?))
    }

    fn hold(&self, directory: &Path) -> io::Result<Option<Arc<dyn Disk>>> {
        Ok(Some(Arc::new(HeldDirectory::first(directory)?)))
    }
}
