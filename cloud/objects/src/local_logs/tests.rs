//! Tests which commits survive if logs are written first to a machine and later to the store.

use super::LocalLogs;
use crate::disk::Nearby;
use crate::journal::{CUTS, Cuts};
use crate::{KEPT, Outside, StoreDisk};
use os::sim::{SimClock, SimDisk, SimRandom, SimStore, SimStoreClient, SimThreads};
use os::sync::{Arc, Mutex};
use os::{Access, Clock, Disk, File, Job, Lock, Priority, Threads, Worker};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Stands in for a machine's threads, but polls jobs only when the test calls `run`.
#[derive(Debug)]
struct LaterThreads {
    threads: SimThreads,
    workers: Mutex<Vec<Arc<dyn Worker>>>,
}

/// A worker that only [`LaterThreads::run`] polls.
#[derive(Debug)]
struct LaterWorker(Arc<dyn Worker>);

impl Worker for LaterWorker {
    fn wake(&self) {
        self.0.wake();
    }
    fn wake_first(&self) {
        self.0.wake();
    }
    fn wake_after(&self, time: Duration) {
        self.0.wake_after(time);
    }
    fn drive(&self) {}
    fn stop(&self) {
        self.0.stop();
    }
    fn join(&self) {}
}

impl LaterThreads {
    fn run(&self) {
        let workers = self.workers.lock().clone();
        workers.iter().for_each(|worker| worker.drive());
    }
}

impl Threads for LaterThreads {
    fn sleeping_worker(&self, priority: Priority, job: Arc<dyn Job>) -> Box<dyn Worker> {
        let worker: Arc<dyn Worker> = self.threads.sleeping_worker(priority, job).into();
        self.workers.lock().push(worker.clone());
        Box::new(LaterWorker(worker))
    }
    fn start(&self) -> io::Result<()> {
        Ok(())
    }
    fn hand_over(&self, work: Box<dyn FnOnce() + Send>) {
        self.threads.hand_over(work);
    }
    fn are_real(&self) -> bool {
        false
    }
}

fn path(name: &str) -> PathBuf {
    Path::new("/db").join(name)
}

/// A process on a machine with a disk.
struct Process {
    client: Arc<SimStoreClient>,
    threads: Arc<LaterThreads>,
    disk: Arc<StoreDisk>,
    lock: Option<Box<dyn Lock>>,
    log: Option<Arc<dyn File>>,
}

fn process(store: &Arc<SimStore>, clock: &Arc<SimClock>, local: &Arc<SimDisk>, seed: u64) -> Process {
    let client = store.client();
    let threads = Arc::new(LaterThreads { threads: SimThreads::new(clock.clone()), workers: Mutex::default() });
    let outside = Outside {
        clock: clock.clone(),
        random: Arc::new(SimRandom::new(seed)),
        threads: threads.clone(),
        who: format!("machine {seed}"),
    };
    let logs = LocalLogs::new(local.clone(), Path::new("/logs"));
    // Depending on the seed, the logs that a process has left are brought in one sheet or in sheets of three
    // numbers.
    let cuts = Cuts { brought_bytes: [CUTS.brought_bytes, 24][seed as usize % 2], ..CUTS };
    let disk = StoreDisk::with_cuts(
        cuts,
        client.clone(),
        Path::new("/db"),
        outside,
        Nearby { logs: Some(logs), scratch: None },
    );
    Process { client, threads, disk, lock: None, log: None }
}

fn numbers(disk: &dyn Disk) -> io::Result<Vec<u64>> {
    let entries = disk.list(Path::new("/db"))?;
    let Some(newest) = entries.iter().map(|entry| &entry.name).filter(|name| name.ends_with(".log")).max() else {
        return Ok(Vec::new());
    };
    let bytes = disk.read_all(&path(newest))?;
    // If the machine lost power during a write, only a part of a number may exist.
    Ok(bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|chunk| u64::from_le_bytes(*chunk))
        .take_while(|number| *number != 0)
        .collect())
}

/// Takes over, and begins a log with the numbers of the last log, which are then durable in the store.
fn open(process: &mut Process) -> io::Result<Vec<u64>> {
    let lock = process.disk.lock(&path("LOCK"))?;
    let name = format!("{:08}.log", lock.holder().expect("a store has holders"));
    process.lock = Some(lock);
    let found = numbers(&*process.disk)?;
    let log = process.disk.open(&path(&name), Access::Create)?;
    found.iter().try_for_each(|number| log.append(&number.to_le_bytes()).map(drop))?;
    log.sync()?;
    // When the engine installs what it has recovered, it syncs a manifest. So does this test.
    let manifest = process.disk.open(&path(&format!("{name}.manifest")), Access::Create)?;
    manifest.append(b"x").and_then(|_| manifest.sync())?;
    process.log = Some(log);
    Ok(found)
}

