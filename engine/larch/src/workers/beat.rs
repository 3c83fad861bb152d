//! The beats of a worker: files that tell the writer that the worker lives. A job in the background writes them as
//! long as the worker makes progress.

use crate::levels::offers::exchange::{Exchange, Pauses};
use os::process::ProcessOrigin;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, OnceLock, Weak};
use os::{Job, Machine, Polled, Priority, Worker};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// A worker that has neither looked for a job nor made progress with one for this long is stuck, and stops beating.
const STUCK: Duration = Duration::from_secs(60);

/// The beats of one worker. They end when this value is dropped.
#[derive(Debug)]
pub struct Beats {
    state: Arc<BeatState>,
}

#[derive(Debug)]
struct BeatState {
    machine: Machine,
    database: PathBuf,
    worker: u64,
    pause: Duration,
    count: AtomicU64,
    /// When the worker last made progress, in nanoseconds on the clock of the machine.
    went_on: AtomicU64,
    origin: ProcessOrigin,
    job: OnceLock<Box<dyn Worker>>,
}

#[derive(Debug)]
struct BeatJob(Weak<BeatState>);

impl Job for BeatJob {
    fn poll(&self) -> Polled {
        let Some(state) = self.0.upgrade() else { return Polled::Idle };
        state.beat();
        if let Some(job) = state.job.get() {
            job.wake_after(state.pause);
        }
        Polled::Idle
    }
}

impl Beats {
    /// Begins the beats of `worker`.
    pub fn begin(machine: &Machine, database: PathBuf, worker: u64) -> Self {
        let state = Arc::new(BeatState {
            pause: Pauses::of(machine).beat,
            machine: machine.clone(),
            database,
            worker,
            count: AtomicU64::new(0),
            went_on: AtomicU64::new(machine.clock.now().as_nanos() as u64),
            origin: ProcessOrigin::here(),
            job: OnceLock::new(),
        });
        let job = machine.threads.sleeping_worker(Priority::Urgent, Arc::new(BeatJob(Arc::downgrade(&state))));
        state.job.set(job).expect("it is set once");
        state.job.get().expect("it was just set").wake();
        Self { state }
    }

    /// Notes progress of the worker. On a machine without threads, this also writes a beat.
    pub fn go_on(&self) {
        let now = self.state.machine.clock.now().as_nanos() as u64;
        self.state.went_on.store(now, Ordering::Relaxed);
        if !self.state.machine.threads.are_real() {
            self.state.beat();
        }
    }

    /// Whether this process has begun the beats. False in a forked child.
    pub fn are_here(&self) -> bool {
        self.state.origin.is_here()
    }
}

impl BeatState {
    fn exchange(&self) -> Exchange<'_> {
        Exchange { disk: &*self.machine.disk, database: &self.database }
    }

    fn beat(&self) {
        let idle = self.machine.clock.now().saturating_sub(Duration::from_nanos(self.went_on.load(Ordering::Relaxed)));
        if idle > STUCK {
            return;
        }
        let count = self.count.load(Ordering::Relaxed) + 1;
        let (exchange, disk) = (self.exchange(), &self.machine.disk);
        // Errors are ignored: without beats, the writer does its work without this worker, and the worker meets the
        // same error of the disk later and reports it.
        let path = exchange.beat(self.worker, count);
        let mut beaten = disk.create_with(&path, b"");
        if beaten.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            // Another worker has removed the directory, as a worker that ends does if it is empty.
            beaten =
                exchange.create().map_err(|_| ErrorKind::NotFound.into()).and_then(|()| disk.create_with(&path, b""));
        }
        if beaten.is_ok() {
            self.count.store(count, Ordering::Relaxed);
            disk.remove(&exchange.beat(self.worker, count - 1)).ok();
        }
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        if !self.are_here() {
            return;
        }
        if let Some(job) = self.state.job.get() {
            job.stop();
            job.join();
        }
        let (exchange, count) = (self.state.exchange(), self.state.count.load(Ordering::Relaxed));
        self.state.machine.disk.remove(&exchange.beat(self.state.worker, count)).ok();
        exchange.remove_if_unused();
    }
}
