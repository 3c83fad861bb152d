//! Tests statistics in a transaction, and reads through a trait object.

use crate::{Database, Error, Readable, Table};
use os::Machine;

fn fruit() -> (Database, Table) {
    let db = Database::builder("db").machine(Machine::simulated(1).0).open().expect("the disk works");
    let fruit = db.table("fruit").expect("the disk works");
    for name in ["apple", "banana", "cherry"] {
        fruit.insert(name, "ripe").expect("the disk works");
    }
    (db, fruit)
}

#[test]
fn what_a_transaction_has_counted_it_has_read() {
    let (db, fruit) = fruit();
    let mut tx = db.begin().expect("the disk works");
    assert_eq!(tx.reader(&fruit).expect("of this database").count_exact("b"..).expect("the disk works"), 2);
    tx.insert(&fruit, "count", "2").expect("the disk works");
    fruit.remove("banana").expect("the disk works");
    tx.commit().expect("the disk works").expect_err("a row that was counted is gone");

    let mut tx = db.begin().expect("the disk works");
    assert_eq!(tx.reader(&fruit).expect("of this database").count_exact("b"..).expect("the disk works"), 1);
    tx.insert(&fruit, "count", "1").expect("the disk works");
    fruit.insert("apricot", "ripe").expect("the disk works");
    tx.commit().expect("the disk works").expect("nothing has changed in what was counted");
}

#[test]
fn a_transaction_does_not_count_its_own_rows() {
    let (db, fruit) = fruit();
    let mut tx = db.begin().expect("the disk works");
    tx.insert(&fruit, "date", "ripe").expect("the disk works");
    let counted = tx.reader(&fruit).expect("of this database").count_exact(..);
    assert!(matches!(&counted, Err(Error::OwnWrites(table)) if table == "fruit"), "{counted:?}");
}

#[test]
fn rows_are_read_through_a_trait_object() {
    let (db, fruit) = fruit();
    let snapshot = db.snapshot();
    let mut tx = db.begin().expect("the disk works");
    tx.remove(&fruit, "apple").expect("the disk works");
    fruit.insert("date", "ripe").expect("the disk works");
    let sources: [(&dyn Readable, usize); 3] = [(&db, 4), (&snapshot, 3), (&tx, 2)];
    for (source, rows) in sources {
        assert_eq!(source.reader(&fruit).expect("of this database").iter().count(), rows);
    }
}
