//! The result of a run.

use crate::cost::Cost;
use crate::times::Times;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of a run. What it counts lies inside the window: it began after the window did and was served before the
/// window's end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// When the window began: milliseconds since 1970, by the clock on the wall.
    pub began_unix_millis: u64,
    /// Length of the window, in nanoseconds.
    pub nanos: u64,
    /// Clients there were.
    pub clients: u64,
    /// Operations that were done.
    pub operations: u64,
    /// Operations that failed.
    pub failed: u64,
    /// New attempts of requests.
    pub retries: u64,
    /// Each kind, in the order of [`Workload::kinds`](crate::Workload::kinds).
    pub kinds: Vec<Measure>,
    /// What the clients counted besides, in the order of [`Workload::counts`](crate::Workload::counts).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Noted>,
    /// The run piece by piece, warm-up first. Those of the window add up to the rest of this.
    pub intervals: Vec<Interval>,
    /// Operations left out because they began before the window and ended in it.
    pub warmed: u64,
    /// Operations left out because they were served after the end of the window.
    pub cut: u64,
    /// Operations of an open loop that should have begun in the window and had not when it ended: what clients and
    /// store could not keep up with.
    pub unsent: u64,
    /// Whether it was stopped before it was done.
    pub interrupted: bool,
    /// What it took from the machine.
    pub cost: Cost,
    /// What the store counted.
    pub counters: Vec<Change>,
    /// By kind of failure: the text of the first one, at any time of the run.
    pub failures: BTreeMap<String, String>,
}

impl Measured {
    /// Operations that were done, a second of the window. 0 for an empty window.
    pub fn per_second(&self) -> f64 {
        per_second(self.operations, self.nanos)
    }

    /// The kind called `name`, if one exists.
    pub fn kind(&self, name: &str) -> Option<&Measure> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// Whether something failed for good, before the window or in it. A request that was made again and served did not.
    pub fn has_failed(&self) -> bool {
        let any_kind = |kinds: &[Measure]| kinds.iter().any(|kind| kind.failed_count() > 0);
        let any = |interval: &Interval| interval.failed > 0 || any_kind(&interval.kinds);
        self.failed > 0 || any_kind(&self.kinds) || self.intervals.iter().any(any)
    }

    /// Intervals of the window, without those of ramp and warm-up.
    pub fn window(&self) -> impl Iterator<Item = &Interval> {
        self.intervals.iter().filter(|interval| !interval.warming)
    }
}

/// What is left out of a result.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn per_second(operations: u64, nanos: u64) -> f64 {
    if nanos == 0 { 0.0 } else { operations as f64 * 1e9 / nanos as f64 }
}

/// Something that the clients counted besides their requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// Its name.
    pub name: String,
    /// How many.
    pub value: u64,
}

impl Noted {
    /// The sums of several pieces of a run, which have the same names in the same order.
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

/// Requests of one kind. The times of requests that did not fail and of those that did are apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// From when it was sent until it was served, in nanoseconds.
    pub service: Times,
    /// From when it should have been sent until it was served: what a user waits. There in an open loop, with a
    /// [slack](crate::Plan::slack), and where clients wait for a place in a session; else it is the same as `service`
    /// and left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Times>,
    /// From when it should have been sent until it was. There if `response` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<Times>,
    /// From when it was sent until it failed.
    #[serde(default, skip_serializing_if = "Times::is_empty")]
    pub failed: Times,
    /// The requests that were done.
    pub oks: u64,
    /// The requests that met no row.
    pub not_found: u64,
    /// The requests that were gathered, to be written with others. They have no times, which would be those of a copy
    /// in memory.
    pub batched: u64,
    /// The requests that failed, by kind of failure, with those that were made again.
    pub failures: BTreeMap<String, u64>,
    /// The failed requests that the client made again. The others failed for good.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again: u64,
    /// Rows that were read, or written if the client counts those.
    pub rows: u64,
    /// Bytes of those rows that were asked for, with their keys.
    pub bytes: u64,
}

impl Measure {
    /// Response times in an open loop, else service times: what stands in tables.
    pub fn times(&self) -> &Times {
        self.response.as_ref().unwrap_or(&self.service)
    }

    /// Requests that were done, with those that have no time.
    pub fn done(&self) -> u64 {
        self.oks + self.not_found + self.batched
    }

    /// Requests that failed for good: the client did not make them again.
    pub fn failed_count(&self) -> u64 {
        self.failures.values().sum::<u64>().saturating_sub(self.again)
    }

    /// All that are of the same kind, together. Its name is that of the first.
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

/// A piece of a run. What it counts was served in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Whether it lies before the window.
    pub warming: bool,
    /// Where it begins, in nanoseconds from the start of the window; if it lies before the window, from the start of
    /// the run.
    pub from_nanos: u64,
    /// Where it ends, counted like its beginning.
    pub to_nanos: u64,
    /// Operations that were done.
    pub operations: u64,
    /// Operations that failed.
    pub failed: u64,
    /// New attempts of requests.
    pub retries: u64,
    /// Processor time of the client threads, in nanoseconds.
    pub client_nanos: u64,
    /// The part of it, in nanoseconds, that they took to wait for a time: that of their schedule, of a new attempt, or
    /// their own.
    #[serde(default)]
    pub pausing_nanos: u64,
    /// Threads that had not yet reported what they did in it when it was shown, because they waited for the store. What
    /// they tell later is in the result, where this is 0.
    #[serde(skip)]
    pub late: u64,
    /// What threads have reported late about intervals that were shown before. It is with those intervals in the
    /// result.
    #[serde(skip)]
    pub told_late: Vec<Self>,
    /// Each kind.
    pub kinds: Vec<Measure>,
    /// What the clients counted besides, in the order of [`Workload::counts`](crate::Workload::counts).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Noted>,
    /// How the store stood soon after its end. `None`: it was not looked at, or the result is of an older release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
}

/// The counters of the store at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// When, in nanoseconds, counted as the beginning and end of the interval are.
    pub at_nanos: u64,
    /// By name, since the store was opened. [`Measured::counters`] says which of them are gauges.
    pub counters: BTreeMap<String, u64>,
}

impl Interval {
    /// Operations that were done, a second.
    pub fn per_second(&self) -> f64 {
        per_second(self.operations, self.to_nanos.saturating_sub(self.from_nanos))
    }
}

/// The change of a counter of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// When the window began.
    pub before: u64,
    /// When it ended.
    pub after: u64,
    /// Whether it goes up and down, so that only `after` says something.
    pub gauge: bool,
}

impl Change {
    /// What was counted in the window; `None` for a gauge.
    pub fn counted(&self) -> Option<u64> {
        (!self.gauge).then(|| self.after.saturating_sub(self.before))
    }
}
