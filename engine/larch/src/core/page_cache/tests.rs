//! What a database with an elastic cache promises. The test says how much memory is free.

use super::{Budget, new_cache};
use crate::{Cache, Database};
use os::real::ThreadPool;
use os::sim::SimFreeMemory;
use os::sync::Arc;
use os::{Machine, MemoryReading, ScopeMemory};
use std::thread;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const ROWS: u32 = 3000;

/// A machine of 16 GiB, of which `available_bytes` can be taken.
fn available(available_bytes: u64) -> Option<MemoryReading> {
    let scope = ScopeMemory { total_bytes: 16 * GIB, available_bytes, free_bytes: available_bytes };
    Some(MemoryReading { scopes: vec![scope], ..MemoryReading::default() })
}

/// A machine with threads, whose free memory the test sets.
fn machine(seed: u64) -> (Machine, Arc<SimFreeMemory>) {
    let memory = Arc::new(SimFreeMemory::default());
    let machine = Machine { memory: memory.clone(), threads: ThreadPool::new(2), ..Machine::simulated(seed).0 };
    (machine, memory)
}

fn budget() -> Budget {
    Budget::free().at_least(MIB).at_most(8 * MIB)
}

/// Gives way to other threads until `condition` holds.
fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

fn key(row: u32) -> [u8; 4] {
    row.to_be_bytes()
}

fn value(row: u32) -> Vec<u8> {
    key(row).repeat(500)
}

#[test]
fn reads_go_on_while_the_cache_grows_and_shrinks() {
    let (machine, memory) = machine(1);
    let db = Database::builder("db").machine(machine).cache_bytes(budget()).open().expect("a new database opens");
    let table = db.table("rows").expect("a table can be made");
    for row in 0..ROWS {
        table.insert(key(row), value(row)).expect("the disk has room");
    }
    db.flush().expect("the disk has room");
    assert_eq!(db.cache().budget_bytes(), MIB);

    memory.set(available(10 * GIB));
    wait_until(|| db.cache().budget_bytes() == 8 * MIB);
    assert_eq!(table.range(..).count(), ROWS as usize);
    assert!(db.cache().used_bytes() > 5 * MIB, "{:?}", db.cache().usage());

    let mut range = table.range(..);
    let held: Vec<_> = (0..ROWS / 2)
        .map(|row| {
            let next = range.next().expect("there are more rows").expect("no faults of the disk").1;
            assert_eq!(next, value(row));
            next
        })
        .collect();
    memory.set(available(0));
    wait_until(|| db.cache().budget_bytes() == MIB);
    wait_until(|| db.cache().used_bytes() <= MIB);
    for (row, value_held) in (0..).zip(&held) {
        assert_eq!(*value_held, value(row));
    }
    for (row, next) in (ROWS / 2..).zip(range) {
        assert_eq!(next.expect("no faults of the disk").1, value(row));
    }
    assert!(db.cache().used_bytes() <= MIB, "{:?}", db.cache().usage());

    memory.set(available(10 * GIB));
    wait_until(|| db.cache().budget_bytes() == 8 * MIB);
    db.set_cache_bytes(2 * MIB);
    assert_eq!((db.cache().budget_bytes(), db.cache().is_elastic()), (2 * MIB, false));
    db.set_cache_bytes(budget());
    wait_until(|| db.cache().budget_bytes() == 8 * MIB);
}

#[test]
fn a_thousand_databases_share_one_governor_which_ends_with_the_last_of_them() {
    let (governed, memory) = machine(1);
    let cache = Cache::of(&new_cache(budget(), 8, &governed));
    drop(governed);
    let databases: Vec<Database> = (0..1000)
        .map(|seed| {
            let builder = Database::builder("db").machine(Machine::simulated(seed).0).cache(&cache);
            builder.open().expect("a new database opens")
        })
        .collect();
    // The test and the governor have the memory.
    assert_eq!(Arc::strong_count(&memory), 2);
    memory.set(available(10 * GIB));
    wait_until(|| databases[999].cache().budget_bytes() == 8 * MIB);
    drop(cache);
    memory.set(available(0));
    wait_until(|| databases[0].cache().budget_bytes() == MIB);
    drop(databases);
    wait_until(|| Arc::strong_count(&memory) == 1);
}

#[test]
fn on_a_simulated_machine_an_elastic_cache_has_its_least_size() {
    let builder = Database::builder("db").machine(Machine::simulated(1).0);
    let db = builder.cache_bytes(Budget::free()).open().expect("a new database opens");
    assert_eq!(db.cache().budget_bytes(), 64 * MIB);
}
