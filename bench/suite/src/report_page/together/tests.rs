use super::*;
use harness::{Measured, Plan, Times};

fn run(name: &str, began_unix_millis: u64, nanos_each: u64) -> Run {
    let mut histogram = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
    (0..100).for_each(|_| histogram.record(nanos_each).expect("it grows"));
    let kind =
        Measure { name: "READ".to_owned(), service: Times::from_hdr(&histogram), oks: 100, ..Measure::default() };
    let measured = Measured { began_unix_millis, nanos: 10_000_000_000, kinds: vec![kind], ..Measured::default() };
    Run::new(name, "larch:db", &Plan::default(), measured)
}

fn shown(runs: &[Run]) -> Vec<Shown<'_>> {
    runs.iter().enumerate().map(|(result, run)| Shown { name: run.name.clone(), run, result }).collect()
}

#[test]
fn clients_of_one_time_are_one_and_their_times_are_merged() {
    let runs = [run("c", 1_000_000, 1000), run("c", 1_004_000, 3000), run("a", 1_000_000, 1000)];
    let shown = shown(&runs);
    let groups = groups(&shown);
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0].name(), "c of 2 clients together");
    let kinds = groups[0].kinds();
    let (kind, rate) = &kinds[0];
    assert_eq!((kind.oks, *rate), (200, 20.0));
    assert_eq!((kind.times().quantile(0.5), kind.times().max()), (1000, 3001), "half of all take 1 us");
}

#[test]
fn runs_of_other_times_or_of_one_result_are_not_together() {
    let runs = [run("c", 1_000_000, 1000), run("c", 1_006_000, 1000), run("c", 0, 1000)];
    assert!(groups(&shown(&runs)).is_empty(), "they share less than half, or do not say when they were");
    let runs = [run("c", 1_000_000, 1000), run("c", 1_000_000, 1000)];
    let mut one_result = shown(&runs);
    one_result[1].result = 0;
    assert!(groups(&one_result).is_empty());
}
