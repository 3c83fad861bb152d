//! The result of a run.

use crate::cost::Cost;
use crate::times::Times;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of a run. It counts the operations that both began and were served within the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// When the window began, in milliseconds since 1970 by the wall clock.
    pub began_unix_millis: u64,
    /// Length of the window, in nanoseconds.
    pub nanos: u64,
    /// The number of clients.
    pub clients: u64,
    /// Operations that were done.
    pub operations: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Retries of requests.
    pub retries: u64,
    /// What was measured of each kind, in the order of [`Workload::kinds`](crate::Workload::kinds).
    pub kinds: Vec<Measure>,
    /// What the clients counted besides their requests, in the order of
    /// [`Workload::counts`](crate::Workload::counts).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Noted>,
    /// The intervals of the run, from the ramp and the warm-up on. Those of the window add up to the other fields.
    pub intervals: Vec<Interval>,
    /// Operations left out because they began before the window and ended in it.
    pub warmed: u64,
    /// Operations left out because they were served after the end of the window.
    pub cut: u64,
    /// Operations of an open loop that were due in the window but had not begun when it ended: how far clients and
    /// store were behind schedule.
    pub unsent: u64,
    /// Whether the run was stopped before it was done.
    pub interrupted: bool,
    /// Processor time, memory and disk bytes that the run used.
    pub cost: Cost,
    /// How the store's counters changed in the window.
    pub counters: Vec<Change>,
    /// The text of the first failure of each kind, at any time of the run.
    pub failures: BTreeMap<String, String>,
}

impl Measured {
    /// Operations that were done per second of the window. The result is 0 for an empty window.
    pub fn per_second(&self) -> f64 {
        per_second(self.operations, self.nanos)
    }

    /// How often something that was counted `count` times happened in a second of the window.
    pub fn rate(&self, count: u64) -> f64 {
        per_second(count, self.nanos)
    }

    /// The kind called `name`, if one exists.
    pub fn kind(&self, name: &str) -> Option<&Measure> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// Whether a request or an operation failed without being retried, before the window or in it.
    pub fn has_failed(&self) -> bool {
        let any_kind = |kinds: &[Measure]| kinds.iter().any(|kind| kind.failed_count() > 0);
        let any = |interval: &Interval| interval.failed > 0 || any_kind(&interval.kinds);
        self.failed > 0 || any_kind(&self.kinds) || self.intervals.iter().any(any)
    }

    /// The intervals of the window. The intervals of ramp and warm-up are left out.
    pub fn window(&self) -> impl Iterator<Item = &Interval> {
        self.intervals.iter().filter(|interval| !interval.warming)
    }
}

fn per_second(operations: u64, nanos: u64) -> f64 {
    if nanos == 0 { 0.0 } else { operations as f64 * 1e9 / nanos as f64 }
}

/// Something that the clients counted, other than requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// Its name.
    pub name: String,
    /// The count.
    pub value: u64,
}

impl Noted {
    /// Adds up the counts of several pieces of a run, which all have the same names in the same order.
    pub fn sum<'n>(pieces: impl IntoIterator<Item = &'n [Self]>) -> Vec<Self> {
        let mut pieces = pieces.into_iter();
        let mut sums = pieces.next().unwrap_or_default().to_vec();
        for piece in pieces {
            for (sum, noted) in sums.iter_mut().zip(piece) {
                sum.value = sum.value.saturating_add(noted.value);
            }
        }
        sums
    }
}

/// The requests of one kind. Requests that failed have separate times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// The time from sending a request until it is served, in nanoseconds.
    pub service: Times,
    /// The time from when a request was due until it is served, which is how long a user waits. Kept in an open
    /// loop, in a run with a [slack](crate::Plan::slack), and in a run whose clients wait for a place in a session.
    /// In other runs it would equal `service` and is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Times>,
    /// The time from when a request was due until it is sent. Present exactly when `response` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<Times>,
    /// The time from sending a request until it fails.
    #[serde(default, skip_serializing_if = "Times::is_empty")]
    pub failed: Times,
    /// Requests that succeeded.
    pub oks: u64,
    /// Requests that found no row.
    pub not_found: u64,
    /// Inserts that the session gathered, to write them together. They have no times, because the call only copied
    /// them in memory.
    pub batched: u64,
    /// Transactions that were rolled back because their input demands it. They are done, with times.
    #[serde(default)]
    pub rolled_back: u64,
    /// The number of failed requests for each kind of failure, including those that were retried.
    pub failures: BTreeMap<String, u64>,
    /// Failed requests that the client retried. It gave up the other ones.
    #[serde(default, alias = "again")]
    pub retries: u64,
    /// Rows that were read, and rows that the client [reports as written](crate::Extra::wrote).
    pub rows: u64,
    /// The bytes of the rows that were read: their keys, and the fields that were asked for.
    pub bytes: u64,
}

