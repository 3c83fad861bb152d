//! Tests of the ranges, orders and formats of a scan.

use crate::session::Session;
use std::io::Read as _;
use std::process::Stdio;

#[test]
fn a_scan_begins_and_ends_where_it_is_told() {
    let session = Session::with(&["--format", "tsv"], "a\t1\nab\t2\nb\t3\nc\t4\n");
    let keys = |options: &[&str]| session.scan(&[&["--keys"][..], options].concat()).replace('\n', " ");
    assert_eq!(keys(&[]), "a ab b c ");
    assert_eq!(keys(&["--from", "ab"]), "ab b c ");
    assert_eq!(keys(&["--to", "b"]), "a ab ");
    assert_eq!(keys(&["--from", "aa", "--to", "c"]), "ab b ");
    assert_eq!(keys(&["--prefix", "a"]), "a ab ");
    assert_eq!(keys(&["--prefix", "a", "--from", "ab"]), "ab ");
    assert_eq!(keys(&["--reverse"]), "c b ab a ");
    assert_eq!(keys(&["--reverse", "--limit", "2"]), "c b ");
    assert_eq!(keys(&["--reverse", "--from", "ab", "--to", "c"]), "b ab ");
    assert_eq!(keys(&["--limit", "0"]), "");
    assert_eq!(keys(&["--from", "c", "--to", "a"]), "");
    assert_eq!(keys(&["--from", "x"]), "");
}

#[test]
fn numbers_are_bounds_too() {
    let session = Session::with(&["--format", "tsv", "--key", "1:int,2"], "10\tb\n-5\ta\n9\tc\n9\td\n100\te\n");
    assert_eq!(session.scan(&["--from", "-5", "--to", "10"]), "-5\ta\n9\tc\n9\td\n");
    assert_eq!(session.scan(&["--prefix", "9"]), "9\tc\n9\td\n");
    assert_eq!(session.scan(&["--prefix", "9\td"]), "9\td\n");
    assert_eq!(session.scan(&["--from=10\tb"]), "10\tb\n100\te\n");
    session.run(&["scan", "db", "t", "--from", "x"]).fails(2, &["\"x\" is not a whole number"]);
    session.run(&["scan", "db", "t", "--from", "1\ta\tb"]).fails(2, &["the key has only 2 columns"]);
}

#[test]
fn a_prefix_of_several_columns_may_be_cut_anywhere() {
    let session = Session::with(&["--format", "tsv", "--key", "1,2"], "DE\tBerlin\nDE\tBonn\nDEX\tB\nUS\tBoston\n");
    assert_eq!(session.scan(&["--prefix", "DE"]), "DE\tBerlin\nDE\tBonn\nDEX\tB\n");
    assert_eq!(session.scan(&["--prefix", "DE\t"]), "DE\tBerlin\nDE\tBonn\n");
    assert_eq!(session.scan(&["--prefix", "DE\tBo"]), "DE\tBonn\n");
}

#[test]
fn bytes_that_are_not_text_are_marked_in_json() {
    let session = Session::new();
    session.import(&["--format", "tsv"], b"k\t\xff\n").ok();
    assert_eq!(session.scan(&["--format", "jsonl"]), "{\"1\":\"k\",\"2\":{\"hex\":\"ff\"}}\n");
    assert_eq!(session.scan(&["--format", "jsonl", "--keys"]), "\"k\"\n");
}

#[test]
fn a_missing_table_is_named_with_those_that_are_there() {
    let session = Session::with(&["--format", "tsv"], "a\n");
    session.run(&["scan", "db", "u"]).fails(1, &["db has no table u", "it has t"]);
}

#[test]
fn a_reader_that_has_enough_ends_the_scan_quietly() {
    let rows: String = (0..200_000).map(|number| format!("{number:010}\tsome more text to fill the pipe\n")).collect();
    let session = Session::with(&["--format", "tsv"], rows);
    let mut command = session.command(&["scan", "db", "t"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("larch was built");
    let mut first = [0; 10];
    let mut stdout = child.stdout.take().expect("it was asked for");
    stdout.read_exact(&mut first).expect("there are rows");
    drop(stdout);
    let left = child.wait_with_output().expect("it was started");
    assert_eq!(&first, b"0000000000");
    assert_eq!((left.status.code(), left.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_table_without_groups_has_none_to_choose_from() {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    session.run(&["scan", "db", "t", "--groups", "hot"]).fails(2, &["the table has no groups", "leave --groups out"]);
    session.run(&["get", "db", "t", "a", "--groups", "hot"]).fails(2, &["the table has no groups"]);
}
