//! Tests of `larch load`: rows are written as they come.

use crate::session::Session;
use std::io::{BufRead as _, BufReader, Write as _};

#[test]
fn a_key_is_printed_once_its_row_is_there() {
    let session = Session::new();
    let mut child = session.start(&["load", "db", "t"]);
    let mut stdin = child.stdin.take().expect("it was asked for");
    let mut keys = BufReader::new(child.stdout.take().expect("it was asked for")).lines();
    for key in ["b", "a", "c"] {
        // The next row is sent only after the row before it was acknowledged, so no row waits for more input.
        writeln!(stdin, "{key}\tvalue of {key}").expect("larch reads");
        assert_eq!(keys.next().expect("larch answers").expect("with text"), key);
    }
    drop(stdin);
    assert!(keys.next().is_none());
    assert!(child.wait().expect("it was started").success());
    assert_eq!(session.scan(&[]), "a\tvalue of a\nb\tvalue of b\nc\tvalue of c\n");
}

#[test]
fn raw_rows_are_split_at_the_first_tab() {
    let session = Session::new();
    let loaded = session.run_with(&["load", "db", "t", "--batch", "3"], "b\tx\ty\r\na\nc\t\n\\t\t\\n");
    assert_eq!(loaded.ok(), "b\na\nc\n\\t\n");
    assert_eq!(session.scan(&[]), "\\t\t\\n\na\t\nb\tx\\ty\nc\t\n");
    assert_eq!(session.run(&["get", "db", "t", "\\t"]).ok(), "\n\n", "the value is one line end");
    assert_eq!(session.run_with(&["load", "db", "u"], "").ok(), "");
    assert_eq!(session.run(&["tables", "db", "u"]).ok().lines().count(), 1);
}

#[test]
fn rows_are_those_of_the_table() {
    let session = Session::with(&["--format", "csv", "--key", "name,id:int"], "id,name\n1,x\n");
    assert_eq!(session.run_with(&["load", "db", "t"], "02,\"a\nb\"\n").ok(), "a\\nb\t2\n");
    assert_eq!(session.scan(&[]), "02\ta\\nb\n1\tx\n");

    let session = Session::with(&["--format", "jsonl", "--key", "id"], "{\"id\":\"x\"}\n");
    assert_eq!(session.run_with(&["load", "db", "t"], "\n{\"id\":\"a\",\"v\":1}\n").ok(), "a\n");
    assert_eq!(session.scan(&["--format", "jsonl"]), "{\"id\":\"a\",\"v\":1}\n{\"id\":\"x\"}\n");
}

#[test]
fn a_bad_row_ends_it_and_those_before_stay() {
    let session = Session::with(&["--format", "tsv", "--key", "1:int"], "1\tx\n");
    for batch in ["1", "2", "10"] {
        let ran = session.run_with(&["load", "db", "t", "--batch", batch], "2\ta\n3\tb\n4\tc\nfive\td\n6\te\n");
        assert_eq!((ran.code, ran.out.as_slice()), (Some(3), &b"2\n3\n4\n"[..]), "{}", ran.err);
        for part in ["standard input:4: ", "\"five\" is not a whole number", "rows whose keys were printed are kept"] {
            assert!(ran.err.contains(part), "{}", ran.err);
        }
        assert_eq!(session.scan(&["--keys"]), "1\n2\n3\n4\n");
        session.run(&["delete", "db", "t", "4"]).ok();
    }
}

#[test]
fn no_key_is_printed_of_a_row_that_the_table_cannot_take() {
    let long = "k".repeat(65_537);
    for batch in ["1", "2", "3", "10"] {
        let session = Session::new();
        let load = |more: &[&str], rows: String| {
            session.run_with(&[&["load", "db", "t", "--write-buffer", "1MiB", "--batch", batch], more].concat(), rows)
        };
        for (row, why) in [
            (format!("{long}\tv\n"), "a key of 65537 bytes is longer than 65536"),
            (format!("k\t{}\n", "v".repeat(1 << 19)), "a value of 524288 bytes is longer than"),
        ] {
            let ran = load(&[], format!("a\t1\nb\t2\n{row}c\t3\nd\t4\n"));
            assert_eq!((ran.code, ran.out.as_slice()), (Some(3), &b"a\nb\n"[..]), "batches of {batch}: {}", ran.err);
            assert!(ran.err.contains("standard input:3: ") && ran.err.contains(why), "{}", ran.err);
            assert_eq!(session.scan(&[]), "a\t1\nb\t2\n", "batches of {batch}");
        }
        let ran = load(&["--delete"], format!("b\n{long}\na\n"));
        assert_eq!((ran.code, ran.out.as_slice()), (Some(3), &b"b\n"[..]), "batches of {batch}: {}", ran.err);
        assert!(ran.err.contains("standard input:2: a key of 65537 bytes"), "{}", ran.err);
        assert_eq!(session.scan(&[]), "a\t1\n", "batches of {batch}");
    }
}

#[test]
fn it_stops_when_nobody_hears_what_is_safe() {
    let session = Session::new();
    let mut child = session.start(&["load", "db", "t"]);
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(b"a\t1\nb\t2\n").expect("a pipe takes this much");
    drop(stdin);
    let left = child.wait_with_output().expect("it was started");
    let err = String::from_utf8(left.stderr).expect("messages are UTF-8");
    assert_eq!(left.status.code(), Some(3), "{err}");
    assert!(err.contains("cannot print which rows are safe"), "{err}");
    assert_eq!(session.scan(&["--keys"]), "a\n");
}

