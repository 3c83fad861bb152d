use super::*;
use harness::{Counter, Session, Setting, StoreUse};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// A store in memory that can lose every n-th increment. A thread has up to three commits in flight.
struct Memory {
    numbers: Mutex<BTreeMap<Vec<u8>, u64>>,
    loses_every: Option<u64>,
    /// The number of commits in flight.
    open: Mutex<usize>,
}

impl Memory {
    fn new(loses_every: Option<u64>) -> Self {
        Self { numbers: Mutex::default(), loses_every, open: Mutex::default() }
    }

    fn numbers(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, u64>> {
        self.numbers.lock().expect("no thread panics")
    }
}

impl Store for Memory {
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }

    fn session(&self, _: Clock) -> Result<Session<'_>, Failure> {
        Err(Failure::session("none", "it has no rows"))
    }

    fn transactions(&self, _: Checked) -> Option<Box<dyn Transactions + '_>> {
        Some(Box::new(InMemory { store: self, made: 0 }))
    }

    fn commits(&self, in_flight: usize) -> Option<Box<dyn Commits + '_>> {
        (in_flight <= 3).then(|| Box::new(InFlight { store: self, open: 0, most: in_flight }) as Box<dyn Commits>)
    }

    fn is_empty(&self) -> Result<bool, Failure> {
        Ok(self.numbers().is_empty())
    }

    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }

    fn used(&self) -> StoreUse {
        StoreUse::InProcess
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

struct InMemory<'s> {
    store: &'s Memory,
    made: u64,
}

impl Transactions for InMemory<'_> {
    fn apart(&mut self, _: &[u8], _: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    fn together(&mut self, _: &[u8], _: &[u8]) -> Result<Ended, Failure> {
        Ok(Ended::Conflict)
    }

    fn increment(&mut self, key: &[u8]) -> Result<u64, Failure> {
        self.made += 1;
        if self.store.loses_every.is_none_or(|every| !self.made.is_multiple_of(every)) {
            *self.store.numbers().entry(key.to_vec()).or_default() += 1;
        }
        Ok(1 + u64::from(self.made.is_multiple_of(10)))
    }

    fn count(&mut self, key: &[u8]) -> Result<u64, Failure> {
        Ok(self.store.numbers().get(key).copied().unwrap_or(0))
    }
}

struct InFlight<'s> {
    store: &'s Memory,
    open: usize,
    most: usize,
}

impl Commits for InFlight<'_> {
    fn put(&mut self, _: &[u8], _: &[u8]) -> Result<(), Failure> {
        if self.open < self.most {
            self.open += 1;
            *self.store.open.lock().expect("no thread panics") += 1;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        *self.store.open.lock().expect("no thread panics") -= std::mem::take(&mut self.open);
        Ok(())
    }
}

fn transact(what: Deed) -> Transact {
    Transact { what, records: 100, threads: 2, warmup_millis: 1, millis: 5, seed: 1 }
}

#[test]
fn an_increment_that_is_lost_makes_the_measurement_fail() {
    for zipfian in [false, true] {
        let order = transact(Deed::Increment { zipfian });
        let good = Memory::new(None);
        for _ in 0..2 {
            let sample = measure(&good, &order).expect("none is lost");
            assert!(sample.operations > 0 && sample.nanos >= 5_000_000, "{sample:?}");
            let Transacted { conflicts, p50_nanos, p99_nanos, p99_conflicts, most_conflicts } = sample.transacted;
            assert_eq!(most_conflicts, 1, "every tenth is begun again once");
            let is_known = sample.operations >= 1000;
            assert_eq!((p99_conflicts, p99_nanos.is_some()), (is_known.then_some(1), is_known), "{sample:?}");
            assert!(conflicts.abs_diff(sample.operations / 10) <= order.threads as u64, "{sample:?}");
            assert!(p50_nanos > Some(0) && p99_nanos.is_none_or(|nanos| Some(nanos) >= p50_nanos), "{sample:?}");
        }
        let why = measure(&Memory::new(Some(1000)), &order).expect_err("some are lost");
        assert!(why.contains("increments were made, and the counters went from 0 to"), "{why}");
    }
}

#[test]
fn a_window_without_a_commit_is_no_result() {
    let store = Memory::new(None);
    let sample = measure(&store, &transact(Deed::GetAndPut(Way::Apart))).expect("all is done");
    assert_eq!(sample.transacted, Transacted::default());
    let why = measure(&store, &transact(Deed::GetAndPut(Way::AllChecked))).expect_err("all conflict");
    assert!(why.contains("nothing was committed"), "{why}");
}

#[test]
fn puts_are_waited_for_before_the_window_ends_and_a_store_may_have_none() {
    let store = Memory::new(None);
    let order = transact(Deed::Put { in_flight: 3 });
    let sample = measure(&store, &order).expect("all become durable");
    assert!(sample.operations > 0, "{sample:?}");
    assert_eq!(*store.open.lock().expect("no thread panics"), 0, "a thread ends when none is in flight");
    let why = measure(&store, &transact(Deed::Put { in_flight: 4 })).expect_err("it has three at most");
    assert_eq!(why, "the store cannot have 4 commits in flight");
}

#[test]
fn an_order_to_do_nothing_is_refused_with_its_numbers() {
    let order = Transact { threads: 0, ..transact(Deed::GetAndPut(Way::Apart)) };
    let why = measure(&Memory::new(None), &order).expect_err("no thread does anything");
    assert_eq!(why, "0 threads on 100 rows do nothing");
}

#[test]
fn what_threads_did_is_added_up() {
    let (mut done, mut more) = (Done::nothing(), Done::nothing());
    (1..=98).for_each(|nanos| done.incremented(nanos, 0));
    done.nanos = 10;
    more.incremented(200, 4);
    more.incremented(300, 2);
    (more.nanos, more.operations) = (12, 2);
    done.add(&more);
    assert_eq!((done.all, done.operations, done.conflicts, done.of_each.max(), done.nanos), (100, 2, 6, 4, 22));
    assert_eq!([0.5, 0.99, 1.0].map(|share| done.times.value_at_quantile(share)), [50, 200, 300]);
}

#[test]
fn a_percentile_of_too_few_increments_is_not_told() {
    let mut done = Done { operations: 999, nanos: 1, ..Done::nothing() };
    (0..999).for_each(|_| done.incremented(7, 1));
    let Transacted { p50_nanos, p99_nanos, p99_conflicts, .. } = sample(&done, 1).expect("some were made").transacted;
    assert_eq!((p50_nanos, p99_nanos, p99_conflicts), (Some(7), None, None));
    done.incremented(7, 1);
    let Transacted { p99_nanos, p99_conflicts, .. } = sample(&done, 1).expect("some were made").transacted;
    assert_eq!((p99_nanos, p99_conflicts), (Some(7), Some(1)));
}
