//! Tests that rows go to files and come back from them as the same rows, compressed or not.

use crate::session::Session;
use std::collections::BTreeMap;

/// What a table is: its metadata, the names of its indexes, and its rows as bytes.
type Content = (Vec<u8>, Vec<String>, Vec<Vec<u8>>);

/// All rows of all tables, with what the tables say about their rows. The values of tables with groups are read whole.
fn content(session: &Session, db: &str) -> BTreeMap<String, Content> {
    let database = larch::Database::builder(session.path(db)).read_only(true).open().expect("it is there");
    let table = |name: String| {
        let table = database.existing_table(&name).expect("it can be read").expect("it is there");
        let options = table.options();
        let mut rows = Vec::new();
        if options.groups.is_empty() {
            let all = table.iter().map(|row| row.expect("it can be read"));
            rows.extend(all.flat_map(|(key, value)| [key.to_vec(), value.to_vec()]));
        } else {
            for row in table.select(&options.groups).expect("the groups are there").range(..) {
                let (key, parts) = row.expect("it can be read");
                rows.push(key.to_vec());
                rows.extend(parts.iter().map(|part| part.to_vec()));
            }
        }
        (name, (options.metadata, options.groups, rows))
    };
    database.tables().into_iter().map(table).collect()
}

/// A database with a table of each kind, whose rows have all that is special in texts.
fn every_kind() -> Session {
    let session = Session::new();
    let odd =
        "id,\"na,me\",city\r\n7,\"a\tb\",\"Bonn, \"\"Rhein\"\"\"\r\n007,\\N,\"line\r\nend\"\r\n-12,\"\u{feff}#\",\r\n";
    session.file("people.csv", odd);
    session.run(&["import", "db", "people", "people.csv", "--key", "id:int", "--groups", "hot:2;cold:*"]).ok();
    session.file("plain.csv", "\"\u{feff}x\",\"\"\n\"\",y\n");
    session.run(&["import", "db", "no header", "plain.csv", "--no-header"]).ok();
    session.file("trips.tsv", "city\tday\n\u{feff}Bonn\t\"1\\\n\t2\r\r\n");
    session.run(&["import", "db", "trips", "trips.tsv", "--header", "--key", "day,city"]).ok();
    session.file("plain.tsv", "\u{feff}\u{feff}Bonn\t\"1\\\nx\t\r\r\n");
    session.run(&["import", "db", "plain", "plain.tsv"]).ok();
    session.file(
        "events.jsonl",
        "{\"id\":\"e\\\\1\", \"n\":12345678901234567890123, \"x\":null}\n{\"id\":\"\\u0000\",\"n\":1e400}\n",
    );
    session.run(&["import", "db", "events", "events.jsonl", "--key", "id"]).ok();
    session.run(&["create-table", "db", "orders", "--key-types", "u64, string? desc, f64"]).ok();
    for key in ["(18446744073709551615, \"\", -0.0)", "(17, none, inf)", "(17, \"a\\\"b\", nan)"] {
        session.run(&["put", "db", "orders", key, "a\tb\r\n\\"]).ok();
    }
    let database = session.database();
    let notes = database.table("a/b 'notes'").expect("it is made");
    for (key, value) in [(&b""[..], &b""[..]), (b"\xff\0\n\t", b"\r\xfe\\,\""), ("\u{feff}#".as_bytes(), b"\n")] {
        notes.insert(key, value).expect("the disk works");
    }
    drop(notes);
    database.close().expect("the disk works");
    session
}

#[test]
fn what_is_exported_comes_back_by_the_command_that_export_prints() {
    let session = every_kind();
    let expected = content(&session, "db");
    assert_eq!(expected.len(), 7);
    for options in [&[][..], &["--compress", "gz"], &["--compress", "zst"]] {
        let args = [&["export", "db", "--all", "files", "--overwrite", "--json"], options].concat();
        let said = session.run(&args).ok();
        for line in said.lines() {
            let report: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
            let back = report["back"].as_str().expect("there is a command").replace(" DIR ", " again ");
            let shell = format!("{} > said", back.replacen("larch", "\"$0\"", 1));
            let ran = session.run_under(&["bash", "-c", &shell], &[], "");
            assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{back}");
        }
        assert_eq!(content(&session, "again"), expected, "{options:?}");
        std::fs::remove_dir_all(session.path("again")).expect("a test can remove its files");
    }
    let names = [
        "a%2Fb %27notes%27.tsv",
        "events.jsonl",
        "no header.csv",
        "orders.tsv",
        "people.csv",
        "plain.tsv",
        "trips.tsv",
    ];
    let all: Vec<String> =
        ["", ".gz", ".zst"].iter().flat_map(|end| names.iter().map(move |name| format!("{name}{end}"))).collect();
    let mut found = session.names_in("files");
    found.retain(|name| !all.contains(name));
    assert_eq!((session.names_in("files").len(), found), (21, Vec::new()));
    session.run(&["export", "db", "--all", "files"]).fails(2, &["exists", "--overwrite"]);
}

