//! Tests of `larch bench worker`, `--workers`, `--share` and `larch bench merge`: runs by several processes.

use crate::bench::{runs, ycsb};
use crate::bench_stops::{interrupt, wait_for};
use crate::session::{Ran, Session};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr};
use stores::postgres::server::{Server, ServerOptions};

const SECRET: &str = "a secret of these tests";

/// A worker in a session. The database and the files of this worker are in the session's directory.
struct Worker {
    child: Child,
    said: BufReader<ChildStderr>,
    address: String,
}

impl Worker {
    fn start(session: &Session) -> Self {
        session.file("secret", SECRET);
        let mut child = session.start(&["bench", "worker", "--listen", "0", "--secret-file", "secret"]);
        let said = BufReader::new(child.stderr.take().expect("it was asked for"));
        let mut worker = Self { child, said, address: String::new() };
        let line = worker.line_with("a worker listens at ");
        worker.address = line.rsplit(' ').next().expect("a line has a word").to_owned();
        worker
    }

    /// The next line of the worker's output that contains `part`.
    fn line_with(&mut self, part: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let bytes = self.said.read_line(&mut line).expect("messages are UTF-8");
            assert!(bytes > 0, "it ended without saying {part:?}: {all}");
            if line.contains(part) {
                return line.trim_end().to_owned();
            }
            all.push_str(&line);
        }
    }

    /// Waits until the worker has ended a run, and returns the number of operations in this run.
    fn operations(&mut self) -> u64 {
        let line = self.line_with(" operations in ");
        let number = line.split(' ').find_map(|word| word.parse().ok());
        number.unwrap_or_else(|| panic!("it says how many: {line}"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The worker may have ended already.
        self.child.kill().unwrap_or_default();
        self.child.wait().expect("it was started");
    }
}

fn two(session: &Session) -> ([Worker; 2], String) {
    let workers = [Worker::start(session), Worker::start(session)];
    let addresses = format!("{},{}", workers[0].address, workers[1].address);
    (workers, addresses)
}

const TPCC: [&str; 9] = ["bench", "tpcc", "run", "--target", "noop:", "--mode", "nowait", "--warmup", "0s"];

fn tpcc<'a>(workers: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&TPCC[..], &["--warehouses", "4", "--secret-file", "secret", "--workers", workers], more].concat()
}

#[track_caller]
fn done(ran: Ran) -> String {
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    String::from_utf8(ran.out).expect("results are UTF-8")
}

/// Checks that the worker still does runs for a coordinator.
#[track_caller]
fn serves(session: &Session, address: &str) {
    done(session.run(&tpcc(address, &["--time", "500ms", "-q"])));
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number: {value}"))
}

/// For each kind, the number of requests that succeeded.
fn oks(session: &Session, file: &str) -> Vec<(String, u64)> {
    let kinds = runs(session, file)[0]["measured"]["kinds"].as_array().expect("a list").clone();
    kinds.iter().map(|kind| (kind["name"].to_string(), number(&kind["oks"]))).collect()
}

#[test]
fn warehouses_of_two_workers_are_one_result() {
    let session = Session::new();
    let (mut workers, addresses) = two(&session);
    let told = done(session.run(&tpcc(&addresses, &["--time", "500ms", "--out", "r.json"])));
    assert!(told.contains("\nWarehouses: 4\n") && told.contains(" 40 clients\n"), "{told}");
    for part in ["warehouses of share 1/2: 1 to 2", "warehouses of share 2/2: 3 to 4", "workers began within: "] {
        assert!(told.contains(part), "{part:?}: {told}");
    }
    let run = &runs(&session, "r.json")[0];
    let measured = &run["measured"];
    let sum: u64 = workers.iter_mut().map(Worker::operations).sum();
    assert_eq!(number(&measured["operations"]), sum);
    let intervals = measured["intervals"].as_array().expect("a list");
    assert_eq!(intervals.iter().map(|interval| number(&interval["operations"])).sum::<u64>(), sum);
    let kinds = measured["kinds"].as_array().expect("a list");
    assert_eq!(kinds.iter().map(|kind| number(&kind["service"]["count"])).sum::<u64>(), sum);
    assert_eq!(number(&run["plan"]["clients"]), 40);
    assert!(run["share"].is_null() && run["error"].is_null(), "{run}");
    // After this run, the workers serve the next coordinator as well.
    serves(&session, &workers[0].address);
    session.run(&["bench", "report", "r.json"]).ok();
}

