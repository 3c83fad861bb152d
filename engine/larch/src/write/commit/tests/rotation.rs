//! Tests what crashes, kills and damage leave behind where one log ends and the next begins.

use super::*;
use crate::base::record::tests::seeds;
use crate::options::Release;
use crate::write::{flush, log_job};
use os::{Access, Job};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::path::PathBuf;

/// The first eight bytes of each value, in key order. The keys are the numbers from 0 on.
fn values(db: &Database) -> Vec<u64> {
    let table = db.table("t").expect("it is there");
    let number = |bytes: &[u8]| u64::from_be_bytes(*bytes.first_chunk().expect("8 bytes"));
    let rows = table.iter().enumerate().map(|(i, row)| {
        let (key, value) = row.expect("the disk works");
        assert_eq!(number(&key), i as u64);
        number(&value)
    });
    rows.collect()
}

/// Commits row `number` of table "t", without the background work that usually follows a commit on this machine.
fn put(db: &Database, number: u64, value: &[u8]) -> Result<Version> {
    let table = db.core().views.newest().files.tables.values().next().expect("it is there").info.clone();
    let mut ops = BatchOps::new();
    ops.put(table.id.0, &number.to_be_bytes(), value);
    match append(db.core(), (&ops).into(), (&[table], Indexed::Not), None, &mut None, Patience::OfThread) {
        Err(NotCommitted::Failed(error)) => Err(error),
        appended => Ok(appended.expect("it is no transaction")),
    }
}

/// Commits row `number` with `number` as its value.
fn put_number(db: &Database, number: u64) -> Version {
    put(db, number, &number.to_be_bytes()).expect("the disk works")
}

/// Begins a new log, without the background work that usually follows.
fn begin_log(db: &Database) -> Result<()> {
    rotate(db.core(), db.core().writes.writer.lock().as_mut().expect("it is open for writing"))
}

/// Flushes the oldest memtables if they are frozen, and does no other background work.
fn flush_oldest(db: &Database) -> Result<()> {
    let memory = db.core().views.newest().memory.clone();
    if memory.len() > 1 { flush::flush(db.core(), &memory[memory.len() - 1..]) } else { Ok(()) }
}

/// A database on a disk that fails in every possible way, and the rows that it must have after a crash.
struct Storm {
    random: StdRng,
    disk: Arc<SimDisk>,
    /// The values of the rows that the database has accepted. If a put fails, the row is put again with another
    /// value.
    accepted: Vec<u64>,
    /// How many of the accepted rows are durable.
    durable: usize,
    tried: u64,
    counts: StormCounts,
}

/// Counts each kind of trouble, because a storm in which nothing fails would test nothing.
#[derive(Debug, Default)]
struct StormCounts {
    rotations: u64,
    refused: u64,
    lost: u64,
    failed_opens: u64,
}

impl Storm {
    fn open(&self, compat: Release) -> crate::Result<Database> {
        let machine = Machine::simulated_on(self.disk.clone(), 1);
        Database::builder("db").machine(machine).compat(compat).open()
    }

    /// Checks that the rows of the database are a prefix of the accepted rows, and that all durable rows are among
    /// them.
    fn check(&mut self, db: &Database, seed: u64) {
        let rows = values(db);
        assert!(rows.len() >= self.durable, "seed {seed}: {} rows of {} durable ones", rows.len(), self.durable);
        assert!(self.accepted.starts_with(&rows), "seed {seed}: {rows:?} are not the first of {:?}", self.accepted);
        self.counts.lost += (self.accepted.len() - rows.len()) as u64;
        self.durable = rows.len();
        self.accepted = rows;
    }

    /// Takes a random step: puts a row, does some background work, or makes the disk fail. Background work runs
    /// only when it is chosen here.
    fn step(&mut self, db: &Database) {
        let core = db.core();
        match self.random.random_range(0..20) {
            0 | 1 => self.counts.rotations += u64::from(begin_log(db).is_ok()),
            2 | 3 if sync(core, Durability::Synced).is_ok() => self.durable = self.accepted.len(),
            4 => drop(flush_oldest(db)),
            5 | 6 => drop(log_job::LogJob(Arc::downgrade(core)).poll()),
            7 => drop(log_job::create(core, 0).map(|next| core.writes.ahead.put_next(next))),
            8 => drop(
                core.env.log_disk.rest().map_err(|error| core.stop_writes(Error::io("sync", Path::new("db"), error))),
            ),
            9 if self.random.random_bool(0.3) => {
                self.disk.fail_operation(self.random.random_range(1..5), ErrorKind::Other)
            }
            10 if self.random.random_bool(0.3) => self.disk.fail_sync(self.random.random_range(1..4), ErrorKind::Other),
            11 if self.random.random_bool(0.3) => {
                self.disk.set_capacity(self.disk.used_bytes() + self.random.random_range(0..300));
            }
            12 => self.disk.set_capacity(u64::MAX / 2),
            _ => self.put(db),
        }
    }

