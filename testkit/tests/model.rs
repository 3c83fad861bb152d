//! The reads of a random history must give the same rows as a sorted map with versions. `cargo x sim` runs more
//! seeds.

use larch::Database;
use os::Machine;
use testkit::history::History;
use testkit::rerun::Rerun;

/// A prime number, so that work that is done every few steps does not always come at the last step.
const STEPS: usize = 397;

#[test]
fn random_histories_read_as_a_sorted_map_would() {
    for seed in 0..200 {
        let _rerun = Rerun::of(seed, STEPS, 0);
        History::new(seed).run(STEPS).expect("the disk does not fail");
    }
}

#[test]
fn a_row_gives_its_value_after_its_file_was_compacted_away() {
    let (machine, _) = Machine::simulated(1);
    let db = Database::builder("db").machine(machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    // Too long for a data page, so it is read from disk only when a caller asks for it.
    let value = [b'v'; 100_000];
    table.insert("a", value).expect("the disk works");
    db.flush().expect("the disk works");
    let mut range = table.iter();
    let row = range.next_row().expect("the disk works").expect("it was inserted");
    table.insert("b", "").expect("the disk works");
    db.compact().expect("the disk works");
    assert_eq!(row.value().expect("the row keeps its file")[..], value);
}
