//! Tests that rows are imported and printed again, and tests of files that are not what they should be.

use crate::session::Session;

/// Imports rows, and checks that `scan` prints exactly `scanned`.
#[track_caller]
fn round_trip(options: &[&str], rows: &str, scanned: &str) {
    let session = Session::with(options, rows);
    assert_eq!(session.scan(&[]), scanned);
}

#[test]
fn tsv_comes_out_byte_for_byte() {
    let tsv = &["--format", "tsv"];
    round_trip(tsv, "b\t1\na\t\\n\"\r\nc\t\n", "a\t\\n\"\nb\t1\nc\t\n");
    round_trip(tsv, "k2\nk1\n", "k1\nk2\n");
    round_trip(tsv, "k2\t\nk1\tx\n", "k1\tx\nk2\t\n");
    round_trip(tsv, "k3\t\t\nk4\t\tx\nk5\ta\tb", "k3\t\t\nk4\t\tx\nk5\ta\tb\n");
    round_trip(&["--format", "tsv", "--key", "2"], "1\tb\tx\n2\ta\t\n", "2\ta\t\n1\tb\tx\n");
    round_trip(&["--format", "tsv", "--key", "3,1"], "b\t-\tx\t\na\t-\tx\ty\n", "a\t-\tx\ty\nb\t-\tx\t\n");
    round_trip(&["--format", "tsv", "--key", "2:int"], "x\t10\ny\t-007\nz\t+9\n", "y\t-007\nz\t+9\nx\t10\n");

    let session = Session::new();
    let rows = b"\xff\x00\t\xfe\n\x00\t\x00\n";
    session.import(tsv, rows).ok();
    assert_eq!(session.run(&["scan", "db", "t"]).out, b"\x00\t\x00\n\xff\x00\t\xfe\n");
}

#[test]
fn csv_comes_out_as_tsv_and_as_objects() {
    let session = Session::with(
        &["--format", "csv", "--key", "name"],
        "id,name,note\r\n1,b,\"tab\there\"\r\n2,\"a\nline\",\"back\\slash, \"\"quoted\"\"\"\r\n3,c,\r\n",
    );
    assert_eq!(session.scan(&[]), "2\ta\\nline\tback\\\\slash, \"quoted\"\n1\tb\ttab\\there\n3\tc\t\n");
    assert_eq!(
        session.scan(&["--format", "jsonl"]),
        concat!(
            r#"{"id":"2","name":"a\nline","note":"back\\slash, \"quoted\""}"#,
            "\n",
            r#"{"id":"1","name":"b","note":"tab\there"}"#,
            "\n",
            r#"{"id":"3","name":"c","note":""}"#,
            "\n"
        )
    );
}

#[test]
fn json_lines_come_out_as_they_went_in() {
    let rows = "{\"v\": [1, 2.50, 12345678901234567890123], \"id\": \"b\"}\n{\"id\":\"a\\u0041\\t\",\"id2\":null}\n";
    let session = Session::with(&["--format", "jsonl", "--key", "id"], rows);
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(session.scan(&["--format", "jsonl"]), format!("{}\n{}\n", lines[1], lines[0]));
    assert_eq!(session.scan(&[]), format!("aA\\t\t{}\nb\t{}\n", lines[1], lines[0]));

    let session = Session::with(&["--format", "jsonl", "--key", "n:num"], "{\"n\":10}\n{\"n\":-1.5e0}\n{\"n\":9}\n");
    assert_eq!(session.scan(&["--format", "jsonl"]), "{\"n\":-1.5e0}\n{\"n\":9}\n{\"n\":10}\n");
    assert_eq!(session.scan(&["--keys"]), "-1.5\n9\n10\n");
}

#[test]
fn a_format_is_known_by_its_name() {
    let session = Session::new();
    session.file("rows.csv", "id,name\n2,b\n1,a\n");
    session.run(&["import", "db", "t", "rows.csv"]).ok();
    session.file("rows.tsv", "id\tname\n2\tb\n");
    session.run(&["import", "db", "u", "rows.tsv", "--header", "--key", "name"]).ok();
    assert_eq!(session.scan(&[]), "1\ta\n2\tb\n");
    assert_eq!(session.run(&["scan", "db", "u", "--format", "jsonl"]).ok(), "{\"id\":\"2\",\"name\":\"b\"}\n");
}

