//! Tests of `larch bench search`: what it finds on the store that does nothing, what it writes, and what it refuses.

use crate::bench_stops::{interrupt, wait_for};
use crate::session::Session;
use serde_json::Value;

/// `larch bench search` with an objective that any rate meets which the client can keep.
const SEARCH: [&str; 8] = ["bench", "search", "--objective", "p50<1000s", "--precision", "50%", "--repeats", "1"];

/// Runs a search whose only limit is the client, and checks its text and its files.
fn check(workload: &[&str]) {
    let session = Session::new();
    let files = ["--json", "search.json", "--page", "search.html"];
    let told = session.run(&[&SEARCH[..], &files, workload, &["--out", "runs.json"]].concat()).ok();
    assert!(told.contains("The highest rate that meets p50 < 1000 s is "), "{told}");
    let search: Value = serde_json::from_slice(&session.bytes("search.json")).expect("it is JSON");
    let rate = |bound: &str| search[bound]["operations_per_second"].as_f64().expect(bound);
    assert!(rate("lower") < rate("upper") && rate("upper") < rate("lower") * 1.6, "{search}");
    assert_eq!((&search["format"], &search["is_confirmed"]), (&"larch-search-result".into(), &true.into()));
    assert_eq!(search["objective"]["quantile"], 0.5);
    let runs = search["runs"].as_array().expect("it made some").len();
    assert_eq!(crate::bench::runs(&session, "runs.json").len(), runs, "every run is in the result");
    let page = String::from_utf8(session.bytes("search.html")).expect("a page is text");
    assert!(
        page.contains("p50 of each run") && page.contains("p50 &lt; 1000 s"),
        "the page has a chart and the objective"
    );
}

#[test]
fn the_rate_of_ycsb_is_found_from_a_run_without_a_rate() {
    check(&["ycsb", "--workload", "c", "--target", "noop:", "--time", "50ms", "-q"]);
}

#[test]
fn the_rate_of_rows_in_partitions_is_found_from_a_given_rate() {
    check(&[
        "kv",
        "-target",
        "noop:",
        "-mode",
        "write",
        "-workload",
        "uniform",
        "-duration",
        "50ms",
        "-max-rate",
        "50000",
        "-q",
    ]);
}

#[test]
fn a_rate_that_nothing_meets_ends_with_1() {
    let session = Session::new();
    let args = ["bench", "search", "--objective", "max<1us", "ycsb", "--workload", "c", "-p", "recordcount=10"];
    let load = ["bench", "ycsb", "load", "-q", "--workload", "c", "-p", "recordcount=10", "--target", "larch:db"];
    session.run(&load).ok();
    let more = ["--target", "larch:db", "--time", "20ms", "--rate", "1000", "--slow-down", "10us"];
    let ran = session.run(&[&args[..], &more].concat());
    let told = String::from_utf8(ran.out).expect("it is text");
    assert_eq!(ran.code, Some(1), "{told}{}", ran.err);
    assert!(told.contains("No rate met max < 1.00 us."), "{told}");
}

#[test]
fn an_objective_of_another_form_is_refused_with_the_grammar() {
    let session = Session::new();
    for objective in ["p99", "p99>5ms", "p10<5ms", "p99<5", "mean<5ms"] {
        let args = ["bench", "search", "--objective", objective, "ycsb", "--workload", "c", "--target", "noop:"];
        let parts = ["a percentile from p50 to p99.99, or max, then `<`, then a time in us, ms or s", "p99<5ms"];
        session.run(&args).fails(2, &parts);
    }
}

#[test]
fn what_no_search_can_run_is_refused() {
    let session = Session::new();
    for (workload, part) in [
        (&["ycsb", "load", "--workload", "c", "--target", "noop:"][..], "load the table before"),
        (&["ycsb", "--workload", "c", "--target", "noop:", "--share", "1/2"], "by one process"),
        (&["ycsb", "--workload", "c", "--target", "larch:none", "--time", "1s"], "none"),
        (&["kv", "-target", "noop:", "-mode", "write", "-workload", "sequential"], "ends with its rows"),
        (&["kv", "-target", "noop:", "-mode", "read", "-workload", "uniform", "--out", "no/such/file"], "no/such/file"),
    ] {
        let ran = session.run(&[&SEARCH[..], workload].concat());
        assert!(ran.code == Some(2) || ran.code == Some(3), "{}", ran.err);
        assert!(ran.err.contains(part) && ran.out.is_empty(), "{part:?} is not in {}", ran.err);
    }
}

#[test]
fn control_c_ends_a_search_with_what_was_tried() {
    let session = Session::new();
    let workload =
        ["--json", "s.json", "ycsb", "--workload", "c", "--target", "noop:", "--time", "10h", "--rate", "1000"];
    let mut child = session.start(&[&SEARCH[..], &workload].concat());
    let rest = wait_for(&mut child, "searching the highest rate");
    interrupt(&child);
    let ran = rest(child);
    let told = String::from_utf8(ran.out).expect("it is text");
    assert_eq!(ran.code, Some(130), "{told}{}", ran.err);
    assert!(told.contains("ended before its time: interrupted") && !told.contains("No rate met"), "{told}");
    let search: Value = serde_json::from_slice(&session.bytes("s.json")).expect("it is JSON");
    assert_eq!((&search["lower"], &search["is_confirmed"]), (&Value::Null, &false.into()));
}
