//! Tests that rows are kept under a name and read again, by every command that reads.

use crate::session::Session;

#[test]
fn rows_that_were_kept_are_read_again_until_they_are_forgotten() {
    let session = Session::new();
    session.run_with(&["load", "db", "t"], "a\t1\nb\t2\n").ok();
    let told = session.run(&["keep", "db", "monday"]).ok();
    assert!(told.starts_with("monday: version 2, since 20") && told.ends_with(" UTC\n"), "{told}");
    session.run_with(&["load", "db", "t"], "b\t3\nc\t4\n").ok();
    session.run(&["delete", "db", "t", "a"]).ok();
    session.run(&["compact", "db"]).ok();
    let read = |args: &[&str]| session.run(&[args, &["--at", "monday"]].concat());
    assert_eq!(read(&["scan", "db", "t"]).ok(), "a\t1\nb\t2\n");
    assert_eq!(read(&["scan", "db", "t", "--reverse", "--keys"]).ok(), "b\na\n");
    assert_eq!(read(&["get", "db", "t", "b"]).ok(), "2\n");
    assert_eq!(read(&["get", "db", "t", "b", "--json"]).ok(), "{\"key\":\"b\",\"value\":\"2\"}\n");
    read(&["get", "db", "t", "c"]).fails(1, &["table t has no row with key c"]);
    assert_eq!(read(&["count", "db", "t", "--exact"]).ok(), "2\n");
    assert_eq!(read(&["nth", "db", "t", "0"]).ok(), "a\t1\n");
    assert_eq!(read(&["sample", "db", "t", "9", "--seed", "1"]).ok(), "a\t1\nb\t2\n");
    read(&["export", "db", "t", "out.csv"]).ok();
    assert_eq!(std::fs::read_to_string(session.path("out.csv")).expect("it was written"), "key,value\na,1\nb,2\n");
    assert_eq!(session.run(&["scan", "db", "t"]).ok(), "b\t3\nc\t4\n");
    // A number is the version with this number, unless it is a name.
    assert_eq!(session.run(&["get", "db", "t", "b", "--at", "2"]).ok(), "2\n");
    session.run(&["keep", "db", "2"]).ok();
    assert_eq!(session.run(&["get", "db", "t", "b", "--at", "2"]).ok(), "3\n");
    let listed = session.run(&["kept", "db"]).ok();
    assert!(listed.starts_with("monday: version 2, ") && listed.lines().count() == 2, "{listed}");
    let listed = session.run(&["kept", "db", "--json"]).ok();
    assert!(listed.starts_with("{\"name\":\"monday\",\"version\":2,\"since\":\"20"), "{listed}");
    session.is_sound();

    session.run(&["keep", "db", "monday"]).fails(2, &["version 2 is kept as \"monday\" already"]);
    session.run(&["keep", "db", ""]).fails(2, &["a version cannot be kept as \"\""]);
    session.run(&["forget", "db", "tuesday"]).fails(1, &["db keeps no version as tuesday; it has monday, 2"]);
    session.run(&["scan", "db", "t", "--at", "tuesday"]).fails(1, &["no version is kept as \"tuesday\""]);
    session.run(&["scan", "db", "t", "--at", "1"]).fails(1, &["version 1 is not kept"]);
    session.run(&["forget", "db", "monday"]).ok();
    session.run(&["scan", "db", "t", "--at", "monday"]).fails(1, &["choose from 2"]);
}

#[test]
fn rows_are_kept_in_the_order_of_an_index_too() {
    let session = Session::new();
    session.run_with(&["load", "db", "t"], "a\t2\nb\t1\n").ok();
    session.run(&["index", "create", "db", "t", "by", "value string"]).ok();
    session.run(&["keep", "db", "then"]).ok();
    session.run(&["put", "db", "t", "a", "0"]).ok();
    let read = |args: &[&str]| session.run(&[&["scan", "db", "t", "--by", "by"], args].concat()).ok();
    assert_eq!((read(&[]), read(&["--at", "then"])), ("a\t0\nb\t1\n".to_owned(), "b\t1\na\t2\n".to_owned()));
    assert_eq!(read(&["--at", "then", "--keys"]), "b\na\n");
}