    fn put(&mut self, db: &Database) {
        self.tried += 1;
        let mut value = self.tried.to_be_bytes().to_vec();
        value.resize(8 + self.random.random_range(0..600), 1);
        match put(db, self.accepted.len() as u64, &value) {
            Ok(version) => {
                self.accepted.push(self.tried);
                if self.random.random_bool(0.1) && db.core().make_durable(version).is_ok() {
                    self.durable = self.accepted.len();
                }
            }
            Err(_) => self.counts.refused += 1,
        }
    }

    /// Ends the process: the machine loses power, or the process is killed.
    fn end(&mut self) {
        match self.random.random_range(0..4) {
            0 => self.disk.crash_keeping_nothing(),
            1 => self.disk.crash_keeping_everything(),
            _ => self.disk.crash(),
        }
        self.disk.clear_faults();
        self.disk.set_capacity(u64::MAX / 2);
    }

    /// Opens the database on a disk that fails during the open, and then ends the process again.
    fn fail_to_open(&mut self, compat: Release) {
        match self.random.random_range(0..4) {
            0 => self.disk.crash_at_sync(self.random.random_range(1..8)),
            1 => self.disk.fail_all_after(self.random.random_range(0..60), ErrorKind::Other),
            2 => {
                self.disk.lose_writes_of_failed_syncs();
                self.disk.fail_sync(self.random.random_range(1..8), ErrorKind::Other);
            }
            _ => self.disk.set_capacity(self.disk.used_bytes() + self.random.random_range(0..2000)),
        }
        self.counts.failed_opens += u64::from(self.open(compat).is_err());
        self.end();
    }
}

/// Wherever logs end, whichever of them were synced, and whatever failed before, a crash causes no damage. The
/// database then has a prefix of the accepted commits, with every durable commit and none that was refused.
#[test]
fn a_storm_leaves_a_prefix_with_everything_durable_wherever_logs_end() {
    let mut totals = StormCounts::default();
    for seed in seeds(300) {
        let (random, disk) = (StdRng::seed_from_u64(seed), SimDisk::new(seed));
        let mut storm =
            Storm { random, disk, accepted: Vec::new(), durable: 0, tried: 0, counts: StormCounts::default() };
        let older_opens = if storm.random.random() { 0 } else { storm.random.random_range(0..4) };
        for round in 0..6 {
            let compat = if round < older_opens { Release::V0_1 } else { Release::V0_2 };
            let db = storm.open(compat).unwrap_or_else(|error| panic!("seed {seed}, open {round}: {error}"));
            db.table("t").expect("the disk works");
            storm.check(&db, seed);
            match storm.random.random_range(0..5) {
                0 => storm.disk.crash_at_sync(storm.random.random_range(1..14)),
                1 => storm.disk.lose_writes_of_failed_syncs(),
                _ => {}
            }
            for _ in 0..storm.random.random_range(1..60) {
                storm.step(&db);
                if db.core().check_writable().is_err() {
                    break;
                }
            }
            let is_closed = storm.random.random_bool(0.2);
            let left = if is_closed { None } else { Some(db) };
            storm.end();
            drop(left);
            while storm.random.random_bool(0.4) {
                storm.fail_to_open(compat);
            }
        }
        let StormCounts { rotations, refused, lost, failed_opens } = storm.counts;
        totals.rotations += rotations;
        totals.refused += refused;
        totals.lost += lost;
        totals.failed_opens += failed_opens;
    }
    let StormCounts { rotations, refused, lost, failed_opens } = totals;
    let is_one = std::env::var("SEED").is_ok();
    assert!(is_one || [rotations, refused, lost, failed_opens].iter().all(|count| *count > 300), "{totals:?}");
}

/// Drops the values of a killed process. Its writes reach the system, but the drop itself writes nothing.
fn killed<T>(disk: &SimDisk, process: T) {
    disk.fail_all_after(0, ErrorKind::Other);
    drop(process);
    disk.clear_faults();
}

/// The paths of two logs of a database, older first. The newer one has commits, and began before the older one was
/// durable.
fn two_logs(disk: &Arc<SimDisk>, is_synced: bool) -> [PathBuf; 2] {
    let machine = Machine::simulated_on(disk.clone(), 1);
    let db = Database::builder("db").machine(machine).open().expect("it opens");
    let log = |db: &Database| log_path(Path::new("db"), db.core().views.newest().memory[0].log);
    db.table("t").expect("the disk works");
    (0..5).for_each(|number| _ = put_number(&db, number));
    let older = log(&db);
    begin_log(&db).expect("the disk works");
    put_number(&db, 5);
    if is_synced {
        sync(db.core(), Durability::Synced).expect("the disk works");
        put_number(&db, 6);
    }
    let newest = log(&db);
    killed(disk, db);
    [older, newest]
}

/// Removes the last bytes of a log.
fn cut(disk: &SimDisk, log: &Path) {
    let file = disk.open(log, Access::Write).expect("it is there");
    file.set_len(file.len().expect("the disk works") - 8).expect("the disk works");
}