fn check(seed: u64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let clock = Arc::new(SimClock::new());
    let store = SimStore::new(seed, clock.clone());
    let machines = [SimDisk::new(seed), SimDisk::new(seed + 1)];
    let (mut number, mut before): (u64, Option<usize>) = (0, None);
    // `written` has the numbers that were written since the last takeover, and `promised` those of them that were
    // synced.
    let (mut kept, mut written, mut promised): (Vec<u64>, Vec<u64>, Vec<u64>) = Default::default();
    for round in 0..8 {
        let machine = rng.random_range(0..2);
        for attempt in 0..rng.random_range(0..3) {
            // The process dies at one of its requests or right after its takeover, before it has promised any
            // number.
            let mut process = process(&store, &clock, &machines[machine], seed * 1000 + round * 10 + attempt);
            process.client.crash_after(rng.random_range(0..30));
            if open(&mut process).is_ok() {
                process.client.crash();
            }
            drop(process);
            clock.advance(KEPT);
        }
        let mut process = process(&store, &clock, &machines[machine], seed * 1000 + round * 10 + 9);
        let found = open(&mut process).unwrap_or_else(|error| panic!("seed {seed}, round {round}: {error}"));
        assert!(found.starts_with(&kept), "seed {seed}, round {round}: {found:?} after {kept:?}");
        let new = &found[kept.len()..];
        assert!(written.starts_with(new), "seed {seed}, round {round}: {new:?} is no prefix of {written:?}");
        if before == Some(machine) {
            assert!(new.starts_with(&promised), "seed {seed}, round {round}: {new:?}, {promised:?} were promised here");
        }
        (kept, before) = (found, Some(machine));
        (written, promised) = Default::default();
        let log = process.log.clone().expect("it was opened");
        for _ in 0..rng.random_range(0..30) {
            match rng.random_range(0..6) {
                0 => process.threads.run(),
                1 | 2 => {
                    log.sync().expect("nobody else writes");
                    promised.clone_from(&written);
                }
                _ => {
                    number += 1;
                    log.append(&number.to_le_bytes()).expect("nobody else writes");
                    written.push(number);
                }
            }
        }
        process.client.crash();
        match rng.random_range(0..3) {
            0 => machines[machine].crash(),
            1 => machines[machine].crash_keeping_nothing(),
            _ => machines[machine].crash_keeping_everything(),
        }
        drop(process);
        clock.advance(KEPT);
    }
}

#[test]
fn on_the_same_machine_nothing_is_lost_and_on_another_a_prefix_is_left() {
    (0..2000).for_each(check);
}

#[test]
fn a_writer_that_was_fenced_finds_out_with_the_first_write_after_a_put() {
    let clock = Arc::new(SimClock::new());
    let store = SimStore::new(1, clock.clone());
    let machines = [SimDisk::new(1), SimDisk::new(2)];
    let mut first = process(&store, &clock, &machines[0], 1);
    open(&mut first).expect("there is no trouble");
    let mut second = process(&store, &clock, &machines[1], 2);
    open(&mut second).expect("it takes over");
    let log = first.log.clone().expect("it was opened");
    log.append(&[1; 8]).and_then(|_| log.sync()).expect("it is on this machine, and that is all that is said");
    first.threads.run();
    let error = log.append(&[1; 8]).expect_err("it has met the sheet of the second");
    assert!(error.to_string().contains("machine 2"), "{error}");
}

#[test]
fn long_logs_are_brought_in_many_sheets_and_a_reader_sees_them_all_at_once() {
    let clock = Arc::new(SimClock::new());
    let store = SimStore::new(3, clock.clone());
    let machine = SimDisk::new(3);
    // The seed is odd, so the left logs are brought in sheets of three numbers.
    let mut first = process(&store, &clock, &machine, 1);
    open(&mut first).expect("there is no trouble");
    let log = first.log.clone().expect("it was opened");
    let promised: Vec<u64> = (1..=100).collect();
    promised.iter().for_each(|number| log.append(&number.to_le_bytes()).map(drop).expect("nobody else writes"));
    log.sync().expect("the disk works");
    first.client.crash();
    drop((log, first));
    let reader = process(&store, &clock, &machine, 2).disk;
    let mut seen = Vec::new();
    // Each attempt to bring the logs gets a little further than the one before, until the last one succeeds.
    for requests in (2..).step_by(3) {
        let second = process(&store, &clock, &machine, 1000 + 2 * requests + 1);
        second.client.crash_after(requests);
        let is_taken = second.disk.lock(&path("LOCK")).is_ok();
        second.client.crash();
        clock.advance(KEPT);
        seen.push(numbers(&*reader).expect("there is no trouble").len());
        assert!(
            reader.list(Path::new("/db")).expect("there is no trouble").len() <= 2,
            "what is not whole is not shown"
        );
        if is_taken {
            break;
        }
    }
    assert!(seen.len() > 10, "{seen:?}");
    assert!(seen.iter().all(|seen| *seen == 0 || *seen == 100) && seen.ends_with(&[100]), "{seen:?}");
    assert_eq!(numbers(&*reader).expect("there is no trouble"), promised);
}

#[test]
fn a_store_that_does_not_answer_is_asked_again_later_and_no_log_takes_more_meanwhile() {
    let clock = Arc::new(SimClock::new());
    let store = SimStore::new(1, clock.clone());
    let mut process = process(&store, &clock, &SimDisk::new(1), 1);
    open(&mut process).expect("there is no trouble");
    let log = process.log.clone().expect("it was opened");
    process.threads.run();
    // From now on, the store does not answer this process.
    clock.advance(KEPT);
    log.append(&[1; 8]).and_then(|_| log.sync()).expect("it is on this machine");
    process.client.crash();
    process.threads.run();
    let error = log.append(&[2; 8]).expect_err("what can be lost would grow").to_string();
    assert!(error.contains("the client has crashed") && error.contains("no log takes more"), "{error}");
    let attempt_made = || {
        let begin = clock.now();
        process.threads.run();
        // An attempt repeats its requests for half a minute, so the clock shows whether one was made.
        clock.now() > begin
    };
    assert!(!attempt_made(), "it waits first");
    log.sync().expect("it is on this machine");
    assert!(!attempt_made(), "a sync does not make it wait less");
    clock.advance(Duration::from_millis(100));
    assert!(attempt_made() && !attempt_made());
    clock.advance(Duration::from_millis(100));
    assert!(!attempt_made(), "it waits longer than before");
    process.client.crash_after(u64::MAX);
    clock.advance(Duration::from_millis(100));
    process.threads.run();
    log.append(&[2; 8]).and_then(|_| log.sync()).expect("the store answers again");
}
