//! A bounded pool of threads that poll jobs, which databases share for their background work. This module does not
//! know what the jobs do.
//!
//! ```text
//! wake ──► queue of the class ──► a thread polls ──► worked: back to the end of the queue
//!                 ▲                                  idle:   waits to be woken
//!                 └── due ◄── wake_after
//! ```
//!
//! * Only one thread polls a job at a time. A wake during a poll causes another poll, so no wake is lost.
//! * Of the `n` threads of a pool, at most `n - 1` poll jobs of high priority, at most `n - 1` jobs of normal and low
//!   priority together, and at most `n - 2` (but at least one) jobs of low priority. So neither short nor long jobs
//!   can occupy all threads.
//! * When all threads are busy, the pool starts one more for urgent jobs. So urgent jobs wait only for urgent jobs,
//!   and no other job waits for them.
//! * Within a class, jobs take turns, one step each. A job that was woken by `wake_first` goes to the front.
//! * A thread is started when a job is ready and no thread is waiting. It ends when it has had nothing to do for
//!   [`IDLE_TIME`]. While jobs wait for a time to pass, one thread, the timekeeper, waits for the earliest time, so
//!   that only one thread is woken when it comes.
//! * A job that panics is never polled again; its thread goes on.
//! * Jobs are polled and dropped while no lock is held.

use crate::job::Duty;
use crate::process;
use crate::sync::{Arc, Condvar, Mutex};
use crate::{Job, Polled, Priority, Threads, Worker};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
#[cfg(not(any(loom, shuttle)))]
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

#[cfg(loom)]
use crate::sync::loom::thread::{self, ThreadId};
#[cfg(shuttle)]
use crate::sync::shuttle::thread::{self, ThreadId};

/// How long a thread waits for work before it ends. Starting a thread costs about 50 us, so a thread that is needed
/// once a second should not end in between.
const IDLE_TIME: Duration = Duration::from_secs(5);

/// The fewest threads of a pool: one for a job of high priority, and one for a job of normal or low priority.
const LEAST_THREADS: usize = 2;

/// Threads that poll jobs.
pub struct ThreadPool {
    shared: Arc<ThreadPoolShared>,
}

struct ThreadPoolShared {
    size: usize,
    idle_time: Duration,
    spawn: Spawn,
    state: Mutex<ThreadPoolState>,
    /// Notified when an idle thread has something to do.
    changed: Condvar,
    /// Notified when the timekeeper has something to do, or has to wait for an earlier time.
    time_changed: Condvar,
    /// Notified when a thread has ended, and when a poll has ended and some thread waits in `join`.
    ended: Condvar,
}

/// Starts a thread that runs the given function.
type Spawn = fn(Box<dyn FnOnce() + Send>) -> io::Result<()>;

#[derive(Default)]
struct ThreadPoolState {
    jobs: HashMap<u64, PoolEntry>,
    next_id: u64,
    /// Jobs that wait for a thread, by class.
    queues: [VecDeque<u64>; Priority::ALL.len()],
    /// The times at which jobs are to be woken.
    due: BTreeSet<(Instant, u64)>,
    /// Polls under way, by class.
    running: [usize; Priority::ALL.len()],
    threads: usize,
    /// Threads that wait for something to do, not counting the timekeeper.
    idle: usize,
    /// Whether a thread waits for the first time in `due`.
    has_timekeeper: bool,
    /// Threads that wait in `join` for the end of a poll.
    joining: usize,
    closed: bool,
}

struct PoolEntry {
    priority: Priority,
    work: PoolWork,
    status: Status,
    due: Option<Instant>,
}

enum PoolWork {
    Job(Arc<dyn Job>),
    /// Work that is done once and then dropped.
    Once(Option<Box<dyn FnOnce() + Send>>),
    /// The job was stopped, or has panicked.
    None,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Idle,
    Queued,
    /// Polled by the thread `by`. `woken` says whether the job was woken during the poll.
    Running {
        by: ThreadId,
        woken: bool,
    },
}

/// A pool that the whole process shares, while it is in use. The lock is from `std`, because it must outlive each model
/// that a model checker runs, and must be made in a constant.
type SharedPool = std::sync::Mutex<Option<Weak<ThreadPool>>>;

/// See [`ThreadPool::of_process`].
static OF_PROCESS: SharedPool = SharedPool::new(None);

/// See [`ThreadPool::of_governors`].
static OF_GOVERNORS: SharedPool = SharedPool::new(None);

