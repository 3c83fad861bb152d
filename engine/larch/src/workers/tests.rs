//! Compactions by workers on a simulated machine: workers die at any operation, writers die, and disks fail. Whatever
//! fails, the database keeps its rows, and at the end it has only the files that it needs.

use super::worker::CompactionWorker;
use crate::base::options::{Durability, LevelOptions};
use crate::event::Event;
use crate::levels::offers::exchange::{Exchange, Exchanged};
use crate::{Builder, Database};
use os::Machine;
use os::sim::SimDisk;
use os::sync::{Arc, Mutex};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const DIRECTORY: &str = "db";

fn builder(machine: &Machine) -> Builder {
    let levels = LevelOptions { level0_files: 3, base_bytes: 32 << 10, file_bytes: 8 << 10, ..LevelOptions::default() };
    let builder = Database::builder(DIRECTORY).machine(machine.clone()).levels(levels).durability(Durability::Buffered);
    builder.write_buffer_bytes(8 << 10).cache_bytes(256 << 10).manifest_slack_bytes(2 << 10)
}

fn writer(machine: &Machine) -> Database {
    builder(machine).compaction_workers(true).open().expect("the disk works")
}

fn worker(machine: &Machine) -> CompactionWorker {
    builder(machine).compaction_worker().expect("the disk works")
}

fn found(machine: &Machine) -> Exchanged {
    Exchange { disk: &*machine.disk, database: Path::new(DIRECTORY) }.look().expect("the disk works")
}

/// Writes and removes some rows.
fn write(db: &Database, random: &mut Xoshiro256PlusPlus, rows: &mut Rows) {
    let table = db.table("t").expect("the disk works");
    for _ in 0..random.random_range(1..40) {
        let key = format!("key {:04}", random.random_range(0..1500)).into_bytes();
        if random.random_range(0..5) == 0 {
            table.remove(&key).expect("the disk works");
            rows.remove(&key);
        } else {
            let value = vec![random.random::<u8>(); random.random_range(0..300)];
            table.insert(&key, &value).expect("the disk works");
            rows.insert(key, value);
        }
    }
    if random.random_range(0..10) == 0 {
        let (start, end) = (random.random_range(0..1500), random.random_range(0..200));
        let (start, end) = (format!("key {start:04}").into_bytes(), format!("key {:04}", start + end).into_bytes());
        table.remove_range(start.as_slice()..end.as_slice()).expect("the disk works");
        rows.retain(|key, _| !(&start..&end).contains(&key));
    }
}

fn expect_rows(db: &Database, rows: &Rows) {
    let table = db.table("t").expect("the disk works");
    let all: Rows =
        table.iter().map(|row| row.expect("the disk works")).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    assert!(all == *rows, "the database has other rows than were written");
}

/// Lets some time pass, in which the writer's jobs look at the directory `workers`, and the workers beat and do jobs.
fn pass(machine: &Machine, db: &Database, workers: &mut [CompactionWorker]) {
    for _ in 0..4 {
        machine.clock.sleep(Duration::from_millis(600));
        for worker in &mut *workers {
            worker.work_once().expect("the disk works");
        }
        db.core().background.drive();
    }
}

/// The files that belong to no table.
fn unneeded(machine: &Machine, db: &Database) -> Vec<String> {
    let view = db.core().views.newest();
    let needed = |name: &str| {
        let mut files = view.files.tables.values().flat_map(|table| table.files());
        files.any(|(_, file)| file.path().ends_with(name))
    };
    let listed = machine.disk.list(Path::new(DIRECTORY)).expect("the disk works");
    listed.into_iter().map(|entry| entry.name).filter(|name| name.ends_with(".sst") && !needed(name)).collect()
}

