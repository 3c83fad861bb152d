//! Tests differences and reverts against whole scans of both versions.

use crate::past::{Difference, Retention};
use crate::{Database, Error, Follow, Readable, Snapshot, Table, TableOptions};
use os::Machine;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

type Rows = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

/// A key with its values before and after.
type Differing = (Vec<u8>, Option<Vec<Vec<u8>>>, Option<Vec<Vec<u8>>>);

fn rows(table: &Table, snapshot: &Snapshot, range: (&[u8], &[u8])) -> Rows {
    let groups = table.options().groups;
    if groups.is_empty() {
        let rows = snapshot.range(table, range.0..range.1).map(|row| row.expect("the disk works"));
        return rows.map(|(key, value)| (key.to_vec(), vec![value.to_vec()])).collect();
    }
    let selection = table.select(&groups).expect("it has these groups");
    let rows = snapshot.select(&selection).expect("it is of this database").range(range.0..range.1);
    let rows = rows.map(|row| row.expect("the disk works"));
    rows.map(|(key, parts)| (key.to_vec(), parts.iter().map(|part| part.to_vec()).collect())).collect()
}

fn differences(before: &Rows, after: &Rows) -> Vec<Differing> {
    let keys: std::collections::BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
    let both = keys.into_iter().map(|key| (key.clone(), before.get(key).cloned(), after.get(key).cloned()));
    both.filter(|(_, before, after)| before != after).collect()
}

fn run(seed: u64, groups: &[&str]) {
    let random = &mut StdRng::seed_from_u64(seed);
    let machine = Machine::simulated(seed).0;
    let db = Database::builder("db").machine(machine).write_buffer_bytes(64 << 10).open().expect("the disk works");
    db.retain(Retention::Everything).expect("the disk works");
    let groups = groups.iter().map(|group| (*group).to_owned()).collect::<Vec<_>>();
    let parts = groups.len().max(1);
    let table = db.table_with("t", TableOptions { groups, ..TableOptions::default() }).expect("the disk works");
    let mut snapshots = vec![db.snapshot()];
    for step in 0..200 {
        let mut key = || format!("{:03}", random.random_range(0..300)).into_bytes();
        let (low, high) = (key(), key());
        match random.random_range(0..20) {
            0..10 => {
                let size = if random.random_bool(0.05) { 7_000 } else { random.random_range(0..60) };
                let value: Vec<Vec<u8>> = (0..parts).map(|part| vec![(step % 3 + part) as u8; size]).collect();
                table.insert_parts(&low, &value).expect("it is taken");
            }
            10..13 => table.remove(&low).expect("it is taken"),
            13 => table.remove_range(low.as_slice()..high.as_slice()).expect("it is taken"),
            14..16 => db.flush().expect("the disk works"),
            16 => db.compact().expect("the disk works"),
            17 => db.compact_due().expect("the disk works"),
            18 if random.random_bool(0.3) => {
                let past = &snapshots[random.random_range(0..snapshots.len())];
                let clone = table.clone_at(&format!("clone {step}"), past).expect("the name is new");
                let all = (&b""[..], &b"x"[..]);
                for is_compacted in [false, true] {
                    let case = format!("seed {seed}, step {step}, compacted: {is_compacted}");
                    assert_eq!(rows(&clone, &db.snapshot(), all), rows(&table, past, all), "{case}");
                    assert_eq!(beside((&table, past), (&clone, &db.snapshot()), all), [], "{case}");
                    clone.compact().expect("the disk works");
                }
            }
            18 => {
                let past = &snapshots[random.random_range(0..snapshots.len())];
                let (low, high) = (low.as_slice().min(&high), high.as_slice().max(&low));
                let changed = differences(&rows(&table, &db.snapshot(), (low, high)), &rows(&table, past, (low, high)));
                let written = table.revert(past, low..high).expect("nobody else writes");
                assert_eq!(written, changed.len() as u64, "seed {seed}, step {step}");
                let now = db.snapshot();
                assert_eq!(
                    rows(&table, &now, (low, high)),
                    rows(&table, past, (low, high)),
                    "seed {seed}, step {step}"
                );
            }
            _ => snapshots.push(db.snapshot()),
        }
        if random.random_bool(0.2) {
            let [a, b] = [0; 2].map(|_| &snapshots[random.random_range(0..snapshots.len())]);
            let range = if random.random_bool(0.5) { (&b""[..], &b"x"[..]) } else { (low.as_slice(), high.as_slice()) };
            let found = table.diff(a, b, range.0..range.1).expect("both are of this database");
            let found = found.map(|difference| difference.expect("the disk works"));
            let found: Vec<_> = found.map(|Difference { key, before, after }| (key, before, after)).collect();
            let expected = match range.0 < range.1 {
                true => differences(&rows(&table, a, range), &rows(&table, b, range)),
                false => Vec::new(),
            };
            assert_eq!(found, expected, "seed {seed}, step {step}");
        }
    }
}