impl ThreadPool {
    /// A pool of at most `threads` threads, or of two if `threads` is less, none of which is started yet. One more
    /// thread is started when all are busy and an urgent job is ready.
    pub fn new(threads: usize) -> Arc<ThreadPool> {
        Arc::new(ThreadPool::with_spawn(threads, IDLE_TIME, |life| {
            thread::Builder::new().name("larch-background".to_owned()).spawn(life).map(|_| ())
        }))
    }

    /// The default pool, which the whole process shares. It has one more thread than the machine has processors, and
    /// at least three.
    pub fn of_process() -> Arc<ThreadPool> {
        let processors = || std::thread::available_parallelism().map_or(1, |count| count.get());
        ThreadPool::shared(&OF_PROCESS, || processors().max(2) + 1)
    }

    /// The pool for jobs that take a moment, but often, and must not wait for other work. The whole process shares it.
    pub fn of_governors() -> Arc<ThreadPool> {
        ThreadPool::shared(&OF_GOVERNORS, || LEAST_THREADS)
    }

    /// The pool in `place`; if there is none, a new one of `threads` threads.
    fn shared(place: &SharedPool, threads: impl FnOnce() -> usize) -> Arc<ThreadPool> {
        let mut place = place.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(pool) = place.as_ref().and_then(Weak::upgrade) {
            return pool;
        }
        let pool = ThreadPool::new(threads());
        *place = Some(Arc::downgrade(&pool));
        pool
    }

    fn with_spawn(threads: usize, idle_time: Duration, spawn: Spawn) -> ThreadPool {
        ThreadPool {
            shared: Arc::new(ThreadPoolShared {
                size: threads.max(LEAST_THREADS),
                idle_time,
                spawn,
                state: Mutex::default(),
                changed: Condvar::new(),
                time_changed: Condvar::new(),
                ended: Condvar::new(),
            }),
        }
    }

    /// How many threads run now.
    pub fn running_threads(&self) -> usize {
        self.shared.state.lock().threads
    }
}

impl Threads for ThreadPool {
    fn sleeping_worker(&self, priority: Priority, job: Arc<dyn Job>) -> Box<dyn Worker> {
        let id = self.shared.state.lock().add(priority, PoolWork::Job(job));
        Box::new(PoolWorker { shared: self.shared.clone(), id })
    }

    fn start(&self) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        if state.threads == 0 { self.shared.spawn(&mut state) } else { Ok(()) }
    }

    fn hand_over(&self, work: Box<dyn FnOnce() + Send>) {
        let mut state = self.shared.state.lock();
        let id = state.add(Priority::High, PoolWork::Once(Some(work)));
        state.queue(id, false);
        self.shared.hire(&mut state);
    }

    fn in_thread(&self, work: Box<dyn FnOnce() + Send>) {
        // The work is shared with the new thread, so that it is still here if the system refuses the thread.
        let work = Arc::new(Mutex::new(Some(work)));
        let taken = work.clone();
        let run = move |work: &Mutex<Option<Box<dyn FnOnce() + Send>>>| {
            let work = work.lock().take();
            if let Some(work) = work {
                work();
            }
        };
        if (self.shared.spawn)(Box::new(move || run(&taken))).is_err() {
            run(&work);
        }
    }

    fn are_real(&self) -> bool {
        true
    }

    fn waited_for_processor(&self) -> Option<Duration> {
        process::waited_for_processor()
    }
}

impl Drop for ThreadPool {
    /// Makes each thread end after its current poll. Does not wait for the threads, because it may run on one of
    /// them.
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.changed.notify_all();
        self.shared.time_changed.notify_all();
    }
}

