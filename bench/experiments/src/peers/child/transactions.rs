//! Measures transactions in a closed loop: a get and a put of a row, increments of counters, and durable puts,
//! waited for one by one or in flight. The loop itself only draws a row and reads the clock, some 25 ns; an
//! operation takes a microsecond or more.
//!
//! Increments are counted by the clients and by the counters. The measurement fails if the counts differ.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark's threads are the machine's")]

#[cfg(test)]
mod tests;

use super::super::orders::{Answer, Deed, Sample, Transact, Transacted, Way};
use super::super::tasks::{KEYS, VALUE_BYTES};
use harness::times::is_known;
use harness::{Checked, Clock, Commits, Ended, Failure, Store, Strings, Transactions};
use hdrhistogram::Histogram;
use std::sync::Barrier;
use std::time::Duration;
use ycsb::{Random, Text, Zipfian};

/// Measures `transact` on `store`.
pub fn measure(store: &dyn Store, transact: &Transact) -> Answer {
    if transact.threads == 0 || transact.records == 0 {
        return Err(format!("{} threads on {} rows do nothing", transact.threads, transact.records));
    }
    let before = counted(store, transact)?;
    let done = on_threads(store, transact)?;
    if let (Some(before), Some(after)) = (before, counted(store, transact)?)
        && after.checked_sub(before) != Some(done.all)
    {
        return Err(format!("{} increments were made, and the counters went from {before} to {after}", done.all));
    }
    sample(&done, transact.threads)
}

/// What one or more threads did.
#[derive(Debug, PartialEq)]
struct Done {
    /// Operations of the whole run.
    all: u64,
    /// Operations in the windows.
    operations: u64,
    /// Conflicts in the windows.
    conflicts: u64,
    /// Conflicts of each increment.
    of_each: Histogram<u64>,
    /// The sum of the threads' windows, in nanoseconds. The windows nearly coincide.
    nanos: u64,
    /// The time of each increment in the windows.
    times: Histogram<u64>,
}

impl Done {
    fn nothing() -> Self {
        let histogram = || Histogram::new(3).expect("three digits are allowed");
        Self { all: 0, operations: 0, conflicts: 0, of_each: histogram(), nanos: 0, times: histogram() }
    }

    /// Adds what other threads did.
    fn add(&mut self, more: &Self) {
        self.all += more.all;
        self.operations += more.operations;
        self.conflicts += more.conflicts;
        self.of_each.add(&more.of_each).expect("both take all numbers");
        self.nanos += more.nanos;
        self.times.add(&more.times).expect("both take all times");
    }

    /// Counts an increment that took `nanos` and met `conflicts` conflicts.
    fn incremented(&mut self, nanos: u64, conflicts: u64) {
        self.all += 1;
        self.conflicts += conflicts;
        self.of_each.saturating_record(conflicts);
        self.times.saturating_record(nanos);
    }
}

fn sample(done: &Done, threads: usize) -> Answer {
    if done.operations == 0 || done.nanos == 0 {
        return Err("nothing was committed in the window: measure longer".to_owned());
    }
    let known = |of: &Histogram<u64>, quantile| is_known(of.len(), quantile).then(|| of.value_at_quantile(quantile));
    let transacted = Transacted {
        conflicts: done.conflicts,
        p50_nanos: known(&done.times, 0.5),
        p99_nanos: known(&done.times, 0.99),
        p99_conflicts: known(&done.of_each, 0.99),
        most_conflicts: done.of_each.max(),
    };
    let nanos = done.nanos / threads as u64;
    Ok(Sample { operations: done.operations, rows: done.operations, nanos, transacted, ..Sample::default() })
}

/// The sum of all counters, if this measurement has them.
fn counted(store: &dyn Store, transact: &Transact) -> Result<Option<u64>, String> {
    let Deed::Increment { .. } = transact.what else { return Ok(None) };
    let mut session = transactions(store, Checked::ReadsAndWrites)?;
    let mut key = Vec::new();
    let mut sum = 0;
    for number in 0..transact.records {
        KEYS.write(number.cast_signed(), &mut key);
        sum += session.count(&key).map_err(|failure| failure.to_string())?;
    }
    Ok(Some(sum))
}

fn transactions(store: &dyn Store, checked: Checked) -> Result<Box<dyn Transactions + '_>, String> {
    store.transactions(checked).ok_or_else(|| "the store has no transactions as it was opened".to_owned())
}

