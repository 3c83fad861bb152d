//! Tests copies of older versions against a model of the rows at each version.

use larch::backup::Backups;
use larch::past::{AsOf, ChangeKind, Retention};
use larch::{Database, Error, Index, MergeOp, Table, Version};
use os::sim::SimDisk;
use os::{Disk, Machine};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

const HERE: &str = "db";
const KEPT: &str = "kept";

/// A value, the time until which it is there, and what was appended to it, which stays.
#[derive(Clone, Debug, Default)]
struct Cell {
    base: Option<(Vec<u8>, Option<Duration>)>,
    appended: Vec<u8>,
}

impl Cell {
    fn value(&self, now: Duration) -> Option<Vec<u8>> {
        let base = self.base.as_ref().filter(|(_, until)| until.is_none_or(|until| until > now));
        match base {
            Some((base, _)) => Some([base.as_slice(), &self.appended].concat()),
            None => (!self.appended.is_empty()).then(|| self.appended.clone()),
        }
    }
}

/// The rows of two tables, the second of which has an index.
#[derive(Clone, Debug, Default)]
struct Model([BTreeMap<Vec<u8>, Cell>; 2]);

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

impl Model {
    fn rows(&self, table: usize, now: Duration) -> Rows {
        let rows = self.0[table].iter().filter_map(|(key, cell)| Some((key.clone(), cell.value(now)?)));
        rows.collect()
    }
}

fn open(machine: &Machine, directory: &str, read_only: bool) -> Database {
    let builder = Database::builder(directory).machine(machine.clone()).write_buffer_bytes(32 << 10);
    builder.read_only(read_only).cache_bytes(1 << 20).open().expect("it is a database")
}

fn tables(db: &Database) -> [Table; 2] {
    ["plain", "indexed"].map(|name| db.table(name).expect("a table"))
}

/// The index key of a row is the first byte of its value.
fn by_first(table: &Table) -> Index {
    table
        .index_by("first", |_, value, emit| value.first().into_iter().for_each(|first| emit(&[*first])))
        .expect("an index")
}

fn rows(table: &Table) -> Rows {
    let rows = table.iter().map(|row| row.expect("the disk works"));
    rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// The rows of a table that the changes after `after` make of none.
fn rows_of_feed(db: &Database, table: &Table, after: Version) -> Rows {
    let mut changes = db.changes(after).and_then(|changes| changes.of(table)).expect("the version is there");
    let mut rows = Rows::new();
    while let Some(change) = changes.next_change().expect("they are kept") {
        match change.kind() {
            ChangeKind::Put { key, value, .. } => _ = rows.insert(key.to_vec(), value.whole().to_vec()),
            ChangeKind::Erase { key } => _ = rows.remove(key),
            ChangeKind::EraseRange { start, end } => {
                rows.retain(|key, _| key.as_slice() < start || end.is_some_and(|end| key.as_slice() >= end));
            }
            other => panic!("a copy has no logs: {other:?}"),
        }
    }
    assert_eq!(changes.position(), db.version());
    rows
}

/// Checks that `directory` has the database as it was at `version`.
fn expect_copy(machine: &Machine, directory: &str, version: Version, model: &Model, case: &str) {
    let look = open(machine, directory, true);
    assert_eq!(look.version(), version, "{case}");
    let now = look.clock();
    for (table, at) in tables(&look).iter().zip(0..) {
        assert_eq!(rows(table), model.rows(at, now), "{case}: table {at}, read only");
    }
    drop(look);
    let copy = open(machine, directory, false);
    assert_eq!(copy.version(), version, "{case}");
    assert!(copy.check(|_| {}).expect("the disk works").problems.is_empty(), "{case}");
    let [plain, indexed] = tables(&copy);
    let index = by_first(&indexed);
    for is_compacted in [false, true] {
        if is_compacted {
            plain.insert("later", "row").expect("it is taken");
            assert_eq!(copy.version(), Version(version.0 + 1), "{case}");
            indexed.insert("later", "row").expect("it is taken");
            copy.compact().expect("the disk works");
            plain.remove("later").expect("it is taken");
            indexed.remove("later").expect("it is taken");
        }
        let now = copy.clock();
        let expected = model.rows(1, now);
        assert_eq!(rows(&plain), model.rows(0, now), "{case}, compacted: {is_compacted}");
        assert_eq!(rows(&indexed), expected, "{case}, compacted: {is_compacted}");
        for first in 0..8 {
            let found = index.get_by([first]).expect("the disk works");
            let found: Rows = found.into_iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            let is_meant = |(_, value): &(&Vec<u8>, &Vec<u8>)| value[0] == first;
            let expected: Rows = expected.iter().filter(is_meant).map(|(k, v)| (k.clone(), v.clone())).collect();
            assert_eq!(found, expected, "{case}: rows with {first}, compacted: {is_compacted}");
        }
    }
}

/// How versions are kept from which copies are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    All,
    Names,
}

