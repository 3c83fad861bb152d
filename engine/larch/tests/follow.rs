//! Tests that a follower sees all commits up to some version and no later ones, whatever the writer does meanwhile,
//! and that a follower that has ended leaves none of its files.

use larch::{Database, Durability, Follow, Readable as _, Snapshot, Version};
use os::sim::SimDisk;
use os::{Disk, Machine};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

const HERE: &str = "db";

/// All rows of all tables.
type Rows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

/// The rows that readers at each version see.
type History = BTreeMap<Version, Rows>;

fn builder(machine: &Machine) -> larch::Builder {
    let levels = larch::options::LevelOptions {
        base_bytes: 32 << 10,
        file_bytes: 8 << 10,
        ..larch::options::LevelOptions::default()
    };
    let builder = Database::builder(HERE).machine(machine.clone()).levels(levels).manifest_slack_bytes(2 << 10);
    builder.write_buffer_bytes(16 << 10).cache_bytes(256 << 10).durability(Durability::Buffered)
}

fn follow(machine: &Machine, follow: Follow) -> Database {
    builder(machine).follow(follow).open().expect("the disk works")
}

fn rows_at(db: &Database, snapshot: &Snapshot) -> Rows {
    let mut all = Rows::new();
    for name in db.tables() {
        let table = db.table(&name).expect("it is there");
        for row in snapshot.range(&table, ..) {
            let (key, value) = match row {
                // The table was created after the snapshot was made.
                Err(larch::Error::TableDropped(_)) => break,
                row => row.expect("the disk works"),
            };
            all.insert((name.clone(), key.to_vec()), value.to_vec());
        }
    }
    all
}

/// The `rows` of tables that were not dropped at `version` or later.
fn known(dropped: &BTreeMap<String, Version>, rows: Rows, version: Version) -> Rows {
    let is_there = |name: &str| dropped.get(name).is_none_or(|dropped| *dropped < version);
    rows.into_iter().filter(|((name, _), _)| is_there(name)).collect()
}

/// A follower, its snapshots with the rows that they had, and the newest version that it has shown.
type Follower = (Database, Vec<(Snapshot, Rows)>, Version);

/// A writer with the rows of each of its versions, and its followers with their snapshots.
struct World {
    machine: Machine,
    disk: Arc<SimDisk>,
    random: Xoshiro256PlusPlus,
    writer: Option<Database>,
    rows: Rows,
    history: History,
    followers: Vec<Follower>,
    /// For each table, the version at which it was last dropped. A drop has no version of its own: a follower sees it
    /// when it takes the new files.
    dropped: BTreeMap<String, Version>,
}

impl World {
    fn new(seed: u64) -> Self {
        let (machine, disk) = Machine::simulated(seed);
        let writer = Some(builder(&machine).open().expect("the disk works"));
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let history = History::from([(Version(0), Rows::new())]);
        Self {
            machine,
            disk,
            random,
            writer,
            rows: Rows::new(),
            history,
            followers: Vec::new(),
            dropped: BTreeMap::new(),
        }
    }

    fn writer(&mut self) -> &Database {
        let machine = &self.machine;
        self.writer.get_or_insert_with(|| builder(machine).open().expect("the disk works"))
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key {:03}", self.random.random_range(0..300u32)).into_bytes()
    }

    fn table(&mut self) -> String {
        ["a", "b", "c"][self.random.random_range(0..3)].to_owned()
    }

