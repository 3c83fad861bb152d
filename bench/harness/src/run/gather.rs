//! Adds up the counts that the threads hand over.

use super::recorder::{AFTER, Parcel, Tallies};
use super::timeline::Timeline;
use crate::measured::{Counted, Interval, Measure, Noted};
use crate::store::Counter;
use crate::times::Tally;
use std::collections::BTreeMap;

/// The names of what a workload measures and counts.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) kinds: &'static [&'static str],
    pub(crate) counts: &'static [&'static str],
}

/// Sums of one kind in one interval.
#[derive(Default)]
struct KindSum {
    measure: Measure,
    service: Tally<u64>,
    response: Tally<u64>,
    waited: Tally<u64>,
    failed: Tally<u64>,
}

/// Sums of one interval.
struct Sum {
    kinds: Vec<KindSum>,
    interval: Interval,
}

/// What the threads have handed over so far.
pub(crate) struct Gathered {
    names: Names,
    timeline: Timeline,
    queued: bool,
    /// The interval that each thread has reached.
    reached: Vec<usize>,
    /// Intervals that were shown, in order from 0.
    shown: Vec<Interval>,
    /// The sums of intervals that were not shown yet.
    open: BTreeMap<usize, Sum>,
    /// The store's counters at the ends of intervals.
    counted: BTreeMap<usize, Counted>,
    /// Late counts: they arrived since the last interval was shown, for that interval or earlier ones.
    told_late: Vec<Interval>,
    pub(crate) warmed: u64,
    pub(crate) cut: u64,
    pub(crate) failures: BTreeMap<String, String>,
}

impl Gathered {
    pub(crate) fn new(names: Names, timeline: Timeline, queued: bool, threads: usize) -> Self {
        Self {
            names,
            timeline,
            queued,
            reached: vec![0; threads],
            shown: Vec::new(),
            open: BTreeMap::new(),
            counted: BTreeMap::new(),
            told_late: Vec::new(),
            warmed: 0,
            cut: 0,
            failures: BTreeMap::new(),
        }
    }

    /// Keeps the store's counters for interval `number`. The interval ended before `now`, and the counters were
    /// read at `now`.
    pub(crate) fn count(&mut self, number: usize, now: u64, counters: &[Counter]) {
        let (_, _, warming) = self.timeline.bounds(number);
        let zero = if warming { self.timeline.origin } else { self.timeline.start };
        let counters = counters.iter().map(|counter| (counter.name.to_owned(), counter.value)).collect();
        self.counted.insert(number, Counted { at_nanos: now - zero, counters });
    }

    /// Adds a parcel, and returns its tallies to the caller.
    pub(crate) fn add(&mut self, parcel: Parcel) -> Tallies {
        self.reached[parcel.thread] = parcel.reached;
        let tallies = parcel.tallies;
        self.warmed += tallies.warmed;
        self.cut += tallies.cut;
        for (kind, text) in &tallies.texts {
            self.failures.entry((*kind).to_owned()).or_insert_with(|| text.clone());
        }
        if parcel.interval == AFTER {
            return tallies;
        }
        if parcel.interval < self.shown.len() {
            // The interval was shown before, so this parcel comes late.
            let mut sum = self.empty(parcel.interval);
            sum.add(&tallies);
            let late = self.close(sum);
            let shown = &mut self.shown[parcel.interval];
            *shown = together(shown, &late);
            self.told_late.push(late);
            return tallies;
        }
        let empty = self.empty(parcel.interval);
        self.open.entry(parcel.interval).or_insert(empty).add(&tallies);
        tallies
    }

    fn empty(&self, number: usize) -> Sum {
        let (from, to, warming) = self.timeline.bounds(number);
        let zero = if warming { self.timeline.origin } else { self.timeline.start };
        let kinds = self.names.kinds.iter().map(|name| KindSum {
            measure: Measure { name: (*name).to_owned(), ..Measure::default() },
            ..KindSum::default()
        });
        let counts = self.names.counts.iter().map(|name| Noted { name: (*name).to_owned(), value: 0 });
        let (from_nanos, to_nanos) = (from - zero, to - zero);
        Sum {
            kinds: kinds.collect(),
            interval: Interval { warming, from_nanos, to_nanos, counts: counts.collect(), ..Interval::default() },
        }
    }

