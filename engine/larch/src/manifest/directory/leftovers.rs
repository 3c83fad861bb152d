//! Removes files that nothing needs any more: SSTs that are in no file set, flushed logs, old manifests, and files
//! of work that failed. The callers know which files these are.
//!
//! A file that cannot be removed is no error for the caller, but becomes a *leftover*, which later installs try
//! again to remove. The next open for writing removes the rest, because no manifest names them. An SST that a
//! follower may read is *held* until no lease needs it.
//!
//! Thread safe.

use super::lease::Leases;
use super::position::Position;
use os::Disk;
use os::process::ProcessOrigin;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// At most this many leftovers are remembered, each in about 100 bytes of memory. The next open removes the others.
const MOST_PATHS: usize = 10_000;

/// Removes files, and remembers the files that could not be removed.
#[derive(Debug)]
pub struct Leftovers {
    disk: Arc<dyn Disk>,
    origin: ProcessOrigin,
    paths: Mutex<Vec<PathBuf>>,
    failures: AtomicU64,
    held: Mutex<Held>,
}

/// Files that no manifest names any more, but that followers may read.
#[derive(Default)]
struct Held {
    /// The leases of the database; `None` before [`Leftovers::begin_to_hold`].
    leases: Option<Arc<Leases>>,
    /// The position at the end of the manifest. File sets from here on have no file that was given up before.
    now: Position,
    /// The last look at the leases: the end of the manifest at that time, and the oldest position that a lease
    /// named. Valid until the next edit, because old leases only come to need fewer files, and new leases need no
    /// file that was given up before.
    looked: Option<(Position, Option<Position>)>,
    /// The held files, each with the end of the manifest when it was to be removed.
    files: Vec<(Position, PathBuf)>,
    /// Called when a file is held.
    on_held: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("now", &self.now).field("files", &self.files).finish_non_exhaustive()
    }
}

impl Leftovers {
    /// No leftovers yet.
    pub fn new(disk: Arc<dyn Disk>) -> Arc<Self> {
        Arc::new(Self {
            disk,
            origin: ProcessOrigin::here(),
            paths: Mutex::default(),
            failures: AtomicU64::new(0),
            held: Mutex::default(),
        })
    }

    /// From now on, holds SSTs that, according to `leases`, a follower may read. Calls `on_held` when a file is
    /// held, which has to arrange a later [`Leftovers::retry`].
    pub fn begin_to_hold(&self, leases: Arc<Leases>, on_held: impl Fn() + Send + Sync + 'static) {
        let mut held = self.held.lock();
        held.leases = Some(leases);
        held.on_held = Some(Arc::new(on_held));
    }

    /// Called by an install after it has appended edits. `now` is the position at the end of the manifest.
    pub fn note_edits(&self, now: Position) {
        self.held.lock().now = now;
    }

    /// Removes a file now, or later if that is not possible now. Does nothing in a forked child, which may drop its
    /// copy of a handle.
    pub fn remove(&self, path: &Path) {
        if !self.origin.is_here() || self.hold(path) {
            return;
        }
        if !self.try_remove(path) {
            let mut paths = self.paths.lock();
            if paths.len() < MOST_PATHS {
                paths.push(path.to_owned());
            }
        }
    }

    /// Tries again to remove leftovers, up to the first that still fails, because the others would usually fail for
    /// the same reason. Also removes held files that no lease needs any more.
    pub fn retry(&self) {
        let mut paths = std::mem::take(&mut *self.paths.lock());
        while let Some(path) = paths.last() {
            if !self.try_remove(path) {
                break;
            }
            paths.pop();
        }
        if let Some(path) = paths.pop() {
            // Try this file last next time, because it may be the only one that cannot be removed.
            paths.insert(0, path);
            self.paths.lock().append(&mut paths);
        }
        self.release();
    }

    /// Holds the file if a follower may read it. Returns whether it is held.
    fn hold(&self, path: &Path) -> bool {
        let mut held = self.held.lock();
        let (now, looked) = (held.now, held.looked);
        let Some(leases) = held.leases.as_ref().filter(|_| path.extension().is_some_and(|end| end == "sst")) else {
            return false;
        };
        let oldest = match looked {
            Some((at, oldest)) if at == now => oldest,
            _ => leases.oldest(),
        };
        held.looked = Some((now, oldest));
        let is_held = oldest.is_some_and(|oldest| oldest < now);
        if is_held {
            if held.files.len() < MOST_PATHS {
                held.files.push((now, path.to_owned()));
            }
            let on_held = held.on_held.clone();
            // Release the lock first: `on_held` may drop the database, which takes this lock, too.
            drop(held);
            if let Some(on_held) = on_held {
                on_held();
            }
        }
        is_held
    }

    /// Removes the held files that no lease needs any more.
    fn release(&self) {
        let mut held = self.held.lock();
        if held.files.is_empty() {
            return;
        }
        let oldest = held.leases.as_ref().and_then(|leases| leases.oldest());
        held.looked = Some((held.now, oldest));
        let is_free = |(at, _): &mut (Position, PathBuf)| oldest.is_none_or(|oldest| *at <= oldest);
        let free: Vec<_> = held.files.extract_if(.., is_free).collect();
        drop(held);
        for (_, path) in free {
            if !self.try_remove(&path) {
                let mut paths = self.paths.lock();
                if paths.len() < MOST_PATHS {
                    paths.push(path);
                }
            }
        }
    }

    /// The number of files that are held because followers may read them.
    pub fn held(&self) -> u64 {
        self.held.lock().files.len() as u64
    }

    /// Removes a file. Returns whether the file is gone.
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

    /// The number of leftovers.
    pub fn count(&self) -> u64 {
        self.paths.lock().len() as u64
    }

    /// The number of failed attempts to remove a file so far.
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
