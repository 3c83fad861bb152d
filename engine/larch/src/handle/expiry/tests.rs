//! Tests that a row that has expired is gone from every read, whatever the clock of the machine does, and that its
//! space is given back.

mod option;

use super::*;
use crate::index::{IndexKeys, IndexOptions};
use crate::past::{ChangeKind, Retention};
use crate::{Builder, Database, Durability, MergeOp, Readable, TableOptions, Version};
use os::sim::{SimClock, SimDisk};
use os::sync::atomic::{AtomicI64, Ordering};
use os::sync::{Arc, Mutex};
use os::{Clock, Disk, Machine};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

/// A clock whose wall time jumps in both directions. Its other time does not.
#[derive(Debug)]
struct Jumping {
    steady: Arc<SimClock>,
    /// How far the wall clock is ahead of the other, in milliseconds.
    ahead: AtomicI64,
    /// How many looks at the wall clock are left until it jumps by a second. Negative if it does not.
    looks: AtomicI64,
}

const START_MILLIS: i64 = 1_000_000;

impl Clock for Jumping {
    fn now(&self) -> Duration {
        self.steady.now()
    }

    fn wall(&self) -> Duration {
        if self.looks.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.ahead.fetch_add(1000, Ordering::Relaxed);
        }
        let steady = self.steady.now().as_millis() as i64;
        Duration::from_millis((START_MILLIS + steady + self.ahead.load(Ordering::Relaxed)).max(0) as u64)
    }

    fn sleep(&self, time: Duration) {
        self.steady.sleep(time);
    }
}

struct World {
    disk: Arc<SimDisk>,
    clock: Arc<Jumping>,
    opened: u64,
}

impl World {
    fn new() -> Self {
        let (_, disk) = Machine::simulated(1);
        let [ahead, looks] = [0, -1].map(AtomicI64::new);
        let clock = Jumping { steady: Arc::new(SimClock::new()), ahead, looks };
        Self { disk, clock: Arc::new(clock), opened: 0 }
    }

    fn builder(&mut self) -> Builder {
        self.opened += 1;
        let machine = Machine { clock: self.clock.clone(), ..Machine::simulated_on(self.disk.clone(), self.opened) };
        Database::builder("db").machine(machine).extractors(|_| Ok(Box::new(WholeValue))).expiry_times(option::times)
    }

    fn open(&mut self) -> (Database, Table) {
        let db = self.builder().open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        (db, table)
    }

    /// Calls `work` while the wall clock jumps by a second at the look with number `n`. Returns whether there was such
    /// a look.
    fn jump_at_look(&self, n: i64, work: impl FnOnce()) -> bool {
        self.clock.looks.store(n, Ordering::Relaxed);
        work();
        let has_jumped = self.clock.looks.swap(-1, Ordering::Relaxed) < 0;
        if !has_jumped {
            self.jump(1000);
        }
        has_jumped
    }

    /// Moves the wall clock.
    fn jump(&self, millis: i64) {
        self.clock.ahead.fetch_add(millis, Ordering::Relaxed);
    }
}

/// The whole value is the index key.
struct WholeValue;

impl IndexKeys for WholeValue {
    fn groups(&self) -> &[usize] {
        &[0]
    }

    fn index_keys<'r>(
        &self,
        _: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        part(0).map(emit);
        Ok(())
    }
}

fn in_millis(db: &Database, millis: u64) -> Duration {
    db.clock() + Duration::from_millis(millis)
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn all(rows: crate::Range) -> Rows {
    rows.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).expect("the disk works")).collect()
}

