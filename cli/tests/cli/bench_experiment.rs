//! Tests of `larch bench experiment`: what it prints and writes, what it refuses, and that it leaves nothing else
//! behind.

use crate::bench::runs;
use crate::bench_stops::{interrupt, wait_for};
use crate::session::Session;
use serde_json::Value;

const SHARING: [&str; 3] = ["bench", "experiment", "sharing"];

/// The value that the counter `what` of a run had when all readers had ended.
#[track_caller]
fn counted(run: &Value, what: &str) -> f64 {
    let counters = run["measured"]["counters"].as_array().expect("there are counters");
    let name = format!("{what} until all had ended");
    let counter = counters.iter().find(|counter| counter["name"] == name.as_str()).expect("it is counted");
    counter["after"].as_f64().expect("it is a number")
}

#[test]
fn both_sides_of_sharing_are_shown_and_written_as_runs() {
    let session = Session::new();
    let ran = session.run(&[&SHARING[..], &["--scale", "tiny", "--out", "o"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let told = String::from_utf8(ran.out).expect("tables are ASCII");
    let head = " time   ops/s  rows/s errors max    99.9th 99th   95th   90th   median mean\n";
    assert!(told.matches(head).count() >= 8, "two repeats of two sides of two tables: {told}");
    for part in ["10 partitions: ", "10,000 keys: ", "at least 1.7", "page reads a row", "waits for the disk"] {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
    let runs = runs(&session, "o/runs.json");
    let names: Vec<&str> = runs.iter().map(|run| run["name"].as_str().expect("it has a name")).collect();
    let of =
        |data: &str| ["before, private index pages", "after, shared index pages"].map(|side| format!("{data}, {side}"));
    let [few, many] = [of("10 partitions"), of("10,000 keys")];
    assert_eq!(names, [few.clone(), few, many.clone(), many].concat());
    for sides in runs.chunks(2) {
        let [before, after] = [0, 1].map(|side| {
            let run = &sides[side];
            assert!(run["measured"]["operations"].as_u64().is_some_and(|count| count > 0), "{run}");
            (counted(run, "page reads") / counted(run, "rows"), counted(run, "index page reads"))
        });
        assert!(before.0 >= 2.0 && before.0.fract() == 0.0, "a read takes every page of its way: {before:?}");
        assert!(after.0 < 2.0 && after.1 < 10.0, "nodes are read once: {after:?}");
    }
    let report = session.run(&["bench", "report", "o/runs.json", "--out", "page.html"]);
    assert_eq!(report.code, Some(0), "{}", report.err);
}

/// Runs an experiment twice. The second run measures nothing, because the result of the first run is already
/// there. Both runs show the same result.
#[track_caller]
fn leaves_a_result_and_is_not_made_twice(name: &str, cells: usize, parts: &[&str]) {
    let session = Session::new();
    let args = ["bench", "experiment", name, "--scale", "tiny", "--out", "o"];
    let ran = session.run(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let told = String::from_utf8(ran.out).expect("tables are ASCII");
    for part in parts.iter().chain(&["falls short: ", "page: o/index.html"]) {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
    let result: Value = serde_json::from_slice(&session.bytes("o/result.json")).expect("it is JSON");
    assert_eq!(result["cells"].as_object().expect("there are cells").len(), cells);
    let page = String::from_utf8(session.bytes("o/index.html")).expect("it is text");
    assert!(page.contains("What was measured") && page.contains("<table"), "{name}");
    assert!(!session.has("o/data"), "the databases are gone");
    let again = session.run(&args);
    assert_eq!((again.code, String::from_utf8(again.out).expect("tables are ASCII")), (Some(0), told));
    assert!(again.err.contains(&format!("{cells} cells are in o/cells.jsonl already")), "{}", again.err);
}

#[test]
fn precharge_leaves_a_result() {
    leaves_a_result_and_is_not_made_twice("precharge", 37, &["rounds of waiting", "0.1 ms added", "pages missing"]);
}

#[test]
fn scale_leaves_a_result() {
    leaves_a_result_and_is_not_made_twice("scale", 6, &["Predicted by larch plan", "100,000,000,000 rows"]);
}

#[test]
fn stats_leaves_a_result() {
    leaves_a_result_and_is_not_made_twice("stats", 15, &["flat list", "worst error", "over each other"]);
}

#[test]
fn with_check_a_goal_that_was_missed_is_a_failure() {
    let session = Session::new();
    let ran = session.run(&[&SHARING[..], &["--scale", "tiny", "--time", "50ms", "--out", "o", "--check"]].concat());
    // Whether the goal is missed depends on the speed of the machine.
    let is_short = !String::from_utf8(ran.out).expect("tables are ASCII").contains("falls short: 0");
    assert_eq!(ran.code, Some(i32::from(is_short)), "{}", ran.err);
    assert_eq!(ran.err.contains("--check: "), is_short, "{}", ran.err);
}

#[test]
fn what_makes_no_sense_exits_with_2_and_touches_nothing() {
    let session = Session::new();
    session.file("file", "");
    for (args, parts) in [
        (&["--scale", "huge"][..], &["invalid value 'huge'", "small, medium, full"][..]),
        (&["--time", "0s"], &["'0s' for '--time <TIME>'", "longer than 0"]),
        (&["--out", "file"], &["cannot make file"]),
        (&["more"], &["unexpected argument 'more'"]),
    ] {
        session.run(&[&SHARING[..], args].concat()).fails(2, parts);
    }
    session.run(&["bench", "experiment"]).fails(2, &["sharing", "Usage: larch bench experiment"]);
    session.run(&["bench", "experiment", "caring"]).fails(2, &["unrecognized subcommand 'caring'"]);
    assert_eq!(session.names(), ["file"]);
}

#[test]
fn after_control_c_the_same_command_goes_on() {
    let session = Session::new();
    let args = [&SHARING[..], &["--scale", "tiny", "--time", "10h", "--out", "o"]].concat();
    let mut child = session.start(&args);
    let rest = wait_for(&mut child, "10 partitions: writing them");
    interrupt(&child);
    let ran = rest(child);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    assert!(!session.has("o/result.json"), "nothing was measured");
    let ran = session.run(&[&SHARING[..], &["--scale", "tiny", "--time", "50ms", "--out", "o"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(session.has("o/result.json") && !session.has("o/data"));
}

/// Checks that a tiny experiment leaves its result and its page, and nothing else.
#[track_caller]
fn tiny_leaves_its_page(name: &str, parts: &[&str]) -> Value {
    let session = Session::new();
    let args = ["bench", "experiment", name, "--scale", "tiny", "--out", "out", "--check"];
    let ran = session.run(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let page = String::from_utf8(session.bytes("out/index.html")).expect("pages are UTF-8");
    for part in parts {
        assert!(page.contains(part), "{part:?} is not on the page");
    }
    assert!(!session.has("out/data"), "databases are removed");
    let result: Value = serde_json::from_slice(&session.bytes("out/result.json")).expect("it is JSON");
    let cells = result["cells"].as_object().expect("there are cells").len();
    // If the experiment is run again, nothing is measured again.
    let again = session.run(&args);
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert!(again.err.contains(&format!("{cells} cells are in out/cells.jsonl already")), "{}", again.err);
    result
}

#[test]
fn index_counts_reads_and_instructions_of_all_arms() {
    let result = tiny_leaves_its_page(
        "index",
        &["tree alone", "tpmC, tree", "TPC-C of Larch: 1 warehouses", "The document&#39;s YCSB", "YCSB A to F"],
    );
    for arm in ["both, flat read", "both, tree read", "tree alone"] {
        let counted = &result["cells"][format!("instructions of a get, cache 4x, {arm}")];
        let is_counted = counted["each"].as_f64().is_some_and(|each| each > 100.0);
        // If valgrind is not installed, the result has no number, and says that valgrind is missing.
        assert!(is_counted || counted["why_not"].as_str().is_some_and(|why| why.contains("valgrind")), "{counted}");
    }
}

#[test]
fn the_client_of_tpcc_is_measured_in_a_process_of_its_own() {
    let result = tiny_leaves_its_page("client", &["by the document", "this client, measured"]);
    let ran = &result["cells"]["300 warehouses"];
    assert!(ran["peak_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{ran}");
    assert!(ran["tpmc"].as_f64().is_some_and(|tpmc| tpmc > 0.0), "{ran}");
}

#[test]
fn page_size_says_which_size_wins() {
    let result = tiny_leaves_its_page("page-size", &["gets/s, ", "OrientDB, 50/50, READ", "the disk alone"]);
    let disk = &result["cells"]["the disk alone, 32 threads, 0, 16 KiB"];
    assert_eq!(disk["read_bytes"].as_u64(), disk["operations"].as_u64().map(|count| count * 16384), "{disk}");
}

#[test]
fn an_experiment_that_was_interrupted_goes_on() {
    let session = Session::new();
    let args = ["bench", "experiment", "page-size", "--scale", "tiny", "--out", "out"];
    let mut child = session.start(&args);
    let rest = wait_for(&mut child, "2000 rows, page 32 KiB");
    interrupt(&child);
    let ran = rest(child);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    let ran = session.run(&args);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains(" cells are in out/cells.jsonl already"), "{}", ran.err);
    assert!(!ran.err.contains("2000 rows, page 4 KiB"), "this database was made before: {}", ran.err);
    assert!(ran.err.contains("2000 rows, page 32 KiB"), "this one was not finished: {}", ran.err);
}
