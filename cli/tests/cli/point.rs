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

#[test]
fn a_table_gives_times_to_rows_and_get_says_which() {
    let session = Session::new();
    let until = |table: &str, key: &str| session.run(&["get", "db", table, key, "--until"]).ok();
    session.run(&["create-table", "db", "t", "--expire-after", "250d"]).ok();
    session.run(&["put", "db", "t", "a", "1"]).ok();
    assert!(until("t", "a").starts_with("20"), "{}", until("t", "a"));
    session.run(&["put", "db", "t", "b", "2", "--until", "2999-12-31 08:30"]).ok();
    assert_eq!(until("t", "b"), "2999-12-31 08:30:00\n");
    let json = session.run(&["get", "db", "t", "b", "--until", "--json"]).ok();
    assert_eq!(json, "{\"until\":\"2999-12-31 08:30:00\"}\n");
    assert!(session.run(&["tables", "db", "t"]).ok().ends_with(", rows expire after 250d\n"));
    let altered = session.run(&["alter", "db", "t", "--expire-after", "never"]).ok();
    assert!(altered.contains(", rows expire after 250d\nt: now ") && !altered.ends_with("250d\n"), "{altered}");
    session.run(&["put", "db", "t", "a", "3"]).ok();
    assert_eq!(until("t", "a"), "never\n");
    assert_eq!(session.run(&["get", "db", "t", "a", "--until", "--json"]).ok(), "{\"until\":null}\n");
    session.run(&["get", "db", "t", "c", "--until"]).fails(1, &["table t has no row with key c"]);
    session.run(&["alter", "db", "t", "--expire-by", "until"]).fails(2, &["--expire-by: rows of raw keys and values"]);
    session.run(&["alter", "db", "t", "--expire-after", "0s"]).fails(2, &["choose at least a millisecond"]);
    session.run(&["alter", "db", "t", "--expire-by", "value.text u64 seconds"]).ok();
    session.run(&["put", "db", "t", "d", "4102444800"]).ok();
    assert_eq!(until("t", "d"), "2100-01-01 00:00:00\n");
    session.run(&["put", "db", "t", "e", "soon"]).fails(3, &["row e of table t does not fit", "is not of type u64"]);

    let rows = "id,name,until\n1,x,2100-01-01\n2,y,\n3,z,2000-01-01 12:00\n";
    session.run_with(&["import", "db", "c", "-", "--format", "csv", "--expire-by", "until"], rows).ok();
    assert_eq!((until("c", "1").as_str(), until("c", "2").as_str()), ("2100-01-01 00:00:00\n", "never\n"));
    session.run(&["get", "db", "c", "3"]).fails(1, &["table c has no row with key 3"]);
    session.run(&["put", "db", "c", "4", "w\tsoon"]).fails(3, &["\"soon\" is no time from 1970 on"]);
    session.run(&["put", "db", "c", "4", "w\t2100-01-01T00:00:00+01:00"]).ok();
    assert_eq!(until("c", "4"), "2099-12-31 23:00:00\n");
    session.run(&["alter", "db", "c", "--expire-by", "when"]).fails(2, &["the header has no column when"]);
    let rows = "{\"id\":\"a\",\"until\":4102444800}\n";
    let import = ["import", "db", "j", "-", "--format", "jsonl", "--key", "id", "--expire-by", "until:seconds"];
    session.run_with(&import, rows).ok();
    assert_eq!(until("j", "a"), "2100-01-01 00:00:00\n");
    session.run(&["put", "db", "j", "b", "{\"until\":\"soon\"}"]).fails(3, &["a string is not of type i64"]);

    // A replica has the times of the first database, and its option.
    session.run(&["retain", "db", "--everything"]).ok();
    session.run(&["replicate", "db", "copy"]).ok();
    session.run(&["put", "db", "c", "5", "v\t", "--until", "2111-01-01"]).ok();
    session.run(&["replicate", "db", "copy"]).ok();
    let copied = |table: &str, key: &str| session.run(&["get", "copy", table, key, "--until"]).ok();
    for (table, key) in [("t", "a"), ("t", "b"), ("c", "1"), ("c", "2"), ("c", "5"), ("j", "a")] {
        assert_eq!(copied(table, key), until(table, key), "{table} {key}");
    }
    assert_eq!(session.run(&["tables", "copy", "c"]).ok(), session.run(&["tables", "db", "c"]).ok());
}
