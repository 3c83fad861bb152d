//! Tests of what is reported about a benchmark in addition to its times: costs, pages with several results,
//! pictures, and figures during a run.

use crate::bench::{RECORDS, runs, ycsb};
use crate::bench_stops::{interrupt, wait_for};
use crate::session::Session;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::ChildStderr;

/// The value of the metric `name` on a page for Prometheus.
fn value(page: &str, name: &str) -> Option<f64> {
    let line = page.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn scraped(address: &str) -> String {
    let mut connection = TcpStream::connect(address).expect("it listens");
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").expect("it reads");
    let mut page = String::new();
    connection.read_to_string(&mut page).expect("it answers");
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    page
}

/// The address at which a run says that it shows its figures.
fn address(said: &mut BufReader<ChildStderr>) -> String {
    let mut line = String::new();
    while !line.starts_with("metrics: http://") {
        line.clear();
        assert!(said.read_line(&mut line).expect("messages are UTF-8") > 0, "it ended without an address");
    }
    line["metrics: http://".len()..].trim().trim_end_matches("/metrics").to_owned()
}

#[test]
fn a_run_is_watched_until_it_ends() {
    let session = Session::new();
    ycsb(&session, &["load", "-P", "a", "-p", RECORDS, "--target", "larch:db"]).ok();
    session.run(&["bench", "rows", "setup", "--target", "larch:rows", "--tab-rows", "1000"]);
    for (args, counted, more) in [
        (
            &["ycsb", "run", "-P", "a", "-p", RECORDS, "--target", "larch:db", "--time", "10h"][..],
            "larch_bench_requests_done_total{kind=\"UPDATE\"}",
            "larch_bench_store_cache_hits_total",
        ),
        (
            &["rows", "run", "--target", "larch:rows", "--tab-rows", "1000", "--run-duration", "10h"],
            "larch_bench_rows_read_total{kind=\"READ\"}",
            "larch_bench_request_seconds_count{kind=\"READ\"}",
        ),
        (
            &["kv", "--target", "larch:kv", "-mode", "write", "-workload", "uniform", "-duration", "10h", "-q"],
            "larch_bench_requests_done_total{kind=\"WRITE\"}",
            "larch_bench_store_cache_hits_total",
        ),
    ] {
        let mut child = session.start(&[&["bench"], args, &["--metrics", "127.0.0.1:0"]].concat());
        let mut said = BufReader::new(child.stderr.take().expect("it was asked for"));
        let address = address(&mut said);
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let page = scraped(&address);
            let now = value(&page, counted).unwrap_or(0.0);
            if now > seen.last().copied().unwrap_or(0.0) {
                assert!(value(&page, more).is_some(), "{page}");
                seen.push(now);
            }
        }
        // Another run cannot use the same address.
        let taken = [&["bench"], args, &["--metrics", &address]].concat();
        session.run(&taken).fails(2, &[&address, "another program has this address"]);
        interrupt(&child);
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("messages are UTF-8");
        assert_eq!(child.wait().expect("it was started").code(), Some(130), "{rest}");
        assert!(TcpStream::connect(&address).is_err(), "it ends with the run");
    }
}

#[test]
fn an_address_that_is_none_is_refused_before_anything_is_measured() {
    let session = Session::new();
    let load = ["load", "-P", "a", "-p", RECORDS, "--target", "larch:db", "--metrics"];
    for (address, why) in [("nowhere", "HOST:PORT"), ("192.0.2.1:9464", "does not have this address")] {
        ycsb(&session, &[&load[..], &[address]].concat()).fails(2, &[address, why]);
    }
    ycsb(&session, &["load", "-P", "a", "--target", "noop:", "--price=-1"]).fails(2, &["a price is"]);
    assert!(!session.has("db"));
}

