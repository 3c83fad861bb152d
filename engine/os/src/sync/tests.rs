//! What the locks of this module promise in addition to those of std.

use super::{Condvar, Mutex, RwLock};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Calls `f`, which must panic, and catches the panic.
fn panics_in(f: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
}

#[test]
fn a_mutex_is_entered_after_a_panic_inside_it() {
    let mut mutex = Mutex::new(1);
    panics_in(|| {
        let mut value = mutex.lock();
        *value = 2;
        panic!("inside the lock");
    });
    assert_eq!(*mutex.lock(), 2);
    assert_eq!(mutex.try_lock().map(|value| *value), Some(2));
    *mutex.get_mut() = 3;
    assert_eq!(mutex.into_inner(), 3);
}

#[test]
fn a_read_write_lock_is_entered_after_a_panic_inside_it() {
    let mut lock = RwLock::new(1);
    panics_in(|| {
        let mut value = lock.write();
        *value = 2;
        panic!("inside the lock");
    });
    assert_eq!(*lock.read(), 2);
    *lock.write() = 3;
    *lock.get_mut() += 1;
    assert_eq!(lock.into_inner(), 4);
}

#[test]
fn try_lock_does_not_wait() {
    let mutex = Mutex::new(());
    let held = mutex.lock();
    assert!(mutex.try_lock().is_none());
    drop(held);
    assert!(mutex.try_lock().is_some());
}

#[test]
fn a_wait_that_nobody_ends_times_out() {
    let mutex = Mutex::new(7);
    let (guard, timed_out) = Condvar::new().wait_timeout(mutex.lock(), Duration::ZERO);
    assert!(timed_out);
    assert_eq!(*guard, 7);
}

#[test]
fn a_wait_ends_when_the_value_has_changed() {
    let mutex = Mutex::new(false);
    let changed = Condvar::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            *mutex.lock() = true;
            changed.notify_all();
        });
        let mut value = mutex.lock();
        while !*value {
            value = changed.wait(value);
        }
    });
}
