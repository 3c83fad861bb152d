//! Tests that indexes are made, listed, read, checked and dropped.

use crate::session::Session;

const PEOPLE: &str = "id,name,city\n9,Ada,London\n7,Grace,New York\n-3,Alan,London\n12,Emmy,Bonn\n";

#[test]
fn rows_are_found_by_an_index_that_every_write_keeps() {
    let session = Session::with(&["--format", "csv", "--key", "id:int"], PEOPLE);
    session.run(&["index", "create", "db", "t", "by_city", "--columns", "city"]).ok();
    session.run(&["index", "create", "db", "t", "by_name", "--columns", "name", "--unique"]).ok();
    let listed = session.run(&["index", "list", "db"]).ok();
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.starts_with("t by_city: value.split(") && listed.contains("\nt by_name: unique, "), "{listed}");
    assert!(
        session.run(&["index", "list", "db", "t", "--json"]).ok().contains("\"index\":\"by_city\",\"unique\":false")
    );

    let by_city = |args: &[&str]| session.run(&[&["scan", "db", "t", "--by", "by_city"], args].concat()).ok();
    assert_eq!(by_city(&[]), "12\tEmmy\tBonn\n-3\tAlan\tLondon\n9\tAda\tLondon\n7\tGrace\tNew York\n");
    assert_eq!(by_city(&["--reverse", "--limit", "1"]), "7\tGrace\tNew York\n");
    assert_eq!(by_city(&["--prefix", "(\"London\")", "--keys"]), "-3\n9\n");
    assert_eq!(
        by_city(&["--from", "(\"C\")", "--to", "(\"M\")", "--format", "jsonl", "--limit", "1"]).lines().count(),
        1
    );

    let explained = session.run(&["explain", "db", "t", "scan", "--by", "by_city", "--from", "(\"L\")"]).ok();
    assert!(
        explained.starts_with("entries of the index\n") && explained.contains("\nrows of the table\n"),
        "{explained}"
    );
    let explained = session.run(&["explain", "db", "t", "scan", "--by", "by_city", "--json"]).ok();
    assert!(explained.starts_with("{\"index\":\"by_city\",\"rounds\":"), "{explained}");

    session.run(&["put", "db", "t", "7", "Grace\tBonn"]).ok();
    session.run(&["delete", "db", "t", "12"]).ok();
    session.run(&["delete-range", "db", "t", "--to", "0"]).ok();
    assert_eq!(by_city(&[]), "7\tGrace\tBonn\n9\tAda\tLondon\n");
    session.run(&["put", "db", "t", "8", "Ada\tParis"]).fails(3, &["unique index by_name of table t"]);
    let checked = session.run(&["index", "check", "db"]).ok();
    assert_eq!(
        checked,
        "t by_city: agrees with its table; 2 rows, 2 in the index\nt by_name: agrees with its table; 2 rows, 2 in the index\n"
    );
    session.run(&["check", "db"]).ok();

    session.run(&["rename-table", "db", "t", "people"]).ok();
    session.run(&["index", "drop", "db", "people", "by_name"]).ok();
    assert_eq!(session.run(&["index", "list", "db"]).ok().lines().count(), 1);
    session.run(&["check", "db"]).ok();
}

#[test]
fn wrong_arguments_about_indexes_are_told() {
    let session = Session::with(&["--format", "csv", "--key", "id:int"], PEOPLE);
    let create = |name: &str, declaration: &str| session.run(&["index", "create", "db", "t", name, declaration]);
    create("x", "value.split(").fails(2, &["the declaration \"value.split(\" is wrong"]);
    create("x", "part(3) bytes").fails(2, &["table t has columns (csv rows of columns id, name, city, key id:int)"]);
    for declared in ["value.split('\\t')[1] string", "value", "key, value.split(',')[0] string"] {
        create("x", declared).fails(2, &["name them, as in --columns city"]);
    }
    let columns = |columns: &str| session.run(&["index", "create", "db", "t", "x", "--columns", columns]);
    columns("age").fails(2, &["--columns: the header has no column age; it has id, name, city"]);
    columns("name:int").fails(3, &["does not fit its index x"]);
    session.run(&["put", "db", "raw", "k", "v"]).ok();
    session.run(&["index", "create", "db", "raw", "x", "--columns", "city"]).fails(2, &["are raw and have no columns"]);
    session.run(&["index", "create", "db", "raw", "x", "part(3) bytes"]).fails(2, &["names column group 3", "1 part"]);
    session.run(&["index", "create", "db", "raw", "x"]).fails(2, &["DECLARATION"]);
    session.run(&["index", "create", "db", "raw", "x", "key", "--columns", "city"]).fails(2, &["cannot be used with"]);
    create("", "key").fails(2, &["an index cannot be named \"\""]);
    columns("id").ok();
    create("x", "key").fails(2, &["has an index \"x\" already"]);
    session.run(&["index", "drop", "db", "t", "y"]).fails(1, &["table t has no index y; it has x"]);
    session.run(&["scan", "db", "t", "--by", "y"]).fails(1, &["table t has no index y; it has x"]);
    session.run(&["scan", "db", "t", "--by", "x", "--from", "7"]).fails(2, &["7 is no key of the index"]);
    session.run(&["clone", "db", "t", "u"]).fails(2, &["does not keep the indexes of table t, x"]);
    session.run(&["index", "create", "db", "t", "z", "key", "--compat", "0.1"]).fails(2, &["0.1"]);
}

#[test]
fn an_index_of_a_column_is_of_this_column_whether_the_key_is_typed_or_text() {
    for key in ["id:int", "id", "city,id", "name,id:num"] {
        let session = Session::with(&["--format", "csv", "--key", key], PEOPLE);
        session.run(&["index", "create", "db", "t", "by_city", "--columns", "city"]).ok();
        let keys = |prefix| session.run(&["scan", "db", "t", "--by", "by_city", "--prefix", prefix]).ok();
        assert_eq!(keys("(\"London\")").lines().count(), 2, "key {key}");
        assert_eq!(keys("(\"Bonn\")"), "12\tEmmy\tBonn\n", "key {key}");
        assert_eq!(keys("(\"Ada\")"), "", "key {key}");
        session.run(&["index", "check", "db"]).ok();
        let twice = session.run(&["index", "create", "db", "t", "unique", "--columns", "city", "--unique"]);
        twice.fails(3, &["unique index unique of table t"]);
        session.run(&["index", "create", "db", "t", "unique", "--columns", "name", "--unique"]).ok();
    }
}
