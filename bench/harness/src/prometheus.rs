//! Serves the counts of a run over HTTP while the run is under way, in the text format of Prometheus. The run hands
//! over each interval when it shows the interval, so serving does not slow down the clients. This module does not
//! know who asks.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark is watched on the real machine")]

mod serve;
#[cfg(test)]
mod tests;
mod text;

use crate::failure::Failure;
use crate::measured::{Interval, Measure};
use crate::password::without_password;
use crate::store::Counter;
use serve::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Serves the counts of all runs of this process so far, at an address.
pub struct Prometheus {
    watched: Arc<Mutex<Watched>>,
    server: Server,
}

/// The upper bounds of the buckets, in nanoseconds: 1, 2 and 5 of each power of ten, from 1 us to 10 s.
const BOUNDS_NANOS: [u64; 22] = {
    let mut bounds = [0; 22];
    let (mut at, mut power) = (0, 1_000);
    while at < bounds.len() {
        bounds[at] = power * [1, 2, 5][at % 3];
        if at % 3 == 2 {
            power *= 10;
        }
        at += 1;
    }
    bounds
};

/// Sums since the process began to measure.
#[derive(Default)]
struct Watched {
    run: String,
    target: String,
    warming: bool,
    operations: u64,
    failed: u64,
    retries: u64,
    client_nanos: u64,
    kinds: BTreeMap<String, Kind>,
    /// What the store has counted since it was opened.
    counters: BTreeMap<String, u64>,
    gauges: BTreeSet<String>,
}

/// Requests of one kind.
#[derive(Default)]
struct Kind {
    oks: u64,
    not_found: u64,
    batched: u64,
    rolled_back: u64,
    retries: u64,
    failures: BTreeMap<String, u64>,
    rows: u64,
    bytes: u64,
    /// The number of requests in each bucket. The last element is the number of requests that took longer than the
    /// bound of every bucket.
    times: [u64; BOUNDS_NANOS.len() + 1],
    nanos: f64,
}

impl Kind {
    fn add(&mut self, measure: &Measure) {
        self.oks += measure.oks;
        self.not_found += measure.not_found;
        self.batched += measure.batched;
        self.rolled_back += measure.rolled_back;
        self.retries += measure.retries;
        self.rows += measure.rows;
        self.bytes += measure.bytes;
        for (name, count) in &measure.failures {
            *self.failures.entry(name.clone()).or_default() += count;
        }
        let times = measure.times();
        for (_, greatest, count) in times.iter() {
            self.times[BOUNDS_NANOS.partition_point(|bound| *bound < greatest)] += count;
        }
        self.nanos += times.mean() * times.count() as f64;
    }
}

impl Prometheus {
    /// Answers at `address` until the returned [`Prometheus`] is dropped. `address` is `HOST:PORT`, or a port of
    /// 127.0.0.1. Port 0 means any free port.
    ///
    /// # Errors
    ///
    /// Returns an error if `address` is no address of this machine, or if another program uses the address.
    pub fn serve(address: &str) -> Result<Self, Failure> {
        let watched: Arc<Mutex<Watched>> = Arc::default();
        let shown = watched.clone();
        let server = Server::start(address, move || text::text(&locked(&shown)))?;
        Ok(Self { watched, server })
    }

    /// The address at which it answers.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Notes that a run begins. The store of the run has the counters `counters`.
    pub fn begin(&self, run: &str, target: &str, counters: &[Counter]) {
        let mut watched = locked(&self.watched);
        run.clone_into(&mut watched.run);
        watched.target = without_password(target);
        watched.counters = counters.iter().map(|counter| (counter.name.to_owned(), counter.value)).collect();
        watched.gauges =
            counters.iter().filter(|counter| counter.gauge).map(|counter| counter.name.to_owned()).collect();
    }

    /// Adds an interval of the run that has ended.
    pub fn add(&self, interval: &Interval) {
        let mut watched = locked(&self.watched);
        watched.warming = interval.warming;
        // Late reports about earlier intervals are added now. So the sums here equal the sums of the result.
        for part in std::iter::once(interval).chain(&interval.told_late) {
            watched.operations += part.operations;
            watched.failed += part.failed;
            watched.retries += part.retries;
            watched.client_nanos += part.client_nanos;
            for measure in &part.kinds {
                watched.kinds.entry(measure.name.clone()).or_default().add(measure);
            }
        }
        if let Some(counted) = &interval.counted {
            watched.counters.clone_from(&counted.counters);
        }
    }
}

/// Locks the sums, even if a thread panicked while it held the lock: the counts that it left can still be shown.
fn locked(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}
