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
    columns("age").fails(2, &["the columns of the index: the header has no column age; it has id, name, city"]);
    create("x", "age").fails(2, &["the columns of the index: the header has no column age; it has id, name, city"]);
    create("x", "city,,name").fails(2, &["a key column is a name or a number from 1"]);
    create("x", "city desc desc").fails(2, &["the header has no column city desc"]);
    create("x", "value.split(").fails(2, &["larch index create --help has its grammar"]);
    columns("name:int").fails(3, &["does not fit its index x"]);
    session.run(&["put", "db", "raw", "k", "v"]).ok();
    session.run(&["index", "create", "db", "raw", "x", "--columns", "city"]).fails(2, &["are raw and have no columns"]);
    session.run(&["index", "create", "db", "raw", "x", "city"]).fails(2, &["are raw and have no columns", "--help"]);
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

#[test]
fn an_index_is_made_of_columns_by_their_names_in_either_order() {
    let rows = "id,name,city,month\n1,Ada,Bonn,3\n2,Bob,Bonn,12\n3,Cy,Rome,\n4,Di,Aachen,7\n";
    for key in ["id:int", "id", "city,id"] {
        let session = Session::with(&["--format", "csv", "--key", key], rows);
        for (columns, expected) in [
            ("month:int", "Ada Di Bob"),
            ("month:int desc", "Bob Di Ada"),
            ("month", "Cy Bob Ada Di"),
            ("4 desc", "Di Ada Bob Cy"),
            ("city, month:num desc", "Di Bob Ada"),
            (" city desc ,name desc", "Cy Bob Ada Di"),
        ] {
            session.run(&["index", "create", "db", "t", "x", columns]).ok();
            let found = session.scan(&["--by", "x", "--format", "jsonl"]);
            let names = found
                .lines()
                .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["name"].clone());
            let names: Vec<String> = names.map(|name| name.as_str().expect("a name").to_owned()).collect();
            assert_eq!(names.join(" "), expected, "{columns} with key {key}");
            session.run(&["index", "check", "db"]).ok();
            session.run(&["index", "drop", "db", "t", "x"]).ok();
        }
        session.run(&["index", "create", "db", "t", "x", "city", "--unique"]).fails(3, &["unique index x of table t"]);
    }
    let session = Session::with(
        &["--format", "jsonl", "--key", "id"],
        "{\"id\":\"a\",\"n\":1}\n{\"id\":\"b\",\"n\":2}\n{\"id\":\"c\"}\n",
    );
    session.run(&["index", "create", "db", "t", "by_n", "n:int desc"]).ok();
    assert_eq!(session.scan(&["--by", "by_n", "--keys"]), "b\na\n");
    // A declaration begins with one of three words; --columns means the member.
    session.run(&["index", "create", "db", "t", "by_key", "key"]).ok();
    session.run(&["index", "create", "db", "t", "by_member", "--columns", "key"]).ok();
    let listed = session.run(&["index", "list", "db"]).ok();
    assert!(listed.contains("by_key: key\n"), "{listed}");
    assert!(listed.contains("by_member: value.json(\"$.key\") string\n"), "{listed}");
}

#[test]
fn an_import_into_a_table_with_indexes_keeps_them_or_changes_nothing() {
    for options in [&["--key", "id:int"][..], &["--key", "id:int", "--groups", "hot:city;cold:*"]] {
        let csv = [&["--format", "csv"][..], options].concat();
        let session = Session::with(&csv, PEOPLE);
        session.run(&["index", "create", "db", "t", "by_city", "city"]).ok();
        session.run(&["index", "create", "db", "t", "by_name", "name", "--unique"]).ok();
        let by_city = || session.scan(&["--by", "by_city", "--keys"]).replace('\n', " ");
        assert_eq!(by_city(), "12 -3 9 7 ");
        let said = session.import(&csv, "id,name,city\n9,Ada,Aachen\n20,Bob,Zurich\n20,Bo,Zurich\n").ok();
        assert!(said.contains("imported 2 rows") && said.contains("1 row had a key that came again"), "{said}");
        assert!(said.contains("in one commit, which indexes keep: by_city, by_name"), "{said}");
        assert_eq!(by_city(), "9 12 -3 7 20 ");
        for (rows, part) in [
            ("id,name,city\n1,Eve,Bonn\n2,Grace,Bonn\n", "unique index by_name of table t"),
            ("id,name,city\n1,Eve,Bonn\n2,Max,Bonn,Rhein\n", "input:3: the row has 4 columns"),
        ] {
            session.import(&csv, rows).fails(3, &[part, "nothing was imported"]);
            assert_eq!(by_city(), "9 12 -3 7 20 ");
        }
        session.run(&["index", "check", "db"]).ok();
        session.is_sound();
    }
}
