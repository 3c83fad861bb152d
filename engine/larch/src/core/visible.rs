//! Tracks the newest version that reads see, while several threads apply commits at the same time. This module does
//! not know what a commit contains.
//!
//! ```text
//! versions     1   2   3   4   5   6   7
//! applied      ✓   ✓   ✓       ✓   ✓           4 and 7 are being applied
//!                      ▲ newest: reads see 1 to 3; the thread that applies 4 will show 4 to 6
//! ```
//!
//! A commit gets its version under the writer's lock and is applied after this lock is released, so it may be
//! applied before older commits are. Once it is applied, its thread marks its slot, and then makes versions visible
//! one by one, until the slot of the next one is not marked. A commit returns when its own version is visible:
//! either its thread has made it visible, or the thread of an older commit has, which only had to finish inserting
//! its rows.
//!
//! Invariants:
//! - All versions up to the newest visible one are applied. The newest visible version only grows.
//! - At most `SLOTS` versions are begun and not yet visible, so each of them has its own slot.
//! - A thread that has applied a commit marks its slot, and then looks at the newest visible version. A thread that
//!   makes a version visible stores it, and then looks at the next slot. Each has a fence between its two steps, so
//!   at least one of the two makes the version of that slot visible.
//! - If the thread of a version panicked, this version never becomes visible, and threads that wait for it or a
//!   later version get an error.
//!
//! A feed that a task reads does not sleep here. Its worker *watches* a version: it is woken once, by the thread that
//! makes this version visible. Between two wakes it costs the commits nothing.
//!
//! This module is thread-safe. A thread waits only for threads that are applying a commit, and these wait for no
//! lock that is held for long.

use os::Worker;
use os::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use os::sync::{Arc, Condvar, Mutex};
use sst::Version;
use std::collections::BTreeMap;
use std::time::Duration;

/// The most commits that may be applied at the same time: a power of two, and more than most machines have
/// processors.
const SLOTS: u64 = if cfg!(any(loom, shuttle)) { 2 } else { 64 };

/// How many times a thread looks before it sleeps. All looks together take about as long as an insert.
const LOOKS: usize = if cfg!(any(loom, shuttle)) { 0 } else { 100 };

/// Which versions are applied, and which are visible to reads.
#[derive(Debug)]
pub struct Visible {
    newest: AtomicU64,
    /// For each slot, the last version that has marked it.
    applied: [AtomicU64; SLOTS as usize],
    /// The oldest version whose thread panicked, or `u64::MAX` if none did.
    broken: AtomicU64,
    /// Threads that sleep or are about to, and workers that watch.
    waiting: AtomicUsize,
    sleeping: Mutex<Watchers>,
    changed: Condvar,
}

/// Workers that are to be woken when a version becomes visible.
#[derive(Debug, Default)]
struct Watchers {
    /// The last number that was given to a watcher.
    last: u64,
    /// By number, each with its version.
    all: BTreeMap<u64, (Version, Arc<dyn Worker>)>,
}

/// A version will never become visible, because its commit or an older one panicked while it was applied.
#[derive(Clone, Copy, Debug)]
pub struct Broken;

/// A commit that is being applied. Dropping this value before `finish` means that its thread panicked.
#[derive(Debug)]
pub struct Applying<'v> {
    visible: &'v Visible,
    version: Version,
    is_finished: bool,
}