#[test]
fn workers_shares_and_one_process_do_the_same() {
    let session = Session::new();
    let (_workers, addresses) = two(&session);
    let run = ["run", "-P", "a", "--target", "noop:", "--threads", "5", "--operations", "5003", "--out"];
    // The program warns if workers did not begin at the same time. This happens on a busy machine.
    let with = |more: &[&str]| done(ycsb(&session, &[&run[..], more].concat()));
    with(&["one.json"]);
    with(&["together.json", "--workers", &addresses, "--secret-file", "secret"]);
    with(&["a.json", "--share", "1/2"]);
    with(&["b.json", "--share", "2/2"]);
    let told = done(session.run(&["bench", "merge", "a.json", "b.json", "--out", "merged.json"]));
    assert!(told.contains("5,003 operations") && told.contains(" 5 clients"), "{told}");
    assert_eq!(oks(&session, "one.json").iter().map(|(_, count)| count).sum::<u64>(), 5003);
    for file in ["together.json", "merged.json"] {
        assert_eq!(oks(&session, file), oks(&session, "one.json"), "{file}");
    }
    let (a, b) = (oks(&session, "a.json"), oks(&session, "b.json"));
    assert!(a.iter().zip(&b).any(|((_, one), (_, other))| *one > 0 && *other > 0), "{a:?} {b:?}");
}

#[test]
fn results_that_differ_are_not_merged() {
    let session = Session::new();
    let run = |workload: &str, more: &[&str]| {
        let args = ["run", "-P", workload, "--target", "noop:", "--threads", "2", "--operations", "100"];
        ycsb(&session, &[&args[..], more].concat()).ok();
    };
    run("a", &["--share", "1/2", "--out", "a.json"]);
    run("c", &["--share", "2/2", "--out", "c.json"]);
    run("a", &["--share", "2/2", "--rate", "1000", "--out", "paced.json"]);
    run("a", &["--out", "whole.json"]);
    for (others, parts) in [
        (&["c.json"][..], &["a.json and c.json", "`workload a` in one and `workload c` in the other"][..]),
        (&["paced.json"], &["the pace is `closed` in one and `open` in the other"]),
        (&["whole.json"], &["a.json is share 1/2 of a run, and whole.json is a whole run"]),
        (&["a.json"], &["are both share 1/2"]),
        (&["none.json"], &["none.json"]),
    ] {
        session.run(&[&["bench", "merge", "a.json"], others].concat()).fails(2, parts);
    }
    session.run(&["bench", "merge", "a.json", "--out", "no/such/r.json"]).fails(2, &["--out", "no/such/r.json"]);
    let alone = session.run(&["bench", "merge", "a.json"]).ok();
    assert!(alone.contains("WARNING: a part of the run is missing: share 2/2"), "{alone}");
}