/// What every form of a read says about the table, which must be the same.
fn read(rows: &impl Readable, table: &Table, keys: &[Vec<u8>]) -> Rows {
    let reader = rows.reader(table).expect("it is a table of the database");
    let forward = all(reader.range(..));
    let mut backward: Rows =
        reader.range(..).rev().map(|row| row.map(|(k, v)| (k.to_vec(), v.to_vec())).expect("the disk works")).collect();
    backward.reverse();
    assert_eq!(forward, backward);
    let found: BTreeMap<_, _> = forward.iter().cloned().collect();
    let many = reader.multi_get(keys).expect("the disk works");
    for (key, value) in keys.iter().zip(many) {
        let expected = found.get(key).map(Vec::as_slice);
        assert_eq!(value.as_deref(), expected, "{key:?}");
        assert_eq!(reader.get(key).expect("the disk works").as_deref(), expected, "{key:?}");
        assert_eq!(reader.contains_key(key).expect("the disk works"), expected.is_some(), "{key:?}");
        assert!(expected.is_some() || reader.until(key).expect("the disk works").is_none());
    }
    let mut cursor = reader.cursor();
    let mut there = cursor.first().expect("the disk works");
    for (key, _) in &forward {
        assert!(there && cursor.key() == Some(key.as_slice()));
        there = cursor.next().expect("the disk works");
    }
    assert!(!there);
    forward
}

#[test]
fn an_expired_row_is_gone_from_memory_and_from_files_at_every_version() {
    let mut world = World::new();
    for in_file in [false, true] {
        let (db, table) = world.open();
        table.insert("older", "1").expect("it is taken");
        let before = db.snapshot();
        let until = in_millis(&db, 1000);
        table.insert_until("older", "2", until).expect("it is taken");
        table.insert_until("timed", [7; 5000], until).expect("it is taken");
        table.insert("stays", "3").expect("it is taken");
        let snapshot = db.snapshot();
        if in_file {
            db.flush().expect("the disk works");
        }
        let keys = ["older", "stays", "timed"].map(|key| key.as_bytes().to_vec());
        let tx = db.begin().expect("it begins");
        assert_eq!(read(&db, &table, &keys).len(), 3);
        assert_eq!(
            (table.until("timed").expect("the disk works"), table.until("stays").expect("the disk works")),
            (Some(until), None)
        );
        assert_eq!(table.count_exact(..).expect("the disk works"), 3);
        world.jump(999);
        assert_eq!(read(&tx, &table, &keys).len(), 3);
        world.jump(1);
        let left = [(b"stays".to_vec(), b"3".to_vec())];
        for _ in 0..2 {
            assert_eq!(read(&db, &table, &keys), left);
            assert_eq!(read(&snapshot, &table, &keys), left, "in file {in_file}");
            assert_eq!(read(&tx, &table, &keys), left);
            assert_eq!(table.count_exact(..).expect("the disk works"), 1);
            assert_eq!(table.nth(.., 0).expect("the disk works").map(|row| row.0.to_vec()), Some(b"stays".to_vec()));
            assert_eq!(before.get(&table, "older").expect("the disk works").as_deref(), Some(&b"1"[..]));
            let estimate = table.count(..).expect("the disk works");
            assert!(estimate.low <= 1 && estimate.high >= 1, "{estimate:?}");
            // The clock of the machine goes back, and nothing comes back.
            world.jump(-500_000);
        }
        drop((tx, snapshot, before));
        db.compact().expect("the disk works");
        assert_eq!(read(&db, &table, &keys), left);
        table.clear().expect("it is taken");
        world.jump(1_000_000);
    }
}

#[test]
fn a_transaction_sees_its_own_rows_until_they_expire() {
    let mut world = World::new();
    let (db, table) = world.open();
    table.insert("a", "old").expect("it is taken");
    let mut tx = db.begin().expect("it begins");
    tx.insert_until(&table, "a", "new", in_millis(&db, 10)).expect("it is taken");
    assert_eq!(tx.get(&table, "a").expect("the disk works").as_deref(), Some(&b"new"[..]));
    world.jump(10);
    assert!(tx.get(&table, "a").expect("the disk works").is_none(), "the older row does not come back");
    assert!(tx.commit().expect("the disk works").is_ok());
    assert!(table.get("a").expect("the disk works").is_none());
    assert!(table.insert_new("a", "newer").expect("the disk works"), "an expired row does not exist");
    assert_eq!(table.get("a").expect("the disk works").as_deref(), Some(&b"newer"[..]));
}

