//! Removes files that nothing needs any more: SSTs that are in no file set, flushed logs, old manifests, and files
//! of work that failed. It does not find out which files these are: its callers say so.
//!
//! If a file cannot be removed, the work that made it useless still succeeds. The file becomes a *leftover*: each
//! later install tries again to remove it. The next open for writing tries, too, because no manifest names the
//! file. An SST that a follower may read is *held* until no lease needs it.
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

/// The most leftovers that are remembered. Each takes about 100 bytes. All further leftovers wait for the next
/// open.
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
    /// The leases of the database; `None` until [`Leftovers::begin_to_hold`] sets them.
    leases: Option<Arc<Leases>>,
    /// The end of the edits in the manifest. File sets from here on have no file that was removed before this
    /// place.
    now: Position,
    /// The result of the last look at the leases. It has the end of the edits at that time, and the oldest file set
    /// that a lease named. It stays valid while no edit is added: those leases can only need fewer files over time,
    /// and later leases do not need files that were removed before.
    looked: Option<(Position, Option<Position>)>,
    /// The held files. Each comes with the end of the edits when the file was to be removed.
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

    /// From now on, holds SSTs that followers may read, as `leases` tell. When a file is held, `on_held` is called.
    /// `on_held` has to arrange a later call of [`Leftovers::retry`].
    pub fn begin_to_hold(&self, leases: Arc<Leases>, on_held: impl Fn() + Send + Sync + 'static) {
        let mut held = self.held.lock();
        held.leases = Some(leases);
        held.on_held = Some(Arc::new(on_held));
    }

    /// Takes note that the edits of the manifest now end at `now`.
    pub fn note_edits(&self, now: Position) {
        self.held.lock().now = now;
    }

    /// Removes a file, if necessary later. In a forked child that drops its copy of a handle, it removes nothing.
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

    /// Tries again to remove leftovers. It stops at the first file that still cannot be removed, because the cause
    /// mostly applies to all files.
    pub fn retry(&self) {
        let mut paths = std::mem::take(&mut *self.paths.lock());
        while let Some(path) = paths.last() {
            if !self.try_remove(path) {
                break;
            }
            paths.pop();
        }
        if let Some(path) = paths.pop() {
            // Next time, this file comes last, because it may be the only file that cannot be removed.
            paths.insert(0, path);
            self.paths.lock().append(&mut paths);
        }
        self.release();
    }

    /// Whether the file is held because a follower may read it.
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
            // The call of `on_held` may drop the database, and that drop takes the lock of `held`.
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