#[test]
fn who_does_not_know_the_secret_is_refused_by_both_sides() {
    let session = Session::new();
    let mut worker = Worker::start(&session);
    session.file("other", "another secret, which is as long");
    let run = [&TPCC[..], &["--warehouses", "4", "--time", "1s", "--secret-file", "other", "--workers"]].concat();
    let wrong = [&run[..], &[&worker.address]].concat();
    session.run(&wrong).fails(3, &[&worker.address, "it refuses this coordinator: its secret is another one"]);
    worker.line_with("is refused: its secret is another one");

    // An impostor of a worker, which knows the protocol but not the secret.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound").to_string();
    let false_worker = std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("it is connected to");
        let mut lines = BufReader::new(stream.try_clone().expect("it is open"));
        let say = |line: &str| (&stream).write_all(format!("{line}\n").as_bytes()).expect("it is open");
        say(r#"{"challenge": {"protocol": 1, "nonce": "AAAA"}}"#);
        let mut answer = String::new();
        lines.read_line(&mut answer).expect("it is answered");
        let answer: Value = serde_json::from_str(&answer).expect("it is JSON");
        // The impostor sends back the proof that it received.
        say(&format!(r#"{{"welcome": {{"proof": {}}}}}"#, answer["answer"]["proof"]));
        lines.read_to_string(&mut String::new()).expect("the rest is text")
    });
    session.run(&[&run[..], &[&address]].concat()).fails(3, &[&address, "it does not know the secret"]);
    assert_eq!(false_worker.join().expect("it does not panic"), 0, "it is given no task");
    serves(&session, &worker.address);
}

#[test]
fn what_is_no_protocol_does_not_end_a_worker() {
    let session = Session::new();
    let mut worker = Worker::start(&session);
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: worker\r\n\r\n"[..],
        b"\n",
        b"{\"answer\":{\"protocol\":1,\"nonce\":\"\",\"proof\":\"\"}}\n",
        b"{\"answer\":{\"protocol\":99,\"nonce\":\"\",\"proof\":\"AAAA\"}}\n",
        b"{\"task\":{\"args\":[\"targets\"],\"share\":\"1/1\"}}\n",
        b"\"go\"\n",
        b"\xff\xfe\x00\n",
        &[b'['; 5_000],
        b"",
    ] {
        let mut stream = TcpStream::connect(&worker.address).expect("it listens");
        // The other side may end the connection before all bytes are sent.
        stream.write_all(bytes).unwrap_or_default();
        stream.shutdown(std::net::Shutdown::Write).unwrap_or_default();
        worker.line_with("is refused: ");
    }
    serves(&session, &worker.address);
}

#[test]
fn a_worker_that_is_lost_ends_the_run_with_what_the_others_measured() {
    let session = Session::new();
    let (mut workers, addresses) = two(&session);
    let mut child = session.start(&tpcc(&addresses, &["--time", "10h", "--out", "r.json"]));
    let rest = wait_for(&mut child, "  measured ");
    workers[1].child.kill().expect("it runs");
    let ran = rest(child);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    let lost = format!("worker {}: ", workers[1].address);
    assert!(ran.err.contains(&lost), "{}", ran.err);
    let told = String::from_utf8(ran.out).expect("results are UTF-8");
    assert!(told.contains("FAILED: ") && told.contains("a part of the run is missing: share 2/2"), "{told}");
    let run = &runs(&session, "r.json")[0];
    assert!(run["error"].as_str().is_some_and(|error| error.contains(&lost)), "{run}");
    assert_eq!(number(&run["measured"]["operations"]), workers[0].operations());
    serves(&session, &workers[0].address);
}

#[test]
fn a_coordinator_that_is_lost_is_followed_by_the_next() {
    let session = Session::new();
    let (mut workers, addresses) = two(&session);
    let mut child = session.start(&tpcc(&addresses, &["--time", "10h"]));
    let rest = wait_for(&mut child, "  measured ");
    child.kill().expect("it runs");
    rest(child);
    for worker in &mut workers {
        worker.operations();
    }
    done(session.run(&tpcc(&addresses, &["--time", "500ms"])));
}

#[test]
fn control_c_ends_workers_runs_with_a_result_and_workers_at_once() {
    let session = Session::new();
    let (mut workers, addresses) = two(&session);
    let mut child = session.start(&tpcc(&addresses, &["--time", "10h", "--out", "r.json"]));
    let rest = wait_for(&mut child, "  measured ");
    interrupt(&child);
    let ran = rest(child);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    let sum: u64 = workers.iter_mut().map(Worker::operations).sum();
    let run = &runs(&session, "r.json")[0];
    assert_eq!((number(&run["measured"]["operations"]), &run["measured"]["interrupted"]), (sum, &Value::Bool(true)));
    for worker in &mut workers {
        interrupt(&worker.child);
        assert_eq!(worker.child.wait().expect("it was started").code(), Some(130));
    }
}

