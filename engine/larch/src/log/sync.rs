//! Lets threads, tasks and callbacks wait until commits are durable, and share syncs (group commit). This module
//! knows the versions of commits and the log that takes them, but not their content.
//!
//! ```text
//! versions   1 ... 7 | 8 9 10 11 | 12 13 14
//!            durable | a sync    | threads, tasks and callbacks wait in the order of their versions
//!                    | runs      | 12 will lead the next sync, which makes 12 to 14 durable
//! ```
//!
//! The thread or worker that runs a sync *leads*. A sync makes everything durable that was appended before it
//! began. Then all waiters whose versions are durable are woken, and one of the others leads the next sync: a
//! thread if one waits, otherwise the worker. So each thread is woken only once, and a hundred commits that wait
//! together cost two syncs. Wakers and callbacks may run any code of the program. So only the
//! [worker](SyncPoint::serve) calls them, without holding a lock.
//!
//! Invariants:
//! - At most one thread leads, and this thread waits only for the disk.
//! - While nobody leads, no thread waits, and the worker was woken if a task waits. So no waiter waits forever.
//! - After a failed sync, nothing more becomes durable. All waiters are woken and get the error. Commits that were
//!   durable before the failure stay durable.
//!
//! Thread safe. No lock is held while the disk syncs, or while a waker or callback is called or dropped. A thread
//! waits only for a sync that another thread leads, so it never waits on a machine without threads.

use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Condvar, Mutex, OnceLock};
use os::{Duty, Polled, Worker};
use sst::Version;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::base::record::{LogError, LogFile, Result};

/// Makes commits durable for all waiters.
#[derive(Debug)]
pub struct SyncPoint {
    /// All commits up to this version are durable.
    durable: AtomicU64,
    /// The newest version that was appended to the log.
    appended: AtomicU64,
    /// The log that takes commits. A sync of this log first makes the logs before it durable.
    log: Mutex<Option<Arc<LogFile>>>,
    /// The error of the first sync that failed.
    failed: OnceLock<LogError>,
    queue: Mutex<Queue>,
    /// The worker that leads on behalf of tasks, and wakes them.
    worker: OnceLock<Arc<dyn Worker>>,
}

/// A callback for a commit. The worker calls it when the commit is durable or when a sync has failed.
pub type Callback = Box<dyn FnOnce() + Send>;

/// Identifies a waiting task in the queue, which is ordered by version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    version: u64,
    number: u64,
}

/// The waiters, in the order of their versions.
#[derive(Debug, Default)]
struct Queue {
    is_led: bool,
    /// Whether the worker was woken and has not looked at the queue since.
    is_worker_woken: bool,
    next_number: u64,
    threads: BTreeMap<Ticket, Arc<WaitingThread>>,
    tasks: BTreeMap<Ticket, Task>,
    /// Tasks whose wait is over, for the worker to wake.
    ready: Vec<Task>,
}

enum Task {
    Waker(Waker),
    Callback(Callback),
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Task::Waker(_) => "Waker",
            Task::Callback(_) => "Callback",
        })
    }
}

/// A thread that waits for its turn.
#[derive(Debug, Default)]
struct WaitingThread {
    turn: Mutex<Option<Turn>>,
    came: Condvar,
}

/// What a thread has to do next.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// The thread leads the next sync.
    Lead,
    /// The thread's wait is over.
    Over,
}

impl WaitingThread {
    fn wait(&self) -> Turn {
        let mut turn = self.turn.lock();
        loop {
            match *turn {
                Some(turn) => return turn,
                None => turn = self.came.wait(turn),
            }
        }
    }

    fn wake(&self, turn: Turn) {
        *self.turn.lock() = Some(turn);
        self.came.notify_one();
    }
}

impl Queue {
    fn ticket(&mut self, version: Version) -> Ticket {
        self.next_number += 1;
        Ticket { version: version.0, number: self.next_number }
    }

    /// Whether the caller must wake the worker now. If so, notes that the worker was woken.
    fn needs_worker(&mut self) -> bool {
        let has_work = !self.ready.is_empty() || (!self.is_led && !self.tasks.is_empty());
        has_work && !std::mem::replace(&mut self.is_worker_woken, true)
    }

    fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.tasks.is_empty() && self.ready.is_empty()
    }
}

/// Removes the waiters with versions up to `last` from `waiting`, and returns them.
fn take_up_to<T>(waiting: &mut BTreeMap<Ticket, T>, last: u64) -> BTreeMap<Ticket, T> {
    let Some(next) = last.checked_add(1) else { return std::mem::take(waiting) };
    let later = waiting.split_off(&Ticket { version: next, number: 0 });
    std::mem::replace(waiting, later)
}

