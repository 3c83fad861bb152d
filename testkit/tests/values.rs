//! Values of the type `bytes::Bytes`. They need the engine's feature `bytes`.

use bytes::Bytes;
use larch::Database;
use larch::machine::Machine;

#[test]
fn a_value_becomes_bytes_without_a_copy_and_outlives_its_database() {
    let db = Database::builder("db").machine(Machine::simulated(1).0).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    table.insert("long", [b'x'; 5000]).expect("the disk works");
    table.insert("short", "red").expect("the disk works");
    db.flush().expect("the disk works");
    let value = table.get("long").expect("the disk works").expect("it is there");
    let place = value.as_ptr();
    let long = Bytes::from(value);
    assert_eq!(long.as_ptr(), place, "nothing was copied");
    let short = Bytes::from(table.get("short").expect("the disk works").expect("it is there"));
    drop((table, db));
    assert!(long == [b'x'; 5000][..] && short == "red");
}