#[test]
fn every_workload_is_divided() {
    let session = Session::new();
    let (_workers, addresses) = two(&session);
    let by = ["--secret-file", "secret", "--workers", &addresses];
    let rows = ["-mode", "write", "-workload", "sequential", "-partition-count", "21", "-clustering-row-count", "30"];
    let kv = [&["bench", "kv", "--target", "noop:", "-concurrency", "5", "-q"], &rows[..], &by].concat();
    let told = done(session.run(&kv));
    assert!(told.contains("Total rows:      630\n"), "{told}");
    let load = ["load", "-P", "a", "-p", "recordcount=1001", "--threads", "5", "--target", "noop:", "--out", "l.json"];
    done(ycsb(&session, &[&load[..], &by].concat()));
    assert_eq!(number(&runs(&session, "l.json")[0]["measured"]["operations"]), 1001);
    let run = ["run", "-P", "d", "-p", "recordcount=1000", "--threads", "4", "--operations", "4000"];
    let told = done(ycsb(&session, &[&run[..], &["--target", "noop:", "--format", "text"], &by].concat()));
    assert!(told.contains("[INSERT], Operations, "), "{told}");
}

#[test]
fn two_workers_share_a_server() {
    let session = Session::new();
    let settings = vec![("fsync".to_owned(), "off".to_owned())];
    let server = Server::start(&ServerOptions { settings, ..ServerOptions::default() });
    let server = server.unwrap_or_else(|error| panic!("{error}"));
    let target = format!("{}&connections=2", server.url("postgres"));
    let count = |sql: &str| server.connect().expect("it runs").value(sql).expect("a number");
    let (_workers, addresses) = two(&session);
    let by = ["--target", &target, "--secret-file", "secret", "--workers", &addresses];
    let ycsb =
        |args: &[&str]| done(ycsb(&session, &[args, &["-p", "recordcount=501", "--threads", "3"], &by].concat()));

    ycsb(&["load", "-P", "d", "--recreate"]);
    assert_eq!(count("SELECT count(*) FROM usertable"), "501");
    ycsb(&["load", "-P", "d", "--recreate"]);
    assert_eq!(count("SELECT count(*) FROM usertable"), "501", "one of them has emptied it");
    // Workload D asks for the newest records, which exist already, and each process inserts other records.
    ycsb(&["run", "-P", "d", "-p", "insertorder=hashed", "--operations", "1500", "--out", "d.json"]);
    let oks = oks(&session, "d.json");
    let of = |kind: &str| oks.iter().find(|(name, _)| *name == format!("\"{kind}\"")).expect("it is there").1;
    assert_eq!(of("READ") + of("INSERT"), 1500);
    assert_eq!(count("SELECT count(*) FROM usertable"), (501 + of("INSERT")).to_string());

    let kv =
        ["bench", "kv", "-partition-count", "20", "-clustering-row-count", "30", "-concurrency", "3", "-q", "-mode"];
    let write = ["write", "-workload", "sequential", "-truncate-table", "-validate-data", "-clustering-row-size", "50"];
    let told = done(session.run(&[&kv[..], &write, &by].concat()));
    assert!(told.contains("Total rows:      600\n"), "{told}");
    let read = ["read", "-workload", "sequential", "-validate-data", "-clustering-row-size", "50"];
    let told = done(session.run(&[&kv[..], &read, &by].concat()));
    assert!(told.contains("Total rows:      600\n") && told.contains("Total errors:    0\n"), "{told}");

    done(session.run(&["bench", "rows", "setup", "--target", &target, "--tab-rows", "1000"]));
    let rows = ["bench", "rows", "run", "--tab-rows", "1000", "--batch-size", "10", "--run-duration", "500ms", "-q"];
    let told = done(session.run(&[&rows[..], &["--sessions", "3", "--out", "rows.json"], &by].concat()));
    assert!(told.contains(" in 3 sessions\n"), "{told}");
    let result: Value = serde_json::from_slice(&session.bytes("rows.json")).expect("it is JSON");
    let sessions = result["sessions"].as_array().expect("a list");
    assert_eq!(sessions.iter().map(|one| number(&one["job"]["num_rows"])).sum::<u64>(), number(&result["rows"]));
    assert!(result["settings"].to_string().contains("share 2/2"), "{result}");
}

