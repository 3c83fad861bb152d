//! The clients. Each client does one operation after the other, repeats failed requests, and checks what it reads.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "readers of a time series look at the real clock"
)]

#[cfg(test)]
mod tests;

use crate::keys::{Favourites, Keys, Place};
use crate::options::{Mode, Options, Restriction, Workload};
use crate::value::{self, Filler};
use harness::Harm;
use harness::partitions::counters_of;
use harness::{
    Client, Extra, Failure, Kind, Next, Order, Outcome, PartitionRequest, PartitionRows, Reply, Request, Strings,
};
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use os::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ycsb::Random;

/// The work of one run, which its clients share.
#[derive(Debug)]
pub struct Work {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    favourites: Option<Favourites>,
    /// Whether the run is over, so that no client begins another operation.
    is_over: AtomicBool,
    /// The number of operations that failed.
    errors: AtomicU64,
    /// The number of rows that were read and differed from what was written.
    wrong_rows: AtomicU64,
    /// The first wrong row, and the reason why the run was ended.
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    wrong_row: Option<String>,
    limit: Option<String>,
}

/// What clients found, besides times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The number of rows that were read and differed from what was written.
    pub wrong_rows: u64,
    /// The first wrong row, and what is wrong with it.
    pub first_wrong_row: Option<String>,
    /// The limit of errors that was reached and ended the run.
    pub limit: Option<String>,
}

impl Work {
    /// The work for `options`, which must have been checked.
    pub fn new(options: Options) -> Self {
        let (is_over, errors, wrong_rows) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        let favourites = (options.workload == Workload::Zipfian).then(|| Favourites::new(options.partition_count));
        let said = Mutex::default();
        Self { shared: Arc::new(Shared { options, favourites, is_over, errors, wrong_rows, said }) }
    }

    /// What clients have found so far.
    pub fn findings(&self) -> Findings {
        let said = self.shared.said.lock();
        Findings {
            wrong_rows: self.shared.wrong_rows.load(Ordering::Relaxed),
            first_wrong_row: said.wrong_row.clone(),
            limit: said.limit.clone(),
        }
    }
}

impl harness::Workload for Work {
    type Client = Worker;

    fn kinds(&self) -> &'static [&'static str] {
        match self.shared.options.mode {
            Mode::Write => &["WRITE"],
            Mode::Read => &["READ"],
            Mode::Mixed => &["WRITE", "READ"],
            Mode::Scan => &["SCAN"],
            Mode::CounterUpdate => &["COUNTER-UPDATE"],
            Mode::CounterRead => &["COUNTER-READ"],
        }
    }

    fn client(&self, number: usize, clients: usize) -> Worker {
        let options = &self.shared.options;
        Worker {
            keys: Keys::new(options, self.shared.favourites.as_ref(), number, clients),
            random: Random::of_client(options.seed, number as u64),
            // In a mixed run, half of the clients begin with a read. With the workload `Timeseries`, all clients
            // begin with a write, because the table may still be empty.
            operations: if options.workload == Workload::Timeseries { 0 } else { number as u64 },
            shared: self.shared.clone(),
            task: Task::Write,
            place: Place::Part(0),
            cks: Vec::new(),
            values: Strings::new(),
            order: None,
            attempts: 0,
            errors_at_row: 0,
        }
    }
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Write,
    Read,
    Scan,
    Add,
}

/// One client.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    keys: Keys,
    random: Random,
    operations: u64,
    task: Task,
    place: Place,
    /// The clustering keys of the rows to write or to read. For a read of a range, the key at which it begins.
    cks: Vec<i64>,
    values: Strings,
    order: Option<Order>,
    /// Retries of the current request.
    attempts: u32,
    /// The number of operations that failed since the last success.
    errors_at_row: u64,
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

impl Worker {
    /// Draws the rows of a write and their values. A row that is drawn twice is written once.
    fn take_rows(&mut self) {
        let options = &self.shared.options;
        let Place::Partition(pk) = self.place else { unreachable!("rows are of a partition") };
        while (self.cks.len() as u64) < options.rows_per_request && self.keys.has_row(self.cks.len()) {
            self.cks.push(self.keys.next_row(&mut self.random));
        }
        if self.cks.len() > 1 {
            self.cks.sort_unstable();
            self.cks.dedup();
        }
        self.values.clear();
        for ck in &self.cks {
            let size = options.clustering_row_size.draw(&mut self.random);
            self.values.push_with(|out| value::put(options.filler, pk, *ck, size, out));
        }
    }

    /// Draws the rows of a read, or the key at which it begins.
    fn take_restriction(&mut self) {
        let options = &self.shared.options;
        let count = match options.restriction {
            Restriction::In => options.rows_per_request,
            Restriction::LowerBound | Restriction::NoLowerBound | Restriction::UpperBound => 1,
        };
        while (self.cks.len() as u64) < count && self.keys.has_row(self.cks.len()) {
            self.cks.push(self.keys.next_row(&mut self.random));
        }
        let orders = &options.select_order_by;
        self.order = orders[self.operations as usize % orders.len()];
    }

    /// Checks the rows that were read. Returns how many of these rows differ from what was written.
    fn check(&self, reply: &Reply) -> u64 {
        let Place::Partition(pk) = self.place else { return 0 };
        let content = self.shared.options.mode.content();
        let mut wrong = 0;
        for (ck, value) in reply.partition_rows() {
            let checked = match content {
                crate::Content::Values => value::check(pk, ck, value),
                crate::Content::Counters => check_counters(ck, value),
            };
            if let Err(why) = checked {
                wrong += 1;
                self.shared.said.lock().wrong_row.get_or_insert_with(|| format!("pk {pk}, ck {ck}: {why}"));
            }
        }
        wrong
    }

