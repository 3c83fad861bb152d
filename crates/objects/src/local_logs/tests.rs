//! What is left of logs that are on a machine and, later, in the store.

use crate::{KEPT, Outside, StoreDisk};
use os::sim::{SimClock, SimDisk, SimRandom, SimStore, SimStoreClient, SimThreads};
use os::sync::{Arc, Mutex};
use os::{Access, Disk, File, Job, Lock, Priority, Threads, Worker};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Threads that do what they are given when they are told to.
struct LaterThreads {
    threads: SimThreads,
    later: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl LaterThreads {
    fn run(&self) {
        let later = std::mem::take(&mut *self.later.lock());
        later.into_iter().for_each(|work| work());
    }
}

impl Threads for LaterThreads {
    fn sleeping_worker(&self, priority: Priority, job: Arc<dyn Job>) -> Box<dyn Worker> {
        self.threads.sleeping_worker(priority, job)
    }
    fn start(&self) -> io::Result<()> {
        Ok(())
    }
    fn hand_over(&self, work: Box<dyn FnOnce() + Send>) {
        self.later.lock().push(work);
    }
    fn are_real(&self) -> bool {
        false
    }
}

impl fmt::Debug for LaterThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaterThreads").finish_non_exhaustive()
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
    let threads = Arc::new(LaterThreads { threads: SimThreads::new(clock.clone()), later: Mutex::default() });
    let outside = Outside {
        clock: clock.clone(),
        random: Arc::new(SimRandom::new(seed)),
        threads: threads.clone(),
        who: format!("machine {seed}"),
    };
    let logs = (local.clone() as Arc<dyn Disk>, Path::new("/logs"));
    let disk = StoreDisk::with_local_logs(client.clone(), Path::new("/db"), outside, logs);
    Process { client, threads, disk, lock: None, log: None }
}

fn numbers(disk: &dyn Disk) -> io::Result<Vec<u64>> {
    let entries = disk.list(Path::new("/db"))?;
    let Some(newest) = entries.iter().map(|entry| &entry.name).filter(|name| name.ends_with(".log")).max() else {
        return Ok(Vec::new());
    };
    let bytes = disk.read_all(&path(newest))?;
    // What was being written when the machine lost power may be torn.
    Ok(bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|chunk| u64::from_le_bytes(*chunk))
        .take_while(|number| *number != 0)
        .collect())
}

/// Takes over, and begins a log with what was in the last one, which is durable in the store.
fn open(process: &mut Process) -> io::Result<Vec<u64>> {
    let lock = process.disk.lock(&path("LOCK"))?;
    let name = format!("{:08}.log", lock.holder().expect("a store has holders"));
    process.lock = Some(lock);
    let found = numbers(&*process.disk)?;
    let log = process.disk.open(&path(&name), Access::Create)?;
    found.iter().try_for_each(|number| log.append(&number.to_le_bytes()).map(drop))?;
    log.sync()?;
    // What the engine does when it installs what it has recovered: it syncs a manifest.
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
    // What was written and what was promised since the last one took over.
    let (mut kept, mut written, mut promised): (Vec<u64>, Vec<u64>, Vec<u64>) = Default::default();
    for round in 0..8 {
        let machine = rng.random_range(0..2);
        let mut process = process(&store, &clock, &machines[machine], seed * 100 + round);
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
