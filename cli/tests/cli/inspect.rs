//! Tables, statistics, compaction, checks, dumps and the demo.

use crate::session::Session;

#[test]
fn tables_say_what_their_rows_are() {
    let session = Session::with(&["--format", "csv", "--key", "name"], "id,name\n1,x\n");
    session.run(&["put", "db", "raw", "k", "v"]).ok();
    let tables = session.run(&["tables", "db"]).ok();
    assert!(tables.contains("t: csv rows of columns id, name, key name; pages of 16.0 KiB"), "{tables}");
    assert!(tables.contains("raw: raw keys and values; "), "{tables}");
    assert_eq!(session.run(&["tables", "db", "raw"]).ok().lines().count(), 1);
    session.run(&["tables", "db", "other"]).fails(1, &["no table other"]);
}

#[test]
fn stats_count_rows() {
    let session = Session::with(&["--format", "tsv"], "a\t1\nb\t2\n");
    let stats = session.run(&["stats", "db", "t"]).ok();
    assert!(stats.starts_with("table t\n  rows          2\n"), "{stats}");
    let stats = session.run(&["stats", "db", "--json"]).ok();
    assert!(stats.starts_with("{\"table\":\"t\",\"rows\":2,\"data_bytes\":"), "{stats}");
}

#[test]
fn compacting_keeps_every_row() {
    let session = Session::with(&["--format", "tsv"], "a\t1\nb\t2\n");
    session.run(&["delete", "db", "t", "a"]).ok();
    assert!(session.run(&["compact", "db"]).ok().starts_with("t: "));
    assert!(session.run(&["compact", "db", "t", "--json"]).ok().starts_with("{\"table\":\"t\","));
    assert_eq!(session.scan(&[]), "b\t2\n");
}

#[test]
fn a_sound_database_is_checked_and_found_so() {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    assert!(session.run(&["check", "db"]).ok().starts_with("no damage in "));
    assert!(session.run(&["check", "db", "t", "--json"]).ok().contains("\"problems\":[]"));
    session.run(&["check", "db", "u"]).fails(1, &["no table u"]);
}

#[test]
fn a_file_that_is_not_there_is_not_dumped() {
    Session::new().run(&["dump", "missing"]).fails(3, &["missing"]);
}

#[test]
fn a_demo_is_made_once_and_read_again() {
    let session = Session::new();
    let made = session.run(&["demo", "--rows", "1000"]).ok();
    for part in ["larch-demo", "1,000", "import", "read at random", "scan", "every row read was the row written"] {
        assert!(made.contains(part), "{part}: {made}");
    }
    let again = session.run(&["demo", "--rows", "1000", "--json"]).ok();
    assert!(again.contains("\"made\":false"), "{again}");
    session.run(&["demo", "--rows", "2000"]).fails(2, &["is a demo of 1,000 rows", "--recreate"]);
    let remade = session.run(&["demo", "--rows", "2000", "--recreate", "--json"]).ok();
    assert!(remade.contains("\"made\":true"), "{remade}");
    assert_eq!(session.run(&["scan", "larch-demo", "demo"]).ok().lines().count(), 2000);
}

#[test]
fn a_demo_leaves_what_is_not_its_own_alone() {
    let session = Session::with(&["--format", "tsv"], "a\t1\n");
    session.file("notes/letter", "dear");
    for dir in ["db", "notes"] {
        for options in [&["demo", dir][..], &["demo", dir, "--recreate"]] {
            session.run(options).fails(2, &["it is left alone"]);
        }
    }
    assert_eq!(session.scan(&[]), "a\t1\n");
    assert!(session.has("notes/letter"));
}
