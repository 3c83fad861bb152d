//! Lets tasks wait, without a thread, until a time has passed or background work has made progress. This module does
//! not know what the tasks wait for.
//!
//! A thread whose commit has to wait sleeps; a task instead joins a list, and the job of this file wakes it later.
//! Only this job calls wakers, and it holds no lock meanwhile because wakers are code of the program. On a machine
//! without threads no job would wake a task, so polling the task moves the clock forward or does the work itself. A
//! task whose future is dropped leaves the list.

use crate::core::Core;
use crate::core::background::waiting_tasks::WaitingTasks;
use os::sync::Weak;
use os::{Job, Polled};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

/// The place of a task in the list of waiting tasks. The drop removes it.
struct Place<'c> {
    core: &'c Core,
    /// The number of the place, or zero before the task waits.
    number: u64,
    /// When the task is woken, or `Duration::MAX` if it waits for progress.
    end: Duration,
}

impl<'c> Place<'c> {
    fn new(core: &'c Core, end: Duration) -> Self {
        Self { core, number: 0, end }
    }

    /// The number of the place. Assigns one at the first call.
    fn number(&mut self, tasks: &mut WaitingTasks) -> u64 {
        if self.number == 0 {
            tasks.next += 1;
            self.number = tasks.next;
        }
        self.number
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // In a forked child, a thread that exists only in the parent may hold this lock.
        if self.number == 0 || self.core.env.check_origin().is_err() {
            return;
        }
        let mut tasks = self.core.background.waiting.0.lock();
        let by_time = tasks.by_time.remove(&(self.end, self.number));
        let for_progress = tasks.for_progress.remove(&self.number);
        drop(tasks);
        // A waker is code of the program: dropping it may drop another waiting task, so the lock must not be held.
        drop((by_time, for_progress));
    }
}

/// Waits until `time` has passed, while other tasks run.
pub async fn pause(core: &Core, time: Duration) {
    let clock = &core.env.machine.clock;
    if !core.env.machine.threads.are_real() {
        return clock.pause(time);
    }
    let end = clock.now() + time;
    let mut place = Place::new(core, end);
    poll_fn(|context| {
        let now = clock.now();
        if now >= end {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        let mut tasks = core.background.waiting.0.lock();
        let number = place.number(&mut tasks);
        let before = tasks.by_time.insert((end, number), waker);
        let first = tasks.by_time.first_key_value().map_or(end, |((first, _), _)| *first);
        core.background.wake_waiting_after(first.saturating_sub(now));
        drop(tasks);
        drop(before);
        Poll::Pending
    })
    .await;
}

/// Waits until background work has made more progress than `seen`, while other tasks run. On a machine without
/// threads, does the work itself.
pub async fn progress(core: &Core, seen: u64) {
    if !core.env.machine.threads.are_real() {
        return core.wait_progress(seen);
    }
    core.background.drive();
    let mut place = Place::new(core, Duration::MAX);
    poll_fn(|context| {
        let waker = context.waker().clone();
        let mut tasks = core.background.waiting.0.lock();
        // The waiting tasks are locked, so progress after this line wakes the task.
        let is_over =
            core.background.progress_seen() != seen || core.check_writable().is_err() || core.background.is_closing();
        if is_over {
            return Poll::Ready(());
        }
        let number = place.number(&mut tasks);
        let before = tasks.for_progress.insert(number, (seen, waker));
        drop(tasks);
        drop(before);
        Poll::Pending
    })
    .await;
}

/// The job that wakes waiting tasks.
#[derive(Debug)]
pub struct WakeJob(pub Weak<Core>);

impl Job for WakeJob {
    fn poll(&self) -> Polled {
        let Some(core) = self.0.upgrade() else { return Polled::Idle };
        let now = core.env.machine.clock.now();
        let (background, seen) = (&core.background, core.background.progress_seen());
        for waker in background.waiting.take_ready(now, seen, |time| background.wake_waiting_after(time)) {
            // A waker that panics must not keep the other tasks asleep.
            catch_unwind(AssertUnwindSafe(|| waker.wake())).ok();
        }
        Polled::Idle
    }
}