/// A thread's handle on the store, for its kind of operation.
enum Doing<'s> {
    Apart(Box<dyn Transactions + 's>),
    Together(Box<dyn Transactions + 's>),
    Increments(Box<dyn Transactions + 's>, Option<Zipfian>),
    Puts(Box<dyn Commits + 's>),
}

impl<'s> Doing<'s> {
    fn begin(store: &'s dyn Store, transact: &Transact) -> Result<Self, String> {
        Ok(match transact.what {
            Deed::GetAndPut(Way::Apart) => Self::Apart(transactions(store, Checked::ReadsAndWrites)?),
            Deed::GetAndPut(Way::WritesChecked) => Self::Together(transactions(store, Checked::Writes)?),
            Deed::GetAndPut(Way::AllChecked) => Self::Together(transactions(store, Checked::ReadsAndWrites)?),
            Deed::Increment { zipfian } => {
                let zipfian = zipfian.then(|| Zipfian::new(0, transact.records.cast_signed() - 1));
                Self::Increments(transactions(store, Checked::ReadsAndWrites)?, zipfian)
            }
            Deed::Put { in_flight } => {
                let commits = store.commits(in_flight);
                Self::Puts(commits.ok_or_else(|| format!("the store cannot have {in_flight} commits in flight"))?)
            }
        })
    }
}

fn on_threads(store: &dyn Store, transact: &Transact) -> Result<Done, String> {
    let clock = Clock::start();
    // Start together: otherwise threads that start late would have the processors to themselves at the end.
    let all_there = Barrier::new(transact.threads);
    let thread = |number| {
        let doing = Doing::begin(store, transact);
        all_there.wait();
        let from = clock.nanos();
        let window = Window { clock, from: from + nanos(transact.warmup_millis), length: nanos(transact.millis) };
        Client::new(transact, number, doing?).run(&window).map_err(|failure| failure.to_string())
    };
    std::thread::scope(|scope| {
        let thread = &thread;
        let threads: Vec<_> = (0..transact.threads).map(|number| scope.spawn(move || thread(number))).collect();
        let mut done = Done::nothing();
        for thread in threads {
            done.add(&thread.join().unwrap_or_else(|_| Err("a client panicked".to_owned()))?);
        }
        Ok(done)
    })
}

fn nanos(millis: u64) -> u64 {
    Duration::from_millis(millis).as_nanos() as u64
}

/// The measured window.
struct Window {
    clock: Clock,
    from: u64,
    length: u64,
}

/// A thread's stream of operations.
struct Client<'s> {
    doing: Doing<'s>,
    records: u64,
    random: Random,
    text: Text,
    key: Vec<u8>,
    value: [u8; VALUE_BYTES],
    record: Strings,
    encoded: Vec<u8>,
}

impl<'s> Client<'s> {
    fn new(transact: &Transact, number: usize, doing: Doing<'s>) -> Self {
        Self {
            doing,
            records: transact.records,
            random: Random::of_client(transact.seed, number as u64),
            text: Text::of_client(transact.seed, number as u64),
            key: Vec::new(),
            value: [0; VALUE_BYTES],
            record: Strings::new(),
            encoded: Vec::new(),
        }
    }

    /// Runs operations until the window ends, and then waits until the puts are durable, which counts as measured
    /// time.
    fn run(mut self, window: &Window) -> Result<Done, Failure> {
        let mut before = Done::nothing();
        while window.clock.nanos() < window.from {
            self.operation(&window.clock, &mut before)?;
        }
        let mut done = Done::nothing();
        let begun = window.clock.nanos();
        while done.nanos < window.length {
            self.operation(&window.clock, &mut done)?;
            done.nanos = window.clock.nanos() - begun;
        }
        if let Doing::Puts(commits) = &mut self.doing {
            commits.finish()?;
            done.nanos = window.clock.nanos() - begun;
        }
        done.operations = done.all;
        done.all += before.all;
        Ok(done)
    }

    /// Does one operation and counts it in `done`.
    fn operation(&mut self, clock: &Clock, done: &mut Done) -> Result<(), Failure> {
        if let Doing::Increments(session, zipfian) = &mut self.doing {
            let counter = match zipfian {
                Some(zipfian) => zipfian.next(&mut self.random),
                None => uniform(&mut self.random, self.records),
            };
            KEYS.write(counter, &mut self.key);
            let begun = clock.nanos();
            let attempts = session.increment(&self.key)?;
            done.incremented(clock.nanos() - begun, attempts - 1);
            return Ok(());
        }
        self.draw_row();
        let ended = match &mut self.doing {
            Doing::Apart(session) => session.apart(&self.key, &self.encoded).map(|()| Ended::Committed),
            Doing::Together(session) => session.together(&self.key, &self.encoded),
            Doing::Puts(commits) => commits.put(&self.key, &self.encoded).map(|()| Ended::Committed),
            Doing::Increments(..) => unreachable!("they were made above"),
        };
        match ended? {
            Ended::Committed => done.all += 1,
            Ended::Conflict => done.conflicts += 1,
        }
        Ok(())
    }

    /// Draws a row and a new value for it.
    fn draw_row(&mut self) {
        KEYS.write(uniform(&mut self.random, self.records), &mut self.key);
        self.text.fill(&mut self.value);
        self.record.clear();
        self.record.push(&self.value);
        self.encoded.clear();
        self.record.encode(&mut self.encoded);
    }
}

/// A random number below `end`: the high half of a 64-bit random number times `end`. Uniform enough, as 2^64 is far
/// larger.
fn uniform(random: &mut Random, end: u64) -> i64 {
    ((u128::from(random.long().cast_unsigned()) * u128::from(end)) >> 64) as i64
}
