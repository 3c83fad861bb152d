//! Calls the whole public API from many threads at once, on threads and executors of the real machine and a disk
//! that fails now and then.
//!
//! The threads interleave in an unknown order, so each check must hold for every order. Rows that are written in
//! pairs must agree. Amounts that are moved must keep their sum. A snapshot must always show what it showed at
//! first. At the end, the database must hold everything that its writers were told is committed. A run consists of
//! rounds. Each opens the database with other options and works for some seconds. Then the faults of the disk stop,
//! and every thread must end. After each round, memory, descriptors and files must be back to their numbers before
//! it.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "threads, executors and time of the real machine are what is stressed"
)]

mod disk;
mod keeper;
mod readers;
mod tables;
mod tasks;
mod writers;

use disk::TroubledDisk;
use larch::options::LevelOptions;
use larch::{Database, Durability, Error, Result, Table};
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use os::{Machine, process};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use writers::Writer;

const WRITERS: usize = 3;

/// A thread that has not ended this long after it was asked to counts as hanging. The slowest step is far shorter,
/// even under a sanitizer.
const PATIENCE: Duration = Duration::from_secs(180);

/// How many more bytes the process may have allocated after a round than after the first one. Executors, thread
/// locals and the standard library keep some memory.
const KEPT_BYTES: u64 = 2 << 20;

/// What to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Decides the choices of all threads, but not how they interleave.
    pub seed: u64,
    /// How long to go on.
    pub time: Duration,
    /// How long a round is.
    pub round: Duration,
    /// The directory for the database. It must not exist before the run, and it is removed at the end.
    pub directory: PathBuf,
    /// Returns the bytes that the process has allocated, if the process counts them.
    pub allocated_bytes: Option<fn() -> u64>,
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Rounds that were run.
    pub rounds: u64,
    /// How often each kind of work was done.
    pub done: BTreeMap<&'static str, u64>,
    /// How often callers met an injected failure, for each kind of failure.
    pub met: BTreeMap<String, u64>,
    /// The most anonymous memory that the process had during a round.
    pub most_memory_bytes: u64,
    /// The allocated bytes after each round, if the process counts them.
    pub allocated_bytes: Vec<u64>,
}

/// What the threads of a round share.
struct Round {
    db: Database,
    left: Table,
    right: Table,
    accounts: Table,
    disk: Arc<TroubledDisk>,
    machine: Machine,
    directory: PathBuf,
    is_over: AtomicBool,
    counts: Counts,
}

/// How often each kind of work was done and each failure met.
#[derive(Debug, Default)]
struct Counts {
    done: std::sync::Mutex<BTreeMap<&'static str, u64>>,
    met: std::sync::Mutex<BTreeMap<String, u64>>,
    most_memory_bytes: AtomicU64,
}

impl Counts {
    fn done(&self, what: &'static str) {
        *self.done.lock().expect("no thread panics with the lock").entry(what).or_default() += 1;
    }

    fn met(&self, what: String) {
        *self.met.lock().expect("no thread panics with the lock").entry(what).or_default() += 1;
    }
}

impl Round {
    /// Checks the outcome of a call that may meet an injected failure of the disk. Returns `None` if it met one. Any
    /// other error fails the test, even that writes are stopped: syncs never fail here, so the database can try
    /// everything again.
    fn expect<T>(&self, what: &'static str, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.counts.done(what);
                Some(value)
            }
            Err(error) if is_trouble(&error) => {
                self.counts.met(format!("{what}: injected"));
                None
            }
            Err(error) => panic!("{what}: {error}"),
        }
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Acquire)
    }
}

/// Whether the error comes from an injected failure.
fn is_trouble(error: &Error) -> bool {
    !error.is_corruption() && !matches!(error, Error::WritesStopped(_)) && error.to_string().contains(disk::INJECTED)
}

