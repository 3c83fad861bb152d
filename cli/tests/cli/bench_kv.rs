//! Tests of `larch bench kv`: rows in partitions on Larch, with the options that users of scylla-bench know.

use crate::bench::runs;
use crate::bench_stops::interrupt;
use crate::session::{Ran, Session};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use stores::postgres::server::{Server, ServerOptions};

/// Runs the command on the database of the session, with the options in `line`.
fn kv(session: &Session, line: &str) -> Ran {
    on(session, "larch:db", line)
}

fn on(session: &Session, target: &str, line: &str) -> Ran {
    let options: Vec<&str> = line.split_whitespace().collect();
    session.run(&[&["bench", "kv", "--target", target], &options[..]].concat())
}

/// The output of a command, which must have succeeded.
#[track_caller]
fn done(ran: Ran) -> String {
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    String::from_utf8(ran.out).expect("lines are UTF-8")
}

/// The value of a line `name: value`.
#[track_caller]
fn value<'t>(text: &'t str, name: &str) -> &'t str {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("there is no line {name}: {text}")).trim()
}

#[track_caller]
fn count(text: &str, name: &str) -> u64 {
    value(text, name).parse().unwrap_or_else(|_| panic!("{name} is a number: {text}"))
}

const SMALL: &str = "-partition-count 20 -clustering-row-count 30 -concurrency 4";

#[test]
fn rows_are_written_read_and_checked() {
    let session = Session::new();
    let checked = format!("{SMALL} -validate-data -clustering-row-size uniform:1..200");
    let text = done(kv(&session, &format!("-mode write -workload sequential -rows-per-request 7 {checked}")));
    assert_eq!(count(&text, "Total rows"), 600);
    assert!(text.contains("\n time   ops/s  rows/s errors max    99.9th 99th   95th   90th   median mean\n"), "{text}");
    for line in
        ["Mode:                    write", "Max error number at row: unlimited", "  min interval:          80ms"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    for name in ["Time (avg)", "Total ops", "Operations/s", "Rows/s", "raw latency", "c-o fixed latency", "  99.9th"] {
        value(&text, name);
    }
    assert_eq!(["Total errors", "Total retries", "Total roll-backs"].map(|name| count(&text, name)), [0; 3], "{text}");

    let text = done(kv(&session, &format!("-mode read -workload sequential {checked} --out r.json")));
    assert_eq!((count(&text, "Total ops"), count(&text, "Total rows")), (600, 600));
    let run = &runs(&session, "r.json")[0];
    assert_eq!((run["name"].as_str(), run["measured"]["operations"].as_u64()), (Some("kv read"), Some(600)));
    assert!(run["workload"].as_array().is_some_and(|pairs| pairs.contains(&serde_json::json!(
        {"name": "Partition count", "value": "20"}
    ))));
    session.run(&["bench", "report", "r.json", "--out", "r.html"]).ok();

    // If values were written without `-validate-data`, a read with this option reports them as wrong.
    done(kv(&session, &format!("-mode write -workload sequential -truncate-table {SMALL} -clustering-row-size 60")));
    let ran = kv(&session, &format!("-mode read -workload sequential {SMALL} -validate-data"));
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("600 rows are not as -validate-data writes them; the first: pk "), "{}", ran.err);
    let text = String::from_utf8(ran.out).expect("lines are UTF-8");
    assert_eq!(count(&text, "Total errors"), 600);
    session.run(&["check", "db"]).ok();
}

#[test]
fn every_mode_does_every_workload_with_two_spellings() {
    let session = Session::new();
    done(kv(&session, &format!("-mode write -workload sequential {SMALL}")));
    done(kv(&session, &format!("-mode counter_update -workload sequential {SMALL}")));
    for mode in ["write", "read", "mixed", "counter_update", "counter_read"] {
        for workload in ["uniform", "zipfian", "sequential"] {
            let text = done(kv(&session, &format!("--mode {mode} -workload={workload} {SMALL} --operations 500")));
            assert_eq!(count(&text, "Total ops"), 500, "{mode} {workload}");
            assert_eq!(count(&text, "Total rows"), 500, "{mode} {workload}");
        }
    }
    let text =
        done(kv(&session, &format!("-mode counter_read -workload uniform -validate-data {SMALL} -operations 300")));
    assert_eq!(count(&text, "Total rows"), 300);
    for (ranges, concurrency) in [(1, 1), (3, 3), (40, 16)] {
        let text = done(kv(&session, &format!("-mode scan -range-count {ranges}")));
        assert_eq!((count(&text, "Total ops"), count(&text, "Total rows")), (ranges, 600));
        assert_eq!(count(&text, "Concurrency"), concurrency, "no more clients than parts");
    }
    for (restriction, rows) in [
        ("-provide-upper-bound", 100..=500),
        ("-in-restriction", 200..=500),
        ("-no-lower-bound", 500..=500),
        ("-select-order-by none,asc,desc", 100..=500),
    ] {
        let line = format!("-mode read -workload uniform -rows-per-request 5 {restriction} {SMALL} -operations 100");
        let text = done(kv(&session, &line));
        assert!(rows.contains(&count(&text, "Total rows")), "{restriction}: {text}");
    }
}

