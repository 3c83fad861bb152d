//! Branches of databases on a store, made by the library and by the command.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "processes and real time, outside of the engine"
)]

mod commands;
mod processes;

use larch::Database;
use larch_remote::{Connection, Near, Patience, Place};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use processes::Server;
use std::io::ErrorKind;
use std::sync::Arc;

fn place(store: &Arc<dyn ObjectStore>, prefix: &str) -> Place {
    Place::within(Arc::clone(store), prefix)
}

fn connect(store: &Arc<dyn ObjectStore>, prefix: &str) -> Connection {
    let place = place(store, prefix);
    Connection::of_place(place, Patience::default(), &Near::default()).expect("the system has threads")
}

fn put(db: &Database, rows: std::ops::Range<u32>, value: &str) {
    let table = db.table("t").expect("a table");
    let mut batch = db.batch();
    rows.for_each(|row| batch.insert(&table, row.to_be_bytes(), format!("{value} {row} {}", "x".repeat(200))));
    batch.commit().expect("a commit");
}

/// How many rows have values that begin with `value`.
fn count(db: &Database, value: &str) -> usize {
    let table = db.existing_table("t").expect("the store works").expect("the table is there");
    table
        .range(..)
        .map(|row| row.expect("the store works").1)
        .filter(|found| found.starts_with(value.as_bytes()))
        .count()
}

#[test]
fn a_branch_shares_files_and_both_write_on() {
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let origin = connect(&memory, "a/origin");
    let db = origin.builder().open().expect("it is made");
    put(&db, 0..20_000, "old");
    db.flush().and_then(|()| db.compact()).expect("the store works");
    put(&db, 0..10, "late");
    let before = origin.store.counts();
    let report = origin.branch(&place(&memory, "b")).expect("nothing is at b");
    let used = origin.store.counts();
    assert!(report.files >= 1 && report.bytes > 4_000_000 && report.copied_bytes < 100_000, "{report:?}");
    let (puts, gets) = (used.requests.puts - before.requests.puts, used.requests.gets - before.requests.gets);
    println!("a branch of {} files takes {puts} puts, {gets} gets", report.files);
    assert!(puts <= 3, "one sheet in each journal, and the probe of conditions: {puts}");
    let again = origin.branch(&place(&memory, "b")).expect_err("it is there");
    assert_eq!(again.kind(), ErrorKind::AlreadyExists, "{again}");
    let branch = connect(&memory, "b");
    let copy = branch.builder().open().expect("it is there");
    assert_eq!((count(&copy, "late"), count(&copy, "old")), (10, 19_990));
    put(&copy, 0..5_000, "branch");
    put(&db, 5_000..10_000, "origin");
    for db in [&copy, &db] {
        db.flush().and_then(|()| db.compact()).expect("the store works");
        assert!(db.check(|_| {}).expect("the store works").problems.is_empty());
    }
    assert_eq!((count(&copy, "branch"), count(&copy, "origin"), count(&copy, "late")), (5_000, 0, 0));
    assert_eq!((count(&db, "branch"), count(&db, "origin"), count(&db, "late")), (0, 5_000, 10));
    // Files that the origin has replaced stay for the branch, even after the origin is closed, so a reader of the
    // branch finds them.
    drop(db);
    let reader = branch.builder().read_only(true).open().expect("it is there");
    assert_eq!(reader.check(|_| {}).expect("the store works").problems.len(), 0);
    drop((reader, copy));
    origin.drop_database().expect("the branch has files of its own only since it was compacted and closed");
    assert!(origin.builder().create(false).open().is_err());
    let copy = branch.builder().open().expect("it needs nothing of the origin");
    assert_eq!(count(&copy, "branch"), 5_000);
    assert!(copy.check(|_| {}).expect("the store works").problems.is_empty());
}

#[test]
fn an_origin_is_not_dropped_while_its_branch_needs_it_and_the_error_names_both() {
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let origin = connect(&memory, "a");
    let db = origin.builder().open().expect("it is made");
    put(&db, 0..1000, "old");
    db.flush().expect("the store works");
    origin.branch(&place(&memory, "b")).expect("nothing is at b");
    let error = origin.drop_database().expect_err("b needs a file");
    assert!(
        error.kind() == ErrorKind::DirectoryNotEmpty && error.to_string().contains("b needs 1 of its files"),
        "{error}"
    );
    put(&db, 0..10, "it was not fenced");
    let branches = origin.branches().expect("the store works");
    assert_eq!(branches.iter().map(|branch| &*branch.prefix).collect::<Vec<_>>(), ["b"]);
    let error = connect(&memory, "c").branch(&place(&memory, "d")).expect_err("there is nothing");
    assert!(error.kind() == ErrorKind::NotFound && error.to_string().contains("no database at c"), "{error}");
    let other: Arc<dyn ObjectStore> = Arc::new(object_store::local::LocalFileSystem::new());
    let error = origin.branch(&place(&other, "d")).expect_err("it is elsewhere");
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    connect(&memory, "b").drop_database().expect("nobody needs it");
    assert!(origin.branches().expect("the store works").is_empty());
    origin.drop_database().expect("nobody needs it any more");
}

/// Makes and uses branches below `url` by the command.
fn check_commands(url: &str, variables: &[(&str, String)]) {
    let at = |name: &str| format!("{url}/{name}");
    let (origin, branch, third) = (&*at("p"), &*at("q"), &*at("r"));
    commands::expect(
        variables,
        &[
            (&["put", origin, "fruit", "apple", "red"][..], Ok("")),
            (&["compact", origin], Ok("")),
            (&["branch", origin, branch], Ok("shares 1 file of")),
            (&["branch", origin, branch], Err("already")),
            (&["put", branch, "fruit", "apple", "green"], Ok("")),
            (&["get", branch, "fruit", "apple"], Ok("green")),
            (&["get", origin, "fruit", "apple"], Ok("red")),
            (&["branches", origin], Ok("/q, ")),
            (&["drop-database", origin], Err("needs 1 of its files")),
            (&["check", branch], Ok("")),
            (&["compact", branch], Ok("")),
            (&["branches", origin], Ok("")),
            (&["drop-database", origin], Ok("was dropped, with 1 file")),
            (&["get", branch, "fruit", "apple"], Ok("green")),
            (&["get", origin, "fruit", "apple"], Err("")),
            (&["branch", "some/directory", branch], Err("larch checkpoint")),
            (&["branch", origin, third], Err("no database at")),
        ],
    );
}

#[test]
fn commands_branch_list_and_drop() {
    let directory = tempfile::tempdir().expect("there is room");
    check_commands(&format!("file://{}", directory.path().display()), &[]);
}

#[test]
#[ignore = "cargo x remote --check runs it"]
fn commands_branch_list_and_drop_on_moto() {
    let server = Server::moto();
    check_commands(&format!("s3://{}", server.bucket()), &server.variables());
}

#[test]
#[ignore = "cargo x remote --servers runs it"]
fn commands_branch_list_and_drop_on_minio() {
    let server = Server::minio();
    check_commands(&format!("s3://{}", server.bucket()), &server.variables());
}