/// Runs rounds until the time is over.
///
/// # Panics
///
/// Panics if a promise is broken. If a thread hangs, ends the whole process, because nothing could be dropped any
/// more.
pub fn stress(settings: &Settings) -> Summary {
    println!("stress: seed {}, {:?} in rounds of {:?}", settings.seed, settings.time, settings.round);
    let mut summary = Summary::default();
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    let begin = Instant::now();
    // The first round starts what the process keeps: the ring for reads, and the reactor of an executor. The least
    // count of descriptors so far is taken, because a read may still be under way after a round.
    let mut descriptors = usize::MAX;
    while summary.rounds == 0 || begin.elapsed() < settings.time {
        let number = summary.rounds;
        writers = round(settings, number, writers, &mut summary);
        summary.rounds += 1;
        let open = descriptors_at_rest(descriptors);
        assert!(open.len() <= descriptors, "descriptors after round {number}, {descriptors} before: {open:#?}");
        descriptors = open.len();
        if let Some(allocated_bytes) = settings.allocated_bytes {
            let allocated = allocated_bytes();
            summary.allocated_bytes.push(allocated);
            let first = summary.allocated_bytes[0];
            assert!(
                allocated <= first + KEPT_BYTES,
                "{allocated} bytes are allocated after round {number}, {first} were after the first"
            );
        }
    }
    std::fs::remove_dir_all(&settings.directory).expect("the directory is ours");
    summary
}

/// The open descriptors of the process, by the kind of file.
fn open_descriptors() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()).collect()
}

/// Waits for a while until no more than `expected` descriptors are open, and returns the open ones. The read of a
/// dropped future may end only after the database has been closed.
fn descriptors_at_rest(expected: usize) -> Vec<PathBuf> {
    let begin = Instant::now();
    loop {
        let open = open_descriptors();
        if open.len() <= expected || begin.elapsed() > PATIENCE {
            return open;
        }
        thread::yield_now();
    }
}

/// Runs one round. Returns the writers, which know what the database must hold, for the next round.
fn round(settings: &Settings, number: u64, writers: Vec<Writer>, summary: &mut Summary) -> Vec<Writer> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(settings.seed.wrapping_mul(1_000_003).wrapping_add(number));
    let disk = Arc::new(TroubledDisk::new(rng.random()));
    let machine = Machine { disk: disk.clone(), ..Machine::real() };
    let (db, options) = open(&machine, &settings.directory, &mut rng);
    println!("round {number}: {options}");
    let table = |name: &str| db.table_with(name, tables::options(name)).expect("the disk works at first");
    let (left, right, accounts) = (table("left"), table("right"), table("accounts"));
    let round = Arc::new(Round {
        left,
        right,
        accounts,
        db,
        disk,
        machine,
        directory: settings.directory.clone(),
        is_over: AtomicBool::new(false),
        counts: Counts::default(),
    });
    let mut writers: Vec<Writer> = writers.into_iter().map(|writer| writer.verified(&round)).collect();
    readers::check_all(&round);
    let writers = work(settings, &round, &mut rng, std::mem::take(&mut writers));
    let report = round.db.check(|_| {}).expect("the disk works again");
    assert!(report.problems.is_empty(), "{}", report.problems[0]);
    readers::check_all(&round);
    let round = Arc::into_inner(round).expect("every thread has ended");
    for (what, count) in round.counts.done.into_inner().expect("no thread panicked with the lock") {
        *summary.done.entry(what).or_default() += count;
    }
    for (what, count) in round.counts.met.into_inner().expect("no thread panicked with the lock") {
        *summary.met.entry(what).or_default() += count;
    }
    let most = round.counts.most_memory_bytes.load(Ordering::Relaxed);
    summary.most_memory_bytes = summary.most_memory_bytes.max(most);
    writers
}

fn open(machine: &Machine, directory: &Path, rng: &mut Xoshiro256PlusPlus) -> (Database, String) {
    let cache_bytes = rng.random_range(1..=8) << 20;
    let write_buffer_bytes = 1 << rng.random_range(18..=21);
    let durability = if rng.random_ratio(1, 4) { Durability::Synced } else { Durability::Buffered };
    let open_files = rng.random_range(4..=64);
    let levels = LevelOptions {
        level0_files: rng.random_range(2..=4),
        base_bytes: 1 << rng.random_range(17..=20),
        growth: rng.random_range(2..=6),
        file_bytes: 1 << rng.random_range(15..=18),
        ..LevelOptions::default()
    };
    let builder = Database::builder(directory)
        .machine(machine.clone())
        .cache_bytes(cache_bytes)
        .write_buffer_bytes(write_buffer_bytes)
        .durability(durability)
        .open_files(open_files)
        .warm_from_last(rng.random())
        .prefer_flat_index(rng.random())
        .levels(levels);
    let options = format!(
        "cache {} MiB, write buffer {} KiB, {durability:?}, {open_files} open files, {levels:?}",
        cache_bytes >> 20,
        write_buffer_bytes >> 10
    );
    (builder.open().expect("the disk works at first"), options)
}

