//! Tests the state of a batch after one of its writes was refused.

use super::*;
use crate::handle::database::Database;
use os::Machine;

/// A key that is too long for every table.
static LONG: [u8; sst::MAX_KEY_BYTES + 1] = [b'k'; sst::MAX_KEY_BYTES + 1];

fn database() -> Database {
    let (machine, _) = Machine::simulated(1);
    Database::builder("db").machine(machine).open().expect("the disk works")
}

/// All ways to add something that the batch refuses.
fn refused() -> [fn(&mut Batch, &Table, &Table); 7] {
    [
        |batch, table, _| batch.insert(table, LONG, ""),
        |batch, table, _| batch.insert_parts(table, LONG, &[""]),
        |batch, table, _| batch.insert_parts(table, "k", &["one", "too many"]),
        |batch, table, _| batch.remove(table, LONG),
        |batch, table, _| batch.remove_range(table, &LONG[..]..),
        |batch, table, _| batch.expect(table, LONG, Expected::Absent),
        |batch, _, foreign| batch.insert(foreign, "k", "v"),
    ]
}

#[test]
fn a_batch_with_an_error_is_not_empty() {
    let (db, other) = (database(), database());
    let table = db.table("t").expect("the disk works");
    let foreign = other.table("t").expect("the disk works");
    for add in refused() {
        let mut batch = db.batch();
        assert_eq!((batch.is_empty(), batch.len()), (true, 0));
        add(&mut batch, &table, &foreign);
        assert!(!batch.is_empty(), "{batch:?}");
        batch.commit().expect_err("something was refused");
    }
    let mut batch = db.batch();
    batch.remove(&table, LONG);
    batch.insert(&table, "k", "v");
    assert_eq!(batch.len(), 2, "both were added");
    assert!(matches!(batch.commit(), Err(Error::KeyTooLong { .. })));
    assert!(table.get("k").expect("the disk works").is_none());
}

#[test]
fn what_was_added_before_an_error_that_was_taken_out_can_be_committed() {
    let (db, other) = (database(), database());
    let table = db.table("t").expect("the disk works");
    let foreign = other.table("t").expect("the disk works");
    for (number, add) in refused().into_iter().enumerate() {
        let key = [number as u8];
        let mut batch = db.batch();
        assert!(batch.take_error().is_none());
        batch.insert(&table, key, "before");
        add(&mut batch, &table, &foreign);
        batch.insert(&table, "after", "");
        batch.take_error().expect("something was refused");
        assert!(batch.take_error().is_none());
        assert_eq!(batch.len(), 1, "number {number}");
        batch.insert(&table, [key[0], 1], "later");
        assert_eq!(batch.len(), 2);
        batch.commit().expect("what is left is right");
        assert!(table.contains_key(key).expect("the disk works") && table.contains_key([key[0], 1]).expect("it works"));
        assert!(table.get("after").expect("the disk works").is_none());
    }
}

#[test]
fn a_batch_with_conditions_only_is_not_empty() {
    let db = database();
    let table = db.table("t").expect("the disk works");
    let mut batch = db.batch();
    batch.expect(&table, "k", Expected::Value(b"v".to_vec()));
    assert_eq!((batch.is_empty(), batch.len()), (false, 0));
    assert!(batch.commit_if().expect("the disk works").is_err(), "there is no such row");
}
