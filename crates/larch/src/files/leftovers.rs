//! Removes files that nothing needs any more: SSTs that are in no file set, flushed logs, old manifests, and files of work that
//! failed. It does not know which files these are.
//!
//! If a file cannot be removed, the work that made it useless does not fail. The file becomes a *leftover*: each later install
//! tries again to remove it, and so does the next open for writing, because no manifest names the file.
//!
//! Thread safe.

use os::Disk;
use os::process::ProcessOrigin;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Most leftovers that are remembered, with about 100 bytes each. Others wait for the next open.
const MOST_PATHS: usize = 10_000;

/// Removes files, and remembers the files that could not be removed.
#[derive(Debug)]
pub struct Leftovers {
    disk: Arc<dyn Disk>,
    origin: ProcessOrigin,
    paths: Mutex<Vec<PathBuf>>,
    failures: AtomicU64,
}

impl Leftovers {
    /// None yet.
    pub fn new(disk: Arc<dyn Disk>) -> Arc<Self> {
        Arc::new(Self { disk, origin: ProcessOrigin::here(), paths: Mutex::default(), failures: AtomicU64::new(0) })
    }

    /// Removes a file, now or later. A forked child that drops its copy of a handle removes nothing.
    pub fn remove(&self, path: &Path) {
        if !self.origin.is_here() {
            return;
        }
        if !self.try_remove(path) {
            let mut paths = self.paths.lock();
            if paths.len() < MOST_PATHS {
                paths.push(path.to_owned());
            }
        }
    }

    /// Tries again to remove leftovers, up to the first that still cannot be removed: the cause is mostly the same for all.
    pub fn retry(&self) {
        let mut paths = std::mem::take(&mut *self.paths.lock());
        while let Some(path) = paths.last() {
            if !self.try_remove(path) {
                break;
            }
            paths.pop();
        }
        if let Some(path) = paths.pop() {
            // The next time it is tried last, in case only this file cannot be removed.
            paths.insert(0, path);
            self.paths.lock().append(&mut paths);
        }
    }

    /// Whether the file is gone.
    fn try_remove(&self, path: &Path) -> bool {
        match self.disk.remove(path) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    /// How many leftovers there are.
    pub fn count(&self) -> u64 {
        self.paths.lock().len() as u64
    }

    /// How many attempts to remove a file have failed so far.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use os::Access;
    use os::sim::SimDisk;

    #[test]
    fn what_cannot_be_removed_is_removed_later() {
        let disk = SimDisk::new(1);
        let leftovers = Leftovers::new(disk.clone());
        let paths = ["a", "b", "c"].map(Path::new);
        for path in paths {
            disk.open(path, Access::Create).expect("the disk works");
        }
        disk.fail_all_after(0, ErrorKind::PermissionDenied);
        paths.iter().for_each(|path| leftovers.remove(path));
        leftovers.retry();
        assert_eq!((leftovers.count(), leftovers.failures()), (3, 4));
        disk.clear_faults();
        disk.remove(paths[1]).expect("the disk works");
        leftovers.retry();
        assert_eq!((leftovers.count(), leftovers.failures()), (0, 4), "another process removed one");
        assert!(paths.iter().all(|path| !disk.exists(path).expect("the disk works")));
    }
}
