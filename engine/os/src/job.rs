//! Background work as jobs that are polled. A real machine polls them on a bounded pool of threads. A simulated
//! machine polls them on the caller's thread, so that one seed decides everything.

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

/// The class of a job: which jobs are polled first when more are ready than threads. No class can starve another
/// class of threads; see [`crate::real::ThreadPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Very short work that callers wait for, such as a sync. It does not wait for work of other classes.
    Urgent,
    /// Short work that callers will soon wait for.
    High,
    /// Long work that must make progress.
    Normal,
    /// Work that no caller waits for.
    Low,
}

impl Priority {
    /// All classes, in the order in which they are served.
    pub const ALL: [Priority; 4] = [Priority::Urgent, Priority::High, Priority::Normal, Priority::Low];
}

/// The handle of one job, which has it polled. At most one poll of a job runs at a time. Dropping the worker stops it.
pub trait Worker: Send + Sync + Debug {
    /// Has the job polled soon, because it may have work. Returns at once. A simulated machine only notes the wake.
    fn wake(&self);
    /// As [`Worker::wake`], but puts the job before the waiting jobs of its class.
    fn wake_first(&self);
    /// Wakes the worker after `time`, unless it is woken before. Each call replaces the time of the one before.
    fn wake_after(&self, time: Duration);
    /// Polls the job on this thread until it is idle, but only where no other thread polls jobs: on a simulated
    /// machine, or on a system that refuses threads. Elsewhere does nothing.
    fn drive(&self);
    /// Lets no further poll begin. Does not wait for a running poll.
    fn stop(&self);
    /// Waits for the end of a poll that is running on another thread. A thread that others wait for must not call
    /// this; see [`Duty`].
    fn join(&self);
}

/// Makes workers, and runs work on other threads.
pub trait Threads: Send + Sync + Debug {
    /// Makes a worker that polls `job` when it is woken.
    fn sleeping_worker(&self, priority: Priority, job: Arc<dyn Job>) -> Box<dyn Worker>;
    /// Makes a worker that polls `job`, and wakes it.
    fn worker(&self, priority: Priority, job: Arc<dyn Job>) -> Box<dyn Worker> {
        let worker = self.sleeping_worker(priority, job);
        worker.wake();
        worker
    }
    /// Makes sure that at least one thread polls jobs.
    ///
    /// # Errors
    ///
    /// The system's error if it refuses the first thread.
    fn start(&self) -> io::Result<()>;
    /// Has one of the threads call `work` soon. On a machine without threads, this thread calls it.
    fn hand_over(&self, work: Box<dyn FnOnce() + Send>);
    /// Calls `work` on a thread of its own, so `work` may block. If the machine has no threads or refuses a new one,
    /// this thread calls it.
    fn in_thread(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }
    /// Whether threads poll the jobs. If not, the callers of [`Worker::drive`] do.
    fn are_real(&self) -> bool;
    /// How long the calling thread has been ready to run since it was started, but had no processor. `None` if the
    /// machine does not say.
    fn waited_for_processor(&self) -> Option<Duration> {
        None
    }
}

thread_local! {
    static ON_DUTY: Cell<bool> = const { Cell::new(false) };
}

/// Marks a thread as one that others wait for. Such a thread must not wait for background work, because that work may
/// be waiting for the thread. Threads that make reads or poll jobs are on duty for their whole life, other threads
/// while they call the waker of a task.
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