impl Measure {
    /// The times that tables show: response times in an open loop, else service times.
    pub fn times(&self) -> &Times {
        self.response.as_ref().unwrap_or(&self.service)
    }

    /// Requests that were done, including requests that have no time.
    pub fn done(&self) -> u64 {
        self.oks + self.not_found + self.batched + self.rolled_back
    }

    /// Failed requests that the client did not retry.
    pub fn failed_count(&self) -> u64 {
        self.failures.values().sum::<u64>().saturating_sub(self.retries)
    }

    /// The sum of several measures of one kind. Its name is the name of the first.
    pub fn sum<'m>(all: impl IntoIterator<Item = &'m Self>) -> Self {
        let all: Vec<&Self> = all.into_iter().collect();
        let optional = |of: fn(&Self) -> &Option<Times>| {
            all.iter().any(|one| of(one).is_some()).then(|| Times::sum(all.iter().filter_map(|one| of(one).as_ref())))
        };
        let sum = |of: fn(&Self) -> u64| all.iter().fold(0_u64, |sum, one| sum.saturating_add(of(one)));
        let mut failures: BTreeMap<String, u64> = BTreeMap::new();
        for (name, count) in all.iter().flat_map(|one| &one.failures) {
            let sum = failures.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        Self {
            name: all.first().map(|one| one.name.clone()).unwrap_or_default(),
            service: Times::sum(all.iter().map(|one| &one.service)),
            response: optional(|one| &one.response),
            waited: optional(|one| &one.waited),
            failed: Times::sum(all.iter().map(|one| &one.failed)),
            oks: sum(|one| one.oks),
            not_found: sum(|one| one.not_found),
            batched: sum(|one| one.batched),
            rolled_back: sum(|one| one.rolled_back),
            failures,
            retries: sum(|one| one.retries),
            rows: sum(|one| one.rows),
            bytes: sum(|one| one.bytes),
        }
    }
}

/// A piece of a run, usually a second. It counts what was served in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Whether it lies before the window.
    pub warming: bool,
    /// Where the interval begins, in nanoseconds. The time is counted from the start of the window, or, for an
    /// interval before the window, from the start of the run.
    pub from_nanos: u64,
    /// Where the interval ends, in nanoseconds, counted from the same start as its beginning.
    pub to_nanos: u64,
    /// Operations that were done.
    pub operations: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Retries of requests.
    pub retries: u64,
    /// Processor time of the client threads, in nanoseconds.
    pub client_nanos: u64,
    /// The part of `client_nanos` spent waiting for a point in time: until an operation is due, until a retry, or
    /// until the end of a wait that the client asked for.
    #[serde(default)]
    pub pausing_nanos: u64,
    /// The number of threads that had not reported on this interval when it was shown, because they were waiting for
    /// the store. It is 0 in the result of a run, which includes their later reports.
    #[serde(skip)]
    pub late: u64,
    /// Late reports about intervals that were shown before. In the result, they are part of those earlier intervals.
    #[serde(skip)]
    pub told_late: Vec<Self>,
    /// Each kind.
    pub kinds: Vec<Measure>,
    /// What the clients counted besides their requests, in the order of
    /// [`Workload::counts`](crate::Workload::counts).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Noted>,
    /// The store's counters soon after the interval's end. `None` if the counters were not read, or if the result
    /// is of an older release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
}

/// The counters of the store at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// When the counters were read, in nanoseconds from the same start as the bounds of the interval.
    pub at_nanos: u64,
    /// The counters by name, with their values since the store was opened. [`Measured::counters`] says which of
    /// these counters are gauges.
    pub counters: BTreeMap<String, u64>,
}

impl Interval {
    /// Operations that were done per second.
    pub fn per_second(&self) -> f64 {
        per_second(self.operations, self.to_nanos.saturating_sub(self.from_nanos))
    }
}

/// The change of a counter of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// Its value when the window began.
    pub before: u64,
    /// Its value when the window ended.
    pub after: u64,
    /// Whether the counter is a gauge: its value goes up and down, so only the value `after` has a meaning.
    pub gauge: bool,
}

impl Change {
    /// How much the counter grew in the window; `None` for a gauge.
    pub fn counted(&self) -> Option<u64> {
        (!self.gauge).then(|| self.after.saturating_sub(self.before))
    }
}