#[test]
fn a_worker_compacts_and_the_writer_does_not() {
    let (machine, _) = Machine::simulated(1);
    let (mut random, mut rows) = (Xoshiro256PlusPlus::seed_from_u64(1), Rows::new());
    let db = writer(&machine);
    write(&db, &mut random, &mut rows);
    let mut workers = [worker(&machine)];
    // The writer sees the beats of the worker now.
    db.flush().expect("the disk works");
    db.core().background.wake_offers_after(Duration::ZERO);
    pass(&machine, &db, &mut workers);
    let own = db.metrics().compaction_bytes;
    for _ in 0..60 {
        write(&db, &mut random, &mut rows);
        pass(&machine, &db, &mut workers);
    }
    let metrics = db.metrics();
    assert!(metrics.worker_compactions > 5, "{} compactions by workers", metrics.worker_compactions);
    assert!(metrics.worker_compaction_bytes > 0);
    assert_eq!(metrics.compaction_bytes, own, "the writer has merged nothing");
    assert_eq!(metrics.failed_worker_compactions, 0);
    expect_rows(&db, &rows);
    let problems = db.check(|_| {}).expect("the disk works").problems;
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(unneeded(&machine, &db), Vec::<String>::new());
    drop(workers);
    assert!(found(&machine).beats.is_empty(), "a worker that ends leaves nothing");
}

#[test]
fn a_writer_without_workers_compacts_itself() {
    let (machine, _) = Machine::simulated(2);
    let (mut random, mut rows) = (Xoshiro256PlusPlus::seed_from_u64(2), Rows::new());
    let db = writer(&machine);
    for _ in 0..40 {
        write(&db, &mut random, &mut rows);
        pass(&machine, &db, &mut []);
    }
    assert!(db.metrics().compactions > 0);
    assert_eq!(db.metrics().worker_compactions, 0);
    expect_rows(&db, &rows);
}

#[test]
fn what_a_worker_cannot_do_is_reported_and_done_by_the_writer() {
    let (machine, disk) = Machine::simulated(3);
    let (mut random, mut rows) = (Xoshiro256PlusPlus::seed_from_u64(3), Rows::new());
    let events: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = events.clone();
    let builder = builder(&machine).compaction_workers(true).on_event(move |event| {
        if let Event::WorkerFailed { .. } = event {
            heard.lock().push(event.to_string());
        }
    });
    let db = builder.open().expect("the disk works");
    let mut workers = [worker(&machine)];
    while found(&machine).jobs.is_empty() {
        // The worker beats, but the writer has not offered a job yet.
        assert!(workers[0].work_once().expect("the disk works").is_none());
        machine.clock.sleep(Duration::from_millis(600));
        db.core().background.drive();
        write(&db, &mut random, &mut rows);
    }
    disk.fail_opens(".sst", ErrorKind::StorageFull);
    let done = workers[0].work_once().expect("the result has room").expect("there is a job");
    disk.clear_faults();
    assert!(done.error.expect("it failed").to_string().contains(".sst"));
    pass(&machine, &db, &mut []);
    let events = events.lock().clone();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].contains(".sst") && events[0].contains("the database does it itself"), "{}", events[0]);
    assert_eq!(db.metrics().failed_worker_compactions, 1);
    assert!(db.metrics().compactions > 0, "the writer has merged");
    expect_rows(&db, &rows);
    assert_eq!(unneeded(&machine, &db), Vec::<String>::new());
}

#[test]
fn when_writes_stop_nothing_waits_for_workers() {
    let (machine, _) = Machine::simulated(4);
    let (mut random, mut rows) = (Xoshiro256PlusPlus::seed_from_u64(4), Rows::new());
    let db = writer(&machine);
    let mut worker = worker(&machine);
    while found(&machine).jobs.is_empty() {
        assert!(worker.work_once().expect("the disk works").is_none());
        machine.clock.sleep(Duration::from_millis(600));
        db.core().background.drive();
        write(&db, &mut random, &mut rows);
    }
    let levels = &db.core().writes.levels;
    assert!(!levels.is_free(), "a worker is to change levels");
    db.core().stop_writes(crate::Error::ReadOnly);
    db.core().background.drive();
    assert!(levels.is_free());
    assert!(worker.work_once().expect("the disk works").is_none(), "the job is gone");
}

