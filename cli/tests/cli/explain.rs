//! Tests of what `explain` prints about a read.

use crate::session::Session;
use serde_json::Value;

/// A database with some pages of rows under one node. Keys are numbers from 000000.
fn numbers(options: &[&str]) -> Session {
    let rows: String = (0..5_000).map(|number| format!("{number:06}\tsome text\tmore of it\n")).collect();
    Session::with(&[&["--format", "tsv"], options].concat(), rows)
}

/// Explains a read of table `t`, and returns the report of the command.
fn report(session: &Session, read: &[&str]) -> Value {
    let args = [&["explain", "db", "t"], read, &["--json"]].concat();
    serde_json::from_str(&session.run(&args).ok()).expect("a report is JSON")
}

/// The number of pages of the kind `kind` that were read from all files.
fn read_of(report: &Value, kind: &str) -> u64 {
    let files = report["files"].as_array().expect("files are a list").iter();
    let pages = files.flat_map(|file| file["pages"].as_array().expect("pages are a list"));
    let read =
        |pages: &Value| pages["faults"].as_u64().zip(pages["ahead"].as_u64()).map(|(faults, ahead)| faults + ahead);
    pages.filter(|pages| pages["kind"] == kind).map(|pages| read(pages).expect("numbers")).sum()
}

#[test]
fn a_get_reads_a_page_a_level_of_the_index_and_one_of_data() {
    let session = numbers(&[]);
    let found = session.run(&["explain", "db", "t", "get", "002500"]).ok();
    for part in [
        "answer   found, ",
        "disk     2 pages read, ",
        "in 2 rounds of waiting; 0 found in memory",
        "level 6  1 file, 1 visited",
        "the row",
        "round 1  file ",
        ": index, level 1 at ",
        "round 2  file ",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    let json = report(&session, &["get", "002500"]);
    assert_eq!((json["answer"].as_str(), json["table"].as_str()), (Some("found"), Some("t")));
    assert_eq!((json["rounds"].as_u64(), json["page_reads"].as_u64()), (Some(2), Some(2)));
    assert_eq!((read_of(&json, "index"), read_of(&json, "data")), (1, 1));
    assert_eq!(json["visits"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_key_that_is_not_there_is_explained_too() {
    let session = numbers(&[]);
    let outside = session.run(&["explain", "db", "t", "get", "x"]).ok();
    assert!(outside.starts_with("answer   no such key at version "), "{outside}");
    assert!(outside.contains("level 6  1 file, 0 visited, 1 with other keys"), "{outside}");
    assert_eq!(report(&session, &["get", "002500x"])["files"][0]["verdict"], "nothing");
    session.run(&["delete", "db", "t", "002500"]).ok();
    let erased = report(&session, &["get", "002500"]);
    assert_eq!((erased["answer"].as_str(), erased["files"][0]["verdict"].as_str()), (Some("erased"), Some("an erase")));
    assert_eq!(erased["levels"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_scan_is_explained_with_the_limits_it_is_given() {
    let session = numbers(&[]);
    let all = report(&session, &["scan"]);
    assert_eq!((all["answer"].as_str(), all["rows"].as_u64()), (Some("rows"), Some(5_000)));
    for (options, rows) in [
        (&["--from", "004990"][..], 10),
        (&["--to", "000007"], 7),
        (&["--prefix", "0012"], 100),
        (&["--limit", "3", "--reverse"], 3),
        (&["--from", "3", "--to", "2"], 0),
    ] {
        let some = report(&session, &[&["scan"], options].concat());
        assert_eq!(some["rows"].as_u64(), Some(rows), "{options:?}");
        assert!(read_of(&some, "data") < read_of(&all, "data"), "{options:?}: {some}");
    }
    let text = session.run(&["explain", "db", "t", "scan", "--limit", "3"]).ok();
    assert!(text.starts_with("answer   3 rows, ") && text.contains("walked") && !text.contains("round 1 "), "{text}");
}

#[test]
fn groups_that_are_not_read_are_not_touched() {
    let session = numbers(&["--groups", "hot:2;cold:*"]);
    for read in [&["get", "002500"][..], &["scan", "--limit", "10"]] {
        assert_eq!(read_of(&report(&session, &[read, &["--groups", "hot"]].concat()), "group"), 0);
        assert_eq!(read_of(&report(&session, read), "group"), 1);
    }
}

#[test]
fn the_index_that_was_asked_for_is_read() {
    // With small pages, the tree has two levels. The flat list needs one page for any number of rows.
    let session = numbers(&["--index", "both", "--page", "512", "--node", "512"]);
    let indexes_read = |kind: &str| {
        let report = report(&session, &["get", "002500", "--read-index", kind]);
        assert_eq!(report["answer"].as_str(), Some("found"));
        (read_of(&report, "index"), read_of(&report, "flat index"))
    };
    assert_eq!(indexes_read("flat"), (0, 1));
    let (nodes, flat) = indexes_read("btree");
    assert!(nodes > 1 && flat == 0, "{nodes} nodes of the tree and {flat} flat lists");
    assert_eq!(session.run(&["get", "db", "t", "002500", "--read-index", "flat"]).ok(), "some text\tmore of it\n");
}

#[test]
fn a_read_that_cannot_be_is_not_explained() {
    let session = numbers(&["--key", "1:int"]);
    session.run(&["explain", "db", "t", "get", "x"]).fails(2, &["\"x\" is not a whole number"]);
    session.run(&["explain", "db", "t", "get", "7", "--groups", "hot"]).fails(2, &["leave --groups out"]);
    session.run(&["explain", "db", "u", "get", "7"]).fails(1, &["no table u"]);
    session.run(&["explain", "none", "t", "get", "7"]).fails(3, &["none has no database"]);
}
