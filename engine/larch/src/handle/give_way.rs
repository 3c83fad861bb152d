//! Yields to other tasks of an executor while a task waits for something that wakes nobody.

use crate::conflicts::reserved::LONGEST_WAIT;
use os::Clock;
use std::future::poll_fn;
use std::task::Poll;

/// Yields to other tasks until `is_done` returns true, but not longer than a thread would wait for reserved keys.
/// Without a clock (on a machine without threads) it does not wait at all, because nothing would happen meanwhile.
pub async fn give_way_until(clock: Option<&dyn Clock>, mut is_done: impl FnMut() -> bool) {
    let mut end = None;
    while !is_done() {
        let Some(now) = clock.map(Clock::now) else { return };
        if now >= *end.get_or_insert(now + LONGEST_WAIT) {
            return;
        }
        give_way().await;
    }
}

/// Yields to other tasks once.
pub async fn give_way() {
    let mut has_given_way = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_given_way, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
