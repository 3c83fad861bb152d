//! The result of a run.

use crate::cost::Cost;
use crate::times::Times;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of a run. The result counts operations that lie inside the window: they began after the window began,
/// and were served before the window ended.
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
    /// New attempts of requests.
    pub retries: u64,
    /// Each kind, in the order of [`Workload::kinds`](crate::Workload::kinds).
    pub kinds: Vec<Measure>,
    /// What the clients counted besides their requests, in the order of
    /// [`Workload::counts`](crate::Workload::counts).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Noted>,
    /// The pieces of the run, beginning with the warm-up. The pieces of the window add up to the other fields of
    /// the result.
    pub intervals: Vec<Interval>,
    /// Operations left out because they began before the window and ended in it.
    pub warmed: u64,
    /// Operations left out because they were served after the end of the window.
    pub cut: u64,
    /// Operations of an open loop that should have begun in the window, but had not begun when it ended. Clients
    /// and store are behind the schedule by this number of operations.
    pub unsent: u64,
    /// Whether the run was stopped before it was done.
    pub interrupted: bool,
    /// What the run used of the machine.
    pub cost: Cost,
    /// The counters of the store.
    pub counters: Vec<Change>,
    /// The text of the first failure of each kind, at any time of the run.
    pub failures: BTreeMap<String, String>,
}

impl Measured {
    /// Operations that were done per second of the window. The result is 0 for an empty window.
    pub fn per_second(&self) -> f64 {
        per_second(self.operations, self.nanos)
    }

    /// The kind called `name`, if one exists.
    pub fn kind(&self, name: &str) -> Option<&Measure> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// Whether a request failed and was not made again with success, before the window or in it.
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

/// Whether a count is zero. Such a count is left out of a result.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
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
    /// The sums of the counts of several pieces of a run. All pieces have the same names in the same order.
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
    /// The time from when a request should have been sent until it is served, which is how long a user waits.
    /// Response times are kept in an open loop, in a run with a [slack](crate::Plan::slack), and in a run whose
    /// clients wait for a place in a session. In all other runs, this time would be equal to `service`, and is left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Times>,
    /// The time from when a request should have been sent until it is sent. It exists if `response` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<Times>,
    /// The time from sending a request until it fails.
    #[serde(default, skip_serializing_if = "Times::is_empty")]
    pub failed: Times,
    /// The requests that were done.
    pub oks: u64,
    /// The requests that found no row.
    pub not_found: u64,
    /// The requests that were gathered, so that they are written together with other requests. Such requests have
    /// no times, because their time would only be the time of a copy in memory.
    pub batched: u64,
    /// The number of failed requests for each kind of failure. Requests that were made again are included.
    pub failures: BTreeMap<String, u64>,
    /// The failed requests that the client made again. For all other failed requests, no further attempt was made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again: u64,
    /// Rows that were read. If the client counts the rows that it writes, this number includes them.
    pub rows: u64,
    /// The bytes of these rows: their keys, and the fields that were asked for.
    pub bytes: u64,
}

impl Measure {
    /// The times that tables show: response times in an open loop, else service times.
    pub fn times(&self) -> &Times {
        self.response.as_ref().unwrap_or(&self.service)
    }

    /// Requests that were done, including requests that have no time.
    pub fn done(&self) -> u64 {
        self.oks + self.not_found + self.batched
    }

    /// Failed requests that the client did not make again.
    pub fn failed_count(&self) -> u64 {
        self.failures.values().sum::<u64>().saturating_sub(self.again)
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
            failures,
            again: sum(|one| one.again),
            rows: sum(|one| one.rows),
            bytes: sum(|one| one.bytes),
        }
    }
}

/// A piece of a run. It counts what was served in it.
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
    /// New attempts of requests.
    pub retries: u64,
    /// Processor time of the client threads, in nanoseconds.
    pub client_nanos: u64,
    /// The part of `client_nanos` that the client threads spent while they waited for a point in time. This may be a
    /// time of the schedule, the time of a new attempt, or a time that the client itself chose. It is in
    /// nanoseconds.
    #[serde(default)]
    pub pausing_nanos: u64,
    /// The number of threads that had not yet reported on this interval when the interval was printed, because they
    /// waited for the store. In the result of the run, this number is 0, because the result includes the later
    /// reports of these threads.
    #[serde(skip)]
    pub late: u64,
    /// Late reports of threads about intervals that were shown before. In the result, these reports are part of
    /// those earlier intervals.
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
    /// When the counters were read, in nanoseconds. It is counted from the same start as the beginning and end of
    /// the interval.
    pub at_nanos: u64,
    /// The counters by name, counted since the store was opened. [`Measured::counters`] says which of these
    /// counters are gauges.
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