#[test]
fn rows_are_removed_by_their_keys_and_each_key_is_printed_once_that_is_safe() {
    let session = Session::new();
    session.run_with(&["load", "db", "t"], "a\t1\nb\t2\nc\t3\nd\t4\n").ok();
    // A key that does not exist is not an error.
    assert_eq!(session.run_with(&["load", "db", "t", "--delete", "--batch", "2"], "b\nx\nd\n").ok(), "b\nx\nd\n");
    assert_eq!(session.scan(&[]), "a\t1\nc\t3\n");
    session.run_with(&["load", "db", "u", "--delete"], "a\n").fails(1, &["db has no table u; it has t"]);

    let session = Session::with(&["--format", "csv", "--key", "name,id:int"], "id,name\n1,x\n2,x\n3,y\n");
    let keys = session.scan(&["--keys", "--limit", "2"]);
    assert_eq!(session.run_with(&["load", "db", "t", "--delete"], &keys).ok(), keys);
    assert_eq!(session.scan(&["--keys"]), "y\t3\n");
    let ran = session.run_with(&["load", "db", "t", "--delete"], "y\t3\nz\n");
    assert_eq!((ran.code, ran.out.as_slice()), (Some(3), &b"y\t3\n"[..]), "{}", ran.err);
    assert!(ran.err.contains("standard input:2: ") && ran.err.contains("rows whose keys were printed are removed"));
}

/// Rows of a raw table in key order. Their keys and values contain all characters that have a special meaning in
/// text.
fn awkward_rows() -> Vec<(Vec<u8>, Vec<u8>)> {
    let pieces = [&b"tmp"[..], b"\n", b"\t", b"\\", b"\r", b"n", b"\\n", b"\xef\xbb\xbf", b"\xff\0", b"precious"];
    let mut rows = std::collections::BTreeMap::new();
    for (at, first) in pieces.iter().enumerate() {
        for second in pieces {
            let value = [pieces[(at + 1) % pieces.len()], second].concat();
            rows.insert([first, second].concat(), value);
        }
        rows.insert(first.to_vec(), Vec::new());
    }
    rows.into_iter().collect()
}

/// All rows of a table.
fn rows_of(database: &larch::Database, table: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let table = database.table(table).expect("it is there");
    table.iter().map(|row| row.expect("it can be read")).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

#[test]
fn what_scan_prints_load_takes_as_the_same_rows_and_removes_no_others() {
    let rows = awkward_rows();
    for format in ["tsv", "jsonl"] {
        let session = Session::new();
        let database = session.database();
        let table = database.table("t").expect("it is made");
        rows.iter().for_each(|(key, value)| table.insert(key, value).expect("the disk works"));
        drop((table, database));

        let printed = session.run(&["scan", "db", "t", "--format", format]);
        let loaded = session.run_with(&["load", "db", "u", "--format", format, "--batch", "7"], &printed.out);
        assert_eq!((loaded.code, loaded.err.as_str()), (Some(0), ""));
        assert_eq!(rows_of(&session.database(), "u"), rows, "{format}");
        // `get` takes each key as `load` prints it.
        assert_eq!(loaded.out, session.run(&["scan", "db", "t", "--keys"]).out);

        for prefix in ["tmp", "\\n", "\\\\", "\\t"] {
            let keys = session.run(&["scan", "db", "u", "--prefix", prefix, "--keys", "--format", format]);
            let removed = session.run_with(&["load", "db", "u", "--delete", "--format", format], &keys.out);
            assert_eq!((removed.code, removed.err.as_str()), (Some(0), ""));
        }
        let removed = [&b"tmp"[..], b"\n", b"\\", b"\t"];
        let stay = |(key, _): &&(Vec<u8>, Vec<u8>)| !removed.iter().any(|prefix| key.starts_with(prefix));
        let left: Vec<_> = rows.iter().filter(stay).cloned().collect();
        assert_eq!(rows_of(&session.database(), "u"), left, "{format}");
    }
}

#[test]
fn what_scan_prints_of_a_table_of_columns_goes_into_another_one() {
    let csv = "id,name\n7,\"a\tb\"\n007,\"\\n\nx\"\n9,\"\"\n";
    for options in [&["--format", "csv", "--key", "id:int"][..], &["--format", "csv", "--key", "name"]] {
        for format in ["tsv", "jsonl"] {
            let (from, to) = (Session::with(options, csv), Session::with(options, "id,name\n1,one\n"));
            let printed = from.scan(&["--format", format]);
            to.run(&["delete-range", "db", "t", "--from", ""]).ok();
            to.run_with(&["load", "db", "t", "--format", format], &printed).ok();
            assert_eq!(to.scan(&["--format", format]), printed);
        }
        let session = Session::with(options, csv);
        let ran = session.run_with(&["load", "db", "t"], session.scan(&[]));
        assert_eq!((ran.code, ran.out.as_slice()), (Some(3), &b""[..]), "{}", ran.err);
        assert!(
            ran.err.contains("standard input:1: the row has 1 column and the header of the table 2"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_line_of_tsv_that_ends_in_a_carriage_return_keeps_it() {
    let session = Session::with(&["--format", "tsv"], "b\tx\r\n");
    session.run(&["put", "db", "t", "a", "y\r"]).ok();
    let printed = session.scan(&[]);
    assert_eq!(printed, "a\ty\r\r\nb\tx\n");
    session.run_with(&["load", "db", "t"], &printed).ok();
    assert_eq!(session.scan(&[]), printed);
}
