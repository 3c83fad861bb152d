//! What reads allocate when all is in memory, counted by an allocator that counts.

use kit::allocations::{Counting, Thread};
use larch::{Database, Durability, Tried};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

#[global_allocator]
static COUNTING: Counting<Thread> = Counting::new();

fn poll_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("all is in memory"),
    }
}

#[test]
fn a_cached_get_allocates_nothing_in_any_form() {
    let machine = os::Machine::simulated_on(os::sim::SimDisk::new(1), 1);
    let db = Database::builder("db").machine(machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let key = |i: u32| (i * 7 % 1000).to_be_bytes();
    for i in 0..1000 {
        table.insert(key(i), [7; 100]).expect("the disk works");
    }
    db.compact_due().expect("the disk works");

    let waits = |i| table.get(key(i)).expect("the disk works").is_some();
    let tries = |i| matches!(table.try_get(key(i)), Ok(Tried::Ready(Some(_))));
    let polls = |i| poll_once(table.get_async(key(i))).expect("the disk works").is_some();
    let before = Thread::so_far().count;
    assert!((0..1000).all(waits));
    assert!(Thread::so_far().count > before, "faults allocate, and the allocator counts");
    let before = Thread::so_far().count;
    for i in 0..1000 {
        assert!(waits(i) && tries(i) && polls(i), "row {i} is there");
    }
    assert_eq!(Thread::so_far().count - before, 0);
}

/// The least that `work` allocates of twenty times, in bytes: the simulated disk allocates more now and then.
fn least_bytes(mut work: impl FnMut(u32)) -> u64 {
    (0..20).map(|i| Thread::during(|| work(i)).1.bytes).min().expect("there are some")
}

/// Bytes that a commit and an install allocate among so many tables, each of which has rows in memory.
fn bytes_with_tables(tables: u32) -> (u64, u64) {
    let machine = os::Machine::simulated_on(os::sim::SimDisk::new(1), 1);
    let db = Database::builder("db").machine(machine).reserve_bytes(0).open().expect("the disk works");
    for i in 0..tables {
        db.table(&format!("table {i}")).expect("the disk works").insert("k", "v").expect("the disk works");
    }
    let table = db.table("table 7").expect("it is there");
    let commit = least_bytes(|i| table.insert(i.to_be_bytes(), [7; 10]).expect("the disk works"));
    let install = least_bytes(|i| {
        table.alter(|options| options.metadata = i.to_be_bytes().to_vec()).expect("the disk works");
    });
    (commit, install)
}

#[test]
fn a_commit_in_flight_allocates_what_a_commit_does() {
    let machine = os::Machine::simulated_on(os::sim::SimDisk::new(1), 1);
    let db = Database::builder("db").machine(machine).reserve_bytes(0).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let batch = |i: u32| {
        let mut batch = db.batch().durability(Durability::Buffered);
        batch.insert(&table, i.to_be_bytes(), [7; 10]);
        batch
    };
    let commit = least_bytes(|i| _ = batch(i).commit().expect("the disk works"));
    let submit = least_bytes(|i| drop(batch(i).submit().expect("the disk works")));
    assert_eq!(submit, commit);
}

#[test]
fn a_commit_and_an_install_cost_the_same_among_ten_and_ten_thousand_tables() {
    let (few, many) = (bytes_with_tables(10), bytes_with_tables(10_000));
    println!("commit and install allocate {few:?} bytes among 10 tables, {many:?} among 10,000");
    assert_eq!(many.0, few.0, "of a commit");
    // A path through a tree of 10,000 is ten nodes longer than one of 10, in each of two maps.
    assert!(many.1 <= few.1 + 8192, "of an install");
}
