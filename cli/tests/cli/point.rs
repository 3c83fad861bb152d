//! Tests of commands for one row by its key.

use crate::session::Session;

#[test]
fn raw_rows_are_put_read_and_deleted() {
    let session = Session::new();
    session.run(&["put", "db", "t", "k", "a value"]).ok();
    session.run(&["put", "db", "t", "-5", "-6"]).ok();
    session.run(&["put", "db", "t", "none"]).ok();
    assert_eq!(session.run(&["get", "db", "t", "k"]).ok(), "a value\n");
    assert_eq!(session.run(&["get", "db", "t", "-5"]).ok(), "-6\n");
    assert_eq!(session.run(&["get", "db", "t", "k", "--json"]).ok(), "{\"key\":\"k\",\"value\":\"a value\"}\n");
    assert_eq!(session.scan(&[]), "-5\t-6\nk\ta value\nnone\t\n");
    session.run(&["delete", "db", "t", "k"]).ok();
    session.run(&["get", "db", "t", "k"]).fails(1, &["table t has no row with key k"]);
    session.run(&["delete", "db", "t", "k"]).fails(1, &["no row with key k"]);
}

#[test]
fn a_row_with_columns_is_checked_before_it_is_written() {
    let session = Session::with(&["--format", "csv", "--key", "id:int"], "id,name,note\n1,x,\n");
    let put = |key, rest| session.run(&["put", "db", "t", key, rest]);
    put("007", "seven\ta\\tb").ok();
    put("8", "only one")
        .fails(2, &["2 columns beside its key and this one has 1", "name, note", "nothing was written"]);
    put("x", "a\tb").fails(2, &["\"x\" is not a whole number"]);
    put("8", "a\tb\\q").fails(2, &["write \\\\ for a backslash"]);
    assert_eq!(session.scan(&[]), "1\tx\t\n007\tseven\ta\\tb\n");
    assert_eq!(session.run(&["get", "db", "t", "7"]).ok(), "seven\ta\\tb\n");
    assert_eq!(
        session.run(&["get", "db", "t", "7", "--json"]).ok(),
        "{\"id\":\"007\",\"name\":\"seven\",\"note\":\"a\\tb\"}\n"
    );
    session.run(&["get", "db", "t", "y"]).fails(2, &["\"y\" is not a whole number"]);
}

#[test]
fn a_key_of_several_columns_is_one_argument() {
    let session = Session::with(&["--format", "tsv", "--key", "3,1"], "a\tx\tb\ty\n");
    assert_eq!(session.run(&["get", "db", "t", "b\ta"]).ok(), "x\ty\n");
    session.run(&["put", "db", "t", "d\tc", "z"]).ok();
    assert_eq!(session.scan(&[]), "a\tx\tb\ty\nc\tz\td\n");
    session.run(&["get", "db", "t", "b"]).fails(2, &["the key has 2 columns", "a tab between"]);
}

#[test]
fn an_object_gets_its_key_members() {
    let session = Session::with(&["--format", "jsonl", "--key", "id:int"], "{\"id\":1}\n");
    session.run(&["put", "db", "t", "2", "{\"a\": 1}"]).ok();
    session.run(&["put", "db", "t", "3"]).ok();
    session.run(&["put", "db", "t", "4", "{\"id\":5}"]).fails(2, &["another key"]);
    session.run(&["put", "db", "t", "4", "text"]).fails(2, &["not a JSON object"]);
    assert_eq!(session.scan(&["--format", "jsonl"]), "{\"id\":1}\n{\"id\":2,\"a\": 1}\n{\"id\":3}\n");
    assert_eq!(session.run(&["get", "db", "t", "2"]).ok(), "{\"id\":2,\"a\": 1}\n");
}
