//! Removing files that nothing needs any more: files of tables that are in no file set, flushed logs, old manifests, and
//! files of work that was given up. It does not know which files those are.
//!
//! That a file cannot be removed is never the error of the work that made it useless. The file is a *leftover* then: it is
//! tried again after each later install, and the next open for writing removes it, since no manifest names it.

use os::Disk;
use os::process::ProcessOrigin;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Leftovers kept in memory, about 100 bytes each. Those beyond are left to the next open.
const MOST_PATHS: usize = 10_000;

/// Removes files, and keeps the names of those that are still there.
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

    /// Tries leftovers again, up to the first that still cannot be removed: what hinders one mostly hinders all.
    pub fn retry(&self) {
        let mut paths = std::mem::take(&mut *self.paths.lock());
        while let Some(path) = paths.last() {
            if !self.try_remove(path) {
                break;
            }
            paths.pop();
        }
        if let Some(path) = paths.pop() {
            // Behind the others, in case it alone is the trouble.
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

    /// Files that are to be removed and are still there.
    pub fn count(&self) -> u64 {
        self.paths.lock().len() as u64
    }

    /// Attempts to remove a file that failed.
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
        assert_eq!((leftovers.count(), leftovers.failures()), (0, 4), "one was removed by somebody else");
        assert!(paths.iter().all(|path| !disk.exists(path).expect("the disk works")));
    }
}