#[test]
fn every_report_says_what_a_million_operations_cost() {
    let session = Session::new();
    let load = ["load", "-P", "a", "-p", RECORDS, "--target", "larch:db", "--price", "0.04", "--out", "r.json"];
    let told = ycsb(&session, &load).ok();
    let line =
        told.lines().find(|line| line.starts_with("  a million operations: processors: client ")).expect("it says so");
    for part in [" s, store ", "; disk: read ", ", written ", "; money for processors: 0.000"] {
        assert!(line.contains(part), "{line}");
    }
    let run = &runs(&session, "r.json")[0];
    let of = |name: &str| run["million"][name].as_f64().unwrap_or_else(|| panic!("{name}: {run}"));
    assert!((of("client_cpu_seconds") + of("store_cpu_seconds") - of("cpu_seconds")).abs() < 1e-6 * of("cpu_seconds"));
    assert!((of("money") - of("cpu_seconds") / 3600.0 * 0.04).abs() < 1e-9);
    assert!(of("written_bytes") > 1e9, "500 records of 1000 bytes are written: a million are more than 1 GB");

    session.run(&["bench", "rows", "setup", "--target", "larch:rows", "--tab-rows", "1000"]);
    let rows = ["bench", "rows", "run", "--target", "larch:rows", "--tab-rows", "1000", "--run-duration", "300ms"];
    let ran = session.run(&[&rows[..], &["--quiet", "--price", "0.04", "--out", "rows.json"]].concat());
    let told = ran.ok();
    assert!(told.contains("a million rows: ") && told.contains("client and store together; disk: read "), "{told}");
    let result: serde_json::Value = serde_json::from_slice(&session.bytes("rows.json")).expect("it is JSON");
    assert!(result["million"]["cpu_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{result}");
}

#[test]
fn results_have_counters_of_every_second_and_the_machine() {
    let session = Session::new();
    ycsb(&session, &["load", "-P", "a", "-p", RECORDS, "--target", "larch:db"]).ok();
    let run = ["run", "-P", "c", "-p", RECORDS, "--target", "larch:db", "--time", "2100ms", "--out", "r.json"];
    ycsb(&session, &run).ok();
    let intervals = runs(&session, "r.json")[0]["measured"]["intervals"].as_array().expect("a list").clone();
    let hits: Vec<u64> =
        intervals.iter().filter_map(|interval| interval["counted"]["counters"]["cache hits"].as_u64()).collect();
    assert!(
        hits.len() >= 2 && hits.is_sorted() && hits[0] < hits[hits.len() - 1],
        "{hits:?} of {} intervals",
        intervals.len()
    );
    let result: serde_json::Value = serde_json::from_slice(&session.bytes("r.json")).expect("it is JSON");
    let machine = &result["environment"]["machine"];
    for name in ["kernel", "file_system", "disk", "huge_pages", "governor"] {
        assert!(!machine[name].is_null(), "{name}: {machine}");
    }
    assert_ne!(machine["file_system"]["kind"], "", "{machine}");
}

#[test]
fn several_results_are_one_page_and_its_charts_are_pictures() {
    let session = Session::new();
    for (out, threads) in [("a.json", "1"), ("b.json", "2")] {
        let run = ["run", "-P", "a", "--target", "noop:", "--operations", "3000", "--threads", threads, "--out", out];
        ycsb(&session, &run).ok();
    }
    session.run(&["bench", "report", "a.json", "b.json", "--out", "both.html", "--price", "0.04"]).ok();
    let page = String::from_utf8(session.bytes("both.html")).expect("a page is UTF-8");
    for part in [
        "How the results differ",
        "<th scope=\"row\">clients</th><td>1</td><td>2</td>",
        "a: workload a, READ",
        "b: workload a: measured",
        "money for processors",
        "<th scope=\"row\">huge pages</th>",
        "<th scope=\"row\">governor</th>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let picture = ["bench", "picture", "both.html", "--chart", "Operations a second", "--out", "rate"];
    assert_eq!(session.run(&picture).ok(), "rate-light.svg\nrate-dark.svg\n");
    let svg = String::from_utf8(session.bytes("rate-dark.svg")).expect("SVG is text");
    assert!(svg.starts_with("<svg") && svg.contains("Operations a second"), "{svg}");
    session
        .run(&["bench", "picture", "both.html", "--chart", "none", "--out", "x"])
        .fails(2, &["no chart is called `none`", "Operations a second"]);
    session.run(&["bench", "picture", "a.json", "--out", "x"]).fails(2, &["a.json", "there are no charts in it"]);
}

#[test]
fn a_page_that_cannot_be_written_is_refused() {
    let session = Session::new();
    ycsb(&session, &["run", "-P", "a", "--target", "noop:", "--operations", "3000", "--out", "a.json"]).ok();
    session.run(&["bench", "report", "a.json", "--out", "no/such/page.html"]).fails(2, &["--out", "no/such/page.html"]);
    session.run(&["bench", "report", "none.json"]).fails(2, &["none.json"]);
    session.file("other.json", "{}");
    session.run(&["bench", "report", "other.json"]).fails(2, &["other.json is not a result of a benchmark"]);
    assert!(!session.has("larch-report.html"));
}

#[test]
fn a_page_of_a_run_that_was_interrupted_says_so() {
    let session = Session::new();
    let mut child =
        session.start(&["bench", "ycsb", "run", "-P", "a", "--target", "noop:", "--time", "10h", "--out", "a.json"]);
    let rest = wait_for(&mut child, "workload a ");
    interrupt(&child);
    assert_eq!(rest(child).code, Some(130));
    session.run(&["bench", "report", "a.json"]).ok();
    let page = String::from_utf8(session.bytes("larch-report.html")).expect("a page is UTF-8");
    assert!(page.contains("was interrupted"), "the page says it");
}
