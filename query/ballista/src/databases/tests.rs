use super::*;
use kit::Scratch;
use larch::{Follow, Readable as _, Table};

fn followers() -> Arc<Databases> {
    Databases::new(Arc::new(|place| Database::builder(place).follow(Follow::Files).open().map_err(external)))
}

fn written(database: &Database, table: &Table, key: &str) -> u64 {
    table.insert(key, "").expect("it is written");
    database.flush().expect("it is flushed");
    database.version().0
}

#[test]
fn a_query_reads_the_version_that_it_was_planned_with_while_the_writer_goes_on() {
    let scratch = Scratch::new("ballista-versions");
    let database = Database::open(scratch.path()).expect("a database");
    let table = database.table("t").expect("a table");
    let databases = followers();
    let place = |version| Place { database: scratch.path().display().to_string(), version };
    let keys = |version| {
        databases.at(&place(version)).map(|(shown, snapshot)| {
            let table = shown.database.existing_table("t").expect("it can be asked").expect("it is there");
            snapshot.iter(&table).count()
        })
    };
    let first = written(&database, &table, "a");
    assert_eq!(keys(first).expect("it is shown"), 1);
    let second = written(&database, &table, "b");
    assert_eq!(keys(second).expect("it is caught up with"), 2);
    let third = written(&database, &table, "c");
    let fourth = written(&database, &table, "d");
    assert_eq!(keys(fourth).expect("it is caught up with"), 4);
    database.compact().expect("files are merged");
    assert_eq!([first, second, fourth].map(|version| keys(version).expect("it is kept")), [1, 2, 4]);
    // The process has a snapshot of the third version only if it looked while that was the newest one.
    if let Err(error) = keys(third) {
        assert!(error.to_string().contains(MOVED_ON), "{error}");
    }
    let fresh = followers();
    let error = fresh.at(&place(first)).expect_err("it is over").to_string();
    assert!(error.contains(MOVED_ON) && error.contains("ask again"), "{error}");
}

#[test]
fn a_place_without_a_database_is_named() {
    let scratch = Scratch::new("ballista-nowhere");
    let missing = scratch.path().join("missing").display().to_string();
    let error = followers().at(&Place { database: missing.clone(), version: 1 }).expect_err("there is none");
    assert!(error.to_string().contains(&missing), "{error}");
}

#[test]
fn a_database_that_nobody_asks_for_is_closed_and_opened_again() {
    let scratch = Scratch::new("ballista-unasked");
    let database = Database::open(scratch.path()).expect("a database");
    let version = written(&database, &database.table("t").expect("a table"), "a");
    let databases = followers();
    let place = Place { database: scratch.path().display().to_string(), version };
    let (shown, snapshot) = databases.at(&place).expect("it is shown");
    let later = Machine::real().clock.now() + Duration::from_secs(1);
    assert!(databases.take_unasked(later).is_empty(), "a query reads it");
    drop((shown, snapshot));
    assert!(databases.take_unasked(Duration::ZERO).is_empty(), "a query has asked for it since");
    assert_eq!(databases.take_unasked(later).len(), 1);
    assert_eq!(databases.reads(), []);
    databases.at(&place).expect("it is opened again");
    assert_eq!(databases.reads().len(), 1);
}