#[test]
fn the_log_announces_rows_with_times_from_the_first_one_on() {
    let mut world = World::new();
    let features = |db: &Database| db.core().env.log_features() & crate::base::record::TIMES;
    {
        let (db, table) = world.open();
        table.insert("a", "1").expect("it is taken");
        assert_eq!(features(&db), 0);
        table.insert_until("b", "2", in_millis(&db, 1_000_000)).expect("it is taken");
        assert_ne!(features(&db), 0);
    }
    world.disk.crash();
    let (db, table) = world.open();
    assert_ne!(features(&db), 0, "a log announced them");
    assert!(table.until("b").expect("the disk works").is_some());
    assert_eq!(table.get("a").expect("the disk works").as_deref(), Some(&b"1"[..]));
    table.remove("b").expect("it is taken");
    db.compact().expect("the disk works");
    drop((db, table));
    let old = world.builder().compat(crate::options::Release::V0_1).open();
    assert!(old.is_err_and(|error| error.to_string().contains("expire")), "the manifest has an edit that 0.1 refuses");
    let mut world = World::new();
    let old = world.builder().compat(crate::options::Release::V0_1).open().expect("it is empty");
    let refused = old.table("t").and_then(|table| table.insert_for("a", "b", Duration::ZERO));
    assert!(refused.is_err_and(|error| error.to_string().contains("does not know rows that expire")));
}

#[test]
fn a_feed_and_a_history_say_until_when_a_row_is_there() {
    for in_file in [false, true] {
        let mut world = World::new();
        let (db, table) = world.open();
        db.retain(Retention::Everything).expect("the disk works");
        let until = in_millis(&db, 1000);
        table.insert_until("a", "1", until).expect("it is taken");
        table.insert_until("a", "2", until * 2).expect("it is taken");
        if in_file {
            db.flush().expect("the disk works");
            table.insert("b", "").expect("it is taken");
            db.flush().expect("the disk works");
        }
        let feed = || {
            let mut changes = db.changes(Version(0)).expect("they are kept");
            let mut times = Vec::new();
            while let Some(change) = changes.next_change().expect("the disk works") {
                match change.kind() {
                    ChangeKind::Put { key: b"a", until, .. } => times.push(until),
                    ChangeKind::Erase { .. } => times.push(None),
                    _ => {}
                }
            }
            times
        };
        let history = || -> Vec<_> {
            table
                .history("a")
                .expect("the disk works")
                .into_iter()
                .map(|past| (past.until, past.parts.is_some()))
                .collect()
        };
        assert_eq!(feed(), [Some(until), Some(until * 2)]);
        assert_eq!(history(), [(Some(until * 2), true), (Some(until), true)]);
        world.jump(1000);
        assert_eq!(feed(), [None, Some(until * 2)], "in file {in_file}");
        assert_eq!(history(), [(Some(until * 2), true)]);
    }
}

#[test]
fn a_value_in_parts_expires_in_all_its_groups() {
    let mut world = World::new();
    let (db, _) = world.open();
    let groups = ["name", "photo"].map(str::to_owned).to_vec();
    let table = db.table_with("parts", TableOptions { groups, ..TableOptions::default() }).expect("the disk works");
    let until = in_millis(&db, 1000);
    for i in 0..100_u32 {
        let parts = [&i.to_be_bytes()[..], &vec![i as u8; 3000]];
        match i % 2 {
            0 => table.insert_parts_until(i.to_be_bytes(), &parts, until).expect("it is taken"),
            _ => table.insert_parts(i.to_be_bytes(), &parts).expect("it is taken"),
        }
    }
    for _ in 0..2 {
        db.flush().expect("the disk works");
        let photos = table.select(["photo"]).expect("it is a group");
        assert_eq!(photos.iter().count(), 100);
        assert_eq!(table.count_exact(..).expect("the disk works"), 100);
        db.compact().expect("the disk works");
    }
    world.jump(1000);
    let photos = table.select(["photo"]).expect("it is a group");
    assert_eq!(photos.iter().count(), 50);
    db.compact().expect("the disk works");
    assert_eq!(photos.iter().rev().count(), 50);
    db.check(|_| {}).expect("nothing is damaged");
}

