//! Tests what an idle database costs: memory beside its rows and the shared cache, file descriptors, and threads.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "descriptors and threads are the machine's")]

use kit::Scratch;
use kit::allocations::{Counting, Process};
use larch::{Cache, Database};
use os::Machine;
use std::fs::read_dir;
use std::path::Path;
use std::time::Duration;

#[global_allocator]
static COUNTING: Counting<Process> = Counting::new();

const DATABASES: usize = 1000;
const OPEN_FILES: usize = 16;
const MOST_BYTES: usize = 16 << 10;

fn entries(directory: &str) -> usize {
    read_dir(directory).expect("it is there on Linux").count()
}

fn descriptors() -> usize {
    entries("/proc/self/fd")
}

fn threads() -> usize {
    entries("/proc/self/task")
}

fn open(directory: &Path, cache: &Cache, i: usize) -> Database {
    Database::builder(directory.join(i.to_string())).cache(cache).open().expect("the disk works")
}

/// Writes to each database, so that its log, manifest and files are used, and then waits until the databases have
/// closed their files.
#[test]
fn an_idle_database_costs_no_thread_two_descriptors_and_16_kib() {
    let machine = Machine::real();
    let scratch = Scratch::new("idle");
    let directory = scratch.path();
    let cache = Cache::with_open_files(8 << 20, OPEN_FILES);
    // Opening and closing one database makes the process allocate everything that it allocates only once.
    drop(open(directory, &cache, DATABASES));
    let before = Process::live_bytes();
    let (descriptors_before, threads_before) = (descriptors(), threads());
    let databases: Vec<Database> = (0..DATABASES)
        .map(|i| {
            let db = open(directory, &cache, i);
            let table = db.table("t").expect("the disk works");
            table.insert("key", vec![7; 200_000]).expect("the disk works");
            db.flush().expect("the disk works");
            assert!(table.get("key").expect("the disk works").is_some());
            db
        })
        .collect();
    assert!(threads() < threads_before + 16, "{} threads", threads());
    // The databases close their files a second after the last use; otherwise this test hangs. Then only directories,
    // locks, the files that the cache keeps open, and what asynchronous reads need are open.
    while descriptors() > descriptors_before + 2 * DATABASES + OPEN_FILES + 8 {
        machine.clock.sleep(Duration::from_millis(10));
    }
    let each = Process::live_bytes().saturating_sub(before) as usize / DATABASES;
    assert!(each <= MOST_BYTES, "an idle database takes {each} bytes");
    for (i, db) in databases.iter().enumerate() {
        let found = db.table("t").and_then(|table| table.get("key")).expect("the disk works");
        assert!(found.is_some_and(|value| value.len() == 200_000), "database {i}");
    }
}
