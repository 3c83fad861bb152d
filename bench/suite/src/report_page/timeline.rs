//! The part of the page about time: the phases of runs, charts that start with the measured window, and one by the
//! wall clock.

use super::{Shown, table};
use harness::report::Run;
use harness::report::figures::{COMPACTIONS, FLUSHES, HITS, READS, STALLS, WAITED};
use harness::{Interval, Measure, Times};
use kit::time::Timestamp;
use page::{Axis, Block, Chart, Curve, Lane, Table, Timeline, figure};
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// The store counters behind the charts.
const READ: &[&str] = &["bytes read"];
const WRITTEN: &[&str] = &["bytes written", "log bytes", "log bytes written"];
/// The lanes for events, each with the names of its counters. For a store that does not count its stalls, their total
/// time is used.
const LANES: [(&str, &[&str]); 3] = [("flushes", FLUSHES), ("compactions", COMPACTIONS), ("stalls", STALLS)];
const STALL_TIME: &[&str] = &["stalled micros"];

/// A chart has lanes, which show what the stores did, if it has at most this many runs.
const MOST_WITH_LANES: usize = 2;

const MIB: f64 = (1 << 20) as f64;

/// The length of a run's warm-up.
fn warming_nanos(run: &Run) -> u64 {
    run.measured.intervals.iter().filter(|it| it.warming).map(|it| it.to_nanos).max().unwrap_or(0)
}

/// When the run's first client began, in milliseconds since 1970. It is 0 if the result does not say.
pub fn began_millis(run: &Run) -> u64 {
    run.measured.began_unix_millis.saturating_sub(warming_nanos(run) / 1_000_000)
}

/// The ends of intervals. The window begins at 0, and moments before the window are negative.
pub fn moments(run: &Run) -> Vec<f64> {
    let warming = warming_nanos(run);
    let place = |interval: &Interval| match interval.warming {
        true => interval.to_nanos as f64 - warming as f64,
        false => interval.to_nanos as f64,
    };
    run.measured.intervals.iter().map(|interval| place(interval) / 1e9).collect()
}

/// The counters of a store at one moment.
struct Sample<'r> {
    at: f64,
    counters: BTreeMap<&'r str, u64>,
}

/// All samples of a run, and one for the beginning of the window.
fn samples(run: &Run) -> Vec<Sample<'_>> {
    let warming = warming_nanos(run) as f64;
    let sample = |interval: &'_ Interval| {
        let counted = interval.counted.as_ref()?;
        let zero = if interval.warming { warming } else { 0.0 };
        Some((interval.warming, (counted.at_nanos as f64 - zero) / 1e9))
    };
    let all = run.measured.intervals.iter().filter_map(|interval| Some((interval, sample(interval)?)));
    let all = all.map(|(interval, (is_warming, at))| {
        let counters = interval.counted.iter().flat_map(|counted| &counted.counters);
        (is_warming, Sample { at, counters: counters.map(|(name, value)| (name.as_str(), *value)).collect() })
    });
    let (before, window): (Vec<_>, Vec<_>) = all.partition(|(is_warming, _)| *is_warming);
    if window.is_empty() {
        return Vec::new();
    }
    let begin = run.measured.counters.iter().map(|change| (change.name.as_str(), change.before)).collect();
    // The last sample of the warm-up may have been taken shortly after the window began.
    let before = before.into_iter().map(|(_, sample)| sample).filter(|sample| sample.at < 0.0);
    let begin = std::iter::once(Sample { at: 0.0, counters: begin });
    before.chain(begin).chain(window.into_iter().map(|(_, sample)| sample)).collect()
}

/// The growth of the counters `names`, summed, between consecutive samples: ((from, to), growth). Empty if the
/// store has none of them.
fn growth(run: &Run, names: &[&str]) -> Vec<((f64, f64), f64)> {
    let samples = samples(run);
    let sum = |sample: &Sample<'_>| {
        let found: Vec<u64> = names.iter().filter_map(|name| sample.counters.get(name).copied()).collect();
        (!found.is_empty()).then(|| found.iter().sum::<u64>())
    };
    let grown = samples.windows(2).filter_map(|pair| {
        let (before, after) = (sum(&pair[0])?, sum(&pair[1])?);
        Some(((pair[0].at, pair[1].at), after.saturating_sub(before) as f64))
    });
    grown.filter(|((from, to), _)| to > from).collect()
}