type Work = Box<dyn FnOnce() + Send>;

/// A clock that does some work at one look at the wall time.
struct Meddling {
    clock: Arc<Jumping>,
    /// The work, and the number of the look at which it is done, counted from now on.
    work: Mutex<Option<(u32, Work)>>,
}

impl fmt::Debug for Meddling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meddling").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Clock for Meddling {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn wall(&self) -> Duration {
        let mut work = self.work.lock();
        let is_now = work.as_mut().is_some_and(|(looks, _)| {
            *looks -= 1;
            *looks == 0
        });
        let due = if is_now { work.take() } else { None };
        drop(work);
        if let Some((_, work)) = due {
            work();
        }
        self.clock.wall()
    }

    fn sleep(&self, time: Duration) {
        self.clock.sleep(time);
    }
}

#[test]
fn a_row_that_is_written_while_an_expired_one_is_read_is_not_given_without_its_time() {
    // The first look comes before the read has a version of its own, and the second one after it.
    for (look, sees_new) in [(1, true), (2, false)] {
        let world = World::new();
        let clock = Arc::new(Meddling { clock: world.clock.clone(), work: Mutex::new(None) });
        let machine = Machine { clock: clock.clone(), ..Machine::simulated_on(world.disk.clone(), 1) };
        let db = Database::builder("db").machine(machine).open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        let (early, late) = (in_millis(&db, 10), in_millis(&db, 1_000_000));
        table.insert_until("a", "old", early).expect("it is taken");
        world.jump(10);
        let writer = table.clone();
        let work: Work = Box::new(move || writer.insert_until("a", "new", late).expect("it is taken"));
        *clock.work.lock() = Some((look, work));
        let found = table.get_until("a").expect("the disk works").map(|(value, until)| (value.to_vec(), until));
        assert!(clock.work.lock().is_none(), "otherwise the test says nothing");
        assert_eq!(found, sees_new.then(|| (b"new".to_vec(), Some(late))), "look {look}");
    }
}

#[test]
fn a_value_in_parts_is_not_given_as_a_whole_with_its_time() {
    let mut world = World::new();
    let (db, _) = world.open();
    let groups = ["name", "photo"].map(str::to_owned).to_vec();
    let table = db.table_with("parts", TableOptions { groups, ..TableOptions::default() }).expect("the disk works");
    let until = in_millis(&db, 1000);
    table.insert_parts_until("a", &["ada", "photo of ada"], until).expect("it is taken");
    for is_flushed in [false, true] {
        let refused = table.get_until("a");
        assert!(matches!(refused, Err(crate::Error::Grouped { .. })), "flushed: {is_flushed}");
        let both = table.select(["name", "photo"]).expect("these are its groups");
        let (parts, time) = both.get_until("a").expect("the disk works").expect("it is there");
        assert_eq!((&parts[0][..], &parts[1][..], time), (&b"ada"[..], &b"photo of ada"[..], Some(until)));
        db.flush().expect("the disk works");
    }
}

