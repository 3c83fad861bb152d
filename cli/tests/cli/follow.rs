//! Tests of commands that follow a database while another process writes to it and is killed.

use crate::bench_stops::interrupt;
use crate::session::Session;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};

/// A process that writes the rows `0`, `1`, `2`, … Each row is written after the row before it was acknowledged.
pub struct Writer {
    child: Child,
    stdin: ChildStdin,
    keys: BufReader<ChildStdout>,
}

/// The key of row `number`. A later row has a later key.
pub fn key(number: u64) -> String {
    format!("{number:08}")
}

impl Writer {
    pub fn start(session: &Session) -> Self {
        Self::start_with(session, &[])
    }

    /// Like [`Writer::start`], with more arguments.
    pub fn start_with(session: &Session, more: &[&str]) -> Self {
        let args = ["load", "db", "t", "--batch", "1", "--durability", "buffered", "--write-buffer", "64KiB"];
        let mut child = session.start(&[&args[..], more].concat());
        let stdin = child.stdin.take().expect("it was asked for");
        let keys = BufReader::new(child.stdout.take().expect("it was asked for"));
        Self { child, stdin, keys }
    }

    /// Writes row `number` and waits until it is acknowledged.
    pub fn write(&mut self, number: u64) {
        let (key, filler) = (key(number), "x".repeat(300));
        self.stdin.write_all(format!("{key}\t{filler}\n").as_bytes()).expect("it reads");
        let mut line = String::new();
        self.keys.read_line(&mut line).expect("keys are text");
        assert_eq!(line.trim_end(), key);
    }

    /// Waits until all rows are written, and ends the process.
    pub fn end(self) {
        drop(self.stdin);
        assert!(self.child.wait_with_output().expect("it was started").status.success());
    }

    fn kill(mut self) {
        self.child.kill().expect("it runs until it is killed");
        self.child.wait().expect("it was started");
    }
}

/// The keys that a scan has printed.
pub fn keys(scanned: &str) -> Vec<&str> {
    scanned.lines().map(|line| line.split('\t').next().expect("a line has a key")).collect()
}

#[test]
fn a_read_that_follows_sees_every_acknowledged_row_and_a_prefix() {
    let session = Session::new();
    let (mut next, mut kills) = (0, 0);
    for round in 0..6 {
        let mut writer = Writer::start(&session);
        for _ in 0..150 {
            writer.write(next);
            next += 1;
        }
        let missing = session.run(&["get", "db", "t", &key(next - 1), "--read-only"]);
        assert_eq!(missing.code, Some(1), "without following, rows that are only in the log are not seen");
        session.run(&["get", "db", "t", &key(next - 1), "--follow"]).ok();
        // While the scan reads, the writer writes more rows.
        let following = session.start(&["scan", "db", "t", "--follow"]);
        for _ in 0..40 {
            writer.write(next);
            next += 1;
        }
        let scanned = String::from_utf8(following.wait_with_output().expect("it was started").stdout).expect("text");
        let seen = keys(&scanned).len() as u64;
        assert!((next - 40..=next).contains(&seen), "{seen} rows of {next}");
        assert!(keys(&scanned).iter().copied().eq((0..seen).map(key)), "they are not a prefix");
        if round % 2 == 0 {
            writer.kill();
            kills += 1;
        } else {
            writer.end();
        }
        let scanned = session.run(&["scan", "db", "t", "--follow"]).ok();
        assert!(keys(&scanned).iter().copied().eq((0..next).map(key)), "the writer is gone, its rows are not");
        assert!(!session.has("db/followers"), "a follower leaves nothing behind");
    }
    assert_eq!(kills, 3);
    session.is_sound();
}

#[test]
fn a_follower_that_is_killed_leaves_nothing_behind_once_the_writer_works() {
    let session = Session::new();
    let mut writer = Writer::start(&session);
    (0..300).for_each(|number| writer.write(number));
    let mut follower = session.start(&["follow", "db"]);
    let mut lines = BufReader::new(follower.stdout.take().expect("it was asked for")).lines();
    let first = lines.next().expect("it says what it shows").expect("text");
    assert!(first.starts_with("version ") && first.contains("1 table, "), "{first}");
    writer.write(300);
    let more = lines.next().expect("it says that there is more").expect("text");
    assert_ne!(first, more);
    assert!(session.has("db/followers"));
    follower.kill().expect("it runs until it is killed");
    follower.wait().expect("it was started");
    // The writer flushes and compacts in the background. When the writer wants to remove a file, it finds the
    // lease of the dead follower, and removes this lease.
    let mut number = 301;
    while session.has("db/followers") {
        writer.write(number);
        number += 1;
        assert!(number < 50_000, "the lease of a dead follower is removed");
    }
    writer.end();
    session.is_sound();
}

#[test]
fn follow_ends_with_an_interrupt_and_after_its_lines() {
    let session = Session::with(&["--format", "tsv"], "a\t1\nb\t2\n");
    let json = session.run(&["follow", "db", "--json", "--lines", "1"]).ok();
    let shown: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((shown["tables"].as_u64(), shown["files"].as_u64()), (Some(1), Some(1)), "{json}");
    let mut child = session.start(&["follow", "db", "--files"]);
    let mut lines = BufReader::new(child.stdout.take().expect("it was asked for")).lines();
    lines.next().expect("it says what it shows").expect("text");
    interrupt(&child);
    assert!(child.wait().expect("it was started").success(), "this is how it is meant to end");
    assert!(!session.has("db/followers"));
}

#[test]
fn a_command_that_writes_does_not_follow() {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    let ran = session.run(&["put", "db", "t", "b", "2", "--follow"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("leave --follow out"), "{}", ran.err);
    let ran = session.run(&["get", "db", "t", "a", "--follow", "--read-only"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let ran = session.run(&["follow", "nothing"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(!session.has("nothing"), "nothing is made to follow it");
}
