//! Locks, atomics and reference counts for all other code, so that a model checker can take their place. This module
//! does not know what is locked.
//!
//! They come from one of three libraries, chosen at compile time. The last two run only one thread at a time, and
//! choose at every lock, wait and atomic which thread goes on:
//!
//! * std, the default;
//! * `--cfg shuttle` (`cargo x shuttle`): random schedules, as many as asked for, of code of any size;
//! * `--cfg loom` (`cargo x loom`): every schedule, and every value that a weak memory order allows. This works for
//!   two or three threads that do very little.
//!
//! A test under shuttle or loom takes the library and its threads from here (`os::sync::shuttle`,
//! `os::sync::loom`). So no other crate depends on shuttle or loom, and this crate depends on each only under the
//! cfg with its name.
//!
//! `Arc`, `Weak` and `OnceLock` always come from std. Loom's `Arc` cannot point to a `dyn Trait`, so shuttle and loom
//! do not switch threads at a change of a reference count. They have no `OnceLock`, so the function that initializes
//! one must not lock or wait. Loom's locks cannot be made in constants, so no lock of this module can, and a test
//! under loom or shuttle has to make its locks inside the model. In neither library does time pass:
//! [`Condvar::wait_timeout`] returns only when it is notified.
//!
//! Poisoning is ignored, for three reasons. The panic that poisoned a lock has been reported already. The data under
//! our locks is valid between any two statements that can panic. And otherwise one panic would spread to every
//! thread, including threads that only want to shut down.

pub mod hazard;
pub mod lendable;
#[cfg(test)]
mod model;

#[cfg(loom)]
pub use loom;
#[cfg(loom)]
use loom::sync;
#[cfg(shuttle)]
pub use shuttle;
#[cfg(shuttle)]
use shuttle::sync;
use std::fmt;
#[cfg(not(any(loom, shuttle)))]
use std::sync;
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

pub use std::sync::{Arc, OnceLock, Weak};
pub use sync::atomic;
pub use sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// Mutual exclusion, as in std but without poisoning.
#[derive(Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// An unlocked mutex around `value`.
    pub fn new(value: T) -> Mutex<T> {
        Mutex(sync::Mutex::new(value))
    }

    /// Takes the value out of a mutex that is not shared any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the lock, and waits for it if necessary.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock, unless it is held.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The value, without locking: `&mut self` is a proof that no other thread has access.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Many readers or one writer, as in std but without poisoning.
#[derive(Default)]
pub struct RwLock<T>(sync::RwLock<T>);

impl<T> RwLock<T> {
    /// An unlocked lock around `value`.
    pub fn new(value: T) -> RwLock<T> {
        RwLock(sync::RwLock::new(value))
    }

    /// Takes the value out of a lock that is not shared any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no thread writes.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no thread reads or writes.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, without locking: `&mut self` is a proof that no other thread has access.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A condition variable: lets a thread wait for a change of the value that a [`Mutex`] guards. A wait may end without
/// a notification, so wait in a loop that checks the value.
#[derive(Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// A condition that no thread waits for.
    pub fn new() -> Condvar {
        Condvar(sync::Condvar::new())
    }

    /// Releases the lock, waits to be notified, and takes the lock again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Condvar::wait`], but for at most `time`. The `bool` says whether the time was up.
    pub fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, time: Duration) -> (MutexGuard<'a, T>, bool) {
        let (guard, timeout) = self.0.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner);
        (guard, timeout.timed_out())
    }

    /// Wakes one waiter, if any exists.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar")
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