    /// Decides how the client goes on after an operation that failed.
    #[cold]
    fn fail(&mut self) -> Next {
        self.errors_at_row += 1;
        let options = &self.shared.options;
        let errors = self.shared.errors.fetch_add(1, Ordering::Relaxed) + 1;
        let reached = |limit: u64, count: u64| limit > 0 && count >= limit;
        let why = if reached(options.error_at_row_limit, self.errors_at_row) {
            Some(format!(
                "{} operations of a client failed one after the other: -error-at-row-limit",
                self.errors_at_row
            ))
        } else if reached(options.error_limit, errors) {
            Some(format!("{errors} operations failed: -error-limit"))
        } else {
            None
        };
        if let Some(why) = why {
            self.shared.said.lock().limit.get_or_insert(why);
            self.shared.is_over.store(true, Ordering::Relaxed);
        }
        Next::Failed
    }

    /// How long the client waits before it repeats the request.
    fn nap(&mut self) -> Duration {
        let retries = &self.shared.options.retries;
        let min = retries.min.as_secs_f64();
        let doubled = min * 2_f64.powi(self.attempts as i32 - 1);
        let jitter = min * (self.random.double() - 0.5);
        Duration::from_secs_f64((doubled + jitter).clamp(0.0, retries.max.as_secs_f64()))
    }
}

/// Each update of a row adds `ck` to the first counter, `ck + 1` to the second, and so on.
fn check_counters(ck: i64, value: &[u8]) -> Result<(), String> {
    let Some(counters) = counters_of(value) else { return Err(format!("{} bytes are no counters", value.len())) };
    let updates = counters[1].wrapping_sub(counters[0]);
    let expected = std::array::from_fn(|number| ck.wrapping_add(number as i64).wrapping_mul(updates));
    match counters == expected {
        true => Ok(()),
        false => Err(format!("its counters are {counters:?}, and {updates} updates make {expected:?}")),
    }
}

impl Client for Worker {
    #[inline]
    fn begin(&mut self) -> bool {
        if self.shared.is_over.load(Ordering::Relaxed) {
            return false;
        }
        let options = &self.shared.options;
        self.operations += 1;
        self.task = match options.mode {
            Mode::Write => Task::Write,
            Mode::Mixed if self.operations % 2 == 1 => Task::Write,
            Mode::Read | Mode::Mixed | Mode::CounterRead => Task::Read,
            Mode::Scan => Task::Scan,
            Mode::CounterUpdate => Task::Add,
        };
        let place = match self.task {
            Task::Read if options.mode == Mode::Mixed => {
                self.keys.next_place_beside(options.distribution, &mut self.random, now)
            }
            _ => self.keys.next_place(&mut self.random, now),
        };
        let Some(place) = place else { return false };
        self.place = place;
        self.attempts = 0;
        self.cks.clear();
        match self.task {
            Task::Write => self.take_rows(),
            Task::Read => self.take_restriction(),
            Task::Add => self.cks.push(self.keys.next_row(&mut self.random)),
            Task::Scan => {}
        }
        true
    }

    #[inline]
    fn request(&mut self) -> (Kind, Request<'_>) {
        let options = &self.shared.options;
        let request = match self.place {
            Place::Part(part) => PartitionRequest::Scan { part, parts: options.range_count },
            Place::Partition(pk) => match self.task {
                Task::Write => PartitionRequest::Insert { pk, cks: &self.cks, values: &self.values },
                Task::Add => {
                    let ck = self.cks[0];
                    PartitionRequest::Add { pk, ck, by: std::array::from_fn(|number| ck.wrapping_add(number as i64)) }
                }
                Task::Read | Task::Scan => {
                    let (ck, limit) = (self.cks[0], options.rows_per_request);
                    let rows = match options.restriction {
                        Restriction::LowerBound => PartitionRows::From { ck, limit },
                        Restriction::NoLowerBound => PartitionRows::First { limit },
                        Restriction::UpperBound => {
                            let to = ck.saturating_add(i64::try_from(limit).unwrap_or(i64::MAX));
                            PartitionRows::Between { from: ck, to }
                        }
                        Restriction::In => PartitionRows::Of(&self.cks),
                    };
                    PartitionRequest::Read { pk, rows, order: self.order }
                }
            },
        };
        let kind = Kind(u8::from(options.mode == Mode::Mixed && self.task == Task::Read));
        (kind, Request::Partition(request))
    }

    #[inline]
    fn served(&mut self, result: Result<Outcome, &Failure>, reply: &Reply, extra: &mut Extra<'_>) -> Next {
        match result {
            Ok(_) => {
                let wrong = match self.task {
                    Task::Write | Task::Add => {
                        extra.wrote(self.cks.len() as u64);
                        0
                    }
                    Task::Read if self.shared.options.filler == Filler::Checked => self.check(reply),
                    Task::Read | Task::Scan => 0,
                };
                if wrong > 0 {
                    self.shared.wrong_rows.fetch_add(wrong, Ordering::Relaxed);
                    return self.fail();
                }
                self.errors_at_row = 0;
                Next::Done
            }
            Err(failure) if failure.harm == Harm::Again && self.attempts < self.shared.options.retries.number => {
                extra.retry();
                let nap = self.nap();
                self.attempts += 1;
                Next::Wait(u64::try_from(nap.as_nanos()).unwrap_or(u64::MAX))
            }
            Err(_) => self.fail(),
        }
    }
}
