//! Tests of `larch build-files` and `larch ingest`: what they make, what they print, and how they end.

use crate::session::Session;

fn rows(numbers: std::ops::Range<u32>, value: &str) -> String {
    numbers.map(|i| format!("row{i:05}\t{value} {i}\n")).collect()
}

/// Builds files from `rows` in the directory `out`.
fn build(session: &Session, rows: String, out: &str) -> String {
    session.run_with(&["build-files", "-", "--format", "tsv", "--out", out], rows).ok()
}

#[test]
fn shards_that_were_built_apart_become_one_table() {
    let session = Session::new();
    let said = build(&session, rows(0..3_000, "first"), "a");
    assert!(said.contains("built 3,000 rows (") && said.contains("in order, 1 file written"), "{said}");
    session.file("b.tsv", rows(2_500..4_000, "second"));
    session.file("c.tsv", rows(3_500..5_000, "third"));
    let said = session.run(&["build-files", "c.tsv", "b.tsv", "--out", "b", "--json"]).ok();
    let report: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
    assert_eq!((report["rows_read"].as_u64(), report["rows"].as_u64()), (Some(3_000), Some(2_500)), "{said}");
    let said = session.run(&["ingest", "db", "t", "a", "b"]).ok();
    assert!(said.starts_with("table t took in 5,500 rows of 2 directories: 2 files of "), "{said}");
    assert!(said.contains(", 0 B of it copied, in "), "{said}");
    let scanned = session.scan(&[]);
    assert_eq!(scanned.lines().count(), 5_000);
    let expected = rows(0..2_500, "first") + &rows(2_500..4_000, "second") + &rows(4_000..5_000, "third");
    assert_eq!(scanned, expected);
    session.is_sound();
    // The files are taken in again, into a table that has changed since the first time.
    session.run(&["put", "db", "t", "row00007", "newer"]).ok();
    session.run(&["ingest", "db", "t", "a", "--verify", "--move"]).ok();
    assert!(!session.has("a") && session.has("b"));
    assert!(session.scan(&[]).contains("row00007\tfirst 7\n") && session.scan(&[]).contains("row02999\tfirst 2999\n"));
    session.run(&["compact", "db"]).ok();
    session.is_sound();
    assert_eq!(session.scan(&[]).lines().count(), 5_000);
}

#[test]
fn files_are_built_like_a_table_and_refused_by_others() {
    let session = Session::new();
    let people = "id,name,age\n7,Ada,36\n8,Alan,41\n";
    let create = ["--format", "csv", "--key", "id:int", "--groups", "hot:name;cold:*", "--compression", "zstd"];
    session.import(&create, people).ok();
    let more = "id,name,age\n9,Grace,85\n7,Ada L,37\n";
    session.run_with(&["build-files", "-", "--format", "csv", "--like", "db", "t", "--out", "more"], more).ok();
    session.run(&["ingest", "db", "t", "more"]).ok();
    assert_eq!(session.scan(&[]), "7\tAda L\t37\n8\tAlan\t41\n9\tGrace\t85\n");
    assert_eq!(session.scan(&["--groups", "cold"]), "7\t37\n8\t41\n9\t85\n");
    session.is_sound();

    build(&session, rows(0..10, "x"), "tsv");
    session.run(&["ingest", "db", "t", "tsv"]).fails(3, &["table t holds", "--like db t", "nothing was taken in"]);
    let other = ["build-files", "-", "--format", "tsv", "--like", "db", "t", "--out", "other"];
    session.run_with(&other, rows(0..10, "x")).fails(3, &["table t holds", "nothing was built"]);
    assert!(!session.has("other"));
    // `ingest` would leave such an empty table if it were killed.
    session.run(&["create-table", "db", "new"]).ok();
    session.run(&["ingest", "db", "new", "more"]).ok();
    assert_eq!(session.run(&["scan", "db", "new"]).ok(), "7\tAda L\t37\n9\tGrace\t85\n");
    session.file("two.csv", "id,name\n1,x\n");
    session.file("one.csv", people);
    session
        .run(&["build-files", "one.csv", "two.csv", "--key", "id", "--out", "both"])
        .fails(3, &["two.csv would give", "give inputs of one kind; nothing was built"]);
    assert!(!session.has("both"));
}

#[test]
fn what_is_wrong_with_built_files_is_said_and_changes_nothing() {
    let session = Session::with(&["--format", "tsv"], rows(0..10, "old"));
    build(&session, rows(0..2_000, "new"), "a");
    session.run(&["build-files", "a/LIST", "--format", "tsv", "--out", "a"]).fails(2, &["a is not empty"]);
    session.run(&["build-files", "none.tsv", "--out", "x"]).fails(3, &["none.tsv"]);
    session.run(&["build-files", "--out", "x"]).fails(2, &["<FILES>"]);
    session.run_with(&["build-files", "-", "--format", "tsv", "--out", "x"], "").fails(3, &["nothing was built"]);
    session.run(&["build-files", "a/LIST", "--format", "tsv", "--out", "s3://b/x"]).fails(2, &["lie in directories"]);
    assert!(!session.has("x"));
    session.run(&["ingest", "db", "t", "db"]).fails(2, &["db has no list of built files"]);
    session.run(&["ingest", "db2", "t", "nothing"]).fails(2, &["nothing has no list of built files"]);
    assert!(!session.has("db2"), "no database is made in vain");
    let name = session.path("a").read_dir().expect("it is there").map(|entry| entry.expect("one").file_name());
    let name = name.map(|name| name.into_string().expect("names are ASCII")).find(|name| name.ends_with(".sst"));
    let path = format!("a/{}", name.expect("it has a file"));
    session.spoil(&path, 5_000);
    session.run(&["ingest", "db", "t", "a", "--verify", "--move"]).fails(3, &[&path, "bring the file back"]);
    session.spoil("a/LIST", 50);
    session.run(&["ingest", "db", "t", "a"]).fails(3, &["a/LIST of built files cannot be used", "checksum"]);
    session.run(&["ingest", "db", "new", "a"]).fails(3, &["a/LIST"]);
    assert!(session.has(&path));
    assert_eq!(session.scan(&[]), rows(0..10, "old"));
    session.is_sound();
    session.run(&["index", "create", "db", "t", "i", "--columns", "2"]).ok();
    build(&session, rows(0..20, "new"), "b");
    session.run(&["ingest", "db", "t", "b"]).fails(2, &["the ingest does not keep the indexes of table t, i"]);
}

#[test]
fn an_ingest_says_what_it_has_not_read() {
    let session = Session::new();
    session.file("rows.tsv", (0..3_000).map(|row| format!("{row:04}\tvalue of {row}\n")).collect::<String>());
    session.run(&["build-files", "rows.tsv", "--out", "built"]).ok();
    let names = session.names_in("built");
    let sst = names.iter().find(|name| name.ends_with(".sst")).expect("there are rows");
    session.spoil(&format!("built/{sst}"), 100);
    session.run(&["ingest", "safe", "t", "built", "--verify"]).fails(3, &[sst.as_str()]);
    let said = session.run(&["ingest", "db", "t", "built"]).ok();
    assert!(said.contains("was not read, and would be taken in damaged, too; larch check db t reads it"), "{said}");
    assert_eq!(session.run(&["check", "db", "t"]).code, Some(1));
    let sound = Session::new();
    sound.file("rows.tsv", "a\t1\n");
    sound.run(&["build-files", "rows.tsv", "--out", "built"]).ok();
    let said = sound.run(&["ingest", "db", "t", "built", "--verify"]).ok();
    assert!(!said.contains("not read"), "{said}");
}