#[test]
fn the_report_counts_rows_and_keys_that_came_again() {
    let session = Session::new();
    let report = session.import(&["--format", "tsv", "--json"], "a\t1\nb\t2\na\t3\n").ok();
    for part in ["\"rows_read\":3", "\"rows\":2", "\"table\":\"t\"", "\"file\":\"standard input\""] {
        assert!(report.contains(part), "{report}");
    }
    assert_eq!(session.scan(&[]), "a\t3\nb\t2\n");
    let report = session.import(&["--format", "tsv"], "a\t1\nb\t2\na\t3\n").ok();
    assert!(report.contains("1 row had a key that came again later"), "{report}");
}

#[test]
fn an_input_that_cannot_be_read_says_so() {
    let session = Session::new();
    session.file("empty.tsv", "");
    session.run(&["import", "db", "t", "missing.tsv"]).fails(3, &["cannot open missing.tsv", "check the name"]);
    session.run(&["import", "db", "t", "empty.tsv"]).fails(3, &["empty.tsv is empty", "nothing was imported"]);
    session.import(&["--format", "csv"], "").fails(3, &["standard input is empty"]);
    session.run(&["import", "db", "t", ".", "--format", "tsv"]).fails(3, &["directory"]);
    assert!(!session.has("db"));
}

#[test]
fn a_bad_row_is_named_and_nothing_is_imported() {
    for (options, rows, parts) in [
        (
            &["--format", "tsv", "--key", "1:int"][..],
            "1\tx\n2x\ty\n3\tz\n",
            &["input:2:", "\"2x\" is not a whole number"][..],
        ),
        (
            &["--format", "tsv", "--key", "1:num"],
            "1\tx\n1e999\ty\n",
            &["input:2:", "\"1e999\" is not a finite decimal"],
        ),
        (&["--format", "tsv", "--key", "2"], "1\n2\n", &["input:1:", "the row ends before its key, column 2"]),
        (&["--format", "tsv"], "1\tx\n2\n", &["input:2:", "the row has 1 column and the first row 2"]),
        (&["--format", "csv"], "id,name\n1,x\n2,y,z\n", &["input:3:", "3 columns and the header of the table 2"]),
        (&["--format", "csv", "--key", "id:int"], "id\n1\n\nx\n", &["input:4:", "column 1 of the key"]),
        (&["--format", "csv"], "id,name\n1,\"a\n2,b\n", &["input:2:", "never closed"]),
        (&["--format", "jsonl", "--key", "id"], "{\"id\":\"x\"}\n{\"id\":}\n", &["input:2:", "not a JSON object"]),
        (&["--format", "jsonl", "--key", "id"], "{\"id\":\"x\"}\n{\"ID\":\"y\"}\n", &["input:2:", "no member \"id\""]),
    ] {
        let session = Session::new();
        session.import(options, rows).fails(3, parts);
        session.import(options, rows).fails(3, &["nothing was imported"]);
        let left = session.run(&["scan", "db", "t"]);
        assert_eq!(left.out, b"", "{rows}");
    }
}

#[test]
fn a_key_column_must_be_there() {
    let session = Session::new();
    let csv = |key| session.import(&["--format", "csv", "--key", key], "id,name\n1,x\n");
    csv("age").fails(3, &["the header has no column age", "it has id, name"]);
    csv("3").fails(3, &["there is no column 3"]);
    session.import(&["--format", "tsv", "--key", "id"], "1\tx\n").fails(3, &["no header", "say --header"]);
    session.import(&["--format", "jsonl"], "{\"id\":1}\n").fails(2, &["--key id"]);
    assert!(!session.has("db"));
}

#[test]
fn another_schema_is_refused_and_the_same_is_not() {
    let session = Session::with(&["--format", "csv", "--key", "id:int"], "id,name\n1,x\n");
    session.import(&["--format", "csv", "--key", "id"], "id,name\n2,y\n").fails(
        3,
        &["table t holds csv rows of columns id, name, key id:int", "would give csv rows of columns id, name, key id;"],
    );
    session.import(&["--format", "tsv"], "2\ty\n").fails(3, &["table t holds csv rows", "tsv rows, key column 1"]);
    session
        .import(&["--format", "csv", "--page", "32KiB"], "id,name\n2,y\n")
        .fails(2, &["table t has pages of 16.0 KiB", "larch alter"]);
    session.import(&["--format", "csv"], "id,name\n2,y\n").ok();
    assert_eq!(session.scan(&[]), "1\tx\n2\ty\n");

    session.run(&["put", "db", "raw", "k", "v"]).ok();
    session
        .run_with(&["import", "db", "raw", "-", "--format", "tsv"], "a\tb\n")
        .fails(3, &["table raw holds raw keys and values"]);
}

