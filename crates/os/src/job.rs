//! Background work as pollable jobs: a real machine polls them on a bounded number of threads, a simulated one on the
//! caller's thread, so that one seed decides everything.

use crate::sync::Arc;
use std::cell::Cell;
use std::fmt::Debug;
use std::io;
use std::time::Duration;

/// What a poll achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// A bounded piece of work was done; poll again.
    Worked,
    /// Nothing to do until the worker is woken.
    Idle,
}

/// A piece of background work, cut into bounded steps.
pub trait Job: Send + Sync {
    /// Does the next step.
    fn poll(&self) -> Polled;
}

/// Which jobs go first if more jobs than threads are ready. No class can take all threads from another, see
/// [`crate::real::ThreadPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Work of a moment that callers wait for, such as a sync. It waits for no other class.
    Urgent,
    /// Short work that others soon wait for.
    High,
    /// Long work that must go on.
    Normal,
    /// Work that no caller waits for.
    Low,
}

impl Priority {
    /// Every class, the first to be served first.
    pub const ALL: [Priority; 4] = [Priority::Urgent, Priority::High, Priority::Normal, Priority::Low];
}

/// The right to have one job polled. At most one poll of a job runs at a time. Dropping a worker stops it.
pub trait Worker: Send + Sync + Debug {
    /// Says that there may be work. Returns at once on a real machine; a simulated one only remembers it.
    fn wake(&self);
    /// As [`Worker::wake`], ahead of the other jobs of its class that wait for a thread.
    fn wake_first(&self);
    /// Wakes the worker once `time` has passed, unless it is woken before. Only the last call counts.
    fn wake_after(&self, time: Duration);
    /// Where no thread will poll the job (a simulated machine, or a system that refuses threads): polls until idle, on
    /// this thread. Does nothing elsewhere.
    fn drive(&self);
    /// Ends the polling: no poll begins any more. Does not wait for a poll that is running.
    fn stop(&self);
    /// Waits for the running poll to end, if one is running on another thread. Not for a thread that others wait for,
    /// see [`Duty`].
    fn join(&self);
}

/// Where workers come from.
pub trait Threads: Send + Sync + Debug {
    /// Makes a worker that polls `job` when it is woken.
    fn sleeping_worker(&self, priority: Priority, job: Arc<dyn Job>) -> Box<dyn Worker>;
    /// Makes a worker that polls `job`, as if woken once already.
    fn worker(&self, priority: Priority, job: Arc<dyn Job>) -> Box<dyn Worker> {
        let worker = self.sleeping_worker(priority, job);
        worker.wake();
        worker
    }
    /// Makes sure that a thread polls jobs.
    ///
    /// # Errors
    ///
    /// The system's, if it refuses the first thread.
    fn start(&self) -> io::Result<()>;
    /// Has `work` done once by one of the threads, soon; on this thread where none exist.
    fn hand_over(&self, work: Box<dyn FnOnce() + Send>);
    /// Has `work`, which may wait for other work, done once by a thread of its own; on this thread where the system has
    /// none.
    fn in_thread(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }
    /// Whether jobs are polled by threads of their own.
    fn are_real(&self) -> bool;
}

thread_local! {
    static ON_DUTY: Cell<bool> = const { Cell::new(false) };
}

/// Marks a thread as one that others wait for: it must not wait for background work itself, which may be waiting for
/// it. Threads that read and threads that poll jobs are on duty for their whole lives, any other thread while it calls
/// the waker of a task.
#[derive(Debug)]
pub struct Duty {
    before: bool,
}

impl Duty {
    /// Puts the current thread on duty until the value is dropped.
    pub fn take() -> Duty {
        Duty { before: ON_DUTY.replace(true) }
    }

    /// Whether the current thread is on duty.
    pub fn is_taken() -> bool {
        ON_DUTY.get()
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        ON_DUTY.set(self.before);
    }
}