#[test]
fn every_table_comes_back_from_every_text_format() {
    let session = every_kind();
    let expected = content(&session, "db");
    for format in ["csv", "tsv", "jsonl"] {
        for table in expected.keys() {
            session.run(&["checkpoint", "db", "copy"]).ok();
            let copy = larch::Database::open(session.path("copy")).expect("it is there");
            copy.existing_table(table).expect("it can be read").expect("it is there").clear().expect("the disk works");
            copy.close().expect("the disk works");
            assert_eq!(session.run(&["count", "copy", table, "--exact"]).ok(), "0\n");
            let file = format!("rows.{format}.gz");
            session.run(&["scan", "db", table, "--out", &file, "--overwrite"]).ok();
            let loaded = session.run(&["load", "copy", table, &file]);
            assert_eq!((loaded.code, loaded.err.as_str()), (Some(0), ""), "{format} of {table}");
            assert_eq!(content(&session, "copy")[table], expected[table], "{format} of {table}");
            std::fs::remove_dir_all(session.path("copy")).expect("a test can remove its files");
        }
    }
}

#[test]
fn a_compressed_file_is_read_by_its_name_and_a_damaged_one_changes_nothing() {
    let session = Session::new();
    let rows: String = (0..3_000).map(|row| format!("{row},name of {row}\n")).collect();
    session.file("rows.csv", format!("id,name\n{rows}"));
    session.run(&["import", "db", "t", "rows.csv", "--key", "id:int"]).ok();
    for ending in ["gz", "zst"] {
        let file = format!("t.csv.{ending}");
        assert!(session.run(&["export", "db", "t", &file]).ok().starts_with("table t: 3,000 rows in t.csv."));
        assert!(session.bytes(&file).len() < 20_000);
        for args in [&["import", "new", "t", &file, "--key", "id:int"][..], &["load", "db", "t", &file]] {
            session.run(args).ok();
        }
        assert_eq!(session.run(&["scan", "new", "t"]).out, session.run(&["scan", "db", "t"]).out);
        std::fs::remove_dir_all(session.path("new")).expect("a test can remove its files");

        let whole = session.bytes(&file);
        session.file("cut.csv.zst", &whole[..whole.len() / 2]);
        session.file("cut.csv.gz", &whole[..whole.len() / 2]);
        let cut = format!("cut.csv.{ending}");
        let parts = [&cut[..], "data end before their end", "nothing was imported; get the file again"];
        session.run(&["import", "new", "t", &cut, "--key", "id:int"]).fails(3, &parts);
        assert!(!session.has("new"), "a failed import leaves nothing");
        let other = if ending == "gz" { "cut.csv.zst" } else { "cut.csv.gz" };
        session
            .run(&["import", "new", "t", other])
            .fails(3, &[other, "or they are damaged", "correct the ending of its name"]);
        session.run(&["build-files", &cut, "--out", "built"]).fails(3, &["nothing was built; get the file again"]);
    }
    session.file("none.csv.gz", "");
    session.run(&["import", "new", "t", "none.csv.gz"]).fails(3, &["none.csv.gz: the gzip data end before their end"]);
    session.run(&["scan", "db", "t", "--from", "5000", "--format", "tsv", "--out", "none.tsv.zst"]).ok();
    session.run(&["import", "new", "t", "none.tsv.zst"]).fails(3, &["none.tsv.zst is empty"]);
    session
        .run(&["import", "new", "t", "rows.csv.bz2"])
        .fails(2, &["rows.csv.bz2: larch knows", "bzcat rows.csv.bz2 | larch"]);
    session.run(&["import", "new", "t", "rows.txt"]).fails(2, &["what is rows.txt?", "say --format csv"]);
    session
        .run(&["import", "new", "t", "rows.parquet"])
        .fails(2, &["rows.parquet", "does not import them; larch sql reads Parquet and Arrow files"]);
    session
        .run(&["load", "new", "t", "rows.arrow"])
        .fails(2, &["rows.arrow", "does not load them; larch sql reads Parquet and Arrow files"]);
}