#[test]
fn results_of_row_access_are_merged_session_by_session() {
    let session = Session::new();
    done(session.run(&["bench", "rows", "setup", "--target", "larch:db", "--tab-rows", "1000"]));
    let run = |out: &str, more: &[&str]| {
        let rows =
            ["bench", "rows", "run", "--target", "larch:db", "--tab-rows", "1000", "--run-duration", "200ms", "-q"];
        done(session.run(&[&rows[..], &["--out", out], more].concat()));
        serde_json::from_slice::<Value>(&session.bytes(out)).expect("it is JSON")
    };
    let size = ["--batch-size", "10"];
    let (a, b) = (run("a.json", &size), run("b.json", &size));
    run("c.json", &["--batch-size", "20"]);
    let told = done(session.run(&["bench", "merge", "a.json", "b.json", "--out", "m.json"]));
    assert!(told.contains(" in 2 sessions\n"), "{told}");
    let merged: Value = serde_json::from_slice(&session.bytes("m.json")).expect("it is JSON");
    assert_eq!(number(&merged["rows"]), number(&a["rows"]) + number(&b["rows"]));
    assert_eq!(merged["sessions"][1]["batches"], b["sessions"][0]["batches"], "every time is there");
    session
        .run(&["bench", "merge", "a.json", "c.json"])
        .fails(2, &["the access is `1000 rows by 10, 0 % updated` in one"]);
}

#[test]
fn one_worker_can_have_a_database_of_its_own() {
    let session = Session::new();
    let worker = Worker::start(&session);
    let by = ["--target", "larch:db", "--secret-file", "secret", "--workers", &worker.address];
    let load = ["load", "-P", "a", "-p", "recordcount=300", "--threads", "2"];
    done(ycsb(&session, &[&load[..], &by].concat()));
    // The worker finds out that the load cannot be done, and the coordinator prints the worker's error.
    ycsb(&session, &[&load[..], &by].concat()).fails(2, &[&worker.address, "is not empty", "--recreate"]);
    done(ycsb(&session, &["run", "-P", "c", "-p", "recordcount=300", "--time", "300ms", "--target", "larch:db"]));
}

#[test]
fn what_cannot_be_divided_is_refused_with_a_way_out() {
    let session = Session::new();
    session.file("secret", SECRET);
    session.file("short", "short\n");
    session.run(&["bench", "worker"]).fails(2, &["--secret-file", "LARCH_WORKER_SECRET"]);
    session.run(&["bench", "worker", "--secret-file", "short"]).fails(2, &["at least 16 characters"]);
    session.run(&["bench", "worker", "--secret-file", "none"]).fails(2, &["none"]);
    let nowhere = ["bench", "worker", "--listen", "nowhere", "--secret-file", "secret"];
    session.run(&nowhere).fails(2, &["--listen nowhere", "HOST:PORT"]);
    session.run(&tpcc("7001", &[])).fails(2, &["--workers 7001", "HOST:PORT"]);
    session.run(&tpcc("localhost:1,localhost:1", &[])).fails(2, &["localhost:1 is there twice"]);
    let refused = ["worker 127.0.0.1:1: ", "start it with `larch bench worker --listen 127.0.0.1:1`"];
    session.run(&tpcc("127.0.0.1:1", &[])).fails(3, &refused);
    let by = ["--secret-file", "secret", "--workers", "localhost:1,localhost:2"];
    let own = ["run", "-P", "a", "--target", "larch:db"];
    ycsb(&session, &[&own[..], &by].concat()).fails(2, &["larch:db", "one process alone can open it", "postgres://"]);
    ycsb(&session, &[&own[..], &["--share", "1/2"]].concat()).fails(2, &["one process alone can open it"]);
    ycsb(&session, &[&["all", "--target", "noop:"], &by[..]].concat()).fails(2, &["but not `all`"]);
    ycsb(&session, &["run", "-P", "a", "--target", "noop:", "--share", "3/2"]).fails(2, &["1/3, 2/3, 3/3"]);
    ycsb(&session, &["run", "-P", "a", "--target", "noop:", "--share", "2/2", "--time", "1s"])
        .fails(2, &["1 clients cannot be shared among 2 processes"]);
    assert!(!session.has("db"));
}
