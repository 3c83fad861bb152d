//! Threads, tasks and callbacks wait for commits to be durable, and share one sync. This module knows the versions
//! of commits and the log that takes them, but not what commits hold.
//!
//! ```text
//! versions   1 ... 7 | 8 9 10 11 | 12 13 14
//!            durable | a sync    | threads, tasks and callbacks wait in the order of their versions
//!                    | runs      | 12 will lead the next sync, which makes 12 to 14 durable
//! ```
//!
//! Who runs a sync *leads*. A sync makes everything durable that was appended before it began. When it ends, all
//! waiters whose versions are durable are woken. One of the remaining waiters leads the next sync: a thread if one
//! waits, otherwise the worker. So a thread is woken once, and a hundred commits that wait together cost two syncs.
//! Wakers and callbacks are code of the program, so only the [worker](SyncPoint::serve) calls them, which holds no
//! lock.
//!
//! Invariants:
//! - At most one thread leads, and it waits only for the disk.
//! - While nobody leads, no thread waits, and the worker was woken if a task waits. So each wait has somebody who ends
//!   it.
//! - After a failed sync nothing becomes durable any more. All waiters are woken and find the error. Commits that
//!   were durable before stay durable.
//!
//! Thread safety: any thread may call it. No lock is held while the disk syncs, or while a waker or callback is
//! called or dropped. A thread waits only for a sync that another thread leads, so on a machine without threads it
//! never waits.

use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Condvar, Mutex, OnceLock};
use os::{Duty, Polled, Worker};
use sst::Version;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::base::record::{LogError, LogFile, Result};

/// Makes commits durable for all who wait.
#[derive(Debug)]
pub struct SyncPoint {
    /// Everything up to this version is durable.
    durable: AtomicU64,
    /// The newest version that was appended.
    appended: AtomicU64,
    /// The log that takes commits. A sync of it makes the logs before it durable first.
    log: Mutex<Option<Arc<LogFile>>>,
    /// The error of the sync that failed.
    failed: OnceLock<LogError>,
    queue: Mutex<Queue>,
    /// The worker that leads for tasks, and wakes them.
    worker: OnceLock<Arc<dyn Worker>>,
}

/// Called once its commit is durable, or a sync has failed.
pub type Callback = Box<dyn FnOnce() + Send>;

/// The place of a task among those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    version: u64,
    number: u64,
}

/// Who waits, in the order of versions.
#[derive(Debug, Default)]
struct Queue {
    is_led: bool,
    /// Whether the worker was woken and has not looked since.
    is_worker_woken: bool,
    next_number: u64,
    threads: BTreeMap<Ticket, Arc<WaitingThread>>,
    tasks: BTreeMap<Ticket, Task>,
    /// Tasks that wait for the worker only.
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
    /// It leads the next sync.
    Lead,
    /// What it waited for has come.
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

    /// Whether the worker has to be woken. It then counts as woken.
    fn needs_worker(&mut self) -> bool {
        let has_work = !self.ready.is_empty() || (!self.is_led && !self.tasks.is_empty());
        has_work && !std::mem::replace(&mut self.is_worker_woken, true)
    }

    fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.tasks.is_empty() && self.ready.is_empty()
    }
}

/// Takes out the waiters whose version is `last` or an older one.
fn take_up_to<T>(waiting: &mut BTreeMap<Ticket, T>, last: u64) -> BTreeMap<Ticket, T> {
    let Some(next) = last.checked_add(1) else { return std::mem::take(waiting) };
    let later = waiting.split_off(&Ticket { version: next, number: 0 });
    std::mem::replace(waiting, later)
}

