//! Workers without threads: a job is polled where somebody drives its worker. It does not know what the jobs do.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::{Job, Polled, Threads, Worker};
use std::fmt;

/// Workers that poll on the thread of whoever drives them.
#[derive(Clone, Copy, Debug)]
pub struct SimThreads;

impl Threads for SimThreads {
    fn worker(&self, name: &str, job: Arc<dyn Job>) -> Box<dyn Worker> {
        Box::new(SimWorker {
            name: name.to_owned(),
            job,
            woken: AtomicBool::new(true),
            polling: AtomicBool::new(false),
        })
    }

    fn are_real(&self) -> bool {
        false
    }
}

struct SimWorker {
    name: String,
    job: Arc<dyn Job>,
    /// Set by a wake, taken before polling: a wake during a poll causes another.
    woken: AtomicBool,
    /// Set while polling: a job may, several calls deep, drive its own worker, which must not poll it again.
    polling: AtomicBool,
}

impl Worker for SimWorker {
    fn wake(&self) {
        self.woken.store(true, Ordering::Release);
    }

    fn drive(&self) {
        if self.polling.swap(true, Ordering::Acquire) {
            return;
        }
        let _polling = Polling(&self.polling);
        while self.woken.swap(false, Ordering::Acquire) {
            while self.job.poll() == Polled::Worked {}
        }
    }
}

impl fmt::Debug for SimWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimWorker").field("name", &self.name).field("woken", &self.woken).finish_non_exhaustive()
    }
}

/// Clears the mark when polling ends, by a panic of the job too.
struct Polling<'a>(&'a AtomicBool);

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