#[test]
fn a_time_series_is_written_and_its_reader_takes_what_the_writer_printed() {
    let session = Session::new();
    let series = "-workload timeseries -partition-count 4 -clustering-row-count 100000 -concurrency 4";
    let text = done(kv(&session, &format!("-mode write {series} -max-rate 2000 -operations 1000 -validate-data")));
    assert_eq!(count(&text, "Total rows"), 1000);
    let (start, rate) = (value(&text, "Start timestamp"), value(&text, "Write rate"));
    assert_eq!(rate, "500");
    for distribution in ["uniform", "hnormal"] {
        let line = format!(
            "-mode read {series} -start-timestamp {start} -write-rate {rate} -distribution {distribution} \
             -operations 300 -validate-data"
        );
        // The writer has ended. A read may ask for a row that the writer would have written by now if it were
        // still running. Then the read gets an earlier row.
        assert_eq!(count(&done(kv(&session, &line)), "Total rows"), 300, "{distribution}");
    }
    let text = done(kv(&session, &format!("-mode mixed {series} -max-rate 4000 -operations 400 -validate-data")));
    assert_eq!(count(&text, "Total rows"), 400, "a read finds what its client has written");
    value(&text, "raw write latency");
    value(&text, "c-o fixed read latency");
}

#[test]
fn rates_are_exact_however_many_clients_share_them() {
    let session = Session::new();
    let line = "-mode write -workload uniform -concurrency 64 -max-rate 500 -duration 2s --out r.json \
                -latency-type fixed-coordinated-omission -hdr-latency-file r.hlog -hdr-latency-units us";
    let text = done(on(&session, "noop:", line));
    let measured = &runs(&session, "r.json")[0]["measured"];
    let number = |name: &str| measured[name].as_u64().expect("a number");
    // The count includes operations that were due but were not sent or not served in time.
    assert_eq!(number("operations") + number("unsent") + number("cut"), 1000, "{text}");
    let log = String::from_utf8(session.bytes("r.hlog")).expect("a log is text");
    for tag in ["Tag=co-fixed,", "Tag=raw,", "times in microseconds"] {
        assert!(log.contains(tag), "{tag}: {log}");
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let session = Session::new();
    for (line, part) in [
        ("-mode read", "-workload is missing"),
        ("-mode scan -workload uniform", "leave -workload out"),
        ("-mode reed -workload uniform", "invalid value 'reed'"),
        ("-mode write -workload timeseries", "-max-rate"),
        ("-mode read -workload timeseries", "-write-rate and -start-timestamp"),
        ("-mode write -workload uniform -in-restriction", "-in-restriction"),
        ("-mode read -workload uniform -in-restriction -no-lower-bound", "exclude each other"),
        ("-mode read -workload uniform -truncate-table", "-truncate-table goes with the modes that write"),
        ("-mode write -workload uniform -max-rate -3", "-max-rate"),
        ("-mode write -workload uniform -clustering-row-size big", "no size of a row"),
        ("-mode write -workload uniform -duration soon", "is no time"),
        ("-mode write -workload uniform -partition-count 0", "1 at least"),
        ("-mode write -workload uniform -retry-interval 2s,1s", "shorter one"),
        ("-mode write -workload uniform -cache 1MiB", "is no option of `bench`"),
        ("-mode write -workload uniform --out nowhere/r.json", "--out"),
    ] {
        let ran = kv(&session, line);
        assert_eq!(ran.code, Some(2), "{line}: {}", ran.err);
        assert!(ran.err.contains(part), "{line}: {}", ran.err);
    }
    let ran = on(&session, "etcd:db", "-mode write -workload uniform");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("there is no scheme `etcd`; `larch bench targets` lists them"), "{}", ran.err);
    assert!(session.names().is_empty(), "nothing was made: {:?}", session.names());
}

