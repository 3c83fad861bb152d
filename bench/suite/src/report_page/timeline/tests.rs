use super::*;
use harness::{Change, Counted, Measured, Plan};

/// A run with a warm-up of one second and a window of two seconds. Its store has counted flushes and page reads at
/// the end of each second.
fn run(name: &str, began_unix_millis: u64) -> Run {
    let interval = |warming, second: u64, reads, flushes| Interval {
        warming,
        from_nanos: second * 1_000_000_000,
        to_nanos: (second + 1) * 1_000_000_000,
        operations: 100,
        counted: Some(Counted {
            at_nanos: (second + 1) * 1_000_000_000,
            counters: BTreeMap::from([
                ("page reads".to_owned(), reads),
                ("cache hits".to_owned(), 3 * reads),
                ("flushes".to_owned(), flushes),
            ]),
        }),
        ..Interval::default()
    };
    let change = |name: &str, before, after| Change { name: name.to_owned(), before, after, gauge: false };
    let measured = Measured {
        began_unix_millis,
        nanos: 2_000_000_000,
        operations: 200,
        intervals: vec![interval(true, 0, 10, 1), interval(false, 0, 30, 1), interval(false, 1, 90, 2)],
        counters: vec![change("page reads", 10, 90), change("cache hits", 30, 270), change("flushes", 1, 2)],
        ..Measured::default()
    };
    let mut run = Run::new(name, "larch:db", &Plan::default(), measured);
    run.settled_nanos = Some(500_000_000);
    run
}

fn shown(runs: &[Run]) -> Vec<Shown<'_>> {
    runs.iter().map(|run| Shown { name: run.name.clone(), run, result: 0 }).collect()
}

#[test]
fn counters_become_rates_from_sample_to_sample() {
    let run = run("c", 1_000_000);
    assert_eq!(a_second(&run, READS, 1.0), [(1.0, 20.0), (2.0, 60.0)]);
    assert_eq!(a_second(&run, WRITTEN, 1.0), [], "the store counts no such thing");
    assert_eq!(found_in_cache(&run), [(1.0, 75.0), (2.0, 75.0)]);
}

#[test]
fn what_a_store_did_lies_between_the_samples_that_saw_it() {
    let lane = Lane { name: "flushes".to_owned(), spans: vec![(1.0, 2.0)] };
    assert_eq!(lanes(&run("c", 1_000_000)), [lane], "the flush of the warm-up is of no window");
}

#[test]
fn a_store_that_counts_the_time_of_stalls_alone_has_stalls() {
    let mut run = run("c", 1_000_000);
    for (interval, micros) in run.measured.intervals.iter_mut().zip([0, 0, 500]) {
        let counted = interval.counted.as_mut().expect("it was counted");
        counted.counters.insert("stalled micros".to_owned(), micros);
    }
    run.measured.counters.push(Change { name: "stalled micros".to_owned(), ..Change::default() });
    let stalls = lanes(&run).into_iter().find(|lane| lane.name == "stalls").expect("they are counted");
    assert_eq!(stalls.spans, [(1.0, 2.0)]);
    assert_eq!(a_second(&run, WAITED, 1e-3), [(1.0, 0.0), (2.0, 0.5)]);
}

#[test]
fn results_without_samples_have_no_charts_of_counters() {
    let mut run = run("c", 1_000_000);
    run.measured.intervals.iter_mut().for_each(|interval| interval.counted = None);
    let runs = [run];
    let titles: Vec<String> = charts(&shown(&runs).iter().collect::<Vec<_>>()).into_iter().filter_map(title).collect();
    assert_eq!(titles, ["Operations a second"]);
}

fn title(block: Block) -> Option<String> {
    if let Block::Timeline(Timeline { chart, .. }) = block { Some(chart.title) } else { None }
}

#[test]
fn runs_lie_by_the_clock_where_they_were() {
    let runs = [run("a", 1_000_000), run("b", 1_001_000)];
    let Some(Block::Timeline(timeline)) = by_the_clock(&shown(&runs)) else { panic!("two runs have a clock") };
    let points = |name: &str| {
        let line = timeline.chart.lines.iter().find(|line| line.name == name).expect("it is there");
        line.points.clone()
    };
    // Each run began to warm up a second before its window.
    assert_eq!(points("a"), [(1.0, 100.0), (2.0, 100.0), (3.0, 100.0)]);
    assert_eq!(points("b"), [(2.0, 100.0), (3.0, 100.0), (4.0, 100.0)]);
    assert_eq!(points("together"), [(2.0, 200.0), (3.0, 200.0)], "where both ran");
    assert_eq!(timeline.lanes[0].spans, [(2.0, 3.0), (3.0, 4.0)]);

    let one_after_the_other = [run("a", 1_000_000), run("b", 1_009_000)];
    assert_eq!(by_the_clock(&shown(&one_after_the_other)), None, "nothing ran together");
    assert_eq!(by_the_clock(&shown(&runs[..1])), None);
    let unknown = [run("a", 0), run("b", 0)];
    assert_eq!(by_the_clock(&shown(&unknown)), None, "they do not say when they were");
}

#[test]
fn phases_follow_each_other() {
    let runs = [run("load", 1_700_000_001_000)];
    let table = phases(&shown(&runs));
    let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
    assert_eq!(
        table.rows,
        [
            row(["load: warm-up", "2023-11-14 22:13:20", "0", "1"]),
            row(["load: measured", "2023-11-14 22:13:21", "1", "2"]),
            row(["load: settle", "2023-11-14 22:13:23", "3", "0.5"]),
        ]
    );
}
