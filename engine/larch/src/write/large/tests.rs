//! Tests that a batch larger than the write buffer keeps the same promises as any other.

use crate::handle::database::Database;
use crate::{Durability, Readable, Table};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Disk, Machine};

const BUFFER_BYTES: u64 = 64 << 10;

fn open(disk: &Arc<SimDisk>) -> Database {
    let builder = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1));
    builder.write_buffer_bytes(BUFFER_BYTES).durability(Durability::Buffered).open().expect("the disk works")
}

fn tables(db: &Database) -> [Table; 2] {
    ["a", "b"].map(|name| db.table(name).expect("the disk works"))
}

/// The number of rows in each of the two tables.
fn rows(db: &Database) -> [usize; 2] {
    tables(db).map(|table| table.iter().collect::<crate::Result<Vec<_>>>().expect("the disk works").len())
}

fn value() -> [u8; 1000] {
    [b'v'; 1000]
}

#[test]
fn it_takes_effect_in_all_tables_at_once_and_is_durable() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let [a, b] = tables(&db);
    a.insert("k000", "old")
        .and_then(|()| a.insert("z", "old"))
        .and_then(|()| b.insert("z", "old"))
        .expect("it is taken");
    let before = db.snapshot();
    let mut batch = db.batch();
    batch.insert(&b, "k500", "hidden by the range");
    batch.remove_range(&b, "k".."l");
    for i in 0..300 {
        batch.insert(&a, format!("k{i:03}"), "replaced");
        batch.insert(&a, format!("k{i:03}"), value());
        batch.insert(&b, format!("k{i:03}"), value());
    }
    batch.remove(&a, "z");
    batch.remove_range(&b, "k200"..);
    let version = batch.commit().expect("the disk works");
    assert_eq!((version, rows(&db)), (db.version(), [300, 200]));
    assert_eq!(a.get("k000").expect("the disk works").as_deref(), Some(&value()[..]));
    assert_eq!(a.version_of("k000").expect("the disk works"), Some(version));
    assert_eq!((before.iter(&a).count(), before.iter(&b).count()), (2, 1), "a snapshot does not see it");
    a.insert("k000", "new").expect("it is taken");
    b.remove("k000").expect("it is taken");
    assert_eq!((a.get("k000").expect("the disk works").as_deref(), rows(&db)), (Some(&b"new"[..]), [300, 199]));
    drop((a, b, before));
    // A loss of power loses the commit that was not synced, but not the large one, which is durable.
    let disk = disk.image();
    disk.crash_keeping_nothing();
    let db = open(&disk);
    assert_eq!(rows(&db), [300, 200]);
    db.check(|_| {}).expect("the disk works");
}

#[test]
fn one_that_fails_leaves_nothing() {
    let disk = SimDisk::new(2);
    let db = open(&disk);
    let [a, b] = tables(&db);
    a.insert("z", "old").expect("it is taken");
    let large = || {
        let mut batch = db.batch();
        for i in 0..300 {
            batch.insert(&a, format!("k{i:03}"), value());
            batch.insert(&b, format!("k{i:03}"), value());
        }
        batch.commit()
    };
    let files = || disk.list(std::path::Path::new("db")).expect("it is there").len();
    let before = files();
    disk.set_capacity(disk.used_bytes() + (200 << 10));
    let error = large().expect_err("there is no room");
    assert!(error.is_disk_full(), "{error}");
    assert_eq!(rows(&db), [1, 0]);
    disk.set_capacity(u64::MAX);
    assert_eq!(files(), before, "its files are gone");
    large().expect("there is room again");
    assert_eq!(rows(&db), [301, 300]);
}

#[test]
fn a_large_transaction_conflicts_as_any_other_and_goes_into_files_if_it_does_not() {
    let db = open(&SimDisk::new(3));
    let [a, b] = tables(&db);
    a.insert("read", "0").expect("it is taken");
    for is_changed in [true, false] {
        let mut tx = db.begin().expect("it begins");
        tx.get(&a, "read").expect("the disk works");
        for i in 0..100 {
            tx.insert(&b, format!("k{i:03}"), value()).expect("it is taken");
        }
        assert_eq!(tx.iter(&b).count(), 100);
        a.insert(if is_changed { "read" } else { "other" }, "1").expect("it is taken");
        assert_eq!(tx.commit().expect("the disk works").is_err(), is_changed);
        assert_eq!(rows(&db)[1], if is_changed { 0 } else { 100 });
    }
    let mut running = db.begin().expect("it begins");
    running.get(&b, "k000").expect("the disk works");
    running.insert(&a, "other", "2").expect("it is taken");
    let mut batch = db.batch();
    (0..100).for_each(|i| batch.insert(&b, format!("k{i:03}"), value()));
    batch.commit().expect("the disk works");
    assert!(running.commit().expect("the disk works").is_err(), "what it has read was written to files meanwhile");
}

#[test]
fn a_database_that_was_opened_read_only_takes_none_and_harms_no_file() {
    let disk = SimDisk::new(4);
    let db = open(&disk);
    let [a, b] = tables(&db);
    a.insert("a", "1").and_then(|()| db.flush()).expect("the disk works");
    let machine = Machine::simulated_on(disk.clone(), 2);
    let builder = Database::builder("db").machine(machine).write_buffer_bytes(BUFFER_BYTES);
    let reader = builder.read_only(true).open().expect("it has no lock");
    for i in 0..4 {
        a.insert(format!("b{i}"), "1").and_then(|()| b.insert(format!("b{i}"), "1")).expect("it is taken");
        db.flush().expect("the disk works");
    }
    let [c, d] = tables(&reader);
    let mut batch = reader.batch();
    for i in 0..300 {
        batch.insert(&c, format!("k{i:03}"), value());
        batch.insert(&d, format!("k{i:03}"), value());
    }
    assert!(matches!(batch.commit(), Err(crate::Error::ReadOnly)));
    db.check(|_| {}).expect("every file is there");
    assert_eq!(rows(&db), [5, 4]);
}