/// The right to sync. When it is dropped, another one may lead.
struct Leading<'p> {
    point: &'p SyncPoint,
    has_synced: bool,
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        if !self.has_synced {
            // The disk panicked. As after an error, it is not known what it has done.
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
    /// Everything up to `durable` is durable, and no log takes commits yet.
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

    /// Gives it the worker that calls [`SyncPoint::serve`] after each wake. Before that no task may wait.
    pub fn begin(&self, worker: Arc<dyn Worker>) {
        self.worker.set(worker).expect("a database is opened once");
    }

    /// From now on `log` takes the commits. A sync of it makes the log before it durable first.
    pub fn continue_in(&self, log: &Arc<LogFile>) {
        let before = self.log.lock().replace(log.clone());
        drop(before);
    }

    /// Notes that the commits up to `version` were appended to the log.
    pub fn note_appended(&self, version: Version) {
        self.appended.store(version.0, Ordering::Release);
    }

    /// Notes that everything up to `version` is durable, because it is in files.
    pub fn note_durable(&self, version: Version) {
        self.durable.fetch_max(version.0, Ordering::AcqRel);
        self.end_waits(false);
    }

    /// Everything up to this version is durable.
    pub fn durable(&self) -> Version {
        Version(self.durable.load(Ordering::Acquire))
    }

    /// Whether everything up to `version` is durable.
    pub fn is_durable(&self, version: Version) -> bool {
        self.durable() >= version
    }

    /// What became of everything up to `version`: it is durable, or a sync has failed and it is unknown. `None` if
    /// neither is so yet.
    pub fn outcome(&self, version: Version) -> Option<Result<()>> {
        // A sync that succeeded is noted before a later one fails.
        let error = self.failed.get();
        if self.is_durable(version) { Some(Ok(())) } else { error.map(|error| Err(error.clone())) }
    }

    /// Ends all waits with `error`, because a sync of the log has failed elsewhere. The first error is kept.
    pub fn fail(&self, error: &LogError) {
        self.failed.get_or_init(|| error.clone());
        self.end_waits(false);
    }

    /// Returns once everything up to `version`, which was appended, is durable.
    ///
    /// # Errors
    ///
    /// A sync failed, now or before, so that this is not known.
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

    /// Returns once `log` is durable up to `end`, which was appended. This is not the same as waiting for a version,
    /// because a log also has records about the log itself.
    ///
    /// # Errors
    ///
    /// As [`SyncPoint::wait`].
    pub fn sync_log(&self, log: &LogFile, end: u64) -> Result<()> {
        assert!(end <= log.appended_end(), "only what was appended can become durable");
        while log.synced_end() < end {
            if let Some(error) = self.failed.get() {
                return Err(error.clone());
            }
            // A sync that makes a later commit durable began after this call.
            let later = Version(self.appended.load(Ordering::Acquire) + 1);
            if let Some(Turn::Lead) = self.turn(later) {
                self.lead();
            }
        }
        log.check()
    }

    /// Waits until everything up to `version` is durable or a sync has failed, or until this thread is to lead. `None`
    /// if nothing was to be waited for.
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

    /// Runs a sync, as the only one that leads.
    fn lead(&self) {
        let mut leading = Leading { point: self, has_synced: false };
        // Because of this order, the log has the version, or it is a later log than the one with the version.
        let version = self.appended.load(Ordering::Acquire);
        match self.log().sync() {
            Ok(_) => _ = self.durable.fetch_max(version, Ordering::AcqRel),
            Err(error) => _ = self.failed.get_or_init(|| error),
        }
        leading.has_synced = true;
    }

    /// Wakes the waiters whose wait is over. If a sync has ended, the call also chooses who leads the next sync.
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

    /// Wakes the worker, or does its work here where no thread will.
    fn call_worker(&self) {
        self.worker().wake_first();
        self.worker().drive();
    }

    /// `waker` is woken once everything up to `version` is durable or a sync has failed. If the task waits already,
    /// it has a `ticket`, and its waker is replaced. Returns false if nothing has to be waited for.
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

    /// The worker calls `callback` once everything up to `version` is durable or a sync has failed. Gives the
    /// callback back if nothing has to be waited for.
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

    /// Forgets a task that waits no more.
    pub fn forget(&self, ticket: Ticket) {
        let task = self.queue.lock().tasks.remove(&ticket);
        drop(task);
    }

    /// The worker calls it after each wake. It leads a sync if a task waits and nobody leads, and wakes the tasks
    /// whose wait is over. The worker counts as woken until this call finds nothing to do, so nobody wakes it
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// The sync that this call led failed. The caller has to call it again, as after a panic. The next call wakes
    /// the tasks that waited for the sync.
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
        // The called code may drop a database, and must not wait for its background work here.
        let duty = Duty::take();
        for task in ready {
            // A panic was reported when it happened, and does not keep other tasks from being woken.
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
