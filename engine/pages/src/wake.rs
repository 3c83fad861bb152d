//! Wakes tasks. This module does not know what a task waited for.

use os::Duty;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes a task. A panic of the waker is reported at once and caught, so that other tasks are still woken.
pub(crate) fn wake(waker: Waker) {
    // The waker may drop a database. This thread must not wait for its background work.
    let _duty = Duty::take();
    drop(catch_unwind(AssertUnwindSafe(|| waker.wake())));
}