fn run(seed: u64, keeps: Keeps) {
    let random = &mut StdRng::seed_from_u64(seed);
    let (machine, _) = Machine::simulated(seed);
    let db = open(&machine, HERE, false);
    let both = tables(&db);
    by_first(&both[1]);
    if keeps == Keeps::All {
        db.retain(Retention::Everything).expect("the disk works");
    }
    let begin = db.version();
    let mut model = Model::default();
    let mut past: BTreeMap<Version, (Model, Option<String>)> = BTreeMap::new();
    let mut copies = 0;
    for step in 0..150 {
        let at = random.random_range(0..2);
        let (table, rows) = (&both[at], &mut model.0[at]);
        let mut key = || format!("{:02}", random.random_range(0..60)).into_bytes();
        let (low, high) = (key(), key());
        let mut value = vec![random.random_range(0..8u8); random.random_range(1..40)];
        match random.random_range(0..24) {
            0..6 => {
                table.insert(&low, &value).expect("it is taken");
                rows.insert(low, Cell { base: Some((value, None)), appended: Vec::new() });
            }
            6..9 => {
                let until = db.clock() + Duration::from_millis(random.random_range(1..3_000));
                table.insert_until(&low, &value, until).expect("it is taken");
                rows.insert(low, Cell { base: Some((value, Some(until))), appended: Vec::new() });
            }
            9..13 => {
                value.truncate(3);
                table.merge(&low, MergeOp::Append(&value)).expect("it is taken");
                let cell = rows.entry(low).or_default();
                if at == 0 {
                    cell.appended.extend_from_slice(&value);
                } else {
                    // In a table with an index, the transaction writes the whole value, with the time of the row.
                    let old = cell.value(db.clock());
                    let until = cell.base.as_ref().and_then(|(_, until)| *until).filter(|_| old.is_some());
                    cell.base = Some(([old.unwrap_or_default(), value].concat(), until));
                }
            }
            13..15 => {
                table.remove(&low).expect("it is taken");
                rows.remove(&low);
            }
            15 => {
                table.remove_range(low.as_slice()..high.as_slice()).expect("it is taken");
                rows.retain(|key, _| !(low <= *key && *key < high));
            }
            16..18 => db.flush().expect("the disk works"),
            18 => db.compact().expect("the disk works"),
            19 => db.compact_due().expect("the disk works"),
            20 => machine.clock.sleep(Duration::from_millis(random.random_range(0..500))),
            21 if keeps == Keeps::Names => {
                let name = format!("{step}");
                let kept = db.keep(&name).expect("the name is new");
                past.insert(kept.version, (model.clone(), Some(name)));
            }
            _ => {
                let all: Vec<_> = past.iter().collect();
                if all.is_empty() {
                    continue;
                }
                let (&version, (then, name)) = all[random.random_range(0..all.len())];
                let when = name.as_ref().map_or(AsOf::Version(version), |name| AsOf::Name(name.clone()));
                let case = format!("seed {seed}, step {step}, {keeps:?}, version {}", version.0);
                let directory = format!("copy {step}");
                let beside = random.random_bool(0.4);
                let report = match random.random_range(0..4) {
                    0 => {
                        let backups = Backups::at(KEPT).on(&machine);
                        let report = db.backup_at(&backups, when, |_| {}).expect(&case);
                        backups.restore(Some(report.number), &directory, |_| {}).expect(&case);
                        report.version
                    }
                    _ if beside => open(&machine, HERE, true).checkpoint_at(&directory, when).expect(&case).version,
                    _ => db.checkpoint_at(&directory, when).expect(&case).version,
                };
                assert_eq!(report, version, "{case}");
                if keeps == Keeps::All {
                    let copy = open(&machine, &directory, true);
                    for (table, at) in tables(&copy).iter().zip(0..) {
                        let expected = then.rows(at, copy.clock());
                        assert_eq!(rows_of_feed(&copy, table, begin), expected, "{case}: the feed of table {at}");
                    }
                }
                let earlier: Vec<_> = all.iter().filter(|(other, _)| **other <= version).collect();
                let (older, (older_model, _)) = earlier[random.random_range(0..earlier.len())];
                let copy = open(&machine, &directory, false);
                let snapshot = copy.at(**older).expect(&case);
                let [plain, _] = tables(&copy);
                let found =
                    plain.at(&snapshot).expect("it is of the copy").iter().map(|row| row.expect("the disk works"));
                let found: Rows = found.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
                assert_eq!(found, older_model.rows(0, copy.clock()), "{case}: at {}", older.0);
                let names: Vec<_> = copy.kept().into_iter().map(|kept| (kept.version, kept.name)).collect();
                let of_origin = db.kept().into_iter().filter(|kept| kept.version <= version);
                let expected: Vec<_> = of_origin.map(|kept| (kept.version, kept.name)).collect();
                assert_eq!(names, expected, "{case}");
                drop((plain, snapshot, copy));
                expect_copy(&machine, &directory, version, then, &case);
                copies += 1;
                continue;
            }
        }
        if keeps == Keeps::All {
            past.insert(db.version(), (model.clone(), None));
        }
    }
    assert!(copies > 0 || keeps == Keeps::Names, "seed {seed} has made no copy");
}

