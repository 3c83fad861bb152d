//! Makes, removes and restores backups in a store, while processes die at any request, two processes work at the
//! same time, and the store loses, delays and repeats requests. Every acknowledged backup must be restorable, and no
//! object may be left that belongs to no backup.

use larch::Database;
use larch::backup::Backups;
use objects::{KEPT, drop_database};
use os::Machine;
use os::sim::{SimClock, SimStore, SimStoreClient, StoreTrouble};
use os::store::FolderStore;
use os::sync::Arc;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use testkit::stored::{number_of, on_store, outside, small};

const DIRECTORY: &str = "/db";
const KEPT_AT: &str = "/kept";

/// The rows of the database: a number for each key.
type Rows = BTreeMap<u64, u64>;

struct World {
    rng: Xoshiro256PlusPlus,
    store: Arc<SimStore>,
    clock: Arc<SimClock>,
    trouble: StoreTrouble,
    seed: u64,
    processes: u64,
    /// The machine of the database.
    home: Machine,
    is_home_in_store: bool,
    db: Database,
    rows: Rows,
    /// The rows of the database at each version at which a backup was begun.
    was: BTreeMap<u64, Rows>,
    /// The numbers of the backups that were acknowledged and have not been removed.
    acknowledged: BTreeSet<u64>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    made: u64,
    cut: u64,
    removed: u64,
    restored: u64,
    taken_over: u64,
    reused_files: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let clock = Arc::new(SimClock::new());
        let store = SimStore::new(seed, clock.clone());
        let trouble = match rng.random_range(0..2) {
            0 => StoreTrouble::drawn(rng.random(), 60, (KEPT / 4, Duration::from_millis(100))),
            _ => StoreTrouble::default(),
        };
        // The database lies either on this machine or in the same store as the backups.
        let is_home_in_store: bool = rng.random();
        let home = match !is_home_in_store {
            true => Machine::simulated(seed).0,
            false => on_store(Arc::new(FolderStore::new(store.client(), "db")), DIRECTORY, &clock, seed * 1000),
        };
        let db = open(&home, DIRECTORY).expect("the store works");
        store.set_trouble(trouble);
        let (rows, was, acknowledged) = (Rows::new(), BTreeMap::new(), BTreeSet::new());
        let (processes, counts) = (0, Counts::default());
        World {
            rng,
            store,
            clock,
            trouble,
            seed,
            processes,
            home,
            is_home_in_store,
            db,
            rows,
            was,
            acknowledged,
            counts,
        }
    }

    /// A new process that works with backups, and its client of the store.
    fn process(&mut self) -> (Backups, Arc<SimStoreClient>) {
        self.processes += 1;
        let client = self.store.client();
        let folder = Arc::new(FolderStore::new(client.clone(), "kept"));
        let machine = on_store(folder, KEPT_AT, &self.clock, self.seed * 1000 + self.processes);
        (Backups::at(KEPT_AT).on(&machine), client)
    }

    /// The same as [`World::process`], but the process may die.
    fn mortal(&mut self) -> Backups {
        let (backups, client) = self.process();
        if self.rng.random_range(0..2) == 0 {
            client.crash_after(self.rng.random_range(0..60));
        }
        backups
    }

    /// Calls `act` while the store works without faults, and so late that no answer of the store shows an old state.
    fn calmly<T>(&mut self, act: impl FnOnce(&mut World) -> T) -> T {
        self.store.set_trouble(StoreTrouble::default());
        self.clock.advance(KEPT / 4);
        let outcome = act(self);
        self.store.set_trouble(self.trouble);
        outcome
    }

    fn write(&mut self) {
        self.calmly(|world| {
            let table = world.db.table("t").expect("the store works");
            for _ in 0..world.rng.random_range(1..4) {
                let (key, value) = (world.rng.random_range(0..40), world.rng.random());
                table
                    .insert(u64::to_be_bytes(key), [value; 40].map(u64::to_be_bytes).concat())
                    .expect("the store works");
                world.rows.insert(key, value);
            }
            match world.rng.random_range(0..4) {
                0 => world.db.compact().expect("the store works"),
                1 => world.db.flush().expect("the store works"),
                _ => {}
            }
        });
    }

    /// The database to back up: the one that is open for writing, or a read-only instance.
    fn source(&mut self) -> Database {
        self.was.insert(self.db.version().0, self.rows.clone());
        match self.rng.random() {
            true => self.db.clone(),
            false => self.calmly(|world| {
                let seen = Database::builder(DIRECTORY).machine(world.home.clone()).read_only(true).open();
                seen.unwrap_or_else(|error| panic!("seed {}: {error}", world.seed))
            }),
        }
    }

    fn back_up(&mut self) {
        let source = self.source();
        let backups = self.mortal();
        // The database goes on to write and to remove files during the backup, but only for some writes: if it
        // rewrote all files at each step of the copy, the backup would begin again and again.
        let may_write = self.rng.random_range(0..3) == 0 && !self.is_home_in_store;
        let mut writes = if may_write { self.rng.random_range(1..20) } else { 0 };
        let (db, mut key) = (self.db.clone(), 1000);
        // In the middle of the backup, another process may begin one, and so take the backups over.
        let mut other = (self.rng.random_range(0..4) == 0).then(|| self.mortal());
        let (mut second, mut steps) = (None, self.rng.random_range(0..4));
        let (rows, was) = (&mut self.rows, &mut self.was);
        let made = source.backup_to(&backups, |_| {
            if steps == 0
                && let Some(other) = other.take()
            {
                second = Some(source.backup_to(&other, |_| {}));
            }
            if writes > 0 {
                writes -= 1;
                key += 1;
                let table = db.table("t").expect("the disk works");
                table.insert(u64::to_be_bytes(key), [key; 40].map(u64::to_be_bytes).concat()).expect("the disk works");
                rows.insert(key, key);
                db.flush().and_then(|()| db.compact()).expect("the disk works");
                was.insert(db.version().0, rows.clone());
            }
            steps -= i32::from(steps > 0);
        });
        // If the second process finished its backup, the first one must have been fenced.
        let is_over = matches!(second, Some(Ok(_)));
        assert!(!is_over || made.is_err(), "seed {}: the first of two writers was not fenced", self.seed);
        self.counts.taken_over += u64::from(is_over);
        for made in second.into_iter().chain([made]) {
            let Ok(report) = made else {
                self.counts.cut += 1;
                continue;
            };
            assert!(self.was.contains_key(&report.version.0), "seed {}: {report:?}", self.seed);
            assert!(self.acknowledged.insert(report.number), "seed {}: {} is new", self.seed, report.number);
            self.counts.made += 1;
            self.counts.reused_files += report.files - report.new_files;
        }
    }

    fn keep(&mut self) {
        let (backups, count) = (self.mortal(), self.rng.random_range(1..4));
        let removed = backups.keep(count);
        self.counts.removed += removed.map_or(0, |removed| removed.len() as u64);
        let there = self.list();
        let oldest = there.iter().rev().nth(count as usize - 1).copied();
        self.acknowledged.retain(|number| oldest.is_none_or(|oldest| *number >= oldest));
    }

    fn list(&mut self) -> Vec<u64> {
        self.calmly(|world| {
            let listed = world.process().0.list().unwrap_or_else(|error| panic!("seed {}: {error}", world.seed));
            assert!(listed.iter().all(|info| info.damage.is_none()), "seed {}: {listed:?}", world.seed);
            listed.iter().map(|info| info.number).collect()
        })
    }

    /// Checks that every backup can be restored and has the rows that the database had when it was made.
    fn look(&mut self) {
        let (there, seed) = (self.list(), self.seed);
        assert!(self.acknowledged.iter().all(|number| there.contains(number)), "seed {seed}: {:?}, not {there:?}", {
            &self.acknowledged
        });
        self.calmly(|world| {
            let (backups, _) = world.process();
            let report = backups.verify(|_| {}).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert!(report.problems.is_empty(), "seed {seed}: {:?}", report.problems);
            for number in there {
                let machine = match world.rng.random() {
                    true => Machine::simulated(seed).0,
                    false => {
                        world.processes += 1;
                        let folder = FolderStore::new(world.store.client(), &format!("restored/{}", world.processes));
                        on_store(Arc::new(folder), DIRECTORY, &world.clock, seed * 1000 + world.processes)
                    }
                };
                let restored = backups.restore_on(&machine, Some(number), DIRECTORY, |_| {});
                let info = restored.unwrap_or_else(|error| panic!("seed {seed}, backup {number}: {error}"));
                let db = open(&machine, DIRECTORY).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                assert_eq!(Some(&rows(&db)), world.was.get(&info.version.0), "seed {seed}, backup {number}");
                world.counts.restored += 1;
            }
        });
    }

    fn step(&mut self) {
        match self.rng.random_range(0..20) {
            0..6 => self.write(),
            6..13 => self.back_up(),
            13..15 => self.keep(),
            15 => self.look(),
            16 => self.store.deliver_late(),
            17 => self.clock.advance(Duration::from_secs(7200)),
            _ => self.clock.advance(Duration::from_secs(self.rng.random_range(0..700))),
        }
    }

    /// Checks at the end that with one backup left, the store has no objects but those of this backup.
    fn end(mut self) -> Counts {
        self.look();
        self.trouble = StoreTrouble::default();
        self.store.set_trouble(self.trouble);
        self.store.deliver_late();
        let seed = self.seed;
        for _ in 0..3 {
            self.clock.advance(Duration::from_secs(7200));
            let (backups, _) = self.process();
            let made = self.db.backup_to(&backups, |_| {});
            let report = made.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            self.acknowledged = BTreeSet::from([report.number]);
            self.was.insert(report.version.0, self.rows.clone());
            backups.keep(1).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        self.look();
        let (backups, _) = self.process();
        let report = backups.verify(|_| {}).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!((report.backups, report.unfinished.len()), (1, 0), "seed {seed}");
        let ssts = self.store.names().iter().filter(|name| name.starts_with("kept/sst/")).count() as u64;
        // One of the files, the manifest, is in the journal.
        assert_eq!(ssts, report.files - 1, "seed {seed}: {:?}", self.store.names());
        self.counts
    }
}