/// The right to run a sync. When this value is dropped, another waiter may lead.
struct Leading<'p> {
    point: &'p SyncPoint,
    has_synced: bool,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        if !self.has_synced {
            // The disk panicked. As after an error, nobody knows which bytes are durable now.
            let error = LogError::Io {
                action: "sync",
                file: self.point.log().path().to_owned(),
                source: Arc::new(std::io::Error::other("the thread that did it panicked")),
            };
            self.point.failed.get_or_init(|| error);
        }
        self.point.end_waits(true);
    }
}

impl SyncPoint {
    /// A sync point at which all commits up to `durable` are durable, and no log takes commits yet.
    pub fn new(durable: Version) -> Self {
        Self {
            durable: AtomicU64::new(durable.0),
            appended: AtomicU64::new(durable.0),
            log: Mutex::new(None),
            failed: OnceLock::new(),
            queue: Mutex::default(),
            worker: OnceLock::new(),
        }
    }

    /// Sets the worker, which calls [`SyncPoint::serve`] after each wake. No task may wait before this call.
    pub fn begin(&self, worker: Arc<dyn Worker>) {
        self.worker.set(worker).expect("a database is opened once");
    }

    /// From now on, `log` takes the commits. A sync of `log` first makes the log before it durable.
    pub fn continue_in(&self, log: &Arc<LogFile>) {
        let before = self.log.lock().replace(log.clone());
        drop(before);
    }

    /// The writer calls this after it has appended the commits up to `version` to the log.
    pub fn note_appended(&self, version: Version) {
        self.appended.store(version.0, Ordering::Release);
    }

    /// Notes that all commits up to `version` are durable without a sync of the log, for example because a flush
    /// has written them to files.
    pub fn note_durable(&self, version: Version) {
        self.durable.fetch_max(version.0, Ordering::AcqRel);
        self.end_waits(false);
    }

    /// All commits up to the returned version are durable.
    pub fn durable(&self) -> Version {
        Version(self.durable.load(Ordering::Acquire))
    }

    /// Whether all commits up to `version` are durable.
    pub fn is_durable(&self, version: Version) -> bool {
        self.durable() >= version
    }

    /// The outcome for the commits up to `version`: they are durable, or a sync has failed and nobody knows whether
    /// they are. `None` if neither has happened yet.
    pub fn outcome(&self, version: Version) -> Option<Result<()>> {
        // The error is read before the durable version, which then includes every sync that succeeded before the
        // failed one.
        let error = self.failed.get();
        if self.is_durable(version) { Some(Ok(())) } else { error.map(|error| Err(error.clone())) }
    }

    /// Ends all waits with `error`, because a sync of the log has failed, perhaps one that did not run here. The
    /// first error is kept.
    pub fn fail(&self, error: &LogError) {
        self.failed.get_or_init(|| error.clone());
        self.end_waits(false);
    }

    /// Returns when all commits up to `version` are durable. `version` must have been appended.
    ///
    /// # Errors
    ///
    /// An error if this sync or an earlier one has failed, so that nobody knows whether these commits are durable.
    pub fn wait(&self, version: Version) -> Result<()> {
        assert!(version.0 <= self.appended.load(Ordering::Acquire), "only what was appended can become durable");
        let outcome = || self.outcome(version);
        outcome().unwrap_or_else(|| {
            if let Some(Turn::Lead) = self.turn(version) {
                self.lead();
            }
            outcome().expect("a sync makes everything durable that was appended before it")
        })
    }

    /// Returns when `log` is durable up to the offset `end`, which must have been appended. Waiting for a version
    /// would not be enough, because some records of a log are no commits.
    ///
    /// # Errors
    ///
    /// The errors of [`SyncPoint::wait`].
    pub fn sync_log(&self, log: &LogFile, end: u64) -> Result<()> {
        assert!(end <= log.appended_end(), "only what was appended can become durable");
        while log.synced_end() < end {
            if let Some(error) = self.failed.get() {
                return Err(error.clone());
            }
            // Wait for the next version, which is not appended yet: a sync that covers it has yet to begin, and so
            // covers `end`.
            let later = Version(self.appended.load(Ordering::Acquire) + 1);
            if let Some(Turn::Lead) = self.turn(later) {
                self.lead();
            }
        }
        log.check()
    }

    /// Waits until all commits up to `version` are durable, a sync has failed, or it is this thread's turn to lead.
    /// `None` if there was nothing to wait for.
    fn turn(&self, version: Version) -> Option<Turn> {
        let waiting = {
            let mut queue = self.queue.lock();
            if self.outcome(version).is_some() {
                return None;
            }
            if !queue.is_led {
                queue.is_led = true;
                return Some(Turn::Lead);
            }
            let waiting = Arc::new(WaitingThread::default());
            let ticket = queue.ticket(version);
            queue.threads.insert(ticket, waiting.clone());
            waiting
        };
        Some(waiting.wait())
    }