#[test]
fn a_file_gets_its_name_only_when_it_is_complete() {
    let session = Session::with(&["--format", "csv", "--key", "id:int"], "id,name\n1,x\n2,y\n");
    session.file("kept.csv", "mine");
    let export = |args: &[&str]| session.run(&[&["export", "db", "t"][..], args].concat());
    export(&["kept.csv"]).fails(2, &["kept.csv exists; name another file, or say --overwrite"]);
    export(&["."]).fails(2, &["what is to be in .?"]);
    export(&[".", "--format", "csv"]).fails(2, &[". is a directory"]);
    export(&["none/x.csv"]).fails(2, &["none/x.csv", "name a file in a directory that is there"]);
    export(&["/dev/full", "--format", "csv", "--overwrite"]).fails(2, &["/dev/full is no plain file"]);
    export(&["x.txt"]).fails(2, &["what is to be in x.txt?", "or say --format"]);
    export(&["x.csv.xz"]).fails(2, &["x.csv.xz", "gzip (.gz) or Zstandard (.zst)"]);
    export(&["x.parquet"]).fails(2, &["cargo install --locked --path cli --features parquet"]);
    export(&["x.arrow"]).fails(2, &["cargo install --locked --path cli --features sql"]);
    session.run(&["export", "db", "u", "x.csv"]).fails(1, &["db has no table u"]);
    session.run(&["export", "db", "t"]).fails(2, &["<FILE>"]);
    session.run(&["scan", "db", "t", "--by", "x", "--out", "kept.csv"]).fails(2, &["kept.csv exists"]);

    // A row of another program stops the command, and what it has written goes away.
    session.database().table("t").expect("it is there").insert(b"\xffstray", b"\n").expect("the disk works");
    export(&["kept.csv", "--overwrite"])
        .fails(3, &["table t: the row with key \\\\?\\xffstray", "another program wrote it"]);
    assert_eq!(session.bytes("kept.csv"), b"mine");
    assert_eq!(session.names(), ["db", "kept.csv"]);
    let printed = session.run(&["scan", "db", "t", "--format", "jsonl"]);
    assert_eq!(
        (printed.code, &printed.out[..]),
        (Some(3), &b"{\"id\":1,\"name\":\"x\"}\n{\"id\":2,\"name\":\"y\"}\n"[..])
    );
    session.run(&["delete-range", "db", "t", "--from", "3"]).ok();
    export(&["kept.csv", "--overwrite", "--from", "2"]).ok();
    assert_eq!(session.bytes("kept.csv"), b"id,name\n2,y\n");
}

#[test]
fn single_rows_are_printed_in_every_format() {
    let session = Session::with(&["--format", "csv", "--key", "id:int"], "id,name\n1,\"x\ty\"\n2,\"a,b\"\n");
    for (command, key) in [("get", "2"), ("nth", "1")] {
        let print = |options: &[&str]| session.run(&[&[command, "db", "t", key][..], options].concat()).ok();
        assert_eq!(print(&["--format", "csv"]), "id,name\n2,\"a,b\"\n");
        assert_eq!(print(&["--format", "tsv"]), "2\ta,b\n");
        assert_eq!(print(&["--format", "jsonl"]), "{\"id\":2,\"name\":\"a,b\"}\n");
    }
    assert_eq!(session.run(&["get", "db", "t", "2"]).ok(), "a,b\n");
    session.run(&["get", "db", "t", "3", "--format", "csv"]).fails(1, &["no row with key 3"]);
    session.run(&["get", "db", "t", "2", "--format", "csv", "--json"]).fails(2, &["cannot be used with"]);
    session.run(&["get", "db", "t", "2", "--format", "arrow"]).fails(2, &["--features sql"]);
    assert_eq!(session.run(&["sample", "db", "t", "9", "--format", "csv"]).ok(), "id,name\n1,x\ty\n2,\"a,b\"\n");
    assert_eq!(session.scan(&["--keys", "--format", "csv"]), "id\n1\n2\n");
    let keys = session.scan(&["--keys", "--format", "csv", "--to", "2"]);
    session.run_with(&["load", "db", "t", "--delete", "--format", "csv"], keys).ok();
    assert_eq!(session.scan(&["--keys"]), "2\n");
}

#[test]
fn a_header_never_becomes_a_row() {
    for (format, other) in [("csv", "tsv"), ("tsv", "csv")] {
        let comma = if format == "csv" { "," } else { "\t" };
        let rows = format!("id{comma}name\n1{comma}x\n");
        let session = Session::with(&["--format", format, "--header"], &rows);
        session
            .run_with(&["load", "db", "t"], &rows)
            .fails(3, &["input:1: this row is the header of the table", "leave it out"]);
        session.file("rows.csv", "2,y\n");
        session
            .run(&["load", "db", "t", "rows.csv"])
            .fails(3, &["rows.csv:1: the first row is to be the header, id,name"]);
        session.run_with(&["load", "db", "t", "--format", "csv"], "id,name\n2,y\n").ok();
        session.run(&["scan", "db", "t", "--format", other]).ok();
        // A row that is the same as the header can be loaded, too.
        session.run_with(&["load", "db", "t", "--format", "csv"], "id,name\nid,name\n").ok();
        assert_eq!(session.scan(&["--format", "csv"]), "id,name\n1,x\n2,y\nid,name\n");
    }
}
