//! Sums the batches of all sessions into intervals of a second, while the sessions run. It does not know who looks at
//! the intervals.
//!
//! ```text
//!   session ── batch ──> Batches ── group, four times a second ──> Seconds ── interval, each second ──> watcher
//!   (a thread of its own)                                          (all sessions)
//! ```

#[cfg(test)]
mod tests;

use harness::cost::thread_nanos;
use harness::{Clock, Interval, Measure, Times};
use hdrhistogram::Histogram;
use os::sync::Mutex;
use row_access::run::BatchDone;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// A session reports its batches in groups of this much time, so that a batch seldom waits for a lock.
const GROUP_NANOS: u64 = 250_000_000;

/// The length of an interval.
const INTERVAL_NANOS: u64 = 1_000_000_000;

/// Collects the batches of one session, on its thread.
pub struct Batches<'e> {
    /// Called with each group of batches.
    each: &'e dyn Fn(&Interval),
    /// Batches not yet reported: reads, then updates.
    waiting: RefCell<[Waiting; 2]>,
    /// The processor time of the thread when a group was reported last.
    thread_nanos: Cell<u64>,
}

struct Waiting {
    times: Histogram<u64>,
    nanos: u64,
    rows: u64,
}

impl<'e> Batches<'e> {
    /// No batches yet.
    pub fn new(each: &'e dyn Fn(&Interval)) -> Self {
        let times = || Histogram::new(3).expect("three digits are allowed");
        let waiting = RefCell::new([(); 2].map(|()| Waiting { times: times(), nanos: 0, rows: 0 }));
        Self { each, waiting, thread_nanos: Cell::new(thread_nanos()) }
    }

    /// Adds a finished batch, and reports all waiting batches if they are due or this is the last one.
    pub fn add(&self, batch: BatchDone) {
        let mut waiting = self.waiting.borrow_mut();
        let kind = &mut waiting[usize::from(batch.is_update)];
        kind.times.record(batch.nanos).expect("it grows");
        kind.nanos += batch.nanos;
        kind.rows += batch.rows;
        if !batch.is_last && waiting.iter().map(|kind| kind.nanos).sum::<u64>() < GROUP_NANOS {
            return;
        }
        let kinds: Vec<Measure> = ["READ", "UPDATE"].into_iter().zip(waiting.iter_mut()).map(measure).collect();
        let operations = kinds.iter().map(|kind| kind.oks).sum();
        let now = thread_nanos();
        let client_nanos = now - self.thread_nanos.replace(now);
        (self.each)(&Interval { operations, client_nanos, kinds, ..Interval::default() });
    }
}

/// What was measured of the batches that wait, which then wait no more.
fn measure((name, kind): (&str, &mut Waiting)) -> Measure {
    let measure = Measure {
        name: name.to_owned(),
        service: Times::from_hdr(&kind.times),
        oks: kind.times.len(),
        rows: kind.rows,
        ..Measure::default()
    };
    kind.times.clear();
    (kind.nanos, kind.rows) = (0, 0);
    measure
}

/// The rows that an interval has.
pub fn rows(interval: &Interval) -> u64 {
    interval.kinds.iter().map(|kind| kind.rows).sum()
}

/// Sums the groups of all sessions. Sessions add to it on their threads.
pub struct Seconds {
    clock: Clock,
    summed: Mutex<Summed>,
}

/// What was added since the last interval ended.
struct Summed {
    /// When the last interval ended.
    from_nanos: u64,
    groups: Vec<Interval>,
    /// Whether each session has added a group.
    has_added: Vec<bool>,
}

impl Seconds {
    /// Begins a run with this number of sessions.
    pub fn begin(sessions: usize) -> Self {
        let summed = Summed { from_nanos: 0, groups: Vec::new(), has_added: vec![false; sessions] };
        Self { clock: Clock::start(), summed: Mutex::new(summed) }
    }

    /// Adds a group of a session.
    pub fn add(&self, session: usize, group: &Interval) {
        let mut summed = self.summed.lock();
        summed.groups.push(group.clone());
        summed.has_added[session] = true;
    }

    /// Does `work` on another thread, and meanwhile calls `watch` with each interval when it ends, and in the end with
    /// what is left.
    pub fn watched<T: Send>(&self, work: impl FnOnce() -> T + Send, watch: &mut dyn FnMut(&Interval)) -> T {
        thread::scope(|scope| {
            let (working, is_over) = channel::<Infallible>();
            let worker = scope.spawn(move || {
                // This end of the channel is dropped when the work is over, even by a panic.
                let _working = working;
                work()
            });
            while is_over.recv_timeout(self.left()) == Err(RecvTimeoutError::Timeout) {
                watch(&self.ended());
            }
            if let Some(last) = self.last() {
                watch(&last);
            }
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The time until the interval ends.
    fn left(&self) -> Duration {
        let due = self.summed.lock().from_nanos + INTERVAL_NANOS;
        Duration::from_nanos(due.saturating_sub(self.clock.nanos()))
    }

    /// The interval that has ended. Sessions that added nothing to it wait for the store.
    fn ended(&self) -> Interval {
        let mut summed = self.summed.lock();
        let to_nanos = summed.from_nanos + INTERVAL_NANOS;
        let late = summed.has_added.iter().filter(|has_added| !**has_added).count() as u64;
        Interval { late, ..summed.take(to_nanos) }
    }

    /// The interval that the end of the run cut off. `None` if nothing was done in it.
    fn last(&self) -> Option<Interval> {
        let mut summed = self.summed.lock();
        let to_nanos = self.clock.nanos().max(summed.from_nanos + 1);
        (!summed.groups.is_empty()).then(|| summed.take(to_nanos))
    }
}

impl Summed {
    /// The sum of the groups, as the interval that ends at `to_nanos`.
    fn take(&mut self, to_nanos: u64) -> Interval {
        self.has_added.fill(false);
        let groups = std::mem::take(&mut self.groups);
        let from_nanos = std::mem::replace(&mut self.from_nanos, to_nanos);
        let sum = match groups.is_empty() {
            true => Interval::default(),
            false => Interval::together(&groups.iter().collect::<Vec<_>>()),
        };
        Interval { from_nanos, to_nanos, ..sum }
    }
}
