//! Background work as jobs that are polled. A real machine polls them on a bounded number of threads. A simulated
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

/// A class says which jobs are polled first when more jobs are ready than threads. No class can take all threads
/// from another class; see [`crate::real::ThreadPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Very short work that callers wait for, such as a sync. It does not wait for work of other classes.
    Urgent,
    /// Short work that others soon wait for.
    High,
    /// Long work that must go on.
    Normal,
    /// Work that no caller waits for.
    Low,
}

impl Priority {
    /// All classes, in the order in which they are served.
    pub const ALL: [Priority; 4] = [Priority::Urgent, Priority::High, Priority::Normal, Priority::Low];
}

/// The right to have one job polled. At most one poll of a job runs at a time. Dropping a worker stops it.
pub trait Worker: Send + Sync + Debug {
    /// Says that there may be work. It returns at once. A simulated machine only remembers the call.
    fn wake(&self);
    /// Wakes the worker as [`Worker::wake`] does, but puts the job before the waiting jobs of its class.
    fn wake_first(&self);
    /// Wakes the worker after `time`, unless it is woken before. Each call replaces the time of the call before.
    fn wake_after(&self, time: Duration);
    /// Polls the job on this thread until the job is idle. This happens only where no other thread polls jobs: on
    /// a simulated machine, or on a system that refuses threads. Elsewhere the call does nothing.
    fn drive(&self);
    /// Ends the polling: no poll begins any more. It does not wait for a poll that is running.
    fn stop(&self);
    /// If a poll is running on another thread, waits until it ends. A thread that others wait for must not call
    /// this; see [`Duty`].
    fn join(&self);
}

/// Where workers come from.
pub trait Threads: Send + Sync + Debug {
    /// Makes a worker that polls `job` when it is woken.
    fn sleeping_worker(&self, priority: Priority, job: Arc<dyn Job>) -> Box<dyn Worker>;
    /// Makes a worker that polls `job`. The worker begins as if it had been woken once.
    fn worker(&self, priority: Priority, job: Arc<dyn Job>) -> Box<dyn Worker> {
        let worker = self.sleeping_worker(priority, job);
        worker.wake();
        worker
    }
    /// Makes sure that at least one thread polls jobs.
    ///
    /// # Errors
    ///
    /// The system's error, if the system refuses the first thread.
    fn start(&self) -> io::Result<()>;
    /// Gives `work` to one of the threads, which soon calls it, once. If no threads exist, this thread calls it.
    fn hand_over(&self, work: Box<dyn FnOnce() + Send>);
    /// Makes a thread of its own do `work` once; `work` may wait for other work. If the system has no threads, this
    /// thread does it.
    fn in_thread(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }
    /// Whether there are threads that poll the jobs. If not, the callers of [`Worker::drive`] poll them.
    fn are_real(&self) -> bool;
}

thread_local! {
    static ON_DUTY: Cell<bool> = const { Cell::new(false) };
}

/// Marks a thread as one that others wait for. Such a thread must not wait for background work itself, because the
/// work may be waiting for the thread. A thread that makes reads or polls jobs is on duty for its whole life. Any
/// other thread is on duty while it calls the waker of a task.
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