fn open(machine: &Machine, directory: &str) -> larch::Result<Database> {
    small(machine, directory).open()
}

fn rows(db: &Database) -> Rows {
    let Some(table) = db.existing_table("t").expect("the store works") else { return Rows::new() };
    let rows = table.range(..).map(|row| row.expect("the store works"));
    let number = |bytes: &[u8]| u64::from_be_bytes(*bytes.first_chunk().expect("eight bytes"));
    rows.map(|(key, value)| (number(&key), number(&value))).collect()
}

/// `BACKUP_SEED=17` runs one seed again, and `BACKUP_SEEDS=5000` runs the first 5,000 seeds.
#[test]
fn a_backup_in_a_store_is_whole_or_not_there_and_leaves_nothing_behind() {
    let many = number_of("BACKUP_SEEDS").unwrap_or(100);
    let seeds = number_of("BACKUP_SEED").map_or(0..many, |seed| seed..seed + 1);
    let (count, mut all) = (seeds.end - seeds.start, Counts::default());
    for seed in seeds {
        let mut world = World::new(seed);
        for _ in 0..world.rng.random_range(10..50) {
            world.step();
        }
        let Counts { made, cut, removed, restored, taken_over, reused_files } = world.end();
        all.made += made;
        all.cut += cut;
        all.removed += removed;
        all.restored += restored;
        all.taken_over += taken_over;
        all.reused_files += reused_files;
    }
    println!("{count} seeds: {all:?}");
    if count > 20 {
        assert!(all.made > count && all.cut > count && all.removed > count / 4, "{all:?}");
        assert!(all.restored > count && all.taken_over > count / 10 && all.reused_files > count, "{all:?}");
    }
}