    /// Lets the writer do something random.
    fn write(&mut self) {
        let (name, key, other) = (self.table(), self.key(), self.key());
        let value = vec![self.random.random::<u8>(); self.random.random_range(0..200)];
        let db = self.writer().clone();
        let table = db.table(&name).expect("the disk works");
        match self.random.random_range(0..100u32) {
            0..60 => {
                // Writes to two tables in one commit.
                let second = db.table("a").expect("the disk works");
                let mut batch = db.batch();
                batch.insert(&table, &key, &value);
                batch.insert(&second, &other, &value);
                batch.commit().expect("the disk works");
                self.rows.insert((name, key), value.clone());
                self.rows.insert(("a".to_owned(), other), value);
            }
            60..70 => {
                table.remove(&key).expect("the disk works");
                self.rows.remove(&(name, key));
            }
            70..75 => {
                let (low, high) = if key < other { (key, other) } else { (other, key) };
                table.remove_range(low.as_slice()..high.as_slice()).expect("the disk works");
                self.rows.retain(|(of, key), _| *of != name || *key < low || *key >= high);
            }
            75..83 => db.flush().expect("the disk works"),
            83..88 => db.compact().expect("the disk works"),
            88..93 => {
                let mut import = table.import().expect("the disk works");
                import.add(&key, &value).expect("the disk works");
                import.add(&other, &value).expect("the disk works");
                import.finish(|_| {}).expect("the disk works");
                self.rows.insert((name.clone(), key), value.clone());
                self.rows.insert((name, other), value);
            }
            93..96 => {
                db.drop_table(&name).expect("the disk works");
                self.rows.retain(|(of, _), _| *of != name);
                self.dropped.insert(name, db.version());
            }
            _ => {
                drop((table, db));
                self.writer = None;
            }
        }
        let (version, rows) = (self.writer().version(), self.rows.clone());
        self.history.insert(version, rows);
    }

    /// Lets a follower do something random.
    fn read(&mut self) {
        let choice = self.random.random_range(0..10u32);
        if self.followers.is_empty() || (choice == 0 && self.followers.len() < 3) {
            let what = if self.random.random_bool(0.7) { Follow::Commits } else { Follow::Files };
            self.writer();
            self.followers.push((follow(&self.machine, what), Vec::new(), Version(0)));
        }
        let at = self.random.random_range(0..self.followers.len());
        let (db, kept, last) = &mut self.followers[at];
        match choice {
            1 => _ = self.followers.swap_remove(at),
            2 => kept.clear(),
            3 => {
                // Tables that were dropped since the snapshot cannot be opened.
                for (snapshot, rows) in kept {
                    let version = snapshot.version();
                    let (seen, before) = (known(&self.dropped, rows_at(db, snapshot), version), rows.clone());
                    assert!(
                        seen == known(&self.dropped, before, version),
                        "a snapshot of version {} changed",
                        version.0
                    );
                }
            }
            _ => {
                if choice > 5 {
                    db.catch_up().expect("the disk works");
                }
                let snapshot = db.snapshot();
                let version = snapshot.version();
                assert!(version >= *last, "version {} after {}", version.0, last.0);
                *last = version;
                let rows = rows_at(db, &snapshot);
                let expected = known(&self.dropped, self.history[&version].clone(), version);
                let seen = known(&self.dropped, rows.clone(), version);
                assert!(seen == expected, "version {} of {}", version.0, self.history.len());
                if choice < 8 {
                    kept.push((snapshot, rows));
                }
            }
        }
    }

    /// The number of SSTs in the directory.
    fn ssts(&self) -> usize {
        let listed = self.disk.list(Path::new(HERE)).expect("the disk works");
        listed.iter().filter(|entry| entry.name.ends_with(".sst")).count()
    }
}

#[test]
fn a_follower_shows_a_prefix_of_what_its_writer_does() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..400 {
            if world.random.random_bool(0.6) { world.write() } else { world.read() }
        }
        for (db, kept, _) in &mut world.followers {
            kept.clear();
            let version = db.catch_up().expect("the disk works");
            let snapshot = db.snapshot();
            assert_eq!(snapshot.version(), version);
            let seen = known(&world.dropped, rows_at(db, &snapshot), version);
            assert!(seen == known(&world.dropped, world.history[&version].clone(), version), "seed {seed}");
        }
        let newest = world.writer().version();
        let of_commits = follow(&world.machine, Follow::Commits);
        assert_eq!(of_commits.version(), newest, "a follower of commits shows all of them");
        drop(of_commits);
        world.followers.clear();
        assert!(
            !world.disk.exists(Path::new("db/followers")).expect("the disk works"),
            "followers leave nothing behind"
        );
        let db = world.writer().clone();
        db.table("a").and_then(|table| table.insert("last", "row")).expect("the disk works");
        db.flush().expect("the disk works");
        let named: u64 =
            db.tables().iter().map(|name| db.table(name).and_then(|table| table.stats()).expect("a table").files).sum();
        assert_eq!(world.ssts() as u64, named, "seed {seed}: a file is held that nobody reads");
    }
}

