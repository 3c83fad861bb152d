//! How a task is woken. This module does not know what the task waited for.

use os::Duty;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes a task. If the waker panics, the panic is reported at once, and other tasks are still woken.
pub(crate) fn wake(waker: Waker) {
    // The waker may drop a database. This thread must not wait for the database's background work.
    let _duty = Duty::take();
    drop(catch_unwind(AssertUnwindSafe(|| waker.wake())));
}