/// Many tables of random rows under a clock that jumps, with crashes, compared with a map.
#[test]
fn reads_agree_with_a_map_under_a_clock_that_jumps_and_crashes() {
    for seed in 0..30 {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let mut world = World::new();
        let (mut db, mut table) = world.open();
        let mut index =
            table.create_index("by_value", "whole", &IndexOptions::default(), |_| {}).expect("the disk works");
        // The value of each key, and the time until which it is there.
        let mut model: BTreeMap<Vec<u8>, (Vec<u8>, Option<Duration>)> = BTreeMap::new();
        let keys: Vec<Vec<u8>> = (0..12_u8).map(|i| vec![b'k', i]).collect();
        let mut snapshot = None;
        for step in 0..120 {
            let key = keys[rng.random_range(0..keys.len())].clone();
            let value = vec![b'a' + rng.random_range(0..4); if rng.random_bool(0.1) { 3000 } else { 1 }];
            let is_whole = |value: &[u8]| value.len() < 100;
            match rng.random_range(0..20) {
                0..5 if is_whole(&value) => {
                    table.insert(&key, &value).expect("it is taken");
                    model.insert(key, (value, None));
                }
                5..12 => {
                    let until = in_millis(&db, rng.random_range(0..400));
                    let mut batch = db.batch();
                    batch.insert_until(&table, &key, &value, until);
                    if rng.random() {
                        batch.commit().expect("it is taken");
                    } else {
                        table.insert_until(&key, &value, until).expect("it is taken");
                    }
                    model.insert(key, (value, Some(until)));
                }
                12 => {
                    table.remove(&key).expect("it is taken");
                    model.remove(&key);
                }
                13 => {
                    let end = keys[rng.random_range(0..keys.len())].clone();
                    if key < end {
                        table.remove_range(key.clone()..end.clone()).expect("it is taken");
                        model.retain(|at, _| *at < key || *at >= end);
                    }
                }
                14 => world.jump(rng.random_range(-600..200)),
                15..17 => world.jump(rng.random_range(0..150)),
                17 => db.flush().expect("the disk works"),
                18 => db.compact().expect("the disk works"),
                _ if step % 3 == 0 => {
                    snapshot = None;
                    drop((index, table, db));
                    if rng.random() {
                        world.disk.crash();
                    }
                    (db, table) = world.open();
                    index = table.index("by_value").expect("it is there");
                }
                _ => snapshot = Some((db.snapshot(), model.clone())),
            }
            let now = db.clock();
            let shown = |model: &BTreeMap<Vec<u8>, (Vec<u8>, Option<Duration>)>| -> Rows {
                let rows = model.iter().filter(|(_, (_, until))| until.is_none_or(|until| until > now));
                rows.map(|(key, (value, _))| (key.clone(), value.clone())).collect()
            };
            let expected = shown(&model);
            assert_eq!(read(&db, &table, &keys), expected, "seed {seed} step {step}");
            assert_eq!(
                table.count_exact(..).expect("the disk works"),
                expected.len() as u64,
                "seed {seed} step {step}"
            );
            let estimate = table.count(..).expect("the disk works");
            let count = expected.len() as u64;
            assert!(estimate.low <= count && count <= estimate.high, "seed {seed} step {step} {estimate:?} {count}");
            for (n, (key, _)) in expected.iter().enumerate() {
                let row = table.nth(.., n as u64).expect("the disk works").expect("there are as many");
                assert_eq!(row.0[..], key[..], "seed {seed} step {step}");
            }
            if let Some((snapshot, model)) = &snapshot {
                assert_eq!(read(snapshot, &table, &keys), shown(model), "seed {seed} step {step}");
            }
            let mut by_value: Vec<_> = expected.iter().map(|(key, value)| (value.clone(), key.clone())).collect();
            by_value.sort();
            let entries = index.entries(..).map(|entry| entry.expect("the disk works"));
            let entries: Vec<_> = entries.map(|e| (e.index_key().to_vec(), e.row_key().to_vec())).collect();
            assert_eq!(entries, by_value, "seed {seed} step {step}");
            let rows = index.range_by(..).map(|row| row.expect("the disk works").0.row_key().to_vec());
            assert!(rows.eq(by_value.into_iter().map(|(_, key)| key)), "seed {seed} step {step}");
        }
        db.check(|_| {}).expect("nothing is damaged");
        assert!(index.check(|_| {}).expect("the disk works").problems.is_empty());
    }
}

/// The number of files of the table, and of the pages that were read from disk so far.
fn files_and_reads(db: &Database) -> (usize, u64) {
    let core = db.core();
    let files = core.views.newest().files.tables.values().map(|table| table.files().count()).sum();
    let counters = core.env.cache.counters().snapshot();
    (files, counters.total().faults)
}