#[test]
fn a_diff_has_the_rows_that_two_scans_show_differently() {
    for seed in 0..30 {
        run(seed, &[]);
        run(seed + 1000, &["one", "two"]);
    }
}

#[test]
fn a_diff_reads_no_file_that_has_only_older_rows() {
    let machine = Machine::simulated(1).0;
    let db = Database::builder("db").machine(machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut batch = db.batch();
    (0..20_000).for_each(|number| batch.insert(&table, format!("{number:06}"), [1; 100]));
    batch.commit().expect("the disk works");
    db.compact().expect("the disk works");
    let before = db.snapshot();
    table.insert("000500", "other").expect("it is taken");
    table.remove("010000").expect("it is taken");
    db.flush().expect("the disk works");
    let after = db.snapshot();
    let reads = || db.metrics().page_reads + db.metrics().page_hits;
    let begin = reads();
    assert_eq!(table.diff(&before, &after, ..).expect("both are of this database").count(), 2);
    let used = reads() - begin;
    assert!((1..40).contains(&used), "{used} pages of about 150 were used");
}

#[test]
fn a_revert_keeps_indexes_and_is_one_commit() {
    let machine = Machine::simulated(1).0;
    let db = Database::builder("db").machine(machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let index = table.index_by("by", |_, value, emit| emit(value)).expect("the disk works");
    table.insert("a", "one").expect("it is taken");
    table.insert("b", "two").expect("it is taken");
    let past = db.snapshot();
    table.insert("a", "three").expect("it is taken");
    table.remove("b").expect("it is taken");
    table.insert("c", "four").expect("it is taken");
    let version = db.version();
    assert_eq!(table.revert(&past, ..).expect("nobody else writes"), 3);
    assert_eq!(db.version().0, version.0 + 1);
    let keys = |value: &str| {
        index.get_by(value).expect("the disk works").into_iter().map(|(key, _)| key.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!([keys("one"), keys("two")], [[b"a".to_vec()], [b"b".to_vec()]]);
    assert!(keys("three").is_empty() && keys("four").is_empty());
    assert_eq!(table.revert(&past, ..).expect("nobody else writes"), 0);
}

#[test]
fn a_diff_of_a_follower_has_rows_that_left_no_trace_in_the_files() {
    for follow in [Follow::Commits, Follow::Files] {
        let (_, disk) = Machine::simulated(1);
        let on = |seed| Database::builder("db").machine(Machine::simulated_on(disk.clone(), seed));
        let db = on(1).open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        for key in ["a", "b", "c"] {
            table.insert(key, "1").expect("it is taken");
        }
        db.flush().expect("the disk works");
        let follower = on(2).read_only(true).follow(follow).open().expect("the disk works");
        let theirs = follower.table("t").expect("it is there");
        let before = follower.snapshot();
        table.remove("a").expect("it is taken");
        table.insert("b", "2").expect("it is taken");
        table.remove("b").expect("it is taken");
        db.flush().expect("the disk works");
        db.compact().expect("the disk works");
        follower.catch_up().expect("the disk works");
        let diff = theirs.diff(&before, &follower.snapshot(), ..).expect("both are of this database");
        let keys: Vec<Vec<u8>> = diff.map(|difference| difference.expect("the disk works").key).collect();
        assert_eq!(keys, [b"a".to_vec(), b"b".to_vec()], "{follow:?}");
    }
}

fn beside(table: (&Table, &Snapshot), other: (&Table, &Snapshot), range: (&[u8], &[u8])) -> Vec<Differing> {
    let found = table.0.diff_with(table.1, other.0, other.1, range.0..range.1).expect("the groups are the same");
    let found = found.map(|difference| difference.expect("the disk works"));
    found.map(|Difference { key, before, after, .. }| (key, before, after)).collect()
}

/// Two copies of a database, each with a table and a clone of it, that change apart from each other.
fn run_apart(seed: u64, groups: &[&str]) {
    let random = &mut StdRng::seed_from_u64(seed);
    let (machine, _) = Machine::simulated(seed);
    let open = |directory: &str| {
        let db = Database::builder(directory).machine(machine.clone()).write_buffer_bytes(64 << 10);
        let db = db.open().expect("the disk works");
        db.retain(Retention::Everything).expect("the disk works");
        db
    };
    let groups = groups.iter().map(|group| (*group).to_owned()).collect::<Vec<_>>();
    let parts = groups.len().max(1);
    let first = open("first");
    let table = first.table_with("t", TableOptions { groups, ..TableOptions::default() }).expect("the disk works");
    let mut number = 0u32;
    let mut change = |db: &Database, table: &Table, random: &mut StdRng| {
        let mut key = || format!("{:03}", random.random_range(0..300)).into_bytes();
        let (low, high) = (key(), key());
        number += 1;
        match random.random_range(0..20) {
            0..9 => {
                let size = if random.random_bool(0.05) { 7_000 } else { random.random_range(4..60) };
                let mut value = vec![vec![(number % 3) as u8; size]; parts];
                value[0][..4].copy_from_slice(&(number / 2).to_le_bytes());
                table.insert_parts(&low, &value).expect("it is taken");
            }
            9..12 => table.remove(&low).expect("it is taken"),
            12..14 => table.remove_range(low.as_slice()..high.as_slice()).expect("it is taken"),
            14..16 => db.flush().expect("the disk works"),
            16 => db.compact().expect("the disk works"),
            17..19 => db.compact_due().expect("the disk works"),
            _ if parts == 1 => table.merge(&low, crate::MergeOp::Append(b"more")).expect("it is taken"),
            _ => {}
        }
    };
    let mut batch = first.batch();
    (0..300).for_each(|row| batch.insert_parts(&table, format!("{row:03}"), &vec![[7; 20]; parts]));
    batch.commit().expect("it is taken");
    (0..40).for_each(|_| change(&first, &table, random));
    first.checkpoint("second").expect("the disk works");
    let second = open("second");
    let mut all = vec![(0, table.clone()), (1, second.table("t").expect("it is there"))];
    for (db, of) in [(0, &first), (1, &second)] {
        if random.random_bool(0.7) {
            all.push((db, of.table("t").and_then(|table| table.clone_as("clone")).expect("the disk works")));
        }
        if random.random_bool(0.5) {
            let table = of.table("t").expect("it is there");
            let key = format!("{:03}", random.random_range(0..300));
            all.push((db, table.split_off(key, "rest").expect("the disk works")));
        }
    }
    let dbs = [&first, &second];
    let mut snapshots = [vec![first.snapshot()], vec![second.snapshot()]];
    for step in 0..60 {
        let (db, table) = &all[random.random_range(0..all.len())];
        change(dbs[*db], table, random);
        if random.random_bool(0.2) {
            snapshots[*db].push(dbs[*db].snapshot());
        }
        if random.random_bool(0.3) {
            let sides = [0; 2].map(|_| {
                let (db, table) = &all[random.random_range(0..all.len())];
                let all = &snapshots[*db];
                let snapshot = if random.random_bool(0.5) {
                    dbs[*db].snapshot()
                } else {
                    all[random.random_range(0..all.len())].clone()
                };
                (table, snapshot)
            });
            let [before, after] = &sides;
            let keys = [0; 2].map(|_| format!("{:03}", random.random_range(0..300)).into_bytes());
            let (low, high) = (keys[0].as_slice().min(&keys[1]), keys[0].as_slice().max(&keys[1]));
            let range = if random.random_bool(0.5) { (&b""[..], &b"x"[..]) } else { (low, high) };
            let expected = differences(&rows(before.0, &before.1, range), &rows(after.0, &after.1, range));
            let found = beside((before.0, &before.1), (after.0, &after.1), range);
            assert_eq!(found, expected, "seed {seed}, step {step}, {range:?}");
        }
    }
}

#[test]
fn a_diff_of_two_databases_has_the_rows_that_two_scans_show_differently() {
    for seed in 0..60 {
        run_apart(seed, &[]);
        run_apart(seed + 1000, &["one", "two"]);
    }
}

/// A large table in files, made with a machine of its own.
fn large(machine: &Machine, directory: &str, byte: u8) -> (Database, Table) {
    let db = Database::builder(directory).machine(machine.clone()).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut batch = db.batch();
    (0..20_000).for_each(|number| batch.insert(&table, format!("{number:06}"), [byte; 100]));
    batch.commit().expect("the disk works");
    db.compact().expect("the disk works");
    (db, table)
}

fn pages_used(db: &Database) -> u64 {
    db.metrics().page_reads + db.metrics().page_hits
}

#[test]
fn a_diff_of_copies_and_of_clones_reads_pages_only_for_rows_that_differ() {
    let (machine, _) = Machine::simulated(1);
    let (db, table) = large(&machine, "db", 1);
    db.checkpoint("copy").expect("the disk works");
    let copy = Database::builder("copy").machine(machine.clone()).open().expect("the disk works");
    let theirs = copy.table("t").expect("it is there");
    let clone = table.clone_as("clone").expect("the disk works");
    for (other_db, other) in [(&copy, &theirs), (&db, &clone)] {
        for (count, most) in [(0, 8), (1, 30), (10, 160)] {
            for row in 0..count {
                other.insert(format!("{:06}", row * 1_777 + count), "other").expect("it is taken");
            }
            other_db.flush().expect("the disk works");
            let begin = (pages_used(&db), pages_used(&copy));
            let (before, after) = (db.snapshot(), other_db.snapshot());
            let found = table.diff_with(&before, other, &after, ..).expect("they have no groups").count();
            assert_eq!(found, if count > 1 { count + 1 } else { count });
            let used = pages_used(&db) - begin.0 + pages_used(&copy) - begin.1;
            assert!(used <= most, "{used} pages were used for {found} rows, of about 300 in both");
        }
    }
}

#[test]
fn files_with_one_number_and_one_id_but_other_rows_are_not_taken_for_the_same() {
    // Both machines draw the same numbers, so all ids are the same.
    let [(db, table), (other_db, other)] = [1, 2].map(|byte| large(&Machine::simulated(9).0, "db", byte));
    let ids = |db: &Database| {
        let files = db.core().views.newest().files.files_by_number();
        let mut ids: Vec<_> = files.iter().map(|(number, file)| (*number, file.sst.meta.file_id)).collect();
        ids.sort_unstable();
        ids
    };
    assert!(!ids(&db).is_empty() && ids(&db) == ids(&other_db), "otherwise the test says nothing");
    let diff = table.diff_with(&db.snapshot(), &other, &other_db.snapshot(), ..).expect("they have no groups");
    assert_eq!(diff.count(), 20_000);
}

#[test]
fn a_diff_refuses_snapshots_of_the_other_database_and_tables_with_other_groups() {
    let [first, second] =
        [1, 2].map(|seed| Database::builder("db").machine(Machine::simulated(seed).0).open().expect("the disk works"));
    let groups = vec!["one".to_owned(), "two".to_owned()];
    let [table, other] = [&first, &second].map(|db| db.table("t").expect("the disk works"));
    let grouped = second.table_with("g", TableOptions { groups, ..TableOptions::default() }).expect("the disk works");
    let [a, b] = [&first, &second].map(Database::snapshot);
    assert!(matches!(table.diff_with(&b, &other, &b, ..), Err(crate::Error::ForeignTable(_))));
    assert!(matches!(table.diff_with(&a, &other, &a, ..), Err(crate::Error::ForeignTable(_))));
    assert!(matches!(table.diff_with(&a, &grouped, &b, ..), Err(crate::Error::BadOptions(_))));
    assert_eq!(table.diff_with(&a, &other, &b, ..).expect("both are there").count(), 0);
}

/// Calls `work` and a flush, and returns the bytes of the files that are new then.
fn bytes_written(db: &Database, work: impl FnOnce()) -> u64 {
    let before: std::collections::BTreeMap<String, u64> = db.sst_files().into_iter().collect();
    work();
    db.flush().expect("the disk works");
    db.sst_files().into_iter().filter(|(name, _)| !before.contains_key(name)).map(|(_, bytes)| bytes).sum()
}

#[test]
fn going_back_writes_no_file_that_has_only_older_or_only_newer_rows() {
    let (machine, _) = Machine::simulated(1);
    let (db, table) = large(&machine, "db", 1);
    let large: u64 = db.sst_files().iter().map(|(_, bytes)| bytes).sum();
    let then = db.snapshot();
    (0..10).for_each(|row| table.insert(format!("{:06}", row * 1_777), "other").expect("it is taken"));
    db.flush().expect("the disk works");
    let clone = |name: &str| {
        bytes_written(&db, || {
            let clone = table.clone_at(name, &then).expect("the name is new");
            assert_eq!(clone.count_exact(..).expect("the disk works"), 20_000);
            let differences = clone.diff_with(&db.snapshot(), &table, &db.snapshot(), ..).expect("they have no groups");
            assert_eq!(differences.count(), 10);
        })
    };
    assert_eq!(clone("apart"), 0);
    db.compact().expect("the disk works");
    let mixed = clone("mixed");
    assert!((1..=large + (64 << 10)).contains(&mixed), "one file was mixed, of {large} bytes: {mixed}");
    let reverted = bytes_written(&db, || assert_eq!(table.revert(&then, ..).expect("nobody else writes"), 10));
    println!("{large} bytes in all, {mixed} for a clone after a compaction, {reverted} for a revert");
    assert!((1..=32 << 10).contains(&reverted), "{reverted} bytes for 10 rows, of {large}");
}

#[test]
fn a_clone_of_an_older_version_is_refused_as_each_clone_is() {
    let db = Database::builder("db").machine(Machine::simulated(1).0).open().expect("the disk works");
    let other = Database::builder("db").machine(Machine::simulated(2).0).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let then = db.snapshot();
    assert!(matches!(table.clone_at("u", &other.snapshot()), Err(crate::Error::ForeignTable(_))));
    assert!(matches!(table.clone_at("t", &then), Err(crate::Error::TableExists(_))));
    table.index_by("by", |_, value, emit| emit(value)).expect("the disk works");
    assert!(matches!(table.clone_at("u", &then), Err(crate::Error::HasIndexes { .. })));
    table.insert("a", "1").expect("commits go on");
    assert_eq!(db.tables(), ["t"]);
}

#[test]
fn a_diff_with_a_clone_uses_no_page_of_files_that_are_wholly_newer() {
    let (machine, _) = Machine::simulated(1);
    let db = Database::builder("db").machine(machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("it is taken");
    db.flush().expect("the disk works");
    let then = db.snapshot();
    let clone = table.clone_at("clone", &then).expect("the name is new");
    let mut batch = db.batch();
    (0..20_000).for_each(|number| batch.insert(&table, format!("{number:06}"), [1; 100]));
    batch.commit().expect("the disk works");
    db.flush().expect("the disk works");
    let begin = pages_used(&db);
    let diff = table.diff_with(&then, &clone, &db.snapshot(), ..).expect("they have no groups");
    assert_eq!(diff.count(), 0);
    let used = pages_used(&db) - begin;
    assert!(used < 10, "{used} pages were used, and the newer file has about 150");
}

/// A table of which one file has the row `a` twice: before the snapshot and after it.
fn with_mixed_file(machine: &Machine) -> (Database, Table, Snapshot) {
    let db = Database::builder("db").machine(machine.clone()).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("it is taken");
    let then = db.snapshot();
    table.insert("a", "2").expect("it is taken");
    table.insert("b", "2").expect("it is taken");
    db.flush().expect("the disk works");
    db.compact().expect("the disk works");
    (db, table, then)
}

#[test]
fn a_repair_without_a_manifest_gives_the_rows_of_a_clone_to_the_clone() {
    let (machine, disk) = Machine::simulated(1);
    let (db, table, then) = with_mixed_file(&machine);
    let clone = table.clone_at("clone", &then).expect("the name is new");
    drop((clone, then));
    table.remove("a").expect("it is taken");
    db.flush().expect("the disk works");
    // Nobody sees the row or its erase any more, so both go. The file of the clone stays as it was written.
    table.compact().expect("the disk works");
    drop(table);
    db.close().expect("the disk works");
    let machine = Machine::simulated_on(disk, 2);
    let place = Path::new("db");
    for entry in machine.disk.list(place).expect("the disk works") {
        if entry.name == "CURRENT" || entry.name.starts_with("MANIFEST") {
            machine.disk.remove(&place.join(&entry.name)).expect("it is there");
        }
    }
    crate::repair::repair_on(&machine, place, Path::new("new"), |_| {}).expect("there are files");
    let db = Database::builder("new").machine(machine).open().expect("it was made");
    assert_eq!(db.tables(), ["clone", "t"]);
    let rows = |name: &str| {
        let table = db.existing_table(name).expect("the disk works").expect("it is there");
        let rows = table.iter().map(|row| row.expect("the disk works"));
        rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect::<Vec<_>>()
    };
    assert_eq!(rows("clone"), [(b"a".to_vec(), b"1".to_vec())]);
    assert_eq!(rows("t"), [(b"b".to_vec(), b"2".to_vec())]);
}

#[test]
fn a_clone_that_is_cancelled_leaves_no_table_and_no_file() {
    let (machine, _) = Machine::simulated(1);
    let (db, table, then) = with_mixed_file(&machine);
    let ssts = || {
        let all = machine.disk.list(Path::new("db")).expect("the disk works").into_iter().map(|entry| entry.name);
        all.filter(|name| name.ends_with(".sst")).collect::<BTreeSet<_>>()
    };
    let before = ssts();
    for most in 0..100 {
        let mut calls = 0;
        let cloned = table.clone_at_with("clone", &then, |_| {
            calls += 1;
            if calls > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match cloned {
            Err(Error::Cancelled(work)) => {
                assert_eq!(work, "the clone");
                assert_eq!(db.tables(), ["t"]);
                assert!(ssts().is_subset(&before), "call {most}");
            }
            Err(error) => panic!("{error}"),
            Ok(clone) => {
                assert!(most > 1, "otherwise the test says nothing");
                assert_eq!(clone.get("a").expect("the disk works").as_deref(), Some(&b"1"[..]));
                // Ids that were taken for clones that came to nothing are not given again.
                let next = db.table("next").expect("the disk works");
                assert!(table.id() < clone.id() && clone.id() < next.id());
                return;
            }
        }
    }
    panic!("the clone calls its watch more often than it should");
}

#[test]
fn a_clone_of_an_older_version_gets_the_options_of_now_and_is_there_after_a_restart() {
    let (machine, disk) = Machine::simulated(1);
    let (db, table, then) = with_mixed_file(&machine);
    let mut calls = 0;
    let clone = table.clone_at_with("clone", &then, |_| {
        calls += 1;
        // The first call comes before the work.
        if calls == 2 {
            table.alter(|options| options.page_bytes = 8 << 10).expect("the disk works");
        }
    });
    drop(clone.expect("the name is new"));
    drop((table, then));
    db.close().expect("the disk works");
    let db = Database::builder("db").machine(Machine::simulated_on(disk, 2)).open().expect("the disk works");
    let clone = db.existing_table("clone").expect("the disk works").expect("it is there");
    assert_eq!(clone.options().page_bytes, 8 << 10);
    assert_eq!(clone.get("a").expect("the disk works").as_deref(), Some(&b"1"[..]));
}