#[test]
fn options_that_mean_nothing_for_a_store_are_named() {
    let session = Session::new();
    let line = format!("-mode write -workload sequential {SMALL} -consistency-level one -client-compression=false");
    let ran = kv(&session, &line);
    for part in [
        "larch: -consistency-level has no effect: Larch has one copy of the data\n",
        "larch: -client-compression has no effect: Larch is called in this process\n",
    ] {
        assert!(ran.err.contains(part), "{}", ran.err);
    }
    let text = done(ran);
    assert!(value(&text, "Consistency level").starts_with("one (no effect"), "{text}");
}

#[test]
fn reads_of_a_table_without_rows_measure_nothing_and_those_of_none_make_none() {
    let session = Session::new();
    for line in ["-mode read -workload uniform -operations 10", "-mode scan", "-mode counter_read -workload sequential"]
    {
        kv(&session, &format!("{line} {SMALL}"))
            .fails(3, &["in db: write it first, with -mode write or counter_update"]);
        assert!(!session.has("db"), "{line}");
    }
    for line in
        ["-mode write -workload uniform -operations 10", "-mode counter_update -workload uniform -operations 10"]
    {
        done(kv(&session, &format!("{line} {SMALL} -partition-offset 1000")));
    }
    for line in ["-mode read -workload uniform -operations 10", "-mode counter_read -workload sequential"] {
        let ran = kv(&session, &format!("{line} {SMALL}"));
        assert_eq!(ran.code, Some(1), "{line}: {}", ran.err);
        assert!(ran.err.contains("no row was read: write them first"), "{line}: {}", ran.err);
    }
}

#[test]
fn a_zipfian_run_begins_and_ends_over_any_number_of_partitions() {
    let session = Session::new();
    let line = "-quiet -mode read -workload zipfian -partition-count 4611686018427387904 -clustering-row-count 1";
    let text = done(on(&session, "noop:", &format!("{line} -operations 1000")));
    assert_eq!(count(&text, "Total ops"), 1000);
    let latest = ["-p", "recordcount=1000000000000", "--target", "noop:", "--operations", "1000"];
    session.run(&[&["bench", "ycsb", "--quiet", "run", "-P", "d"], &latest[..]].concat()).ok();
}

#[test]
fn control_c_prints_and_writes_what_was_measured() {
    let session = Session::new();
    let line = ["bench", "kv", "--target", "larch:db", "-mode", "write", "-workload", "uniform", "--out", "r.json"];
    let mut child = session.start(&line);
    let mut printed = BufReader::new(child.stdout.take().expect("it was asked for"));
    let mut out = String::new();
    while !out.contains("   1s ") {
        assert!(printed.read_line(&mut out).expect("lines are UTF-8") > 0, "it ended: {out}");
    }
    interrupt(&child);
    printed.read_to_string(&mut out).expect("lines are UTF-8");
    let output = child.wait_with_output().expect("it was started");
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(count(&out, "Total ops") > 0 && out.contains("INTERRUPTED"), "{out}");
    let run: &Value = &runs(&session, "r.json")[0];
    assert_eq!((&run["measured"]["interrupted"], run["error"].is_null()), (&Value::Bool(true), true));
    session.run(&["check", "db"]).ok();
}

/// If PostgreSQL is missing, this test fails and names the package to install.
#[test]
fn every_mode_runs_on_postgresql() {
    let session = Session::new();
    // A small test would spend most of its time on syncing.
    let settings = vec![("fsync".to_owned(), "off".to_owned())];
    let options = ServerOptions { settings, ..ServerOptions::default() };
    let server = Server::start(&options).unwrap_or_else(|error| panic!("{error}"));
    let target = server.url("postgres");
    let run =
        |line: &str| done(on(&session, &target, &format!("{line} {SMALL} -validate-data -clustering-row-size 70")));
    let text = run("-mode write -workload sequential -rows-per-request 10");
    assert_eq!(count(&text, "Total rows"), 600);
    let table = server.connect().expect("it runs").value("SELECT count(*) FROM test").expect("a number");
    assert_eq!(table, "600");
    for line in ["-mode read -workload sequential", "-mode counter_update -workload sequential"] {
        assert_eq!(count(&run(line), "Total rows"), 600, "{line}");
    }
    assert_eq!(count(&run("-mode counter_read -workload sequential"), "Total rows"), 600);
    assert_eq!(count(&run("-mode mixed -workload zipfian -operations 200"), "Total rows"), 200);
    let text = done(on(&session, &target, "-mode scan -range-count 3 -timeout 10s"));
    assert_eq!(count(&text, "Total rows"), 600);
}