#[test]
fn a_copy_of_a_version_is_the_database_as_it_was() {
    for seed in 0..40 {
        run(seed, Keeps::All);
        run(seed + 1_000, Keeps::Names);
    }
}

/// A database with a version that is kept, whose files have older rows, newer rows, or both.
fn prepare(machine: &Machine) -> (Database, Rows) {
    let db = open(machine, HERE, false);
    let [plain, _] = tables(&db);
    for round in 0..3u8 {
        for i in 0..300 {
            plain.insert(format!("{i:04}"), [round; 40]).expect("it is taken");
        }
        if round == 1 {
            plain.remove_range("0100".."0120").expect("it is taken");
            db.keep("then").expect("the name is new");
        }
        if round != 1 {
            db.flush().expect("the disk works");
        }
    }
    plain.remove_range("0200".."0220").expect("it is taken");
    let then = db.at("then").expect("it is kept");
    let rows = plain.at(&then).expect("it is of the database").iter().map(|row| row.expect("the disk works"));
    let rows = rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    (db, rows)
}

fn expect_then(machine: &Machine, expected: &Rows) {
    let copy = open(machine, "copy", false);
    let [plain, _] = tables(&copy);
    assert!(rows(&plain) == *expected);
    assert!(copy.check(|_| {}).expect("the disk works").problems.is_empty());
}

#[test]
fn a_crash_at_any_sync_leaves_no_copy_of_a_version_or_a_whole_one() {
    let syncs = {
        let (machine, disk) = Machine::simulated(5);
        let (db, expected) = prepare(&machine);
        let before = disk.sync_count();
        let report = db.checkpoint_at("copy", "then").expect("the disk works");
        assert!(report.rewritten_bytes > 0, "{report:?}");
        let syncs = disk.sync_count() - before;
        drop(db);
        expect_then(&machine, &expected);
        syncs
    };
    let mut whole = 0;
    for seed in 0..6 {
        for n in 1..=syncs {
            let (machine, disk) = Machine::simulated(5);
            let (db, expected) = prepare(&machine);
            disk.reseed(seed);
            disk.crash_at_sync(n);
            db.checkpoint_at("copy", "then").expect_err("the machine has crashed");
            drop(db);
            match seed % 3 {
                0 => disk.crash_keeping_nothing(),
                1 => disk.crash_keeping_everything(),
                _ => disk.crash(),
            }
            if disk.exists(Path::new("copy/CURRENT")).expect("the disk works") {
                whole += 1;
                expect_then(&machine, &expected);
                continue;
            }
            if !disk.list(Path::new("copy")).unwrap_or_default().is_empty() {
                let opened = Database::builder("copy").machine(machine.clone()).create(false).open();
                assert!(opened.is_err(), "seed {seed}, sync {n}");
            }
            let db = open(&machine, HERE, false);
            db.checkpoint_at("copy", "then").expect("the second attempt removes what the first has left");
            drop(db);
            expect_then(&machine, &expected);
        }
    }
    assert!(whole > 0, "some crashes came when the copy was whole");
}

#[test]
fn a_failed_copy_of_a_version_leaves_no_file() {
    let begin = |machine: &Machine, disk: &SimDisk| {
        let (db, expected) = prepare(machine);
        // The pages are in memory from here on, so that each attempt has the same operations.
        drop(db);
        (open(machine, HERE, false), expected, disk.used_bytes())
    };
    for n in 1.. {
        let (machine, disk) = Machine::simulated(6);
        let (db, expected, _) = begin(&machine, &disk);
        let (used, before) = (disk.used_bytes(), disk.operation_count());
        disk.fail_operation(n, ErrorKind::StorageFull);
        let outcome = db.checkpoint_at("copy", "then");
        let is_over = disk.operation_count() - before < n;
        disk.clear_faults();
        if outcome.is_err() {
            assert!(!disk.exists(Path::new("copy")).expect("the disk works"), "operation {n}");
            assert_eq!(disk.used_bytes(), used, "operation {n}");
            db.checkpoint_at("copy", "then").expect("the fault has passed");
        }
        drop(db);
        expect_then(&machine, &expected);
        if is_over {
            assert!(n > 20, "{n}");
            return;
        }
    }
}

