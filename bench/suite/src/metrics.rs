//! `--metrics`: serves live measurements to Prometheus.

use crate::say;
use harness::{Failure, Interval, Measure, Prometheus, Times};
use hdrhistogram::Histogram;
use row_access::run::BatchDone;
use std::cell::RefCell;

/// Serves the measurements at `address`, if one was given, and prints where.
///
/// # Errors
///
/// Fails if the address cannot be bound: this machine does not have it, or another program uses it.
pub fn serve(address: Option<&str>) -> Result<Option<Prometheus>, Failure> {
    let served = address.map(Prometheus::serve).transpose()?;
    if let Some(served) = &served {
        say(&format!("metrics: http://{}/metrics", served.address()));
    }
    Ok(served)
}

/// A row-access session reports its batches in groups of this much time, so that a batch seldom waits for the lock
/// on the metrics.
const SHOWN_EVERY_NANOS: u64 = 250_000_000;

/// Collects the batches of one row-access session.
pub struct Batches<'p> {
    prometheus: &'p Prometheus,
    /// Batches not yet reported: reads, then updates.
    waiting: RefCell<[Waiting; 2]>,
}

struct Waiting {
    times: Histogram<u64>,
    nanos: u64,
    rows: u64,
}

impl<'p> Batches<'p> {
    /// No batches yet.
    pub fn new(prometheus: &'p Prometheus) -> Self {
        let times = || Histogram::new(3).expect("three digits are allowed");
        let waiting = RefCell::new([(); 2].map(|()| Waiting { times: times(), nanos: 0, rows: 0 }));
        Self { prometheus, waiting }
    }

    /// Adds a finished batch, and reports all waiting batches if they are due or this is the last one.
    pub fn add(&self, batch: BatchDone) {
        let mut waiting = self.waiting.borrow_mut();
        let kind = &mut waiting[usize::from(batch.is_update)];
        kind.times.record(batch.nanos).expect("it grows");
        kind.nanos += batch.nanos;
        kind.rows += batch.rows;
        if !batch.is_last && waiting.iter().map(|kind| kind.nanos).sum::<u64>() < SHOWN_EVERY_NANOS {
            return;
        }
        let measure = |(name, kind): (&str, &mut Waiting)| {
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
        };
        let kinds: Vec<Measure> = ["READ", "UPDATE"].into_iter().zip(waiting.iter_mut()).map(measure).collect();
        let operations = kinds.iter().map(|kind| kind.oks).sum();
        self.prometheus.add(&Interval { operations, kinds, ..Interval::default() });
    }
}