impl ThreadPoolState {
    fn add(&mut self, priority: Priority, work: PoolWork) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.jobs.insert(id, PoolEntry { priority, work, status: Status::Idle, due: None });
        id
    }

    /// Puts a job into the queue of its class, or marks it as woken if it is being polled.
    fn queue(&mut self, id: u64, first: bool) {
        let Some(entry) = self.jobs.get_mut(&id).filter(|entry| !matches!(entry.work, PoolWork::None)) else { return };
        if let Some(due) = entry.due.take() {
            self.due.remove(&(due, id));
        }
        let queue = &mut self.queues[entry.priority as usize];
        match &mut entry.status {
            Status::Running { woken, .. } => *woken = true,
            Status::Queued if !first => {}
            status => {
                if *status == Status::Queued {
                    queue.retain(|other| *other != id);
                }
                *status = Status::Queued;
                if first { queue.push_front(id) } else { queue.push_back(id) }
            }
        }
    }

    /// Queues the jobs whose time has come.
    fn queue_due(&mut self, now: Instant) {
        while let Some(&(due, id)) = self.due.first()
            && due <= now
        {
            self.queue(id, false);
            self.due.remove(&(due, id));
        }
    }

    /// Whether a pool of `size` threads may poll one more job of the given class.
    fn has_room_for(&self, priority: Priority, size: usize) -> bool {
        let [_, high, normal, low] = self.running;
        let has_thread = high + normal + low < size;
        match priority {
            Priority::Urgent => true,
            Priority::High => has_thread && high < size - 1,
            Priority::Normal => has_thread && normal + low < size - 1,
            Priority::Low => has_thread && normal + low < size - 1 && low < (size - 2).max(1),
        }
    }

    /// The class whose first job may be polled next.
    fn next_class(&self, size: usize) -> Option<Priority> {
        let may = |class: &Priority| !self.queues[*class as usize].is_empty() && self.has_room_for(*class, size);
        Priority::ALL.into_iter().find(may)
    }

    /// Takes the next job to poll.
    fn take_next(&mut self, size: usize, by: ThreadId) -> Option<(u64, TakenWork)> {
        let class = self.next_class(size)?;
        let id = self.queues[class as usize].pop_front().expect("it is not empty");
        Some((id, self.take(id, by)))
    }

    /// Takes the work of a job that was in a queue. The job counts as running from now on.
    fn take(&mut self, id: u64, by: ThreadId) -> TakenWork {
        let entry = self.jobs.get_mut(&id).expect("a queued job is known");
        entry.status = Status::Running { by, woken: false };
        self.running[entry.priority as usize] += 1;
        match &mut entry.work {
            PoolWork::Job(job) => TakenWork::Job(job.clone()),
            PoolWork::Once(work) => TakenWork::Once(work.take().expect("it is done once")),
            PoolWork::None => unreachable!("a job that is stopped leaves the queue"),
        }
    }

    /// Notes the end of a poll. `polled` is `None` if the job has panicked. The result is to be dropped without the
    /// lock.
    fn end(&mut self, id: u64, polled: Option<Polled>) -> PoolWork {
        let entry = self.jobs.get_mut(&id).expect("a running job is known");
        let Status::Running { woken, .. } = entry.status else { unreachable!("it was running") };
        self.running[entry.priority as usize] -= 1;
        entry.status = Status::Idle;
        match (polled, &entry.work) {
            (_, PoolWork::Once(_)) => {
                self.jobs.remove(&id);
                PoolWork::None
            }
            (None, _) => self.stop(id),
            (Some(polled), _) => {
                if woken || polled == Polled::Worked {
                    self.queue(id, false);
                }
                PoolWork::None
            }
        }
    }

    /// Takes a job out of its queue, out of `due` and out of its entry. A running poll goes on. The caller must drop
    /// the result without the lock.
    fn stop(&mut self, id: u64) -> PoolWork {
        let Some(entry) = self.jobs.get_mut(&id) else { return PoolWork::None };
        if let Some(due) = entry.due.take() {
            self.due.remove(&(due, id));
        }
        if entry.status == Status::Queued {
            entry.status = Status::Idle;
            self.queues[entry.priority as usize].retain(|other| *other != id);
        }
        std::mem::replace(&mut entry.work, PoolWork::None)
    }

    fn is_running_elsewhere(&self, id: u64) -> bool {
        let here = thread::current().id();
        matches!(self.jobs.get(&id).map(|entry| entry.status), Some(Status::Running { by, .. }) if by != here)
    }
}

enum TakenWork {
    Job(Arc<dyn Job>),
    Once(Box<dyn FnOnce() + Send>),
}

impl TakenWork {
    /// Does the work. `None` if it panicked, which the panic hook has reported.
    fn run(self) -> Option<Polled> {
        let run = || match self {
            TakenWork::Job(job) => job.poll(),
            TakenWork::Once(work) => {
                work();
                Polled::Idle
            }
        };
        catch_unwind(AssertUnwindSafe(run)).ok()
    }
}

impl ThreadPoolShared {
    /// Wakes or starts a thread if a job is ready, or if a timekeeper is needed.
    fn hire(self: &Arc<Self>, state: &mut ThreadPoolState) {
        let class = state.next_class(self.size);
        let lacks_timekeeper = !state.due.is_empty() && !state.has_timekeeper;
        if class.is_none() && !lacks_timekeeper {
            return;
        }
        let has_urgent = class == Some(Priority::Urgent) || state.running[Priority::Urgent as usize] > 0;
        let most = self.size + usize::from(has_urgent);
        if state.idle > 0 {
            self.changed.notify_one();
        } else if state.has_timekeeper {
            self.time_changed.notify_one();
        } else if state.threads < most {
            // If the system refuses a thread, the job waits for a busy thread, for the next call of `hire`, or for a
            // caller of `drive`.
            self.spawn(state).ok();
        }
    }