/// A thread that has ended: its name, and its writer or its panic.
type Ended = (String, thread::Result<Option<Writer>>);

/// The body of a thread that is not a writer.
type Body = fn(&Round, Xoshiro256PlusPlus);

/// The threads of a round beside its writers.
const BODIES: [(&str, Body); 8] = [
    ("reader 0", readers::read),
    ("reader 1", readers::read),
    ("read-only", readers::read_only),
    ("smol", tasks::on_one_thread),
    ("tokio", tasks::on_many_threads),
    ("parked", tasks::parked),
    ("keeper", keeper::keep),
    ("tables", tables::come_and_go),
];

/// Lets all threads work for the time of a round. Then makes the disk work without faults, and waits for every
/// thread.
fn work(settings: &Settings, round: &Arc<Round>, rng: &mut Xoshiro256PlusPlus, writers: Vec<Writer>) -> Vec<Writer> {
    let (send, ended) = mpsc::channel::<Ended>();
    let running = writers.len() + BODIES.len();
    let mut seeded = || Xoshiro256PlusPlus::seed_from_u64(rng.random());
    for writer in writers {
        let (name, rng) = (format!("writer {}", writer.number()), seeded());
        start(&name, round, &send, move |round| Some(writer.write(round, rng)));
    }
    for (name, body) in BODIES {
        let rng = seeded();
        start(name, round, &send, move |round| {
            body(round, rng);
            None
        });
    }
    trouble(settings, round, rng);
    round.is_over.store(true, Ordering::Release);
    let mut writers = Vec::new();
    let mut panicked: Vec<String> = Vec::new();
    for i in 0..running {
        match ended.recv_timeout(PATIENCE) {
            Ok((_, Ok(writer))) => writers.extend(writer),
            Ok((name, Err(_))) => panicked.push(name),
            Err(_) => {
                eprintln!("after {PATIENCE:?} {} of {running} threads have not ended", running - i);
                eprintln!("{:#?}", round.db.metrics());
                std::process::exit(3);
            }
        }
    }
    assert!(panicked.is_empty(), "panicked, see above: {panicked:?}; seed {}", settings.seed);
    writers.sort_by_key(Writer::number);
    writers
}

/// Starts a thread, which reports how it ended.
fn start(
    name: &str,
    round: &Arc<Round>,
    ended: &mpsc::Sender<Ended>,
    body: impl FnOnce(&Round) -> Option<Writer> + Send + 'static,
) {
    let (round, ended, named) = (round.clone(), ended.clone(), name.to_owned());
    let run = move || {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&round)));
        if outcome.is_err() {
            // The other threads need not work any longer.
            round.is_over.store(true, Ordering::Release);
        }
        drop(round);
        ended.send((named, outcome)).expect("the round waits for its threads");
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).expect("the system has room for a thread");
}

/// Makes the disk fail now and then until the round is over, and watches the memory.
fn trouble(settings: &Settings, round: &Round, rng: &mut Xoshiro256PlusPlus) {
    let end = Instant::now() + settings.round;
    while Instant::now() < end && round.goes_on() {
        let anonymous = process::memory().anonymous_bytes.unwrap_or(0);
        round.counts.most_memory_bytes.fetch_max(anonymous, Ordering::Relaxed);
        match rng.random_range(0..10) {
            0 => round.disk.fail_reads(rng.random_range(2..50)),
            1 => round.disk.fail_writes(rng.random_range(2..20)),
            2 => round.disk.fail_opens(rng.random_range(2..20)),
            3 => round.db.set_cache_bytes(rng.random_range(1..=8) << 20),
            _ => round.disk.works(),
        }
        round.machine.clock.sleep(Duration::from_millis(rng.random_range(5..100)));
    }
    round.disk.works();
}