impl Visible {
    /// Starts with all versions up to `newest` visible.
    pub fn new(newest: Version) -> Self {
        Self {
            newest: AtomicU64::new(newest.0),
            applied: std::array::from_fn(|_| AtomicU64::new(0)),
            broken: AtomicU64::new(u64::MAX),
            waiting: AtomicUsize::new(0),
            sleeping: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The newest version that reads see.
    #[inline]
    pub fn newest(&self) -> Version {
        Version(self.newest.load(Ordering::Acquire))
    }

    /// Makes the versions up to `version` visible, if they are not yet. Must not be called while a commit is being
    /// applied.
    pub fn advance(&self, version: Version) {
        if self.newest.fetch_max(version.0, Ordering::AcqRel) < version.0 {
            self.wake();
        }
    }

    /// Waits until `version`, which is the next version, has a free slot.
    ///
    /// # Errors
    ///
    /// Fails if a commit panicked.
    pub fn wait_for_slot(&self, version: Version) -> Result<(), Broken> {
        self.wait(Version(version.0.saturating_sub(SLOTS)))
    }

    /// Begins to apply `version`, whose slot is free.
    pub fn begin(&self, version: Version) -> Applying<'_> {
        Applying { visible: self, version, is_finished: false }
    }

    /// Waits until reads see `version`, which is already being applied.
    ///
    /// # Errors
    ///
    /// Fails if this commit or an older one panicked.
    #[inline]
    pub fn wait(&self, version: Version) -> Result<(), Broken> {
        for _ in 0..=LOOKS {
            if self.newest() >= version {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        self.sleep(version)
    }

    #[cold]
    fn sleep(&self, version: Version) -> Result<(), Broken> {
        self.sleep_for(version, || None).map(drop)
    }

    /// Waits until reads see `version`, which may be a version of the future. `left` returns how much longer to wait;
    /// `None` means until the end. Returns whether reads see the version.
    ///
    /// # Errors
    ///
    /// Fails if this commit or an older one panicked.
    pub fn sleep_for(&self, version: Version, left: impl Fn() -> Option<Duration>) -> Result<bool, Broken> {
        let mut sleeping = self.sleeping.lock();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // Another thread may be making the version visible right now. Because of this fence, either that thread sees
        // that this one waits, or this one sees that the version is visible.
        fence(Ordering::SeqCst);
        let outcome = loop {
            if self.newest() >= version {
                break Ok(true);
            }
            if self.broken.load(Ordering::Acquire) <= version.0 {
                break Err(Broken);
            }
            sleeping = match left() {
                None => self.changed.wait(sleeping),
                Some(Duration::ZERO) => break Ok(false),
                Some(left) => match self.changed.wait_timeout(sleeping, left) {
                    (_, true) => break Ok(self.newest() >= version),
                    (sleeping, false) => sleeping,
                },
            };
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        outcome
    }

    /// A number under which a worker can watch.
    pub fn new_watcher(&self) -> u64 {
        let mut sleeping = self.sleeping.lock();
        sleeping.last += 1;
        sleeping.last
    }

    /// Has `worker` woken once, as soon as reads see `version` or a commit up to it panics. Replaces what the watcher
    /// `number` has watched before. Returns false, and does nothing, if reads see the version already.
    ///
    /// # Errors
    ///
    /// Fails if a commit up to `version` panicked.
    pub fn watch(&self, number: u64, version: Version, worker: Arc<dyn Worker>) -> Result<bool, Broken> {
        let mut sleeping = self.sleeping.lock();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // As in `sleep_for`: either the thread that shows the version sees this watcher, or this thread sees the
        // version.
        fence(Ordering::SeqCst);
        let outcome = if self.newest() >= version {
            Ok(false)
        } else if self.broken.load(Ordering::Acquire) <= version.0 {
            Err(Broken)
        } else {
            Ok(true)
        };
        let is_counted =
            outcome.is_ok_and(|watches| watches) && sleeping.all.insert(number, (version, worker)).is_none();
        if !is_counted {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        outcome
    }

    /// Ends the watch of the watcher `number`, if it watches.
    pub fn unwatch(&self, number: u64) {
        let mut sleeping = self.sleeping.lock();
        let before = sleeping.all.remove(&number);
        if before.is_some() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        drop(sleeping);
        drop(before);
    }

    fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.wake_waiting();
        }
    }

    #[cold]
    fn wake_waiting(&self) {
        // A thread that `waiting` counts holds this lock until it sleeps, so none of them misses the notification.
        let mut sleeping = self.sleeping.lock();
        let (newest, broken) = (self.newest(), self.broken.load(Ordering::Acquire));
        let is_due = |version: Version| version <= newest || broken <= version.0;
        let due: Vec<_> = sleeping.all.extract_if(.., |_, (version, _)| is_due(*version)).collect();
        self.waiting.fetch_sub(due.len(), Ordering::Relaxed);
        drop(sleeping);
        self.changed.notify_all();
        due.iter().for_each(|(_, (_, worker))| worker.wake());
    }

    /// Notes that `version` is applied. Then makes versions visible one by one, until the next one is not applied
    /// yet.
    fn note_applied(&self, version: Version) {
        self.slot(version.0).store(version.0, Ordering::Release);
        fence(Ordering::SeqCst);
        let mut newest = self.newest.load(Ordering::Acquire);
        let mut has_shown = false;
        loop {
            let next = newest + 1;
            if self.slot(next).load(Ordering::Acquire) != next {
                break;
            }
            match self.newest.compare_exchange(newest, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => (newest, has_shown) = (next, true),
                Err(now) => newest = now,
            }
        }
        if has_shown {
            self.wake();
        }
    }

    fn slot(&self, version: u64) -> &AtomicU64 {
        &self.applied[(version % SLOTS) as usize]
    }
}

impl Applying<'_> {
    /// Notes that the commit is applied, and returns when reads see it.
    ///
    /// # Errors
    ///
    /// Fails if an older commit panicked. Then reads will never see this commit.
    pub fn finish(mut self) -> Result<(), Broken> {
        self.is_finished = true;
        self.visible.note_applied(self.version);
        self.visible.wait(self.version)
    }
}

impl Drop for Applying<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.visible.broken.fetch_min(self.version.0, Ordering::AcqRel);
            self.visible.wake();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

#[cfg(all(test, any(loom, shuttle)))]
mod schedules;