#[test]
fn files_whose_rows_have_all_expired_are_dropped_without_reading_a_page() {
    let mut world = World::new();
    let db = world.builder().write_buffer_bytes(1 << 20).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let until = in_millis(&db, 60_000);
    for round in 0..4_u32 {
        for i in 0..2000_u32 {
            let key = (i * 4 + round).to_be_bytes();
            table.insert_until(key, [7; 200], until + Duration::from_millis(i.into())).expect("it is taken");
        }
        db.flush().expect("the disk works");
    }
    db.compact().expect("the disk works");
    let bytes = || -> u64 {
        world.disk.list("db".as_ref()).expect("the disk works").iter().filter(|f| f.name.ends_with(".sst")).count()
            as u64
    };
    let (files, reads) = files_and_reads(&db);
    assert!(files > 0 && bytes() > 0);
    // A job of the database that was woken by the clock does the same.
    world.jump(62_000);
    assert_eq!(table.iter().count(), 0, "every row is looked at");
    let (_, reads_after_scan) = files_and_reads(&db);
    assert!(reads_after_scan >= reads);
    crate::compact::compact_due(db.core()).expect("the disk works");
    assert_eq!(files_and_reads(&db), (0, reads_after_scan), "no page was read");
    assert_eq!(bytes(), 0);
    assert_eq!(table.count_exact(..).expect("the disk works"), 0);
    world.jump(-1_000_000);
    assert_eq!(table.iter().count(), 0);
}

#[test]
fn an_idle_database_gives_the_space_of_expired_rows_back() {
    let mut world = World::new();
    let (db, table) = world.open();
    let until = in_millis(&db, 60_000);
    for i in 0..3000_u32 {
        // A third of the rows stays.
        let value = [7; 100];
        match i % 3 {
            0 => table.insert(i.to_be_bytes(), value).expect("it is taken"),
            _ => table.insert_until(i.to_be_bytes(), value, until).expect("it is taken"),
        }
    }
    db.flush().expect("the disk works");
    db.compact().expect("the disk works");
    let rows = || -> u64 {
        let view = db.core().views.newest();
        view.files.tables.values().flat_map(|table| table.files()).map(|(_, file)| file.sst.rows().count()).sum()
    };
    assert_eq!(rows(), 3000);
    let wait = db.core().writes.picks.next_expiry();
    crate::compact::compact_due(db.core()).expect("the disk works");
    assert_eq!(rows(), 3000, "nothing has expired yet");
    let next = db.core().writes.picks.next_expiry().or(wait).expect("the job waits for the time");
    assert_eq!(next, until.as_millis() as u64);
    world.jump(60_000);
    crate::compact::compact_due(db.core()).expect("the disk works");
    assert_eq!(rows(), 1000);
    assert_eq!(table.iter().count(), 1000);
}

#[test]
fn a_follower_shows_what_expires_and_is_never_behind_what_the_writer_has_dropped() {
    let mut world = World::new();
    let (db, table) = world.open();
    let until = in_millis(&db, 1000);
    table.insert_until("a", "1", until).expect("it is taken");
    // Its clock is a minute behind.
    let [ahead, looks] = [-60_000, -1].map(AtomicI64::new);
    let clock = Jumping { steady: world.clock.steady.clone(), ahead, looks };
    let machine = Machine { clock: Arc::new(clock), ..Machine::simulated_on(world.disk.clone(), 99) };
    let follower = Database::builder("db").machine(machine).follow(crate::Follow::Commits).open().expect("it opens");
    let its = follower.existing_table("t").expect("it reads").expect("it is there");
    assert_eq!(
        (its.get("a").expect("it reads").as_deref(), its.until("a").expect("it reads")),
        (Some(&b"1"[..]), Some(until))
    );
    world.jump(1000);
    assert!(table.get("a").expect("the disk works").is_none() && its.get("a").expect("it reads").is_some());
    db.flush().expect("the disk works");
    db.compact().expect("the disk works");
    follower.catch_up().expect("the disk works");
    assert!(its.get("a").expect("it reads").is_none());
    assert!(follower.clock() >= until);
}

