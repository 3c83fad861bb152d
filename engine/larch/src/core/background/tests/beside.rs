//! Tests concurrent compactions of a database: they wait for their reads at the same time, an error of one does not
//! stop the others, and a change that needs the lock of levels alone waits for all of them.

use super::HeldReads;
use crate::Database;
use crate::options::LevelOptions;
use os::real::ThreadPool;
use os::sync::Arc;
use os::{Machine, Urgency};

const TABLES: usize = 3;

fn open(machine: &Machine, level0_files: usize) -> Database {
    let levels = LevelOptions { level0_files, ..LevelOptions::default() };
    Database::builder("db").machine(machine.clone()).levels(levels).open().expect("it opens")
}

/// A database with several tables, each with a compaction that waits for reads.
fn compacting() -> (Arc<HeldReads>, Database) {
    let (machine, _) = Machine::simulated(1);
    let db = open(&machine, 100);
    for file in 0..3 {
        for table in 0..TABLES {
            let table = db.table(&format!("t{table}")).expect("a table");
            (0..100).for_each(|i| table.insert(format!("k{i:03}"), format!("{file}")).expect("a row"));
        }
        db.flush().expect("the disk works");
    }
    drop(db);
    let reads = Arc::new(HeldReads::default());
    let machine = Machine { reads: reads.clone(), threads: ThreadPool::new(TABLES + 2), ..machine };
    let db = open(&machine, 2);
    let mut held = reads.reads.lock();
    while held.iter().flatten().filter(|read| read.urgency == Urgency::Background).count() < TABLES * 3 {
        held = reads.changed.wait(held);
    }
    drop(held);
    (reads, db)
}

#[test]
fn tables_are_compacted_beside_each_other() {
    let (reads, db) = compacting();
    assert_eq!(db.core().writes.picks.under_way_count(), TABLES);
    reads.open();
    db.compact_due().expect("the disk works");
    assert_eq!(db.core().writes.picks.under_way_count(), 0);
    for table in 0..TABLES {
        let table = db.table(&format!("t{table}")).expect("a table");
        assert_eq!(table.get("k007").expect("the disk works").as_deref(), Some(&b"2"[..]));
    }
    assert_eq!(db.metrics().compactions, TABLES as u64);
}

#[test]
fn a_close_ends_all_compactions() {
    let (reads, db) = compacting();
    reads.open();
    drop(db);
}

#[test]
fn a_dropped_table_ends_its_compaction_and_no_other() {
    let (reads, db) = compacting();
    db.drop_table("t1").expect("the disk works");
    reads.open();
    db.compact_due().expect("the disk works");
    assert_eq!(db.metrics().compactions, TABLES as u64 - 1);
    assert_eq!(db.core().writes.picks.under_way_count(), 0);
}