    fn close(&self, sum: Sum) -> Interval {
        let kinds = sum.kinds.into_iter().map(|kind| Measure {
            service: kind.service.times(),
            response: self.queued.then(|| kind.response.times()),
            waited: self.queued.then(|| kind.waited.times()),
            failed: kind.failed.times(),
            ..kind.measure
        });
        Interval { kinds: kinds.collect(), ..sum.interval }
    }

    /// The next interval to show, if it has ended before `now` and all threads have reported on it. Threads may be
    /// late by a quarter of the interval; then it is shown without them.
    pub(crate) fn next(&mut self, now: u64) -> Option<Interval> {
        let number = self.shown.len();
        let (from, to, _) = self.timeline.bounds(number);
        if from >= self.timeline.end || now < to {
            return None;
        }
        let late = self.reached.iter().filter(|reached| **reached <= number).count();
        let patience = (to - from) / 4;
        if late > 0 && now < to.saturating_add(patience) {
            return None;
        }
        let sum = self.open.remove(&number);
        let mut interval = self.close(sum.unwrap_or_else(|| self.empty(number)));
        interval.counted = self.counted.remove(&number);
        self.shown.push(interval.clone());
        Some(Interval { late: late as u64, told_late: std::mem::take(&mut self.told_late), ..interval })
    }

    /// All intervals of a run whose window was `nanos` long, and the index of the first interval that was not shown
    /// yet.
    pub(crate) fn finish(mut self, nanos: u64) -> (Vec<Interval>, usize) {
        let shown = self.shown.len();
        let last = self.open.keys().next_back().map_or(0, |last| last + 1);
        let covered = nanos.checked_sub(1).map_or(0, |inside| self.timeline.interval(self.timeline.start + inside) + 1);
        for number in shown..last.max(covered) {
            let sum = self.open.remove(&number);
            let mut interval = self.close(sum.unwrap_or_else(|| self.empty(number)));
            interval.counted = self.counted.remove(&number);
            self.shown.push(interval);
        }
        // The interval in which the run ended may be dropped below. Its counters are still needed.
        let kept =
            self.shown.iter().filter(|interval| !interval.warming).filter_map(|interval| interval.counted.clone());
        let newest = kept.chain(self.counted.into_values()).max_by_key(|counted| counted.at_nanos);
        self.shown.retain(|interval| interval.warming || interval.from_nanos < nanos);
        if let Some(last) = self.shown.last_mut()
            && !last.warming
        {
            last.to_nanos = last.to_nanos.min(nanos);
            last.counted = newest.filter(|newest| newest.at_nanos >= last.to_nanos).or_else(|| last.counted.take());
        }
        (self.shown, shown)
    }
}

impl Sum {
    fn add(&mut self, tallies: &Tallies) {
        self.interval.operations += tallies.operations;
        self.interval.failed += tallies.failed;
        self.interval.retries += tallies.retries;
        self.interval.client_nanos += tallies.cpu_nanos;
        self.interval.pausing_nanos += tallies.pausing_nanos;
        for (mine, theirs) in self.interval.counts.iter_mut().zip(&tallies.counts) {
            mine.value += theirs;
        }
        for (mine, theirs) in self.kinds.iter_mut().zip(&tallies.kinds) {
            mine.service.add(&theirs.service);
            mine.response.add(&theirs.response);
            mine.waited.add(&theirs.waited);
            mine.failed.add(&theirs.failed);
            mine.measure.oks += theirs.oks;
            mine.measure.not_found += theirs.not_found;
            mine.measure.batched += theirs.batched;
            mine.measure.rolled_back += theirs.rolled_back;
            mine.measure.rows += theirs.rows;
            mine.measure.bytes += theirs.bytes;
            mine.measure.retries += theirs.retries;
            for (name, count) in &theirs.failures {
                *mine.measure.failures.entry((*name).to_owned()).or_default() += count;
            }
        }
    }
}

/// Adds two parts of one interval.
fn together(one: &Interval, other: &Interval) -> Interval {
    let kinds = one.kinds.iter().zip(&other.kinds).map(|(one, other)| Measure::sum([one, other]));
    Interval {
        operations: one.operations + other.operations,
        failed: one.failed + other.failed,
        retries: one.retries + other.retries,
        client_nanos: one.client_nanos + other.client_nanos,
        pausing_nanos: one.pausing_nanos + other.pausing_nanos,
        kinds: kinds.collect(),
        counts: Noted::sum([&one.counts[..], &other.counts]),
        counted: one.counted.clone(),
        told_late: Vec::new(),
        ..*one
    }
}