    fn log(&self) -> Arc<LogFile> {
        self.log.lock().clone().expect("what was appended is in a log")
    }

    /// Runs a sync. Only the thread that leads may call this.
    fn lead(&self) {
        let mut leading = Leading { point: self, has_synced: false };
        // The version is read before the log, so it is in this log or an earlier one, and the sync covers both.
        let version = self.appended.load(Ordering::Acquire);
        match self.log().sync() {
            Ok(_) => _ = self.durable.fetch_max(version, Ordering::AcqRel),
            Err(error) => _ = self.failed.get_or_init(|| error),
        }
        leading.has_synced = true;
    }

    /// Wakes the waiters whose wait is over. With `has_led`, the caller has led a sync, and this also chooses the
    /// next leader.
    fn end_waits(&self, has_led: bool) {
        let mut queue = self.queue.lock();
        if queue.is_empty() {
            queue.is_led &= !has_led;
            return;
        }
        let last = if self.failed.get().is_some() { u64::MAX } else { self.durable().0 };
        let over = take_up_to(&mut queue.threads, last);
        let tasks = take_up_to(&mut queue.tasks, last);
        queue.ready.extend(tasks.into_values());
        let next = if has_led { queue.threads.pop_first() } else { None };
        if has_led {
            queue.is_led = next.is_some();
        }
        let needs_worker = queue.needs_worker();
        drop(queue);
        if let Some((_, next)) = next {
            next.wake(Turn::Lead);
        }
        over.into_values().for_each(|thread| thread.wake(Turn::Over));
        if needs_worker {
            self.worker().wake_first();
        }
    }

    fn worker(&self) -> &dyn Worker {
        &**self.worker.get().expect("no task waits before there is a worker")
    }

    /// Wakes the worker, or does its work here if the machine has no threads.
    fn call_worker(&self) {
        self.worker().wake_first();
        self.worker().drive();
    }

    /// Arranges that `waker` is woken when all commits up to `version` are durable, or a sync has failed. If the
    /// task already waits, with `ticket`, this replaces its waker. Returns false if there is nothing to wait for.
    pub fn wake_later(&self, version: Version, ticket: &mut Option<Ticket>, waker: Waker) -> bool {
        let mut queue = self.queue.lock();
        if self.outcome(version).is_some() {
            return false;
        }
        let place = *ticket.get_or_insert_with(|| queue.ticket(version));
        let before = queue.tasks.insert(place, Task::Waker(waker));
        let needs_worker = queue.needs_worker();
        drop(queue);
        drop(before);
        if needs_worker {
            self.call_worker();
        }
        true
    }

    /// Arranges that the worker calls `callback` when all commits up to `version` are durable, or a sync has
    /// failed. If there is nothing to wait for, returns the callback instead.
    pub fn call_later(&self, version: Version, callback: Callback) -> Option<Callback> {
        let mut queue = self.queue.lock();
        if self.outcome(version).is_some() {
            return Some(callback);
        }
        let place = queue.ticket(version);
        queue.tasks.insert(place, Task::Callback(callback));
        let needs_worker = queue.needs_worker();
        drop(queue);
        if needs_worker {
            self.call_worker();
        }
        None
    }

    /// Forgets a task that no longer waits.
    pub fn forget(&self, ticket: Ticket) {
        let task = self.queue.lock().tasks.remove(&ticket);
        drop(task);
    }

    /// The worker calls this whenever it was woken. Leads a sync if a task waits and nobody leads, and wakes the
    /// tasks whose wait is over. Nobody wakes the worker again until this call finds nothing to do.
    ///
    /// # Errors
    ///
    /// An error if the sync that this call led has failed. After an error or a panic, the worker must call this
    /// again, to wake the tasks that waited for the sync.
    pub fn serve(&self) -> Result<Polled> {
        let leads = {
            let mut queue = self.queue.lock();
            let leads = queue.ready.is_empty() && !queue.is_led && !queue.tasks.is_empty();
            queue.is_led |= leads;
            leads
        };
        if leads {
            self.lead();
            if let Some(error) = self.failed.get() {
                return Err(error.clone());
            }
        }
        let ready = std::mem::take(&mut self.queue.lock().ready);
        // A waker or callback may drop a database. That must not wait for background work, which this thread may
        // have to do.
        let duty = Duty::take();
        for task in ready {
            // If a waker or callback panics, the other tasks must still be woken. The panic hook has already
            // reported the panic.
            let call = AssertUnwindSafe(|| match task {
                Task::Waker(waker) => waker.wake(),
                Task::Callback(callback) => callback(),
            });
            drop(catch_unwind(call));
        }
        drop(duty);
        let mut queue = self.queue.lock();
        queue.is_worker_woken = false;
        Ok(if queue.needs_worker() { Polled::Worked } else { Polled::Idle })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

#[cfg(all(test, any(loom, shuttle)))]
mod schedules;