/// The growth of the counters per second, times `factor`.
fn a_second(run: &Run, names: &[&str], factor: f64) -> Vec<(f64, f64)> {
    growth(run, names).into_iter().map(|((from, to), grown)| (to, grown * factor / (to - from))).collect()
}

/// The cache's hit rate in percent. Intervals without look-ups are left out.
fn found_in_cache(run: &Run) -> Vec<(f64, f64)> {
    let hits = growth(run, HITS);
    let reads: Vec<_> = growth(run, READS);
    let pairs = hits.into_iter().zip(reads);
    let share = |(((_, to), hits), (_, reads)): (((f64, f64), f64), (_, f64))| {
        (hits + reads > 0.0).then(|| (to, 100.0 * hits / (hits + reads)))
    };
    pairs.filter_map(share).collect()
}

/// A lane for each kind of event that the store counts. It marks the interval between two samples if an event
/// happened in it.
fn lanes(run: &Run) -> Vec<Lane> {
    let spans = |names: &[&str]| {
        let all = growth(run, names);
        let some = all.iter().filter(|(_, grown)| *grown > 0.0).map(|(span, _)| *span).collect::<Vec<_>>();
        (!all.is_empty()).then_some(some)
    };
    let lane = |(name, counters): (&str, &[&str])| {
        let spans = spans(counters).or_else(|| if name == "stalls" { spans(STALL_TIME) } else { None });
        Some(Lane { name: name.to_owned(), spans: spans? })
    };
    LANES.into_iter().filter_map(lane).collect()
}

