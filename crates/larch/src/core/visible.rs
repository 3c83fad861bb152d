//! Keeps the newest version that reads see, while several threads apply commits at the same time. This module does
//! not know what a commit contains.
//!
//! ```text
//! versions     1   2   3   4   5   6   7
//! applied      ✓   ✓   ✓       ✓   ✓           4 and 7 are being applied
//!                      ▲ newest: reads see 1 to 3; the thread that applies 4 will show 4 to 6
//! ```
//!
//! A commit gets its version under the lock of the writer, and is applied after this lock is released. So a commit
//! may be applied before an older commit is applied. Each commit marks its slot as soon as it is applied. Then the
//! thread of the commit makes versions visible, one after the other, and stops before the first version whose slot
//! is not marked. A thread returns when its own version is visible. Either the thread has made the version visible
//! itself, or it has waited for a thread with an older commit to do so. Such a thread with an older commit only
//! has to finish inserting its rows.
//!
//! Invariants:
//! - All versions up to the newest visible one are applied. The newest visible version only grows.
//! - At most `SLOTS` versions are begun and not yet visible, so each of them has its own slot.
//! - A thread that has applied a commit first marks its slot and then looks at the newest visible version. A
//!   thread that makes a version visible first stores this version as the newest visible one, and then looks at
//!   the next slot. Each of these threads executes a fence between its two steps. So at least one of the two
//!   threads makes the version of this slot visible.
//! - If the thread of a version panicked, this version never becomes visible. Threads that wait for this version or
//!   a later version get an error.
//!
//! This module is thread-safe. A thread waits only for threads that are applying a commit. Those threads wait for no
//! lock that is held for long.

use os::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use os::sync::{Condvar, Mutex};
use sst::Version;

/// The greatest number of commits that may be applied at the same time. The number is a power of two, and greater
/// than the number of processors of most machines.
const SLOTS: u64 = if cfg!(any(loom, shuttle)) { 2 } else { 64 };

/// A thread looks this many times before it sleeps. This takes about as long as an insert.
const LOOKS: usize = if cfg!(any(loom, shuttle)) { 0 } else { 100 };

/// Which versions are applied, and which are visible to reads.
#[derive(Debug)]
pub struct Visible {
    newest: AtomicU64,
    /// The last version that has marked each slot.
    applied: [AtomicU64; SLOTS as usize],
    /// The oldest version whose thread panicked, or the greatest number if no thread panicked.
    broken: AtomicU64,
    /// How many threads sleep or are about to sleep.
    waiting: AtomicUsize,
    sleeping: Mutex<()>,
    changed: Condvar,
}

/// The error for a version that will never become visible, because its commit or an older commit panicked while it
/// was applied.
#[derive(Debug)]
pub struct Broken;

/// A commit that is being applied. If this value is dropped before `finish`, its thread has panicked.
#[derive(Debug)]
pub struct Applying<'v> {
    visible: &'v Visible,
    version: Version,
    is_finished: bool,
}

impl Visible {
    /// Starts in the state in which reads see the versions up to `newest`.
    pub fn new(newest: Version) -> Self {
        Self {
            newest: AtomicU64::new(newest.0),
            applied: std::array::from_fn(|_| AtomicU64::new(0)),
            broken: AtomicU64::new(u64::MAX),
            waiting: AtomicUsize::new(0),
            sleeping: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// The newest version that reads see.
    #[inline]
    pub fn newest(&self) -> Version {
        Version(self.newest.load(Ordering::Acquire))
    }

    /// Makes the versions up to `version` visible. Must not be called while a commit is being applied. Does
    /// nothing if a newer version is visible already.
    pub fn advance(&self, version: Version) {
        self.newest.fetch_max(version.0, Ordering::AcqRel);
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

    /// Waits until reads see `version`. Applying it has begun already.
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
        let mut sleeping = self.sleeping.lock();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // Another thread may make the version visible now. Because of this fence, that thread sees that this
        // thread waits, or this thread sees that the version is visible.
        fence(Ordering::SeqCst);
        let outcome = loop {
            if self.newest() >= version {
                break Ok(());
            }
            if self.broken.load(Ordering::Acquire) <= version.0 {
                break Err(Broken);
            }
            sleeping = self.changed.wait(sleeping);
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        outcome
    }

    fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            // Each thread that `waiting` counts holds this lock until it sleeps, so no such thread misses the
            // notification.
            drop(self.sleeping.lock());
            self.changed.notify_all();
        }
    }

    /// Notes that `version` is applied. Then makes versions visible, one after the other, and stops before the first
    /// one that is not applied yet.
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
    /// Notes that the commit is applied. Returns when reads see the commit.
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