    fn spawn(self: &Arc<Self>, state: &mut ThreadPoolState) -> io::Result<()> {
        let shared = self.clone();
        (self.spawn)(Box::new(move || shared.serve()))?;
        state.threads += 1;
        Ok(())
    }

    /// The loop of a thread.
    fn serve(self: Arc<Self>) {
        let _duty = Duty::take();
        let here = thread::current().id();
        let mut state = self.state.lock();
        let mut idle_since = None;
        loop {
            let now = Instant::now();
            state.queue_due(now);
            if state.closed {
                break;
            }
            if let Some((id, taken)) = state.take_next(self.size, here) {
                idle_since = None;
                // More jobs may wait than this one thread can take.
                self.hire(&mut state);
                drop(state);
                self.run(id, taken);
                state = self.state.lock();
                continue;
            }
            let first_due = state.due.first().map(|(due, _)| *due).filter(|_| !state.has_timekeeper);
            if let Some(due) = first_due {
                state.has_timekeeper = true;
                state = self.time_changed.wait_timeout(state, due.saturating_duration_since(now)).0;
                state.has_timekeeper = false;
                continue;
            }
            let leaves_at = *idle_since.get_or_insert(now) + self.idle_time;
            if leaves_at <= now {
                break;
            }
            state.idle += 1;
            state = self.changed.wait_timeout(state, leaves_at - now).0;
            state.idle -= 1;
        }
        state.threads -= 1;
        drop(state);
        self.ended.notify_all();
    }

    /// Does the work without holding the lock, and then notes its end.
    fn run(self: &Arc<Self>, id: u64, taken: TakenWork) {
        let polled = taken.run();
        let mut state = self.state.lock();
        let gone = state.end(id, polled);
        let is_waited_for = state.joining > 0;
        drop(state);
        drop(gone);
        if is_waited_for {
            self.ended.notify_all();
        }
    }
}

/// A job of a pool.
struct PoolWorker {
    shared: Arc<ThreadPoolShared>,
    id: u64,
}

impl PoolWorker {
    fn wake_as(&self, first: bool) {
        let mut state = self.shared.state.lock();
        state.queue(self.id, first);
        self.shared.hire(&mut state);
    }
}

impl Worker for PoolWorker {
    fn wake(&self) {
        self.wake_as(false);
    }

    fn wake_first(&self) {
        self.wake_as(true);
    }

    fn wake_after(&self, time: Duration) {
        let mut state = self.shared.state.lock();
        let state = &mut *state;
        let Some(entry) = state.jobs.get_mut(&self.id).filter(|entry| !matches!(entry.work, PoolWork::None)) else {
            return;
        };
        let due = Instant::now() + time;
        if let Some(before) = entry.due.replace(due) {
            state.due.remove(&(before, self.id));
        }
        state.due.insert((due, self.id));
        if state.has_timekeeper && state.due.first() == Some(&(due, self.id)) {
            self.shared.time_changed.notify_one();
        }
        self.shared.hire(state);
    }

    fn drive(&self) {
        loop {
            let mut state = self.shared.state.lock();
            self.shared.hire(&mut state);
            state.queue_due(Instant::now());
            let is_queued = state.jobs.get(&self.id).is_some_and(|entry| entry.status == Status::Queued);
            if state.threads > 0 || !is_queued {
                return;
            }
            let priority = state.jobs[&self.id].priority;
            state.queues[priority as usize].retain(|other| *other != self.id);
            let taken = state.take(self.id, thread::current().id());
            drop(state);
            self.shared.run(self.id, taken);
        }
    }

    fn stop(&self) {
        let gone = self.shared.state.lock().stop(self.id);
        drop(gone);
    }

    fn join(&self) {
        let mut state = self.shared.state.lock();
        state.joining += 1;
        while state.is_running_elsewhere(self.id) {
            state = self.shared.ended.wait(state);
        }
        state.joining -= 1;
    }
}

impl Drop for PoolWorker {
    fn drop(&mut self) {
        self.stop();
        let mut state = self.shared.state.lock();
        match state.jobs.get_mut(&self.id) {
            // The entry is removed at the end of the running poll.
            Some(PoolEntry { status: Status::Running { .. }, work, .. }) => *work = PoolWork::Once(None),
            _ => {
                state.jobs.remove(&self.id);
            }
        }
    }
}

impl fmt::Debug for PoolWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolWorker").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("ThreadPool")
            .field("size", &self.shared.size)
            .field("threads", &state.threads)
            .field("idle", &state.idle)
            .field("jobs", &state.jobs.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