#[test]
fn a_header_of_numbers_does_not_confuse_the_key() {
    // The second column is called 1. The key must be the first column, and not the second. This is tested
    // without --key, and with a --key that names the first column.
    for key in [&[][..], &["--key", "id"], &["--key", "id:int"]] {
        let options = [&["--format", "csv"][..], key].concat();
        let session = Session::with(&options, "id,1\n5,x\n");
        session.import(&["--format", "csv"], "id,1\n6,y\n").ok();
        assert_eq!(session.scan(&["--keys"]), "5\n6\n", "{key:?}");
    }
    let session = Session::with(&["--format", "csv", "--key", "1"], "id,1\n5,x\n");
    session.import(&["--format", "csv"], "id,1\n6,y\n").ok();
    assert_eq!(session.scan(&["--keys"]), "x\ny\n");
}

#[test]
fn a_key_beyond_the_limit_is_named_by_its_line() {
    let session = Session::new();
    let rows = format!("a\t1\n{}\t2\n", "x".repeat(70_000));
    session.import(&["--format", "tsv"], rows).fails(3, &["input:2:", "nothing was imported"]);
}

#[test]
fn table_options_are_kept() {
    let session = Session::new();
    let options = ["--page", "8KiB", "--node", "4K", "--index", "both", "--compression", "lz4"];
    session.import(&[&["--format", "tsv"][..], &options].concat(), "a\t1\n").ok();
    let tables = session.run(&["tables", "db", "--json"]).ok();
    for part in ["\"page_bytes\":8192", "\"node_bytes\":4096", "\"index\":\"both\"", "\"compression\":\"lz4\""] {
        assert!(tables.contains(part), "{tables}");
    }
}

#[test]
fn a_command_that_fails_leaves_what_was_there_before() {
    let bad = "id,name\n1,x\n2,y\n3\n";
    let refused: [(&[&str], &str); 10] = [
        (&["import", "new/db", "t", "-", "--format", "csv", "--key", "id:int"], bad),
        (&["import", "new/db", "t", "-", "--format", "csv", "--key", "age"], bad),
        (&["import", "new/db", "a\nb", "-", "--format", "csv"], "id\n1\n"),
        (&["import", "new/db", "t", "-", "--format", "csv", "--page", "1"], "id\n1\n"),
        (&["build-files", "bad.csv", "--out", "new"], ""),
        (&["ingest", "new/db", "a\nb", "good"], ""),
        (&["load", "new/db", "t"], "a\\b\tx\n"),
        (&["put", "new/db", "t", "k\\", "v"], ""),
        (&["put", "new/db", "t", &"k".repeat(70_000), "v"], ""),
        (&["create-table", "new/db", "t", "--page", "1"], ""),
    ];
    let session = Session::new();
    session.file("bad.csv", bad);
    session.file("good.csv", "id,name\n1,x\n");
    session.run(&["build-files", "good.csv", "--out", "good"]).ok();
    session.file("full/note.txt", "not of Larch");
    session.run(&["create-table", "db", "empty", "--page", "8KiB"]).ok();
    let tables = session.run(&["tables", "db"]).ok();
    for (args, input) in refused {
        let ran = session.run_with(args, input);
        assert!(matches!(ran.code, Some(2 | 3)) && ran.out.is_empty(), "{args:?}: {ran:?}");
        assert!(!session.has("new"), "{args:?} leaves a directory: {}", ran.err);
        // After the failed commands, the directory with other files contains only these files, and the database
        // contains only its own tables.
        for dir in ["full", "db"] {
            let args: Vec<&str> = args.iter().map(|arg| if *arg == "new/db" { dir } else { arg }).collect();
            session.run_with(&args, input);
        }
        assert_eq!(std::fs::read_dir(session.path("full")).expect("it is there").count(), 1, "{args:?}");
        assert_eq!(session.run(&["tables", "db"]).ok(), tables, "{args:?}");
    }
    // An empty table, which a successful import would have made again, is unchanged.
    session.run_with(&["import", "db", "empty", "-", "--format", "csv", "--key", "id:int"], bad).fails(3, &["input:4"]);
    assert_eq!(session.run(&["tables", "db"]).ok(), tables);
    // Rows whose keys were printed stay in the table.
    let ran = session.run_with(&["load", "told", "t"], "a\tx\nb\\\ty\n");
    assert_eq!((ran.code, ran.out.as_slice()), (Some(3), &b"a\n"[..]));
    assert_eq!(session.run(&["scan", "told", "t"]).ok(), "a\tx\n");
}
