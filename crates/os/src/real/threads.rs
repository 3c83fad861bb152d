//! One thread per worker. It does not know what the jobs do.
//!
//! No wake is lost: a wake leaves a mark under the lock, the thread takes the mark before it polls, and it sleeps only
//! while there is none. A wake during a poll therefore causes another poll.

use crate::sync::{Arc, Condvar, Mutex};
use crate::{Job, Polled, Threads, Worker};
use std::thread::{self, JoinHandle};

/// Workers with threads of their own.
#[derive(Clone, Copy, Debug)]
pub struct RealThreads;

impl Threads for RealThreads {
    fn worker(&self, name: &str, job: Arc<dyn Job>) -> Box<dyn Worker> {
        let signal = Arc::new(Signal::default());
        let seen = signal.clone();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                while seen.wait() {
                    while !seen.is_stopped() && job.poll() == Polled::Worked {}
                }
            })
            .expect("the system has room for one more thread");
        Box::new(RealWorker { signal, thread: Some(thread) })
    }

    fn are_real(&self) -> bool {
        true
    }
}

/// A thread that polls a job. If the job panics, the thread ends; waking it then does nothing.
#[derive(Debug)]
struct RealWorker {
    signal: Arc<Signal>,
    /// Taken when dropped.
    thread: Option<JoinHandle<()>>,
}

impl Worker for RealWorker {
    fn wake(&self) {
        self.signal.marks.lock().woken = true;
        self.signal.changed.notify_one();
    }

    fn drive(&self) {}
}

impl Drop for RealWorker {
    fn drop(&mut self) {
        self.signal.marks.lock().stopped = true;
        self.signal.changed.notify_one();
        let thread = self.thread.take().expect("a worker is dropped once");
        // A job that drops its own worker cannot wait for itself; its thread ends after this poll.
        if thread.thread().id() != thread::current().id() {
            // A panic of the job was reported when it happened, and shutting down goes on without it.
            thread.join().unwrap_or_default();
        }
    }
}

/// What a worker tells its thread.
#[derive(Debug)]
struct Signal {
    marks: Mutex<Marks>,
    changed: Condvar,
}

#[derive(Debug)]
struct Marks {
    woken: bool,
    stopped: bool,
}

impl Default for Signal {
    fn default() -> Signal {
        // Woken at first: there may be work from before the worker was there.
        Signal { marks: Mutex::new(Marks { woken: true, stopped: false }), changed: Condvar::new() }
    }
}

impl Signal {
    /// Sleeps until woken or stopped; false if stopped.
    fn wait(&self) -> bool {
        let mut marks = self.marks.lock();
        while !marks.woken && !marks.stopped {
            marks = self.changed.wait(marks);
        }
        marks.woken = false;
        !marks.stopped
    }

    fn is_stopped(&self) -> bool {
        self.marks.lock().stopped
    }
}
