use super::*;
use crate::welch::tests::Series;
use harness::{Interval, Length, Measure, Measured, Plan, Times};
use std::time::Duration;

/// A run of `seconds` seconds, with `per_second` reads in each second. In second `s`, each read takes `micros(s)`.
pub fn run(per_second: u64, seconds: u64, micros: impl Fn(u64) -> u64) -> Run {
    let reads = |second: u64| {
        let mut histogram = Times::default().hdr();
        histogram.record_n(micros(second) * 1_000, per_second).expect("it grows");
        Measure { name: "READ".to_owned(), service: Times::from_hdr(&histogram), oks: per_second, ..Measure::default() }
    };
    let of_second = |second: u64| Interval {
        from_nanos: second * 1_000_000_000,
        to_nanos: (second + 1) * 1_000_000_000,
        operations: per_second,
        client_nanos: 900_000_000,
        kinds: vec![reads(second)],
        ..Interval::default()
    };
    let intervals: Vec<Interval> = (0..seconds).map(of_second).collect();
    let operations = per_second * seconds;
    let mut measured = Measured {
        nanos: seconds * 1_000_000_000,
        operations,
        kinds: vec![Measure::sum(intervals.iter().flat_map(|interval| &interval.kinds))],
        intervals,
        counters: vec![harness::Change {
            name: "bytes written".to_owned(),
            after: 50 * operations,
            ..Default::default()
        }],
        ..Measured::default()
    };
    measured.cost.user_nanos = seconds * 900_000_000;
    measured.cost.client_nanos = seconds * 900_000_000;
    let plan = Plan { length: Length::Time(Duration::from_secs(seconds)), ..Plan::default() };
    Run::new("workload c", "larch:db", &plan, measured)
}

fn report(run: Run) -> (String, Report) {
    let mut report = Report::new(Environment::default());
    report.runs.push(run);
    ("r.json".to_owned(), report)
}

/// A side whose runs differ by about 1 %, in rates and times.
fn some_side(series: &mut Series, runs: usize, slower: f64) -> Vec<(String, Report)> {
    let one = |_| {
        let factor = 1.0 + slower + 0.01 * series.normal();
        report(run((20_000.0 / factor) as u64, 20, |second| (1_000.0 * factor) as u64 + second % 3))
    };
    (0..runs).map(one).collect()
}

#[test]
fn a_slower_side_is_worse_and_a_faster_one_better() {
    let mut series = Series::new(0x5eed_0020);
    for (slower, worse, better) in [(0.1, 2, 0), (-0.1, 0, 2), (0.0, 0, 0)] {
        let (base, new) = (some_side(&mut series, 5, 0.0), some_side(&mut series, 5, slower));
        let found = compare(&base, &new, Options::default()).expect("they can be compared");
        assert_eq!(found.deciding(Verdict::Worse).count(), worse, "{slower}: {found:#?}");
        assert_eq!(found.deciding(Verdict::Better).count(), better, "{slower}: {found:#?}");
        let deciding: Vec<(&str, &str)> = found.runs[0]
            .rows
            .iter()
            .filter(|row| row.decides)
            .map(|row| (row.kind.as_str(), row.name.as_str()))
            .collect();
        assert_eq!(deciding, [("all", "throughput"), ("READ", "p99")]);
        assert!(crate::text(&found).contains(if worse > 0 { "WORSE" } else { "No significant" }));
    }
}

#[test]
fn what_is_smaller_than_matters_is_no_worsening() {
    let mut series = Series::new(0x5eed_0021);
    let (base, new) = (some_side(&mut series, 10, 0.0), some_side(&mut series, 10, 0.05));
    let options = Options { at_least: 0.2, ..Options::default() };
    let found = compare(&base, &new, options).expect("they can be compared");
    assert_eq!(found.deciding(Verdict::Worse).count(), 0);
    assert_eq!(found.deciding(Verdict::Small).count(), 2);
}

#[test]
fn whole_comparisons_of_one_build_rarely_show_a_difference() {
    let mut series = Series::new(0x5eed_0022);
    for runs in [1, 5] {
        let differs = |_: &u32| {
            let (base, new) = (some_side(&mut series, runs, 0.0), some_side(&mut series, runs, 0.0));
            let found = compare(&base, &new, Options { at_least: 0.0, ..Options::default() }).expect("they can be");
            found.deciding(Verdict::Worse).chain(found.deciding(Verdict::Better)).next().is_some()
        };
        let differ = (0..100).filter(differs).count();
        assert!(differ <= 3, "{runs} runs a side: {differ} of 100 pairs differ");
    }
}

#[test]
fn runs_that_hide_a_worsening_are_not_called_alike() {
    // The runs of each side have rates from 1,000 to 200,000.
    let side = |rates: [u64; 3]| rates.map(|rate| report(run(rate, 20, |_| 100)));
    let (base, new) = (side([1_000, 20_000, 200_000]), side([2_000, 10_000, 150_000]));
    let found = compare(&base, &new, Options::default()).expect("they can be compared");
    let hidden: Vec<&str> = found.deciding(Verdict::CannotTell).map(|(_, row)| row.name.as_str()).collect();
    assert_eq!(hidden, ["throughput"], "{found:#?}");
    assert!(crate::text(&found).contains("CANNOT TELL at 1 %: "), "{}", crate::text(&found));
    // If the runs lie close together, the text says that no difference is significant.
    let near = side([20_000, 20_100, 19_900]);
    let found = compare(&near, &near, Options::default()).expect("they can be compared");
    assert_eq!(found.deciding(Verdict::CannotTell).count(), 0);
    assert!(crate::text(&found).contains("No significant difference"));
}

