//! Tests of writes that the system refuses. A limit on the size of files simulates a full disk. The system then
//! returns errors from the same calls as on a full disk. Such a test needs neither a disk of its own nor special
//! rights. At the limit, the system sends the program a signal that would end it, but `larch` ignores this signal.

use crate::session::{Ran, Session};

/// Runs a command under a limit of `kib` KiB for every file.
fn run_limited(session: &Session, kib: u32, args: &[&str], input: &str) -> Ran {
    // The unit of this limit is 512 bytes.
    let script = format!("ulimit -f {}; exec \"$0\" \"$@\"", kib * 2);
    session.run_under(&["sh", "-c", &script], args, input)
}

const ROWS: u32 = 5_000;

/// Rows whose keys are in no order, so that files overlap and compactions must merge them.
fn rows() -> String {
    // 1,999 and the number of rows have no common factor, so every key comes exactly once.
    let keys = (0..ROWS).map(|number| number * 1_999 % ROWS);
    keys.map(|key| format!("key {key:04}\t{}\n", "z".repeat(100))).collect()
}

fn sorted(lines: &str) -> String {
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort();
    lines.iter().flat_map(|line| [*line, "\n"]).collect()
}

/// Checks a load that ends because the disk is full: every acknowledged row is there afterwards, and the rest can
/// be loaded.
#[track_caller]
fn loses_nothing(kib: u32, write_buffer: &str, parts: &[&str]) {
    let session = Session::new();
    let all = rows();
    let args = ["load", "db", "t", "--batch", "50", "--write-buffer", write_buffer];
    let ran = run_limited(&session, kib, &args, &all);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    for part in parts {
        assert!(ran.err.contains(part), "{part:?} is not in {:?}", ran.err);
    }
    let acknowledged = String::from_utf8(ran.out).expect("keys are text");
    assert!(!acknowledged.is_empty(), "{}", ran.err);

    let kept = session.scan(&["--keys"]);
    let lost = acknowledged.lines().filter(|key| kept.lines().all(|kept| kept != *key)).count();
    assert_eq!(lost, 0, "of {} acknowledged, {} are there", acknowledged.lines().count(), kept.lines().count());
    session.is_sound();
    session.run_with(&args, &all).ok();
    assert!(session.scan(&[]) == sorted(&all));
    session.is_sound();
}

#[test]
fn a_log_that_cannot_grow_loses_nothing() {
    loses_nothing(64, "4MiB", &["standard input:", ".log", "File too large", "ulimit -f"]);
}

#[test]
fn a_compaction_that_cannot_write_stops_no_load_and_loses_nothing() {
    let session = Session::new();
    let all = rows();
    let args = ["load", "db", "t", "--batch", "50", "--write-buffer", "128KiB"];
    run_limited(&session, 160, &args, &all).ok();
    assert!(session.scan(&[]) == sorted(&all));
    session.is_sound();
}

#[test]
fn an_import_that_cannot_write_never_was() {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    let all = rows();
    let args = ["import", "db", "t", "-", "--format", "tsv"];
    let parts = [".sst", "File too large", "ulimit -f", "nothing was imported"];
    run_limited(&session, 128, &args, &all).fails(3, &parts);
    assert_eq!(session.scan(&[]), "a\t1\n");
    session.is_sound();

    // The import has failed, so the table that it made was removed again.
    let args = ["import", "db", "u", "-", "--format", "tsv"];
    run_limited(&session, 128, &args, &all).fails(3, &parts);
    session.run(&["scan", "db", "u"]).fails(1, &["no table u"]);

    session.run_with(&args, &all).ok();
    session.is_sound();
}

#[test]
fn an_export_that_cannot_write_leaves_no_file() {
    let session = Session::with(&["--format", "tsv"], rows());
    let parts = ["rows.tsv.part", "File too large", "send it to a place with room"];
    for args in [&["export", "db", "t", "rows.tsv"][..], &["scan", "db", "t", "--out", "rows.tsv"]] {
        run_limited(&session, 128, args, "").fails(3, &parts);
        assert_eq!(session.names(), ["db"]);
    }
}

#[test]
fn a_key_value_run_ends_where_the_disk_does_and_its_rows_are_there() {
    let session = Session::new();
    let line = "bench kv --target larch:db -mode write -workload sequential -partition-count 20 \
                -clustering-row-count 300 -clustering-row-size 100 -concurrency 4";
    let args: Vec<&str> = line.split_whitespace().collect();
    let ran = run_limited(&session, 128, &args, "");
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    for part in [".log", "File too large"] {
        assert!(ran.err.contains(part), "{part:?} is not in {:?}", ran.err);
    }
    let text = String::from_utf8(ran.out).expect("lines are UTF-8");
    let rows = text.lines().find_map(|line| line.strip_prefix("Total rows:")).expect("it tells its rows");
    let written: usize = rows.trim().parse().expect("a number");
    // `scan --keys` prints 17 bytes for each key: two numbers of 8 bytes each, and the line end.
    let kept = session.run(&["scan", "db", "test", "--keys"]).out.len() / 17;
    assert!(written > 100 && kept >= written, "{written} rows were acknowledged, {kept} are there");
    session.is_sound();
}
