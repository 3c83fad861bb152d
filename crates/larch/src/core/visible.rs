//! The newest version that reads see, while several threads apply commits. It does not know what a commit holds.
//!
//! ```text
//! versions     1   2   3   4   5   6   7
//! applied      ✓   ✓   ✓       ✓   ✓           4 and 7 are being applied
//!                      ▲ newest: reads see 1 to 3; the thread that applies 4 will show 4 to 6
//! ```
//!
//! A commit gets its version under the lock of the writer, and is applied without it. So it may be applied before an
//! older one. Each commit marks its slot when it is applied. Then its thread shows all versions before the first one
//! that is not marked. The thread returns when its own version is shown, either by itself or by the thread of an
//! older commit, which only has to insert the rest of its rows.
//!
//! Invariants:
//! - All versions up to the newest are applied, and it only grows.
//! - At most `SLOTS` versions are begun and not shown, so that each has a slot of its own.
//! - A thread first marks a slot and then looks at the newest version. A thread first shows a version and then looks
//!   at the next slot. A fence lies between the two steps of each thread. So at least one of the threads shows the
//!   version of the slot.
//! - A version whose thread panicked is never shown. Threads that wait for it, or for a later one, get an error.
//!
//! Thread safe. A thread waits only for threads that are applying a commit, and these wait for no lock that others hold
//! long.

use os::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use os::sync::{Condvar, Mutex};
use sst::Version;

/// How many commits may be applied at the same time. A power of two, and more than the processors of most machines.
const SLOTS: u64 = if cfg!(any(loom, shuttle)) { 2 } else { 64 };

/// How often a thread looks before it sleeps: about as long as an insert takes.
const LOOKS: usize = if cfg!(any(loom, shuttle)) { 0 } else { 100 };

/// Which commits reads see.
#[derive(Debug)]
pub struct Visible {
    newest: AtomicU64,
    /// In the slot of its number: the last version that was applied.
    applied: [AtomicU64; SLOTS as usize],
    /// The oldest version whose thread panicked; the greatest number if none exists.
    broken: AtomicU64,
    /// Threads that sleep, or are about to.
    waiting: AtomicUsize,
    sleeping: Mutex<()>,
    changed: Condvar,
}

/// An older commit panicked while it was applied, so that a version will not be shown.
#[derive(Debug)]
pub struct Broken;

/// A commit that is being applied. If it is dropped before it is finished, its thread has panicked.
#[derive(Debug)]
pub struct Applying<'v> {
    visible: &'v Visible,
    version: Version,
    is_finished: bool,
}

impl Visible {
    /// Reads see versions up to `newest`.
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

    /// Shows `version`, when no commit is being applied. It does nothing if a newer version is shown.
    pub fn advance(&self, version: Version) {
        self.newest.fetch_max(version.0, Ordering::AcqRel);
    }

    /// Waits until `version`, the next one, has a slot.
    ///
    /// # Errors
    ///
    /// A commit panicked.
    pub fn wait_for_slot(&self, version: Version) -> Result<(), Broken> {
        self.wait(Version(version.0.saturating_sub(SLOTS)))
    }

    /// Begins to apply `version`, which has a slot.
    pub fn begin(&self, version: Version) -> Applying<'_> {
        Applying { visible: self, version, is_finished: false }
    }

    /// Waits until reads see `version`, which was begun.
    ///
    /// # Errors
    ///
    /// The commit, or an older one, panicked.
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
        // After this fence, either a thread that shows a version knows that this thread waits, or this thread sees
        // the version.
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
            // A thread that counts as waiting holds the lock until it sleeps.
            drop(self.sleeping.lock());
            self.changed.notify_all();
        }
    }

    /// Notes that `version` is applied, and shows what can be shown.
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
    /// The commit is applied. Returns when reads see it.
    ///
    /// # Errors
    ///
    /// An older commit panicked. Then reads will not see this one.
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