#[test]
fn one_run_a_side_says_what_it_does_not_cover() {
    let found = compare(&[report(run(1_000, 20, |_| 100))], &[report(run(990, 20, |_| 100))], Options::default());
    let found = found.expect("they can be compared");
    assert!(
        found.notes.iter().any(|note| note.contains("does not show how runs of one build differ")),
        "{:?}",
        found.notes
    );
    assert_eq!(found.deciding(Verdict::Worse).count(), 0, "1 % is less than runs of one build differ by");
}

#[test]
fn sides_that_were_not_made_in_turns_are_told() {
    let at = |millis| {
        let mut run = run(1_000, 20, |_| 100);
        run.measured.began_unix_millis = millis;
        report(run)
    };
    let noted = |base: [u64; 2], new: [u64; 2]| {
        let found = compare(&base.map(at), &new.map(at), Options::default()).expect("they can be compared");
        found.notes.iter().any(|note| note.contains("not made in turns"))
    };
    assert!(noted([1, 2], [3, 4]) && noted([3, 4], [1, 2]));
    assert!(!noted([1, 3], [2, 4]));
}

#[test]
fn runs_that_are_no_results_are_refused_by_name() {
    let good = || report(run(1_000, 20, |_| 100));
    let spoilt = |spoil: fn(&mut Run)| {
        let (file, mut report) = good();
        spoil(&mut report.runs[0]);
        (file, report)
    };
    for (bad, part) in [
        (spoilt(|run| run.error = Some("the disk is full".to_owned())), "workload c failed: the disk is full"),
        (spoilt(|run| run.measured.interrupted = true), "was interrupted"),
        (spoilt(|run| run.measured.operations = 0), "measured nothing"),
        (spoilt(|run| run.name = "load a".to_owned()), "the base has workload c; the new results have load a"),
    ] {
        let error = compare(&[good()], &[bad], Options::default()).expect_err("it cannot be compared");
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_comparison_that_can_find_nothing_cannot_tell() {
    let short = || report(run(1_000, 1, |_| 100));
    let compared = |runs: usize| {
        let side: Vec<_> = (0..runs).map(|_| short()).collect();
        compare(&side, &side, Options::default()).expect("they can be compared")
    };
    let single = compared(1);
    assert_eq!(single.outcome(), Outcome::CannotTell, "a single second says nothing");
    let text = crate::text(&single);
    assert!(text.contains("CANNOT TELL: ") && text.contains("repeat the runs"), "{text}");
    assert!(text.contains("SHORT WINDOW of 1.00 s"), "{text}");
    assert_eq!(compared(2).outcome(), Outcome::NotWorse, "two runs do");
}

#[test]
fn results_of_other_work_cannot_be_told_apart_and_what_differs_comes_first() {
    let mut series = Series::new(0x5eed_0024);
    let (base, mut new) = (some_side(&mut series, 5, 0.0), some_side(&mut series, 5, 0.5));
    for (_, report) in &mut new {
        report.environment.machine.processors = 64;
        report.environment.commit = Some("b".to_owned());
        report.runs[0].settings.push(harness::report::Pair::new("cache", "1 GiB"));
        report.runs[0].plan.clients = 9;
    }
    let found = compare(&base, &new, Options::default()).expect("they are results");
    assert_eq!((found.outcome(), found.runs.len()), (Outcome::CannotTell, 0), "a worsening of 50 % is not claimed");
    let text = crate::text(&found);
    let listed = text.lines().filter_map(|line| line.strip_prefix("  ")?.split_once(": "));
    let places: Vec<&str> = listed.map(|(of, _)| of).collect();
    assert_eq!(places, ["host", "binary", "settings", "work"], "{text}");
    let despite = compare(&base, &new, Options { despite_differences: true, ..Options::default() });
    assert_eq!(despite.expect("they are results").outcome(), Outcome::Worse);
}

#[test]
fn a_page_has_the_figures_and_a_line_for_each_run() {
    let mut series = Series::new(0x5eed_0023);
    let (base, new) = (some_side(&mut series, 2, 0.0), some_side(&mut series, 2, 0.3));
    let found = compare(&base, &new, Options::default()).expect("they can be compared");
    let page = crate::page(&found, &base, &new);
    let charts: Vec<&page::Chart> = page
        .blocks
        .iter()
        .filter_map(|block| if let page::Block::Chart(chart) = block { Some(chart) } else { None })
        .collect();
    assert_eq!(charts.len(), 5, "differences; throughput and p99, each as means and as runs");
    let names = |chart: usize| charts[chart].lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>();
    assert_eq!(names(0), ["1: workload c, all throughput", "2: workload c, READ p99"]);
    assert_eq!((names(1), names(2)), (vec!["base", "new"], vec!["base 1", "base 2", "new 1", "new 2"]));
    for chart in &charts[1..] {
        assert!(chart.lines.iter().all(|line| line.points.len() == 20), "{}", chart.title);
    }
    let [first, second] = [0, 1].map(|run| charts[2].lines[run].points[3].1);
    assert_eq!(charts[1].lines[0].points[3].1, f64::midpoint(first, second), "the mean of both runs");
    assert!(page.html().contains("READ p99, us *"));
}
