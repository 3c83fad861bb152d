//! Tests what a checkpoint shows if the database changes between the moment of the checkpoint and its end.

use super::*;
use crate::handle::database::Database;
use os::Machine;
use os::sim::SimDisk;
use rows::rows;

#[path = "../../../tests/copies/rows.rs"]
mod rows;

fn open(machine: &Machine, directory: &str, read_only: bool) -> Database {
    let builder = Database::builder(directory).machine(machine.clone()).write_buffer_bytes(64 << 10);
    builder.read_only(read_only).open().expect("the disk works")
}

/// A database with three tables, each with rows in files and in memory.
fn prepare(machine: &Machine) -> Database {
    let db = open(machine, "db", false);
    for name in ["changed", "dropped", "renamed"] {
        let table = db.table(name).expect("a table");
        for i in 0..100u8 {
            table.insert([i], [1; 30]).expect("the disk works");
            if i == 50 {
                db.flush().expect("the disk works");
            }
        }
        table.remove_range([10u8]..[20]).expect("the disk works");
    }
    db
}

/// Changes that a user may make to the database while a checkpoint is being made.
const CHANGES: [fn(&Database); 6] = [
    |db| {
        let table = db.table("changed").expect("a table");
        for i in 0..200u8 {
            table.insert([i], [2; 20]).expect("the disk works");
        }
        table.remove_range([30u8]..[40]).expect("the disk works");
    },
    |db| _ = db.drop_table("dropped").expect("the disk works"),
    |db| _ = db.rename_table("renamed", "other").expect("the disk works"),
    |db| {
        let mut import = db.table("changed").and_then(|table| table.import()).expect("a table");
        import.add(b"imported", b"later").expect("the disk works");
        import.finish(|_| {}).expect("the disk works");
    },
    |db| db.flush().expect("the disk works"),
    |db| db.compact().expect("the disk works"),
];

#[test]
fn a_checkpoint_shows_its_moment_whatever_happens_before_its_end() {
    for changes in 0u32..1 << CHANGES.len() {
        let (machine, _) = Machine::simulated(u64::from(changes));
        let db = prepare(&machine);
        let (expected, version) = (rows(&db), db.version());
        let mut moment = Moment::now(db.core()).expect("the disk works");
        (0..CHANGES.len()).filter(|i| changes >> i & 1 == 1).for_each(|i| CHANGES[i](&db));
        let watch = Watch::new("the checkpoint", |_| {});
        let report = checkpoint_of(db.core(), &mut moment, Path::new("copy"), &watch);
        assert_eq!(report.expect("the disk works").version, version, "changes {changes:b}");
        for read_only in [true, false] {
            let copy = open(&machine, "copy", read_only);
            assert!(rows(&copy) == expected, "changes {changes:b}");
            assert!(copy.check(|_| {}).expect("the disk works").problems.is_empty());
        }
    }
}

#[test]
fn files_of_a_moment_stay_until_its_copy_is_made() {
    let (machine, disk): (Machine, Arc<SimDisk>) = Machine::simulated(1);
    let db = prepare(&machine);
    db.flush().expect("the disk works");
    let moment = Moment::now(db.core()).expect("the disk works");
    let paths: Vec<_> = moment.files().iter().map(|file| file.path().to_owned()).collect();
    db.table("changed").and_then(|table| table.insert("new", "row")).expect("the disk works");
    db.compact().expect("the disk works");
    let there = || paths.iter().filter(|path| os::Disk::exists(&*disk, path).expect("the disk works")).count();
    assert_eq!(there(), paths.len(), "the copy may still need them");
    drop(moment);
    assert!(there() < paths.len(), "a compaction has replaced some of them");
}