#[test]
fn a_transaction_larger_than_memory_keeps_the_times_of_its_rows() {
    let mut world = World::new();
    let db = world.builder().write_buffer_bytes(256 << 10).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let until = in_millis(&db, 10_000);
    let mut tx = db.begin().expect("it begins");
    let key = |i: u32| i.to_be_bytes().to_vec();
    for i in 0..3000 {
        match i % 2 {
            0 => tx.insert_until(&table, key(i), [1; 200], until).expect("it is taken"),
            _ => tx.insert(&table, key(i), [2; 200]).expect("it is taken"),
        }
    }
    assert_eq!(tx.range(&table, ..).count(), 3000);
    assert!(tx.commit().expect("the disk works").is_ok());
    assert_eq!((table.iter().count(), table.until(key(0)).expect("the disk works")), (3000, Some(until)));
    world.jump(10_000);
    assert_eq!((table.iter().count(), table.count_exact(..).expect("the disk works")), (1500, 1500));
    db.compact().expect("the disk works");
    assert_eq!(table.iter().rev().count(), 1500);
}

#[test]
fn a_repair_and_a_revert_keep_the_times_of_rows() {
    let mut world = World::new();
    let until = {
        let (db, table) = world.open();
        let until = in_millis(&db, 10_000);
        table.insert_until("in a file", "1", until).expect("it is taken");
        table.insert("stays", "2").expect("it is taken");
        let before = db.snapshot();
        db.flush().expect("the disk works");
        table.remove("in a file").expect("it is taken");
        assert_eq!(table.revert(&before, ..).expect("the disk works"), 1);
        assert_eq!(table.until("in a file").expect("the disk works"), Some(until));
        table.insert_until("in the log", "3", until).expect("it is taken");
        until
    };
    world.opened += 1;
    let machine = Machine { clock: world.clock.clone(), ..Machine::simulated_on(world.disk.clone(), world.opened) };
    crate::repair::repair_on(&machine, "db".as_ref(), "new".as_ref(), |_| {}).expect("the disk works");
    let db = Database::builder("new").machine(machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    for (key, expected) in [("in a file", Some(until)), ("in the log", Some(until)), ("stays", None)] {
        assert!(table.contains_key(key).expect("the disk works"), "{key}");
        assert_eq!(table.until(key).expect("the disk works"), expected, "{key}");
    }
}

#[test]
fn what_is_not_durable_may_be_lost_but_no_expired_row_comes_back() {
    let mut world = World::new();
    let db = world.builder().durability(Durability::Buffered).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    table.insert_until("a", "1", in_millis(&db, 100)).expect("it is taken");
    db.flush().expect("the disk works");
    world.jump(100);
    assert!(table.get("a").expect("the disk works").is_none());
    db.compact().expect("the disk works");
    world.jump(-100_000);
    world.disk.crash();
    drop((table, db));
    let (db, table) = world.open();
    assert!(table.get("a").expect("the disk works").is_none());
    assert!(db.clock() >= Duration::from_millis(START_MILLIS as u64 + 100), "the manifest says when rows were dropped");
}

#[test]
fn an_index_agrees_with_rows_that_were_merged_and_expire_while_it_is_built() {
    for in_file in [false, true] {
        for n in 0.. {
            let mut world = World::new();
            let (db, table) = world.open();
            let until = in_millis(&db, 500);
            for i in 0..6_u8 {
                table.insert_until([i], "a", until).expect("it is taken");
                if i % 2 == 0 {
                    table.merge([i], MergeOp::Append(b"b")).expect("it is taken");
                }
                if in_file && i == 3 {
                    db.flush().expect("the disk works");
                }
            }
            table.insert("stays", "c").expect("it is taken");
            let mut index = None;
            let has_jumped = world.jump_at_look(n, || {
                let made = table.create_index("by_value", "whole", &IndexOptions::default(), |_| {});
                index = Some(made.expect("the disk works"));
            });
            let index = index.expect("it was made");
            let rows = all(table.range(..));
            let found = index.range_by(..).map(|row| {
                let (entry, value) = row.expect("each entry has a row");
                assert_eq!(entry.index_key(), &value[..], "look {n}, in file {in_file}");
                (entry.row_key().to_vec(), value.to_vec())
            });
            let mut found: Rows = found.collect();
            found.sort();
            assert_eq!(found, rows, "look {n}, in file {in_file}");
            let is_left = |(key, value): &(Vec<u8>, Vec<u8>)| key == b"stays" || key[0] % 2 == 0 && value == b"b";
            assert!(rows.iter().all(is_left), "look {n}, in file {in_file}: {rows:?}");
            // What had expired before the index was there has left what was merged into it.
            assert!(n > 0 || rows.len() == 4, "in file {in_file}: {rows:?}");
            if !has_jumped {
                assert!(n > 5, "{n} looks");
                break;
            }
        }
    }
}

#[test]
fn a_value_that_is_written_again_keeps_its_time_whenever_it_expires() {
    let works: [fn(&Database, &Table); 2] = [
        |_, table| table.merge("m", MergeOp::Append(b"c")).expect("it is taken"),
        |db, table| {
            let before = db.snapshot();
            table.remove("m").expect("it is taken");
            table.revert(&before, ..).expect("nobody else writes");
        },
    ];
    for (work, has_index) in [(0, false), (0, true), (1, false), (1, true)] {
        for n in 0.. {
            let mut world = World::new();
            let (db, table) = world.open();
            table.insert_until("m", "a", in_millis(&db, 500)).expect("it is taken");
            table.merge("m", MergeOp::Append(b"b")).expect("it is taken");
            let create = || table.create_index("by_value", "whole", &IndexOptions::default(), |_| {});
            let index = has_index.then(|| create().expect("the disk works"));
            let has_jumped = world.jump_at_look(n, || works[work](&db, &table));
            let value = table.get("m").expect("the disk works").map(|value| value.to_vec());
            assert!(
                value.as_ref().is_none_or(|value| !value.contains(&b'a')),
                "work {work}, index {has_index}, look {n}: a value without its time: {value:?}"
            );
            if let Some(index) = index {
                let keys: Vec<_> =
                    index.range_by(..).map(|row| row.expect("the disk works").0.index_key().to_vec()).collect();
                assert_eq!(keys, value.into_iter().collect::<Vec<_>>(), "work {work}, look {n}");
            }
            if !has_jumped {
                break;
            }
        }
    }
}

#[test]
fn a_read_by_an_index_that_is_left_and_taken_up_again_gives_each_row_once() {
    for n in 0.. {
        let mut world = World::new();
        let (db, table) = world.open();
        let index = table.create_index("by_value", "whole", &IndexOptions::default(), |_| {}).expect("the disk works");
        let until = in_millis(&db, 500);
        for i in 0..12_u8 {
            match i % 3 {
                0 => table.insert([i], [i]).expect("it is taken"),
                _ => table.insert_until([i], [i], until).expect("it is taken"),
            }
        }
        let mut found = Vec::new();
        let has_jumped = world.jump_at_look(n, || {
            let mut rows = index.range_by(..);
            loop {
                let end = rows.for_each_row(|row| {
                    found.push(row.row_key()[0]);
                    if found.len() % 2 == 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                if end.expect("the disk works").is_continue() {
                    break;
                }
            }
        });
        assert!(found.is_sorted_by(|a, b| a < b), "look {n}: {found:?}");
        let stay: Vec<u8> = found.iter().copied().filter(|key| key % 3 == 0).collect();
        assert_eq!(stay, [0, 3, 6, 9], "look {n}: {found:?}");
        if !has_jumped {
            assert_eq!(found.len(), 12);
            assert!(n > 3, "{n} looks");
            return;
        }
    }
}
