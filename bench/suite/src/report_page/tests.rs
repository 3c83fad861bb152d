use super::*;
use harness::report::Pair;
use harness::{Change, Interval, Measured, Plan};

fn times(nanos: impl IntoIterator<Item = u64>) -> Times {
    let mut histogram = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
    nanos.into_iter().for_each(|nanos| histogram.record(nanos).expect("it grows"));
    Times::from_hdr(&histogram)
}

fn report(name: &str) -> Report {
    let kind =
        |nanos: u64| Measure { name: "READ".to_owned(), service: times([nanos; 100]), oks: 100, ..Measure::default() };
    let interval = |warming, from_nanos, nanos| Interval {
        warming,
        from_nanos,
        to_nanos: from_nanos + 1_000_000_000,
        operations: 100,
        kinds: vec![kind(nanos)],
        ..Interval::default()
    };
    let measured = Measured {
        nanos: 2_000_000_000,
        operations: 200,
        kinds: vec![Measure::sum([&kind(1000), &kind(3000)])],
        intervals: vec![interval(true, 0, 9000), interval(false, 0, 1000), interval(false, 1_000_000_000, 3000)],
        counters: vec![
            Change { name: "bytes read".to_owned(), before: 0, after: 200 << 20, gauge: false },
            Change { name: "files".to_owned(), before: 3, after: 7, gauge: true },
        ],
        ..Measured::default()
    };
    let mut run = Run::new(name, "larch:db", &Plan::default(), measured);
    run.settings = vec![Pair::new("cache", "64 MiB")];
    let mut report = Report::new(Environment::default());
    report.runs = vec![run];
    report
}

#[test]
fn a_page_has_what_was_measured_and_how() {
    let html = page(&[("a".to_owned(), report("workload c"))], Some(3.6)).html();
    for part in ["workload c, READ", "workload c, all", "<th scope=\"row\">cache</th><td>64 MiB</td>", "7 in the end"] {
        assert!(html.contains(part), "{part:?} is not there");
    }
    // 200 requests in 2 s, half of them in 1 us and half in 3 us.
    assert!(html.contains("<th scope=\"row\">workload c, READ</th><td>100</td><td>1.00 us</td><td>3.00 us</td>"));
    // 200 MiB for 200 operations are a million MiB for a million operations. A value that was not counted is shown
    // as not known.
    assert!(html.contains("<td>977 GiB</td><td>-</td>"));
}

#[test]
fn the_window_begins_at_zero() {
    let report = report("c");
    assert_eq!(timeline::moments(&report.runs[0]), [0.0, 1.0, 2.0], "the warm-up ends where the window begins");
}

#[test]
fn several_results_have_the_names_of_their_files() {
    let html = page(&[("a".to_owned(), report("c")), ("b".to_owned(), report("c"))], None).html();
    assert!(html.contains("a: c, READ") && html.contains("b: c, READ"));
}

#[test]
fn a_page_of_tpcc_has_its_figures_and_says_that_it_is_not_official() {
    let mut report = report("tpcc nowait");
    let run = &mut report.runs[0];
    run.workload = vec![Pair::new("mode", "nowait"), Pair::new("warehouses", "2")];
    let kind = &mut run.measured.kinds[0];
    kind.name = "NewOrder".to_owned();
    kind.rolled_back = 2;
    (kind.failures, kind.retries) = ([("serialization_failure".to_owned(), 7)].into(), 5);
    let html = page(&[("a".to_owned(), report)], None).html();
    // 202 new orders in two seconds.
    for part in [
        "These are no official results of TPC.",
        "<th scope=\"row\">tpcc nowait</th><td>nowait</td><td>2</td><td>202</td><td>6060</td><td>none</td>",
        "<th scope=\"row\">tpcc nowait, NewOrder</th><td>202</td><td>5</td><td>2</td><td>2</td><td>100.00 %</td>",
        "retries</th><th scope=\"col\">of ok rolled back",
        "90 % of NewOrder within",
        "In what tpcc nowait differs from TPC-C 5.11",
    ] {
        assert!(html.contains(part), "{part:?} is not in {html}");
    }
    assert!(!page(&[("a".to_owned(), super::tests::report("c"))], None).html().contains("TPC"));
}

#[test]
fn the_picture_comes_before_the_table_and_the_load_has_an_axis_of_its_own() {
    let mut report = report("load a");
    report.runs[0].plan.loading = true;
    report.runs.push(super::tests::report("workload a").runs.remove(0));
    let page = page(&[("a".to_owned(), report)], None);
    let first_table = page.blocks.iter().position(|block| matches!(block, Block::Table(_))).expect("a table");
    let charts: Vec<(usize, &Chart)> = page
        .blocks
        .iter()
        .enumerate()
        .filter_map(|(at, block)| match block {
            Block::Timeline(timeline) => Some((at, &timeline.chart)),
            Block::Chart(chart) => Some((at, chart)),
            _ => None,
        })
        .collect();
    assert!(charts[0].0 < first_table, "{:?}", page.blocks);
    let of_load: Vec<&str> = charts
        .iter()
        .filter(|(_, chart)| chart.lines.iter().any(|line| line.name == "load a"))
        .map(|(_, chart)| chart.title.as_str())
        .collect();
    assert_eq!(of_load, ["Rows loaded a second"]);
}

#[test]
fn a_short_window_is_marked_and_percentiles_of_few_requests_are_blank() {
    let html = page(&[("a".to_owned(), report("workload c"))], None).html();
    assert!(html.contains("workload c: SHORT WINDOW of 2.00 s"));
    // 200 requests have a 95th percentile, but no 99th one.
    assert!(html.contains("<td>1.00 us</td><td>3.00 us</td><td>-</td><td>-</td><td>3.00 us</td>"));
}