/// Opens a database that has lost durable bytes, which must fail. Returns the text of the error.
fn open_error(disk: &Arc<SimDisk>) -> String {
    let machine = Machine::simulated_on(disk.clone(), 1);
    Database::builder("db").machine(machine).open().map(drop).expect_err("durable bytes are gone").to_string()
}

#[test]
fn durable_commits_that_are_lost_before_another_log_are_reported() {
    let disk = SimDisk::new(1);
    let [older, newest] = two_logs(&disk, true);
    cut(&disk, &older);
    let error = open_error(&disk);
    assert!(error.contains(&older.display().to_string()) && error.contains("the log ends too early"), "{error}");
    assert!(error.contains(&newest.display().to_string()), "{error}");
}

#[test]
fn a_log_says_that_the_one_before_it_is_durable_though_no_commit_follows() {
    let disk = SimDisk::new(1);
    let machine = Machine::simulated_on(disk.clone(), 1);
    let db = Database::builder("db").machine(machine).open().expect("it opens");
    db.table("t").expect("the disk works");
    let older = db.core().views.newest().memory[0].log;
    (0..5).for_each(|number| _ = put_number(&db, number));
    begin_log(&db).expect("the disk works");
    let version = put_number(&db, 5);
    let job = log_job::LogJob(Arc::downgrade(db.core()));
    job.poll();
    assert!(db.core().is_durable(version));
    killed(&disk, db);
    let path = log_path(Path::new("db"), older);
    cut(&disk, &path);
    let error = open_error(&disk);
    assert!(error.contains("the log ends too early"), "{error}");
}

#[test]
fn commits_after_lost_ones_are_dropped_for_good_at_whatever_step_a_recovery_ends() {
    for operations in 0.. {
        let disk = SimDisk::new(1);
        let [older, newest] = two_logs(&disk, false);
        cut(&disk, &older);
        let open = || Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).open();
        disk.fail_all_after(operations, ErrorKind::Other);
        let outcome = open().map(drop);
        disk.clear_faults();
        let is_done = outcome.is_ok() && !disk.exists(&newest).expect("the disk works");
        for _ in 0..2 {
            let db = open().expect("nothing durable is gone");
            assert_eq!(values(&db), [0, 1, 2, 3], "{operations} operations");
        }
        if is_done {
            assert!(operations > 10, "a recovery has more than {operations} steps");
            break;
        }
    }
}

#[test]
fn a_repair_takes_commits_after_lost_ones_and_says_so_unless_a_recovery_has_dropped_them() {
    let disk = SimDisk::new(1);
    let machine = Machine::simulated_on(disk.clone(), 1);
    let repair = |new: &str| {
        let report =
            crate::repair::repair_on(&machine, Path::new("db"), Path::new(new), |_| {}).expect("the disk works");
        assert!(report.lost.is_empty(), "{report:?}");
        (report.commits, report.guesses)
    };
    let [older, newest] = two_logs(&disk, false);
    cut(&disk, &older);
    let (commits, guesses) = repair("first");
    assert_eq!(commits, 5);
    assert!(guesses[0].contains("ends too early, so commits may be missing"), "{guesses:?}");

    // Now a recovery has dropped a log whose file still exists, and no manifest says that it was dropped.
    let dropped = disk.read_all(&newest).expect("it is there");
    let db = Database::builder("db").machine(machine.clone()).open().expect("nothing durable is gone");
    db.table("t").expect("it is there").insert("after", "it").expect("the disk works");
    drop(db);
    let file = disk.open(&newest, Access::Create).expect("the recovery has removed it");
    file.write_at(&dropped, 0).expect("the disk works");
    for entry in disk.list(Path::new("db")).expect("the disk works") {
        if entry.name.starts_with("MANIFEST") {
            disk.remove(&Path::new("db").join(entry.name)).expect("the disk works");
        }
    }
    let (commits, guesses) = repair("second");
    assert_eq!(commits, 1, "{guesses:?}");
}

#[test]
fn a_log_that_two_others_follow_was_durable() {
    let disk = SimDisk::new(1);
    let machine = Machine::simulated_on(disk.clone(), 1);
    let db = Database::builder("db").machine(machine).open().expect("it opens");
    db.table("t").expect("the disk works");
    let oldest = db.core().views.newest().memory[0].log;
    for number in 0..3 {
        put_number(&db, number);
        begin_log(&db).expect("the disk works");
    }
    killed(&disk, db);
    let path = log_path(Path::new("db"), oldest);
    cut(&disk, &path);
    let error = open_error(&disk);
    assert!(error.contains(&path.display().to_string()) && error.contains("the log after it says"), "{error}");
}

#[test]
fn a_killed_process_loses_nothing_across_two_logs() {
    for is_synced in [false, true] {
        let disk = SimDisk::new(1);
        two_logs(&disk, is_synced);
        for _ in 0..2 {
            let machine = Machine::simulated_on(disk.clone(), 1);
            let db = Database::builder("db").machine(machine).open().expect("it is whole");
            assert_eq!(values(&db).len(), if is_synced { 7 } else { 6 });
        }
    }
}
