//! The beats of a worker: by them the writer knows that it lives. They do not know what the worker does, but that it goes on.

use super::exchange::{Exchange, Pauses};
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use os::sync::{Arc, OnceLock, Weak};
use os::{Job, Machine, Polled, Priority, Worker};
use std::path::PathBuf;
use std::time::Duration;

/// A worker that does a job and has done nothing of it for so long is stuck, and beats no more.
const STUCK: Duration = Duration::from_secs(60);

/// The beats of one worker. They end when it is dropped.
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
    /// Whether the worker does a job.
    is_busy: AtomicBool,
    /// When it went on last, in nanoseconds on the clock of the machine.
    went_on: AtomicU64,
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
    /// Begins to beat for `worker`.
    pub fn begin(machine: &Machine, database: PathBuf, worker: u64) -> Self {
        let state = Arc::new(BeatState {
            pause: Pauses::of(machine).beat,
            machine: machine.clone(),
            database,
            worker,
            count: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
            went_on: AtomicU64::new(0),
            job: OnceLock::new(),
        });
        let job = machine.threads.sleeping_worker(Priority::Urgent, Arc::new(BeatJob(Arc::downgrade(&state))));
        state.job.set(job).expect("it is set once");
        state.job.get().expect("it was just set").wake();
        Self { state }
    }

    /// Notes that the worker goes on with a job, or has none.
    pub fn goes_on(&self, is_busy: bool) {
        let now = self.state.machine.clock.now().as_nanos() as u64;
        self.state.went_on.store(now, Ordering::Relaxed);
        self.state.is_busy.store(is_busy, Ordering::Relaxed);
    }

    /// Where no thread beats: beats now.
    pub fn drive(&self) {
        if !self.state.machine.threads.are_real() {
            self.state.beat();
        }
    }
}

impl BeatState {
    fn exchange(&self) -> Exchange<'_> {
        Exchange { disk: &*self.machine.disk, database: &self.database }
    }

    fn beat(&self) {
        let idle = self.machine.clock.now().saturating_sub(Duration::from_nanos(self.went_on.load(Ordering::Relaxed)));
        if self.is_busy.load(Ordering::Relaxed) && idle > STUCK {
            return;
        }
        let count = self.count.load(Ordering::Relaxed) + 1;
        let (exchange, disk) = (self.exchange(), &self.machine.disk);
        // If it cannot be written, the writer does without this worker. The worker itself will say what is wrong with the disk.
        if disk.create_with(&exchange.beat(self.worker, count), b"").is_ok() {
            self.count.store(count, Ordering::Relaxed);
            disk.remove(&exchange.beat(self.worker, count - 1)).ok();
        }
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        if let Some(job) = self.state.job.get() {
            job.stop();
            job.join();
        }
        let (exchange, count) = (self.state.exchange(), self.state.count.load(Ordering::Relaxed));
        self.state.machine.disk.remove(&exchange.beat(self.state.worker, count)).ok();
        exchange.remove_if_unused();
    }
}