#[test]
fn an_operation_of_the_disk_that_fails_does_a_follower_no_harm() {
    for what in [Follow::Commits, Follow::Files] {
        let mut failed = 0;
        for n in 0..150 {
            let mut world = World::new(n % 7);
            (0..60).for_each(|_| world.write());
            let (machine, disk) = (world.machine.clone(), world.disk.clone());
            disk.fail_operation(n, ErrorKind::PermissionDenied);
            let opened = builder(&machine).follow(what).open();
            disk.clear_faults();
            let follower = opened.unwrap_or_else(|_| {
                failed += 1;
                follow(&machine, what)
            });
            (0..60).for_each(|_| world.write());
            disk.fail_operation(n, ErrorKind::PermissionDenied);
            let outcome = follower.catch_up();
            disk.clear_faults();
            failed += u32::from(outcome.is_err());
            let compare = |world: &World| {
                let snapshot = follower.snapshot();
                let version = snapshot.version();
                let seen = known(&world.dropped, rows_at(&follower, &snapshot), version);
                let expected = known(&world.dropped, world.history[&version].clone(), version);
                assert!(seen == expected, "operation {n}");
                version
            };
            compare(&world);
            (0..20).for_each(|_| world.write());
            let newest = follower.catch_up().expect("the disk works");
            assert_eq!(compare(&world), newest);
            assert!(what == Follow::Files || newest == world.writer().version(), "operation {n}");
            drop(follower);
            assert!(!disk.exists(Path::new("db/followers")).expect("the disk works"), "operation {n}");
        }
        assert!(failed > 3, "{failed} errors were reported; a look is made once more before that");
    }
}

#[test]
fn a_writer_that_cannot_look_at_leases_removes_nothing_that_is_read() {
    for n in 0..200 {
        let mut world = World::new(n);
        (0..60).for_each(|_| world.write());
        let follower = follow(&world.machine, Follow::Commits);
        let snapshot = follower.snapshot();
        let version = snapshot.version();
        let rows = rows_at(&follower, &snapshot);
        let db = world.writer().clone();
        let table = db.table("a").expect("the disk works");
        world.disk.fail_operation(n, ErrorKind::PermissionDenied);
        for round in 0..3 {
            // Any of these calls may fail.
            table.insert("key", format!("round {round}")).ok();
            db.flush().ok();
            db.compact().ok();
        }
        world.disk.clear_faults();
        assert!(rows_at(&follower, &snapshot) == rows, "operation {n}: a snapshot of version {} changed", version.0);
        drop((snapshot, follower, table, db));
        // The next open removes the files that nobody needs any more.
        world.writer = None;
        let db = world.writer().clone();
        let named: u64 =
            db.tables().iter().map(|name| db.table(name).and_then(|table| table.stats()).expect("a table").files).sum();
        assert_eq!(world.ssts() as u64, named, "operation {n}: a file is held that nobody reads");
    }
}

#[test]
fn a_follower_sees_commits_and_files_without_being_asked() {
    let scratch = tempfile::tempdir().expect("a directory");
    let directory = scratch.path().join(HERE);
    let db = Database::open(&directory).expect("the disk works");
    let table = db.table("t").expect("a table");
    for round in 0..50u32 {
        let follower = Database::builder(&directory).follow(Follow::Commits).open().expect("the disk works");
        let files = follower.metrics().files;
        for key in 0..3u32 {
            table.insert(format!("{round} {key}"), "value").expect("the disk works");
            while follower.version() < db.version() {
                std::thread::yield_now();
            }
            let seen = follower.table("t").and_then(|table| table.get(format!("{round} {key}")));
            assert_eq!(seen.expect("the disk works").as_deref(), Some(&b"value"[..]));
        }
        db.flush().expect("the disk works");
        while follower.metrics().files == files && follower.metrics().memtable_bytes > 0 {
            std::thread::yield_now();
        }
    }
}
