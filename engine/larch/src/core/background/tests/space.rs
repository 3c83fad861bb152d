//! Tests, on a simulated clock, that the space of removed rows is freed even if nothing more is written.

use crate::base::extractors::IndexKeys;
use crate::index::IndexOptions;
use crate::{Database, Durability, Readable, Snapshot, Table};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

/// Bytes by which the files may exceed what the test computes: hidden rows that are not worth a compaction, the
/// logs, and the manifest.
const SLACK_BYTES: u64 = (256 + 64) << 10;

fn open(machine: &Machine) -> Database {
    let builder = Database::builder("db").machine(machine.clone()).write_buffer_bytes(4 << 20).reserve_bytes(0);
    let extractors = |_: &[u8]| Ok(Box::new(Begin) as Box<dyn IndexKeys>);
    builder.durability(Durability::Buffered).extractors(extractors).open().expect("it opens")
}

/// Uses the first bytes of each value as its index key.
struct Begin;

impl IndexKeys for Begin {
    fn groups(&self) -> &[usize] {
        &[0]
    }

    fn index_keys<'r>(
        &self,
        _: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        let value = part(0).ok_or("the value is asked for")?;
        emit(&value[..value.len().min(16)]);
        Ok(())
    }
}

/// Lets a minute pass in which only background work uses the database.
fn rest(machine: &Machine, db: &Database) {
    for _ in 0..60 {
        machine.clock.sleep(Duration::from_secs(1));
        db.core().background.drive();
    }
}

fn key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// A table with `rows` random, incompressible values of `bytes` bytes each.
fn with_rows(db: &Database, name: &str, rows: u32, bytes: usize) -> Table {
    let table = db.table(name).expect("the disk works");
    let mut random = StdRng::seed_from_u64(7);
    let mut value = vec![0; bytes];
    for i in 0..rows {
        random.fill_bytes(&mut value);
        table.insert(key(i), &value).expect("the disk works");
    }
    table
}

/// A change that erases or overwrites many rows of the table.
#[derive(Clone, Copy, Debug)]
enum Change {
    Erases,
    Range,
    Ranges,
    SmallValues,
    /// Erases two of every five neighbouring rows.
    SomeErases,
    SomeRange,
}

impl Change {
    const ALL: [Self; 6] =
        [Self::Erases, Self::Range, Self::Ranges, Self::SmallValues, Self::SomeErases, Self::SomeRange];

    fn make(self, table: &Table, rows: u32) {
        let most = rows / 20 * 19;
        let done = |outcome: crate::Result<()>| outcome.expect("the disk works");
        match self {
            Self::Erases => (0..most).for_each(|i| done(table.remove(key(i)))),
            Self::Range => done(table.remove_range(..key(most))),
            // A slice can leave out only a few ranges of a file, and these are more.
            Self::Ranges => (0..20u32).for_each(|i| {
                let at = |quarters: u32| key(rows * quarters / 80);
                done(table.remove_range(at(i * 4)..at(i * 4 + 3)));
            }),
            Self::SmallValues => (0..most).for_each(|i| done(table.insert(key(i), "small"))),
            Self::SomeErases => (0..rows).filter(|i| i % 5 < 2).for_each(|i| done(table.remove(key(i)))),
            Self::SomeRange => done(table.remove_range(key(rows / 5)..key(rows / 5 * 3))),
        }
    }
}

#[track_caller]
fn check_settled(disk: &SimDisk, db: &Database, what: &str) {
    let used = disk.used_bytes();
    db.compact().expect("the disk works");
    let least = disk.used_bytes();
    println!("{what}: {used} bytes, {least} at least");
    assert!(used <= least + least / 10 * 3 + SLACK_BYTES, "{what}: {used} bytes, where {least} are enough");
}

/// Numbers of rows and lengths of values: tables of some megabytes with short, medium and long values.
const SHAPES: [(u32, usize); 3] = [(20_000, 100), (500, 4_000), (20, 500_000)];

fn settles(shape: (u32, usize), change: Change, has_index: bool) {
    let (machine, disk): (Machine, Arc<SimDisk>) = Machine::simulated(3);
    let db = open(&machine);
    let table = with_rows(&db, "t", shape.0, shape.1);
    if has_index {
        table.create_index("begin", b"begin", &IndexOptions { unique: false }, |_| {}).expect("the disk works");
    }
    rest(&machine, &db);
    change.make(&table, shape.0);
    rest(&machine, &db);
    check_settled(&disk, &db, &format!("{} values of {} bytes, {change:?}", shape.0, shape.1));
}

#[test]
fn a_database_left_alone_settles_to_little_more_than_its_live_bytes_within_a_minute() {
    for shape in SHAPES {
        Change::ALL.into_iter().for_each(|change| settles(shape, change, false));
    }
    Change::ALL.into_iter().for_each(|change| settles(SHAPES[1], change, true));
}

#[test]
fn what_compactions_are_due_for_asked_for_leaves_nothing_for_the_background() {
    for change in Change::ALL {
        let (machine, disk) = Machine::simulated(3);
        let db = open(&machine);
        let table = with_rows(&db, "t", 40, 100_000);
        change.make(&table, 40);
        db.compact_due().expect("the disk works");
        let used = disk.used_bytes();
        rest(&machine, &db);
        assert!(disk.used_bytes() + SLACK_BYTES > used, "{change:?}: {used} bytes, then {}", disk.used_bytes());
        check_settled(&disk, &db, &format!("asked for, {change:?}"));
    }
}

#[test]
fn what_a_snapshot_keeps_goes_when_it_is_dropped() {
    for change in Change::ALL {
        for takes_again in [false, true] {
            let (machine, disk) = Machine::simulated(3);
            let db = open(&machine);
            let table = with_rows(&db, "t", 40, 100_000);
            let mut snapshots: Vec<Snapshot> = vec![db.snapshot()];
            change.make(&table, 40);
            rest(&machine, &db);
            if takes_again {
                // Merge the files while the snapshot still keeps the old rows.
                db.compact().expect("the disk works");
            }
            assert_eq!(snapshots[0].range(&table, ..).count(), 40, "{change:?}");
            snapshots.clear();
            rest(&machine, &db);
            check_settled(&disk, &db, &format!("after a snapshot, {change:?}, {takes_again}"));
        }
    }
}

#[test]
fn new_rows_that_hide_nothing_do_not_have_a_table_rewritten_again_and_again() {
    let (machine, _) = Machine::simulated(3);
    let db = open(&machine);
    let table = with_rows(&db, "t", 40, 100_000);
    rest(&machine, &db);
    let before = db.metrics();
    // Write short rows between the keys of the long rows, and let time pass after every twenty.
    for i in 0..2000u32 {
        table.insert([key(i % 40).as_slice(), &key(i)].concat(), "short").expect("the disk works");
        if i % 20 == 0 {
            (0..15).for_each(|_| {
                machine.clock.sleep(Duration::from_secs(1));
                db.core().background.drive();
            });
        }
    }
    let written = db.metrics().compaction_bytes - before.compaction_bytes;
    assert!(written < 25 * 4_000_000, "{written} bytes were written for 2,000 short rows");
}
