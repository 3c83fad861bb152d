//! Tests of processes that do compactions for a writer in another process, and are killed.

use crate::bench_stops::interrupt;
use crate::follow::{Writer, key, keys};
use crate::session::Session;
use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};

/// After this many rows, a writer must have noticed that a worker lives, and must have had something to compact.
const MOST_ROWS: u64 = 2_000_000;

/// Starts a worker. Returns the worker's process, and a channel that receives the lines that the worker prints.
fn start(session: &Session, args: &[&str]) -> (Child, Receiver<String>) {
    let mut child = session.start(&[&["compaction-worker", "db"], args].concat());
    let lines = BufReader::new(child.stdout.take().expect("it was asked for")).lines();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    (child, receiver)
}

/// Writes rows until a worker has printed a line, and returns this line.
fn write_until_done(writer: &mut Writer, next: &mut u64, lines: &Receiver<String>) -> String {
    loop {
        if let Ok(line) = lines.try_recv() {
            return line;
        }
        assert!(*next < MOST_ROWS, "a worker has done nothing for {next} rows");
        writer.write(*next);
        *next += 1;
    }
}

#[test]
fn workers_compact_for_a_writer_and_one_that_is_killed_loses_nothing() {
    let session = Session::new();
    let mut writer = Writer::start_with(&session, &["--compaction-workers"]);
    let mut next = 0;
    writer.write(next);
    next += 1;
    for _ in 0..3 {
        let (mut worker, lines) = start(&session, &["--json"]);
        let line = write_until_done(&mut writer, &mut next, &lines);
        let done: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!((done["table"].as_str(), &done["error"]), (Some("t"), &serde_json::Value::Null), "{line}");
        assert!(done["output_bytes"].as_u64() > Some(0), "{line}");
        worker.kill().expect("it runs until it is killed");
        worker.wait().expect("it was started");
    }
    let (worker, lines) = start(&session, &[]);
    let line = write_until_done(&mut writer, &mut next, &lines);
    assert!(line.starts_with("t: ") && !line.contains("failed"), "{line}");
    interrupt(&worker);
    assert_eq!(worker.wait_with_output().expect("it was started").status.code(), Some(0), "it ends as it should");
    let (worker, lines) = start(&session, &["--jobs", "1"]);
    write_until_done(&mut writer, &mut next, &lines);
    assert!(worker.wait_with_output().expect("it was started").status.success(), "it ends after its job");
    writer.end();
    let scanned = session.run(&["scan", "db", "t"]).ok();
    assert!(keys(&scanned).iter().copied().eq((0..next).map(key)), "all acknowledged rows are there, and no others");
    session.is_sound();
}

#[test]
fn a_worker_says_what_is_wrong_with_the_directory() {
    let session = Session::new();
    let missing = session.run(&["compaction-worker", "db"]);
    assert_eq!(missing.code, Some(3));
    assert!(missing.err.contains("db"), "{}", missing.err);
    assert!(!session.has("db"), "it makes nothing where there is no database");
}
