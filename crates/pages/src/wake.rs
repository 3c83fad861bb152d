//! How a task is woken. It does not know what the task waited for.

use os::Duty;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes a task. If its waker panics, the panic is reported when it happens and does not keep other tasks from being
/// woken.
pub(crate) fn wake(waker: Waker) {
    // It may drop a database, and must not wait for its background work here.
    let _duty = Duty::take();
    drop(catch_unwind(AssertUnwindSafe(|| waker.wake())));
}
