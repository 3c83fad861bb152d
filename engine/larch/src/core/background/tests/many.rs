//! Tests many databases in one process.

use crate::{Cache, Database, Durability};
use os::Machine;
use os::real::ThreadPool;
use std::time::Duration;

const DATABASES: usize = 1000;

fn open(machine: &Machine, cache: &Cache, i: usize) -> Database {
    let builder = Database::builder(format!("db{i}")).machine(machine.clone()).cache(cache);
    builder.durability(Durability::Buffered).open().expect("a new database")
}

#[test]
fn a_thousand_databases_share_a_few_threads() {
    let (machine, _) = Machine::simulated(9);
    let pool = ThreadPool::new(3);
    let machine = Machine { threads: pool.clone(), ..machine };
    let cache = Cache::with_open_files(4 << 20, 16);
    let databases: Vec<Database> = (0..DATABASES).map(|i| open(&machine, &cache, i)).collect();
    for (i, db) in databases.iter().enumerate() {
        let table = db.table("t").expect("a table");
        table.insert("k", i.to_string()).expect("a row");
        db.flush().expect("the disk works");
        assert!(pool.running_threads() <= 3);
    }
    for (i, db) in databases.iter().enumerate() {
        let value = db.table("t").expect("a table").get("k").expect("the disk works");
        assert_eq!(value.as_deref(), Some(i.to_string().as_bytes()));
    }
}

#[test]
fn databases_that_nobody_writes_to_take_no_descriptor_but_their_locks() {
    let (machine, disk) = Machine::simulated(10);
    let cache = Cache::with_open_files(4 << 20, 16);
    let databases: Vec<Database> = (0..DATABASES).map(|i| open(&machine, &cache, i)).collect();
    let tables: Vec<_> = databases.iter().map(|db| db.table("t").expect("a table")).collect();
    for round in 0..2 {
        tables.iter().for_each(|table| table.insert("k", "v").expect("a row"));
        assert!(disk.open_handles() >= DATABASES, "round {round}: their logs are open");
        for _ in 0..3 {
            machine.clock.sleep(Duration::from_secs(1));
            tables.iter().for_each(|table| table.core().background.drive());
        }
        assert_eq!(disk.open_handles(), 0, "round {round}");
    }
    disk.crash_keeping_nothing();
    drop((tables, databases));
    let db = open(&machine, &cache, 7);
    assert_eq!(
        db.table("t").expect("a table").iter().count(),
        1,
        "what was buffered is durable before a log is closed"
    );
}