/// The lanes of all runs on one chart, if there are few runs.
fn lanes_of(shown: &[&Shown<'_>]) -> Vec<Lane> {
    if shown.len() > MOST_WITH_LANES {
        return Vec::new();
    }
    let of_run = |(number, one): (usize, &&Shown<'_>)| {
        let named = move |lane: Lane| match shown.len() {
            1 => lane,
            _ => Lane { name: format!("{} {}", lane.name, number + 1), ..lane },
        };
        lanes(one.run).into_iter().map(named).collect::<Vec<_>>()
    };
    shown.iter().enumerate().flat_map(of_run).collect()
}

/// The shaded part of a chart: the longest warm-up of the runs, which ends at 0.
fn shades(shown: &[&Shown<'_>]) -> Vec<(f64, f64, String)> {
    let longest = shown.iter().map(|one| warming_nanos(one.run)).max().unwrap_or(0);
    (longest > 0).then(|| (-(longest as f64) / 1e9, 0.0, "warm-up".to_owned())).into_iter().collect()
}

/// The charts whose time begins with the window. Only the first chart has lanes.
pub fn charts(shown: &[&Shown<'_>]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut add = |title: String, unit: &str, is_logarithmic: bool, lines: Vec<Curve>, lanes: Vec<Lane>| {
        if lines.iter().all(|line| line.points.is_empty()) {
            return;
        }
        let y = if is_logarithmic { Axis::logarithmic(unit) } else { Axis::linear(unit) };
        let chart = Chart { title, x: Axis::linear("seconds of the window"), y, lines, marks: Vec::new() };
        blocks.push(Block::Timeline(Timeline { chart, lanes, shades: shades(shown) }));
    };
    let each = |of: &dyn Fn(&Run) -> Vec<(f64, f64)>| -> Vec<Curve> {
        shown.iter().map(|one| Curve { name: one.name.clone(), points: of(one.run) }).collect()
    };
    add("Operations a second".to_owned(), "operations/s", false, each(&|run| rates(run)), lanes_of(shown));
    match shown {
        [one] => {
            let quantiles = [("50 %", 0.5), ("95 %", 0.95), ("99 %", 0.99), ("99.9 %", 0.999), ("all", 1.0)];
            let line = |(name, quantile): (&str, f64)| Curve {
                name: name.to_owned(),
                points: over_time(one.run, |interval| within(interval.kinds.iter(), quantile)),
            };
            add(
                "Time within which a part of the requests of a second was served".to_owned(),
                "us",
                true,
                quantiles.map(line).into(),
                lanes_of(shown),
            );
            let kinds = one.run.measured.kinds.iter().enumerate().filter(|(_, kind)| !kind.times().is_empty());
            let of_kind = |(number, kind): (usize, &Measure)| Curve {
                name: kind.name.clone(),
                points: over_time(one.run, |interval| within(interval.kinds.get(number).into_iter(), 0.99)),
            };
            let kinds: Vec<Curve> = kinds.map(of_kind).collect();
            if kinds.len() > 1 {
                add("99 % of the requests of each kind within".to_owned(), "us", true, kinds, Vec::new());
            }
        }
        _ => {
            for (title, quantile) in [("Half", 0.5), ("99 %", 0.99), ("99.9 %", 0.999)] {
                let lines = each(&|run| over_time(run, |interval| within(interval.kinds.iter(), quantile)));
                add(format!("{title} of the requests of a second within"), "us", true, lines, Vec::new());
            }
        }
    }
    type Points<'f> = &'f dyn Fn(&Run) -> Vec<(f64, f64)>;
    let counted: [(&str, &str, Points<'_>); 5] = [
        ("Page reads a second", "pages/s", &|run| a_second(run, READS, 1.0)),
        ("Pages found in the cache", "% of those looked for", &found_in_cache),
        ("Read by the store", "MiB/s", &|run| a_second(run, READ, 1.0 / MIB)),
        ("Written by the store, with its log", "MiB/s", &|run| a_second(run, WRITTEN, 1.0 / MIB)),
        ("Writes waited for background work", "ms/s, of all clients", &|run| a_second(run, WAITED, 1e-3)),
    ];
    for (title, unit, of) in counted {
        let lines: Vec<Curve> = each(of).into_iter().filter(|line| line.points.iter().any(|(_, y)| *y > 0.0)).collect();
        add(title.to_owned(), unit, false, lines, Vec::new());
    }
    blocks
}

fn rates(run: &Run) -> Vec<(f64, f64)> {
    over_time(run, |interval| Some(interval.per_second()))
}

fn over_time(run: &Run, of: impl Fn(&Interval) -> Option<f64>) -> Vec<(f64, f64)> {
    let values = run.measured.intervals.iter().map(of);
    moments(run).into_iter().zip(values).filter_map(|(at, value)| Some((at, value?))).collect()
}

/// The `quantile` of the times of the requests in `kinds`, in microseconds. `None` if they are too few.
fn within<'m>(kinds: impl Iterator<Item = &'m Measure>, quantile: f64) -> Option<f64> {
    let times = Times::sum(kinds.map(Measure::times));
    let nanos = match quantile < 1.0 {
        true => times.known_quantile(quantile),
        false => (!times.is_empty()).then(|| times.max()),
    };
    nanos.map(|nanos| nanos as f64 / 1e3)
}

/// The chart of loads, whose time begins with the load. `None` if no load has intervals.
pub fn of_loads(loads: &[&Shown<'_>]) -> Option<Block> {
    let line = |one: &&Shown<'_>| Curve { name: one.name.clone(), points: rates(one.run) };
    let lines: Vec<Curve> = loads.iter().map(line).filter(|line| !line.points.is_empty()).collect();
    let chart = Chart {
        title: "Rows loaded a second".to_owned(),
        x: Axis::linear("seconds of the load"),
        y: Axis::linear("rows/s"),
        lines,
        marks: Vec::new(),
    };
    (!chart.lines.is_empty()).then_some(Block::Chart(chart))
}

/// A chart of all runs by the wall clock, with another line for the sum of those that overlap, as clients in several
/// processes do. `None` if no runs overlap, or if the results do not say when runs began.
pub fn by_the_clock(shown: &[Shown<'_>]) -> Option<Block> {
    let first = shown.iter().map(|one| began_millis(one.run)).min().filter(|first| *first > 0)?;
    if shown.len() < 2 {
        return None;
    }
    let place = |run: &Run| (run.measured.began_unix_millis - first) as f64 / 1e3;
    let moved = |one: &Shown<'_>| {
        let begin = place(one.run);
        Curve {
            name: one.name.clone(),
            points: rates(one.run).into_iter().map(|(at, rate)| (begin + at, rate)).collect(),
        }
    };
    let mut lines: Vec<Curve> = shown.iter().map(moved).collect();
    let together = together(shown, &place);
    if together.is_empty() {
        return None;
    }
    lines.push(Curve { name: "together".to_owned(), points: together });
    let marks = shown.iter().map(|one| (place(one.run), one.name.clone())).collect();
    let mut all: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for one in shown {
        let begin = place(one.run);
        for (name, _) in LANES {
            let spans = lanes(one.run).into_iter().filter(|lane| lane.name == name).flat_map(|lane| lane.spans);
            all.entry(name).or_default().extend(spans.map(|(from, to)| (begin + from, begin + to)));
        }
    }
    let lane = |(name, _): (&str, _)| {
        let mut spans = all.remove(name).unwrap_or_default();
        spans.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        Lane { name: name.to_owned(), spans }
    };
    let lanes: Vec<Lane> = LANES.into_iter().map(lane).filter(|lane| !lane.spans.is_empty()).collect();
    let chart = Chart {
        title: "Operations a second, by the clock".to_owned(),
        x: Axis::linear("seconds since the first run began"),
        y: Axis::linear("operations/s"),
        lines,
        marks,
    };
    Some(Block::Timeline(Timeline { chart, lanes, shades: Vec::new() }))
}

/// The sum of the runs' rates, for each second in all of which at least two runs were active.
fn together(shown: &[Shown<'_>], place: &dyn Fn(&Run) -> f64) -> Vec<(f64, f64)> {
    let mut seconds: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
    for one in shown {
        let (begin, mut own) = (place(one.run), BTreeMap::<i64, (f64, f64)>::new());
        for (interval, to) in one.run.measured.intervals.iter().zip(moments(one.run)) {
            let (to, length) = (begin + to, (interval.to_nanos - interval.from_nanos) as f64 / 1e9);
            let (from, rate) = (to - length, interval.per_second());
            // Divide the interval's operations among the seconds that it covers, in proportion to the overlap.
            for second in from.floor() as i64..to.ceil() as i64 {
                let part = (to.min(second as f64 + 1.0) - from.max(second as f64)).max(0.0);
                let (operations, covered) = own.entry(second).or_default();
                (*operations, *covered) = (*operations + rate * part, *covered + part);
            }
        }
        // Leave out the first and last second, which the run covers only in part: they would look like a drop.
        for (second, (operations, _)) in own.into_iter().filter(|(_, (_, covered))| *covered > 0.999) {
            let (sum, runs) = seconds.entry(second).or_default();
            (*sum, *runs) = (*sum + operations, *runs + 1);
        }
    }
    let several = seconds.iter().filter(|(_, (_, runs))| *runs > 1);
    several.map(|(second, (sum, _))| (*second as f64 + 1.0, *sum)).collect()
}

/// The phases of each run, with their times.
pub fn phases(shown: &[Shown<'_>]) -> Table {
    let first = shown.iter().map(|one| began_millis(one.run)).min().unwrap_or(0);
    let mut rows = Vec::new();
    for Shown { name, run, .. } in shown {
        let mut at = began_millis(run);
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let ramp = nanos(run.plan.ramp).min(warming_nanos(run));
        let phases = [
            ("ramp", Some(ramp).filter(|nanos| *nanos > 0)),
            ("warm-up", Some(warming_nanos(run) - ramp).filter(|nanos| *nanos > 0)),
            ("measured", Some(run.measured.nanos)),
            ("settle", run.settled_nanos),
        ];
        for (phase, nanos) in phases.into_iter().filter_map(|(phase, nanos)| Some((phase, nanos?))) {
            let begins = match run.measured.began_unix_millis {
                0 => ["-".to_owned(), "-".to_owned()],
                _ => {
                    let micros = i64::try_from(at.saturating_mul(1000)).unwrap_or(i64::MAX);
                    [Timestamp(micros).text(), figure((at - first) as f64 / 1e3)]
                }
            };
            rows.push([[format!("{name}: {phase}")].as_slice(), &begins, &[figure(nanos as f64 / 1e9)]].concat());
            at += nanos / 1_000_000;
        }
    }
    let columns = ["phase", "begins, UTC", "after the first, s", "lasts, s"];
    table("Phases of the runs, in the order in which they stand on this page", &columns, rows)
}
