//! A bounded number of threads that do the jobs of an engine for reads. A thread is started when more jobs wait than
//! threads are idle, and stays until the threads are closed. The threads do not know what a job does.

use crate::job::Duty;
use crate::sync::{Arc, Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
#[cfg(not(any(loom, shuttle)))]
use std::thread::{self, JoinHandle};

#[cfg(loom)]
use crate::sync::loom::thread::{self, JoinHandle};
#[cfg(shuttle)]
use crate::sync::shuttle::thread::{self, JoinHandle};

/// The work of the threads.
pub(super) trait HandsWork: Send + Sync + 'static {
    /// One piece of the work.
    type Job: Send;

    /// Does one job, and returns the jobs that follow from it. Must not panic.
    fn work(&self, job: Self::Job) -> Vec<Self::Job>;
}

/// Threads.
pub(super) struct Hands<W: HandsWork> {
    shared: Arc<HandsShared<W>>,
}

struct HandsShared<W: HandsWork> {
    work: Arc<W>,
    bound: usize,
    state: Mutex<HandsState<W::Job>>,
    changed: Condvar,
}

struct HandsState<J> {
    jobs: VecDeque<J>,
    /// Threads that wait for a job.
    idle: usize,
    /// Threads that were started and have not looked for a job yet.
    starting: usize,
    threads: Vec<JoinHandle<()>>,
    closed: bool,
}

impl<W: HandsWork> Hands<W> {
    /// At most `bound` threads, none of which is started yet.
    pub(super) fn new(work: Arc<W>, bound: usize) -> Hands<W> {
        let state = HandsState { jobs: VecDeque::new(), idle: 0, starting: 0, threads: Vec::new(), closed: false };
        Hands { shared: Arc::new(HandsShared { work, bound, state: Mutex::new(state), changed: Condvar::new() }) }
    }

    /// Hands the jobs to the threads. If no thread can be started, this thread does them.
    pub(super) fn give(&self, jobs: Vec<W::Job>) {
        if !jobs.is_empty() {
            let left = give(&self.shared, jobs);
            self.shared.work_all(left);
        }
    }

    /// Hands the jobs to the threads. Returns them if no thread can be started.
    #[cfg(target_os = "linux")]
    pub(super) fn give_away(&self, jobs: Vec<W::Job>) -> Vec<W::Job> {
        if jobs.is_empty() { jobs } else { give(&self.shared, jobs) }
    }

    /// Does the given jobs on this thread, and all jobs that follow from them.
    #[cfg(target_os = "linux")]
    pub(super) fn work_here(&self, jobs: Vec<W::Job>) {
        self.shared.work_all(jobs);
    }

    /// Makes the threads end once all jobs are done, and waits for all of them except the calling thread.
    pub(super) fn close(&self) {
        let threads = {
            let mut state = self.shared.state.lock();
            state.closed = true;
            std::mem::take(&mut state.threads)
        };
        self.shared.changed.notify_all();
        for thread in threads {
            if thread.thread().id() != thread::current().id() {
                // A panic of the thread was reported when it happened.
                thread.join().unwrap_or_default();
            }
        }
    }
}

/// Hands the jobs to the threads. Returns the jobs that the caller must do, because the threads are closed or none can
/// be started.
fn give<W: HandsWork>(shared: &Arc<HandsShared<W>>, jobs: Vec<W::Job>) -> Vec<W::Job> {
    let mut state = shared.state.lock();
    if state.closed {
        return jobs;
    }
    let given = jobs.len();
    state.jobs.extend(jobs);
    let idle = state.idle;
    while state.jobs.len() > state.idle + state.starting && state.threads.len() < shared.bound {
        let its = shared.clone();
        let name = format!("larch-reads-{}", state.threads.len());
        match thread::Builder::new().name(name).spawn(move || its.serve()) {
            Ok(thread) => {
                state.starting += 1;
                state.threads.push(thread);
            }
            Err(_) if !state.threads.is_empty() => break,
            // The system refuses even the first thread.
            Err(_) => return std::mem::take(&mut state.jobs).into(),
        }
    }
    drop(state);
    for _ in 0..given.min(idle) {
        shared.changed.notify_one();
    }
    Vec::new()
}

impl<W: HandsWork> HandsShared<W> {
    /// The loop of a thread.
    fn serve(self: Arc<Self>) {
        let _duty = Duty::take();
        let mut state = self.state.lock();
        state.starting -= 1;
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                self.do_all(job);
                state = self.state.lock();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                state = self.changed.wait(state);
                state.idle -= 1;
            }
        }
    }

    /// Does a job and those that follow from it. If several follow, this thread does the first and hands on the rest.
    fn do_all(self: &Arc<Self>, job: W::Job) {
        let mut next = Some(job);
        while let Some(job) = next {
            let mut more = self.work.work(job).into_iter();
            next = more.next();
            if more.len() > 0 {
                let left = give(self, more.collect());
                self.work_all(left);
            }
        }
    }

    /// Does the given jobs on this thread, and all jobs that follow from them.
    fn work_all(&self, jobs: Vec<W::Job>) {
        let mut jobs = VecDeque::from(jobs);
        while let Some(job) = jobs.pop_front() {
            jobs.extend(self.work.work(job));
        }
    }
}

impl<W: HandsWork> fmt::Debug for Hands<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("Hands")
            .field("threads", &state.threads.len())
            .field("idle", &state.idle)
            .finish_non_exhaustive()
    }
}
