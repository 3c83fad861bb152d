#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the machine's threads are tested")]

mod clients;
mod closed;
mod counts;
mod edges;
mod ends;
mod many;
mod stall;
mod waits;

use super::*;
use crate::measured::Counted;
use crate::noop::Noop;
use crate::reply::Reply;
use crate::request::{Fields, Request};
use crate::store::{Outcome, Served, Setting, StoreUse};
use crate::{Client, Extra, Kind, Next, Times};
use clients::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

/// Runs `workload` on `store` to its end, and drops the intervals.
fn run_quietly<W: Workload>(store: &dyn Store, workload: &W, plan: &Plan) -> Result<Measured, RunError> {
    let measured = run(store, workload, plan, &AtomicBool::new(false), &mut |_| {});
    if let Some(measured) = measured.as_ref().ok().or_else(|| measured.as_ref().err()?.partial()) {
        check_sums(measured);
    }
    measured
}

/// Checks that the figures of all intervals of the window add up to the figures of the window.
fn check_sums(measured: &Measured) {
    let sum = |of: fn(&Interval) -> u64| measured.window().map(of).sum::<u64>();
    assert_eq!(measured.operations, sum(|interval| interval.operations));
    assert_eq!(measured.failed, sum(|interval| interval.failed));
    assert_eq!(measured.retries, sum(|interval| interval.retries));
    for (number, noted) in measured.counts.iter().enumerate() {
        let counts = measured.window().map(|interval| &interval.counts[number]);
        assert_eq!(noted.value, counts.map(|noted| noted.value).sum::<u64>(), "{}", noted.name);
    }
    for (number, kind) in measured.kinds.iter().enumerate() {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for (least, _, count) in measured.window().flat_map(|interval| interval.kinds[number].service.iter()) {
            *counts.entry(least).or_default() += count;
        }
        let whole: BTreeMap<u64, u64> = kind.service.iter().map(|(least, _, count)| (least, count)).collect();
        assert_eq!(whole, counts, "times of {}", kind.name);
        assert_eq!(kind.service.count(), kind.oks + kind.not_found + kind.rolled_back, "times of {}", kind.name);
        assert_eq!(kind.failed.count(), kind.failed_count() + kind.retries, "failures of {}", kind.name);
    }
    let mut at = 0;
    for interval in measured.window() {
        assert_eq!(interval.from_nanos, at, "no gap");
        assert_eq!(interval.late, 0);
        at = interval.to_nanos;
    }
    assert_eq!(at, measured.nanos);
}
