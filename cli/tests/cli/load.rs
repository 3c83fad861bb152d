//! Rows that are written as they come.

use crate::session::Session;
use std::io::{BufRead as _, BufReader, Write as _};

#[test]
fn a_key_is_printed_once_its_row_is_there() {
    let session = Session::new();
    let mut child = session.start(&["load", "db", "t"]);
    let mut stdin = child.stdin.take().expect("it was asked for");
    let mut keys = BufReader::new(child.stdout.take().expect("it was asked for")).lines();
    for key in ["b", "a", "c"] {
        // The next row is only written once this one was acknowledged: nothing waits for more input.
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
    let loaded = session.run_with(&["load", "db", "t", "--batch", "3"], "b\tx\ty\na\nc\t\n\\t\t\\n");
    assert_eq!(loaded.ok(), "b\na\nc\n\\t\n");
    assert_eq!(session.scan(&[]), "\\t\t\\n\na\t\nb\tx\ty\nc\t\n");
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
    // One that is not there is no error.
    assert_eq!(session.run_with(&["load", "db", "t", "--delete", "--batch", "2"], "b\nx\nd\n").ok(), "b\nx\nd\n");
    assert_eq!(session.scan(&[]), "a\t1\nc\t3\n");
    session.run_with(&["load", "db", "u", "--delete"], "a\n").fails(1, &["no table u in db; it has t"]);

    let session = Session::with(&["--format", "csv", "--key", "name,id:int"], "id,name\n1,x\n2,x\n3,y\n");
    let keys = session.scan(&["--keys", "--limit", "2"]);
    assert_eq!(session.run_with(&["load", "db", "t", "--delete"], &keys).ok(), keys);
    assert_eq!(session.scan(&["--keys"]), "y\t3\n");
    let ran = session.run_with(&["load", "db", "t", "--delete"], "y\t3\nz\n");
    assert_eq!((ran.code, ran.out.as_slice()), (Some(3), &b"y\t3\n"[..]), "{}", ran.err);
    assert!(ran.err.contains("standard input:2: ") && ran.err.contains("rows whose keys were printed are removed"));
}