/// A killed restore leaves objects behind, which no later call removes by itself. They must never be taken for a
/// database.
#[test]
fn a_restore_to_a_store_that_was_killed_is_repeated_after_the_place_was_dropped() {
    for requests in 0.. {
        let (clock, seed) = (Arc::new(SimClock::new()), 1);
        let store = SimStore::new(seed, clock.clone());
        let here = Machine::simulated(seed).0;
        let db = open(&here, DIRECTORY).expect("the disk works");
        for key in 0..20u64 {
            db.table("t")
                .and_then(|t| t.insert(key.to_be_bytes(), [key; 40].map(u64::to_be_bytes).concat()))
                .expect("it works");
            db.flush().expect("the disk works");
        }
        let backups = Backups::at(KEPT_AT).on(&here);
        db.backup_to(&backups, |_| {}).expect("the disk works");
        let client = store.client();
        client.crash_after(requests);
        let machine = on_store(Arc::new(FolderStore::new(client, "far")), DIRECTORY, &clock, 2);
        let killed = backups.restore_on(&machine, None, DIRECTORY, |_| {});
        drop(machine);
        let at = |seed| on_store(Arc::new(FolderStore::new(store.client(), "far")), DIRECTORY, &clock, seed);
        if killed.is_err() {
            match backups.restore_on(&at(3), None, DIRECTORY, |_| {}) {
                // The killed restore had put nothing.
                Ok(_) => {}
                // Its last step may have succeeded.
                Err(larch::Error::UnfinishedCopy(_) | larch::Error::CopyTarget(_)) => {
                    let whole: Arc<dyn os::Store> = Arc::new(FolderStore::new(store.client(), ""));
                    drop_database(&whole, &outside(&clock, 4), "far").expect("the store works");
                    backups.restore_on(&at(5), None, DIRECTORY, |_| {}).expect("nothing is there");
                }
                Err(error) => panic!("{requests} requests: {error}"),
            }
        }
        clock.advance(Duration::from_secs(7200));
        let restored = open(&at(6), DIRECTORY).expect("it is a database");
        assert_eq!(rows(&restored), rows(&db), "{requests} requests");
        assert!(restored.check(|_| {}).expect("the store works").problems.is_empty());
        if killed.is_ok() {
            break;
        }
    }
}

