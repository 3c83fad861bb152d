//! Tasks that wait for a time to pass or for background work, without a thread. It does not know what they wait for.
//!
//! Where a commit of a thread sleeps, that of a task is noted here, and the job of this file wakes it. Only this job
//! calls wakers, and it holds no lock then, because they are code of the program. On a machine without threads nothing
//! would wake a task, so that its own poll moves the clock, or does the work.

use crate::core::Core;
use os::sync::Weak;
use os::{Job, Polled};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

/// Lets `time` pass, while other tasks run.
pub async fn pause(core: &Core, time: Duration) {
    let clock = &core.env.machine.clock;
    if !core.env.machine.threads.are_real() {
        return clock.pause(time);
    }
    let (end, mut place) = (clock.now() + time, None);
    poll_fn(|context| {
        let now = clock.now();
        if now >= end {
            return Poll::Ready(());
        }
        let mut tasks = core.background.waiting.0.lock();
        let place = *place.get_or_insert_with(|| {
            tasks.next += 1;
            tasks.next
        });
        tasks.by_time.insert((end, place), context.waker().clone());
        let first = tasks.by_time.first_key_value().map_or(end, |((first, _), _)| *first);
        core.background.wake_waiting_after(first.saturating_sub(now));
        Poll::Pending
    })
    .await;
}

/// Lets background work make progress since `seen`, while other tasks run; on a machine without threads, does the work.
pub async fn progress(core: &Core, seen: u64) {
    if !core.env.machine.threads.are_real() {
        return core.wait_progress(seen);
    }
    core.background.drive();
    let mut place = None;
    poll_fn(|context| {
        let mut tasks = core.background.waiting.0.lock();
        // What makes progress from here on finds the task.
        let is_over =
            core.background.progress_seen() != seen || core.check_writable().is_err() || core.background.is_closing();
        let place = *place.get_or_insert_with(|| {
            tasks.next += 1;
            tasks.next
        });
        if is_over {
            tasks.for_progress.remove(&place);
            return Poll::Ready(());
        }
        tasks.for_progress.insert(place, (seen, context.waker().clone()));
        Poll::Pending
    })
    .await;
}

/// The job that wakes tasks.
#[derive(Debug)]
pub struct WakeJob(pub Weak<Core>);

impl Job for WakeJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        let now = core.env.machine.clock.now();
        let (background, seen) = (&core.background, core.background.progress_seen());
        for waker in background.waiting.take_ready(now, seen, |time| background.wake_waiting_after(time)) {
            // A waker that panics does not keep the others from being woken.
            catch_unwind(AssertUnwindSafe(|| waker.wake())).ok();
        }
        Polled::Idle
    }
}