/// Lets a worker die in its next step, at a random operation.
fn die(disk: &SimDisk, mut worker: CompactionWorker, random: &mut Xoshiro256PlusPlus) {
    disk.fail_all_after(random.random_range(0..60), ErrorKind::Other);
    // From some operation on, every operation of the worker fails, as if the worker were dead.
    worker.work_once().ok();
    disk.fail_all_after(0, ErrorKind::Other);
    drop(worker);
    disk.clear_faults();
}

#[test]
fn whoever_dies_when_the_rows_are_there() {
    let (mut by_workers, mut withdrawn) = (0, 0);
    for seed in seeds() {
        println!("seed {seed}");
        let (mut random, mut rows) = (Xoshiro256PlusPlus::seed_from_u64(seed), Rows::new());
        let (machine, disk) = Machine::simulated(seed);
        let mut db = writer(&machine);
        let mut workers: Vec<CompactionWorker> = Vec::new();
        for _ in 0..120 {
            match random.random_range(0..22) {
                0..8 => write(&db, &mut random, &mut rows),
                8..12 => pass(&machine, &db, &mut workers),
                12 | 13 if workers.len() < 2 => workers.push(worker(&machine)),
                12..15 => {
                    if let Some(worker) = workers.pop() {
                        die(&disk, worker, &mut random);
                    }
                }
                15 => _ = workers.pop(),
                16 => machine.clock.sleep(Duration::from_secs(random.random_range(0..10))),
                17 => {
                    // Some operations of the writer fail. It tries its background work again, and then succeeds.
                    let at = random.random_range(0..20);
                    disk.fail_operations(at..at + 3, ErrorKind::Other);
                    machine.clock.sleep(Duration::from_millis(600));
                    db.core().background.drive();
                    disk.clear_faults();
                    if db.core().check_writable().is_err() {
                        withdrawn += db.core().writes.offers.totals().withdrawn;
                        drop(db);
                        db = writer(&machine);
                    }
                }
                18 => {
                    let totals = db.core().writes.offers.totals();
                    (by_workers, withdrawn) = (by_workers + totals.installed, withdrawn + totals.withdrawn);
                    // The writer's process is killed, so it removes no files.
                    disk.fail_all_after(0, ErrorKind::Other);
                    drop(db);
                    disk.clear_faults();
                    db = writer(&machine);
                }
                19 => db.compact().expect("the disk works"),
                _ => {
                    // Some operations of a worker fail, and the worker goes on.
                    let at = random.random_range(0..60);
                    disk.fail_operations(at..at + 2, ErrorKind::Other);
                    workers.iter_mut().for_each(|worker| _ = worker.work_once());
                    disk.clear_faults();
                }
            }
            if random.random_range(0..5) == 0 {
                expect_rows(&db, &rows);
            }
        }
        let totals = db.core().writes.offers.totals();
        (by_workers, withdrawn) = (by_workers + totals.installed, withdrawn + totals.withdrawn);
        // After some time, no offer is left, whether workers live or not.
        (0..30).for_each(|_| pass(&machine, &db, &mut workers));
        assert_eq!(db.core().writes.offers.out(), 0, "seed {seed}: no offer waits for ever");
        workers.clear();
        (0..10).for_each(|_| pass(&machine, &db, &mut []));
        expect_rows(&db, &rows);
        let problems = db.check(|_| {}).expect("the disk works").problems;
        assert!(problems.is_empty(), "seed {seed}: {problems:?}");
        drop(db);
        let db = writer(&machine);
        expect_rows(&db, &rows);
        // Dead workers are forgotten.
        (0..60).for_each(|_| pass(&machine, &db, &mut []));
        assert_eq!(unneeded(&machine, &db), Vec::<String>::new(), "seed {seed}");
        let found = found(&machine);
        assert!(found.beats.is_empty() && found.names().is_empty(), "seed {seed}: {found:?}");
    }
    assert!(
        by_workers > 100 && withdrawn > 20,
        "{by_workers} results were installed, {withdrawn} offers ended otherwise"
    );
}

/// The seeds of the runs: fifty, or as many as the environment variable `WORKER_SEEDS` says.
fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("WORKER_SEEDS").ok().and_then(|count| count.parse().ok());
    0..count.unwrap_or(50)
}