/// A backup and a restore look at what is at their target before they change anything there.
#[test]
fn a_database_in_a_store_is_not_taken_over_by_a_backup_or_a_restore_to_its_place() {
    let (clock, seed) = (Arc::new(SimClock::new()), 1);
    let store = SimStore::new(seed, clock.clone());
    let at = |prefix: &str, seed| on_store(Arc::new(FolderStore::new(store.client(), prefix)), DIRECTORY, &clock, seed);
    let (other, here) = (at("other", 1), Machine::simulated(seed).0);
    let writer = open(&other, DIRECTORY).expect("the store works");
    writer.table("t").expect("the store works").insert("a", "b").expect("the store works");
    let db = open(&here, DIRECTORY).expect("the disk works");
    let before = store.names();
    let error = db.backup_to(&Backups::at(DIRECTORY).on(&at("other", 2)), |_| {}).expect_err("it is a database");
    assert!(matches!(error, larch::Error::NotBackups { .. }), "{error}");
    let backups = Backups::at(KEPT_AT).on(&here);
    db.backup_to(&backups, |_| {}).expect("the disk works");
    let error = backups.restore_on(&at("other", 3), None, DIRECTORY, |_| {}).expect_err("it is a database");
    assert!(matches!(error, larch::Error::CopyTarget(_)), "{error}");
    assert_eq!(store.names(), before);
    writer.table("t").expect("the store works").insert("a", "c").expect("nobody has taken over");
}