#[test]
fn a_version_that_nothing_keeps_cannot_be_copied() {
    let (machine, disk) = Machine::simulated(7);
    let (db, _) = prepare(&machine);
    let newest = db.version();
    let look = open(&machine, HERE, true);
    for db in [&db, &look] {
        for version in [Version(3), Version(newest.0 + 1)] {
            let error = db.checkpoint_at("copy", version).expect_err("it is not kept");
            assert!(matches!(error, Error::NotKept { .. }), "{error}");
        }
        let error = db.checkpoint_at("copy", "other").expect_err("there is no such name");
        assert!(matches!(error, Error::NoSuchKept { .. }), "{error}");
        let error = db.checkpoint_at("copy", Duration::from_secs(1)).expect_err("the past is not kept");
        assert!(matches!(error, Error::NoTime { .. }), "{error}");
    }
    assert!(!disk.exists(Path::new("copy")).expect("the disk works"));
    for (at, db) in [&db, &look].into_iter().enumerate() {
        assert_eq!(db.checkpoint_at(format!("newest {at}"), newest).expect("the disk works").version, newest);
    }
}

#[test]
fn an_index_that_was_made_later_is_not_in_a_copy() {
    let (machine, _) = Machine::simulated(8);
    let db = open(&machine, HERE, false);
    let [_, indexed] = tables(&db);
    indexed.insert("a", [1]).expect("it is taken");
    db.keep("before").expect("the name is new");
    indexed.insert("b", [1]).expect("it is taken");
    by_first(&indexed);
    indexed.insert("c", [1]).expect("it is taken");
    db.keep("after").expect("the name is new");
    indexed.insert("d", [1]).expect("it is taken");
    for (name, left_out, keys) in [("before", 1, 1), ("after", 0, 3)] {
        let report = db.checkpoint_at(name, name).expect("the disk works");
        assert_eq!(report.left_out_indexes, left_out);
        let copy = open(&machine, name, false);
        let [_, indexed] = tables(&copy);
        assert_eq!(indexed.indexes().expect("it is there").len() as u64, 1 - left_out);
        assert_eq!(by_first(&indexed).get_by([1]).expect("the disk works").len(), keys);
    }
}

#[test]
fn files_without_newer_rows_are_shared() {
    let (machine, _) = Machine::simulated(9);
    let db = open(&machine, HERE, false);
    let [plain, _] = tables(&db);
    for i in 0..20_000 {
        plain.insert(format!("{i:05}"), [1; 50]).expect("it is taken");
    }
    db.compact().expect("the disk works");
    let large: u64 = db.sst_files().iter().map(|(_, bytes)| bytes).sum();
    db.keep("then").expect("the name is new");
    plain.insert("00500", "other").expect("it is taken");
    db.flush().expect("the disk works");
    let report = db.checkpoint_at("copy", "then").expect("the disk works");
    assert_eq!(
        (report.bytes, report.copied_bytes, report.rewritten_bytes),
        (large, 0, 0),
        "the newer file is left out"
    );
}

#[test]
fn a_row_that_had_expired_does_not_come_back_in_a_copy_under_an_earlier_clock() {
    let (machine, disk) = Machine::simulated(10);
    let db = open(&machine, HERE, false);
    let [plain, _] = tables(&db);
    plain.insert("a", "older").expect("it is taken");
    let until = db.clock() + Duration::from_millis(100);
    plain.insert_until("a", "newer", until).expect("it is taken");
    db.keep("then").expect("the name is new");
    plain.insert("b", "later").expect("it is taken");
    machine.clock.sleep(Duration::from_secs(1));
    // It drops the expired row, and says so in the manifest.
    db.compact().expect("the disk works");
    db.checkpoint_at("copy", "then").expect("the disk works");
    let other = Machine::simulated_on(disk, 11);
    assert!(other.clock.wall() < until, "its clock is behind");
    let copy = open(&other, "copy", false);
    assert!(copy.clock() >= until);
    assert_eq!(rows(&tables(&copy)[0]), Rows::new());
}
