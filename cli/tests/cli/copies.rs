//! Tests of `larch checkpoint`, `backup`, `backups`, `restore` and `verify-backup`: what they make and print, and
//! how they end.

use crate::session::Session;
use larch::{Database, Durability};

fn rows(count: u32) -> String {
    (0..count).map(|i| format!("row{i:05}\tvalue {i}\n")).collect()
}

#[test]
fn a_checkpoint_has_all_rows_and_goes_its_own_way() {
    let session = Session::with(&["--format", "tsv"], rows(2_000));
    let said = session.run(&["checkpoint", "db", "copy"]).ok();
    assert!(said.starts_with("copy has version ") && said.contains("0 B of it copied"), "{said}");
    session.run(&["put", "copy", "t", "new", "row"]).ok();
    session.run(&["compact", "copy"]).ok();
    assert_eq!(session.scan(&[]).lines().count(), 2_000);
    assert_eq!(session.run(&["scan", "copy", "t"]).ok().lines().count(), 2_001);
    session.run(&["check", "copy"]).ok();
    session.is_sound();
    session.run(&["checkpoint", "db", "copy"]).fails(2, &["copy is not empty"]);
    session.run(&["checkpoint", "nothing", "copy2"]).fails(3, &["nothing has no database"]);
    session.run(&["checkpoint", "db", "s3://bucket/copy"]).fails(2, &["lie in directories"]);
}

/// The database is open in the process of this test, and its rows are only in the log.
#[test]
fn copies_are_made_beside_a_process_that_writes() {
    let session = Session::new();
    let db = Database::builder(session.path("db")).durability(Durability::Buffered).open().expect("it is new");
    db.table("t").and_then(|table| table.insert("only in the log", "yes")).expect("the disk works");
    session.run(&["checkpoint", "db", "copy"]).ok();
    session.run(&["backup", "db", "kept"]).ok();
    session.run(&["restore", "kept", "back"]).ok();
    for copy in ["copy", "back"] {
        assert_eq!(session.run(&["get", copy, "t", "only in the log"]).ok(), "yes\n");
    }
}

#[test]
fn backups_are_listed_restored_and_removed_by_number() {
    let session = Session::with(&["--format", "tsv"], rows(2_000));
    assert!(session.run(&["backup", "db", "kept"]).ok().starts_with("backup 1 has version "));
    session.run(&["put", "db", "t", "new", "row"]).ok();
    let said = session.run(&["backup", "db", "kept", "--json"]).ok();
    let report: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
    let number = |name: &str| report[name].as_u64().expect("it is a number");
    assert!(number("backup") == 2 && number("new_bytes") < number("bytes") / 2, "{said}");
    let listed = session.run(&["backups", "kept"]).ok();
    assert!(
        listed.lines().count() == 2 && listed.contains("backup 1, 20") && listed.contains(" UTC, version "),
        "{listed}"
    );
    session.run(&["restore", "kept", "first", "--backup", "1"]).ok();
    session.run(&["restore", "kept", "newest"]).ok();
    assert_eq!(session.run(&["scan", "first", "t"]).ok().lines().count(), 2_000);
    assert_eq!(session.run(&["scan", "newest", "t"]).ok().lines().count(), 2_001);
    session.run(&["check", "newest"]).ok();
    session.run(&["restore", "kept", "newest"]).fails(2, &["newest is not empty"]);
    session.run(&["restore", "kept", "other", "--backup", "7"]).fails(1, &["no backup 7; choose from 1 and 2"]);
    let said = session.run(&["backup", "db", "kept", "--keep", "1"]).ok();
    assert!(said.contains("backup 1 was removed\nbackup 2 was removed\n"), "{said}");
    assert_eq!(session.run(&["backups", "kept"]).ok().lines().count(), 1);
    session.run(&["verify-backup", "kept"]).ok();
    session.run(&["backup", "db", "kept", "--keep", "0"]).fails(2, &["--keep"]);
    session.run(&["backup", "db", "db"]).fails(2, &["which is of no backup"]);
    session
        .run(&["backup", "db", "s3://bucket/kept"])
        .fails(2, &["a database in a store is not in this build", "--features cloud"]);
    session
        .run(&["restore", "kept", "s3://bucket/db"])
        .fails(2, &["a database in a store is not in this build", "--features cloud"]);
    session.is_sound();
}

#[test]
fn a_damaged_backup_is_found_and_not_restored() {
    let session = Session::with(&["--format", "tsv"], rows(2_000));
    session.run(&["backup", "db", "kept"]).ok();
    assert!(session.run(&["verify-backup", "kept"]).ok().starts_with("no damage in 1 backup, "));
    // The SST of the backup that is also in the database.
    let entries = std::fs::read_dir(session.path("kept/backup-1")).expect("it is there");
    let names = entries.map(|entry| entry.expect("one").file_name().into_string().expect("names are ASCII"));
    let is_copied = |name: &String| name.ends_with(".sst") && session.has(&format!("db/{name}"));
    let path = format!("kept/backup-1/{}", names.into_iter().find(is_copied).expect("one was copied"));
    session.spoil(&path, 5_000);
    let ran = session.run(&["verify-backup", "kept"]);
    let said = String::from_utf8(ran.out).expect("reports are UTF-8");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(said.contains(&path) && said.contains("of backup 1: its bytes do not have the checksum"), "{said}");
    session.run(&["restore", "kept", "back"]).fails(3, &[&path, "checksum"]);
    assert!(!session.has("back"), "nothing is left of it");
    assert!(ran.err.contains("remove the damaged files and make a new backup"), "{}", ran.err);
    std::fs::remove_file(session.path(&path)).expect("it is there");
    session.run(&["backup", "db", "kept", "--keep", "1"]).ok();
    assert!(session.run(&["verify-backup", "kept"]).ok().starts_with("no damage in 1 backup, "));
    session.run(&["restore", "kept", "back"]).ok();
}
