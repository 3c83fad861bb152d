//! Tests of `larch bench compare`, `regress` and `compare-trials`: what they print, write and refuse, and how they
//! end.

use crate::bench::ycsb;
use crate::bench_stops::{interrupt, wait_for};
use crate::session::{Ran, Session};
use serde_json::Value;

/// Makes a run of workload A on the store that does nothing, and writes its result to `file`.
fn run(session: &Session, file: &str, more: &[&str]) {
    let intervals = ["-p", "measurementtype=timeseries", "-p", "timeseries.granularity=20"];
    let args = ["run", "-P", "a", "--target", "noop:", "--time", "300ms", "--out", file];
    let args = [&args[..], &intervals].concat();
    ycsb(session, &[&args[..], more].concat()).ok();
}

/// `larch bench compare`.
fn compare<'a>(base: &[&'a str], new: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [&["bench", "compare", "--base"], base, &["--new"], new, more].concat()
}

#[test]
fn a_slow_down_is_found_and_ends_with_1() {
    let session = Session::new();
    for turn in ["1", "2", "3", "4", "5"] {
        run(&session, &format!("a{turn}.json"), &[]);
        run(&session, &format!("b{turn}.json"), &["--slow-down", "10us"]);
    }
    let base = ["a1.json", "a2.json", "a3.json", "a4.json", "a5.json"];
    let new = ["b1.json", "b2.json", "b3.json", "b4.json", "b5.json"];
    let files = ["--out", "page.html", "--json", "compare.json"];
    let slower = session.run(&compare(&base, &new, &files));
    let text = String::from_utf8(slower.out).expect("it is text");
    assert_eq!(slower.code, Some(1), "{text}{}", slower.err);
    let setting = text.find("setting slowed down by: - -> 10000 ns a request").expect("settings are compared");
    let table = text.find("workload a: 5 runs against 5 new").expect("figures are compared");
    assert!(setting < table, "what differs comes first: {text}");
    // A busy machine makes too few requests for a p99.9.
    for part in
        ["all throughput, 1/s *", "READ p99, us *", "UPDATE p99, us", "all processor time, us/op", "WORSE at 1 %"]
    {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let json: Value = serde_json::from_slice(&session.bytes("compare.json")).expect("it is JSON");
    assert_eq!((&json["format"], &json["is_worse"]), (&"larch-compare-result".into(), &true.into()));
    let page = String::from_utf8(session.bytes("page.html")).expect("a page is text");
    assert!(page.contains("workload a: operations a second") && page.contains("WORSE at 1 %"));

    // If the base and the new result are exchanged, the comparison says that the new result is better.
    let faster = session.run(&compare(&new, &base, &["--tell", "1e9%"])).ok();
    assert!(faster.contains("No significant worsening at 1 %. Better: workload a all throughput"), "{faster}");
    // A comparison of a result with itself finds no difference.
    let same = session.run(&compare(&base, &base, &["--tell", "1e9%"]));
    assert_eq!(same.code, Some(0), "{}", same.err);
    let text = String::from_utf8(same.out).expect("it is text");
    assert!(text.contains("Both sides were made alike") && text.contains("No significant difference at 1 %"), "{text}");
    assert!(same.err.contains("a1.json is on both sides"), "{}", same.err);
    // A difference that is less than `--at-least` is no failure.
    session.run(&compare(&base, &new, &["--at-least", "1e9%", "--tell", "1e9%"])).ok();
}

#[test]
fn what_cannot_be_compared_exits_with_2_and_says_why() {
    let session = Session::new();
    run(&session, "a.json", &[]);
    run(&session, "more.json", &["--threads", "2"]);
    run(&session, "c.json", &["-P", "c"]);
    session.file("bad.json", "{\"format\": \"something\", \"version\": 1}");
    session.file("half.json", &session.bytes("a.json")[..200]);
    for (base, new, more, parts) in [
        ("a.json", "missing.json", &[][..], &["missing.json: No such file"][..]),
        ("a.json", "bad.json", &[], &["bad.json is not a result of a benchmark", "larch-bench-result"]),
        ("half.json", "a.json", &[], &["half.json is not a result of a benchmark"]),
        ("a.json", "c.json", &[], &["the base has workload a; the new results have workload c"]),
        ("a.json", "a.json", &["--level", "0.01"], &["'0.01' for '--level <PERCENT>'", "percent sign"]),
        ("a.json", "a.json", &["--at-least=-3%"], &["'--at-least"]),
        ("a.json", "a.json", &["--out", "no/page.html"], &["--out: cannot write no/page.html"]),
        ("a.json", "a.json", &["--out", "x", "--json", "x"], &["--out and --json name one file"]),
    ] {
        session.run(&compare(&[base], &[new], more)).fails(2, parts);
    }
    session.run(&["bench", "compare", "--base", "a.json"]).fails(2, &["--new"]);
    let other_work = session.run(&compare(&["a.json"], &["more.json"], &[]));
    let told = String::from_utf8_lossy(&other_work.out);
    assert_eq!(other_work.code, Some(4), "{told}");
    assert!(told.contains("  work: plan clients: 1 -> 2  (NOT COMPARABLE"), "{told}");
    assert!(told.contains("CANNOT TELL: ") && told.contains("--despite-differences"), "{told}");
    let despite = session.run(&compare(&["a.json"], &["more.json"], &["--despite-differences", "--at-least", "100%"]));
    assert!(String::from_utf8_lossy(&despite.out).contains("NOT COMPARABLE"), "{}", despite.err);
    assert_eq!(session.names(), ["a.json", "bad.json", "c.json", "half.json", "more.json"]);
}

#[test]
fn an_interrupted_run_is_not_compared() {
    let session = Session::new();
    run(&session, "a.json", &[]);
    let args = ["bench", "ycsb", "run", "-P", "a", "--target", "noop:", "--time", "10h", "--out", "cut.json"];
    let mut child = session.start(&args);
    let rest = wait_for(&mut child, "1.0 s");
    interrupt(&child);
    assert_eq!(rest(child).code, Some(130));
    session.run(&compare(&["a.json"], &["cut.json"], &[])).fails(2, &["cut.json: workload a was interrupted"]);
}

/// Whether a comparison found nothing worse. It may also be unable to tell, because two rounds on a busy machine
/// may differ greatly.
fn is_not_worse(ran: &Ran) -> bool {
    matches!(ran.code, Some(0 | 4))
}

/// Options for small runs of `regress` and `compare-trials`.
const SMALL: [&str; 8] = ["--records", "1000", "--time", "1s", "--warmup", "0s", "--dir", "."];

#[test]
fn a_baseline_is_stored_and_compared_with() {
    let session = Session::new();
    let regress = |more: &[&str]| session.run(&[&["bench", "regress", "--rounds", "2"], &SMALL[..], more].concat());
    let without = regress(&["--base", "kept"]);
    assert_eq!(without.code, Some(4), "{}", without.err);
    let text = String::from_utf8(without.out).expect("it is text");
    assert!(text.contains("cannot tell: there is no baseline of this kind of machine in kept/"), "{text}");
    let stored = regress(&["--base", "kept", "--store"]);
    assert_eq!(stored.code, Some(0), "{}", stored.err);
    let stored = String::from_utf8(stored.out).expect("it is text");
    assert!(stored.contains("stored 2 rounds in kept/"), "{stored}");
    let compared = regress(&["--base", "kept", "--at-least", "1e9%", "--out", "page.html"]);
    assert!(is_not_worse(&compared), "{compared:?}");
    let text = String::from_utf8(compared.out).expect("it is text");
    for workload in [
        "workload a: 2 runs against 2 new",
        "workload c: 2 runs",
        "workload e: 2 runs",
        "tpcc nowait: 2 runs",
        "SCAN p99",
    ] {
        assert!(text.contains(workload), "{workload} is not in {text}");
    }
    // Runs with 2000 records cannot be compared with a baseline of 1000 records.
    let args = ["--base", "kept", "--records", "2000"];
    let other: Vec<&str> = SMALL[2..].iter().chain(&args).copied().collect();
    let other = session.run(&[&["bench", "regress", "--rounds", "1"], &other[..]].concat());
    assert_eq!(other.code, Some(4), "{}", other.err);
    assert!(String::from_utf8_lossy(&other.out).contains("workload recordcount: 1000 -> 2000"));
    assert_eq!(session.names(), ["kept", "page.html"]);
}

#[test]
fn two_builds_take_turns() {
    let session = Session::new();
    let base = ["--at-least", "1e9%", "--base-program", env!("CARGO_BIN_EXE_larch")];
    let args = [&["bench", "regress", "--rounds", "2"], &base[..]].concat();
    let ran = session.run(&[&args[..], &SMALL[..]].concat());
    assert!(is_not_worse(&ran), "{ran:?}");
    let turns: Vec<&str> = ran.err.lines().filter(|line| line.ends_with("workload a")).collect();
    let programs: Vec<&str> =
        turns.iter().map(|line| &line[line.find("program ").expect("it is named") + 8..][..1]).collect();
    assert_eq!(programs, ["1", "2", "2", "1"], "{}", ran.err);
    assert!(!String::from_utf8_lossy(&ran.out).contains("not made in turns"));
    let args = ["bench", "regress", "--base-program", "missing"];
    session.run(&[&args[..], &SMALL[..]].concat()).fails(2, &["--base-program: missing: No such file"]);
}

#[test]
fn trials_count_what_a_comparison_finds() {
    let session = Session::new();
    let args = ["bench", "compare-trials", "--pairs", "2", "--trials", "1", "--slower", "100%"];
    let ran = session.run(&[&args[..], &SMALL[..]].concat());
    let text = String::from_utf8(ran.out).expect("it is text");
    for part in [
        "1000 records, one client; runs of 1s after 0ns",
        "9 runs of one build",
        "slowed down by 100.0 %: throughput fell by",
        "pairs of runs without a difference, of 2: ",
        "find the slow-down, of 1: ",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let is_short = !text.contains("falls short: 0\n");
    assert_eq!(ran.code, Some(i32::from(is_short)), "{text}{}", ran.err);
    assert_eq!(session.names(), Vec::<String>::new());
}

#[test]
fn control_c_ends_the_rounds_and_leaves_nothing() {
    let session = Session::new();
    let args = ["bench", "compare-trials", "--pairs", "2", "--records", "1000", "--time", "1s", "--dir", "."];
    let mut child = session.start(&[&args[..], &["--trials", "1000"]].concat());
    let rest = wait_for(&mut child, "of 2 pairs show no difference");
    interrupt(&child);
    let ran = rest(child);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    assert_eq!(session.names(), Vec::<String>::new());
}
