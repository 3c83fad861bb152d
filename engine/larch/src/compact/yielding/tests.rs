//! Tests when a compaction yields, on a machine that says what the test wants about waits for a processor.

#![allow(clippy::disallowed_methods, reason = "a thread of the test waits for the lock")]

use super::{LONGEST_SLEEP, Yielding};
use crate::options::LevelOptions;
use crate::{Database, Durability, Table};
use os::sync::Arc;
use os::sync::atomic::{AtomicU64, Ordering};
use os::{Job, Machine, Priority, Threads, Worker};
use std::io;
use std::time::Duration;

const MILLI: Duration = Duration::from_millis(1);

/// The number of files in level 0 at which writes are slowed down.
const SLOW_FILES: usize = 4;

/// Threads of which each has waited for a processor as long as the test says.
#[derive(Debug)]
struct CrowdedThreads {
    threads: Arc<dyn Threads>,
    waited_nanos: AtomicU64,
}

impl Threads for CrowdedThreads {
    fn sleeping_worker(&self, priority: Priority, job: Arc<dyn Job>) -> Box<dyn Worker> {
        self.threads.sleeping_worker(priority, job)
    }

    fn start(&self) -> io::Result<()> {
        self.threads.start()
    }

    fn hand_over(&self, work: Box<dyn FnOnce() + Send>) {
        self.threads.hand_over(work);
    }

    fn are_real(&self) -> bool {
        self.threads.are_real()
    }

    fn waited_for_processor(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.waited_nanos.load(Ordering::Relaxed)))
    }
}

/// A database on a machine with [`CrowdedThreads`], and what a compaction of its only table does.
struct Crowded {
    machine: Machine,
    threads: Arc<CrowdedThreads>,
    db: Database,
    table: Table,
}

impl Crowded {
    fn new() -> Self {
        let (machine, _) = Machine::simulated(4);
        let threads = Arc::new(CrowdedThreads { threads: machine.threads.clone(), waited_nanos: AtomicU64::new(0) });
        let machine = Machine { threads: threads.clone(), ..machine };
        let levels = LevelOptions { level0_files: 100, slow_files: SLOW_FILES, ..LevelOptions::default() };
        let builder = Database::builder("db").machine(machine.clone()).levels(levels);
        let db = builder.durability(Durability::Buffered).open().expect("a new database");
        let table = db.table("t").expect("a table");
        Self { machine, threads, db, table }
    }

    fn commit(&self) {
        self.table.insert("k", "v").expect("a row");
    }

    /// Works for `work`, waits for a processor for `waited`, and returns how long the compaction then sleeps.
    fn offer(&self, yielding: &mut Yielding<'_>, work: Duration, waited: Duration) -> Duration {
        self.machine.clock.sleep(work + waited);
        self.threads.waited_nanos.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
        let before = self.machine.clock.now();
        yielding.offer();
        self.machine.clock.now() - before
    }
}

#[test]
fn a_compaction_yields_after_waits_for_a_processor_while_commits_come() {
    let crowded = Crowded::new();
    let table = crowded.table.id();
    let mut yielding = Yielding::new(crowded.table.core(), table);
    crowded.commit();
    assert_eq!(crowded.offer(&mut yielding, MILLI, Duration::ZERO), Duration::ZERO, "there was a processor");
    crowded.commit();
    assert_eq!(crowded.offer(&mut yielding, 9 * MILLI, MILLI / 4), 5 * MILLI, "20 times the wait");
    crowded.commit();
    assert_eq!(crowded.offer(&mut yielding, MILLI / 2, MILLI / 2), 4 * MILLI, "4 times the work");
    crowded.commit();
    assert_eq!(crowded.offer(&mut yielding, 100 * MILLI, 100 * MILLI), LONGEST_SLEEP);
    assert_eq!(crowded.offer(&mut yielding, MILLI, MILLI), Duration::ZERO, "no commit came");
    crowded.commit();
    assert_eq!(crowded.offer(&mut yielding, MILLI, MILLI / 1000), Duration::ZERO, "too short for a sleep");
    assert_eq!(crowded.db.metrics().yielded_micros, 19_000);
}

#[test]
fn a_compaction_does_not_yield_while_a_change_of_all_levels_waits_for_it() {
    let crowded = Crowded::new();
    let core = crowded.table.core();
    let mut yielding = Yielding::new(core, crowded.table.id());
    let levels = core.writes.levels.try_share().expect("no other compaction runs");
    std::thread::scope(|scope| {
        scope.spawn(|| drop(core.writes.levels.own()));
        while !core.writes.levels.is_wanted() {
            std::thread::yield_now();
        }
        crowded.commit();
        assert_eq!(crowded.offer(&mut yielding, MILLI, MILLI), Duration::ZERO);
        drop(levels);
    });
    crowded.commit();
    assert_eq!(crowded.offer(&mut yielding, MILLI, MILLI), 8 * MILLI, "it got the lock");
}

#[test]
fn a_compaction_does_not_yield_once_level_0_is_nearly_full() {
    let crowded = Crowded::new();
    let table = crowded.table.id();
    for files in 0..2 * SLOW_FILES {
        let mut yielding = Yielding::new(crowded.table.core(), table);
        crowded.commit();
        let slept = crowded.offer(&mut yielding, MILLI, MILLI);
        assert_eq!(!slept.is_zero(), files <= SLOW_FILES + SLOW_FILES / 2, "{files} files");
        crowded.db.flush().expect("the disk works");
    }
}
