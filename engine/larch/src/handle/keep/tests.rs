//! Tests versions with names beyond what the random histories of `testkit` do.

use super::*;
use crate::event::Event;
use crate::manifest::Edit;
use crate::manifest::directory::fresh::FreshFiles;
use crate::open::idle::IdleJob;
use crate::options::Release;
use crate::past::Retention;
use crate::{Builder, Follow, Readable, Snapshot, Table, Version};
use os::sim::SimDisk;
use os::sync::{Arc, Mutex};
use os::{Disk, Job, Machine};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;

fn value(rows: &impl Readable, table: &Table, key: &str) -> Option<String> {
    let value = rows.get(table, key).expect("the disk works")?;
    Some(String::from_utf8_lossy(&value).into_owned())
}

fn on(disk: &Arc<SimDisk>, seed: u64) -> Builder {
    Database::builder("db").machine(Machine::simulated_on(disk.clone(), seed))
}

fn with_table() -> (Arc<SimDisk>, Database, Table) {
    let (_, disk) = Machine::simulated(1);
    let (db, table) = open(&disk, 1);
    (disk, db, table)
}

fn open(disk: &Arc<SimDisk>, seed: u64) -> (Database, Table) {
    let db = on(disk, seed).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    (db, table)
}

#[test]
fn a_kept_version_outlives_a_restart_and_every_compaction() {
    let (disk, mut db, mut table) = with_table();
    table.insert("a", "1").expect("it is taken");
    let kept = db.keep("first").expect("the disk works");
    assert_eq!((kept.version, db.version()), (Version(1), Version(1)));
    for seed in 2..5 {
        table.insert("a", seed.to_string()).expect("it is taken");
        table.remove_range("b"..).expect("it is taken");
        db.compact().expect("the disk works");
        disk.crash();
        drop((table, db));
        (db, table) = open(&disk, seed);
        assert_eq!(db.kept(), std::slice::from_ref(&kept));
        assert_eq!(value(&db.at("first").expect("it is kept"), &table, "a").as_deref(), Some("1"));
        assert_eq!(value(&db, &table, "a"), Some(seed.to_string()));
    }
    let history = || {
        db.core()
            .views
            .newest()
            .files
            .tables
            .values()
            .flat_map(|table| table.files())
            .any(|(_, file)| file.sst.meta.history.tree().is_some())
    };
    assert!(history(), "the older version lies in a file");
    assert_eq!(db.forget("first").expect("the disk works"), Some(kept.clone()));
    assert_eq!(db.forget("first").expect("the disk works"), None);
    assert!(matches!(db.at(&kept), Err(Error::NotKept { version: Version(1), .. })));
    db.compact().expect("the disk works");
    assert!(!history(), "nobody can see it any more");
}

#[test]
fn a_name_promises_that_its_version_is_durable() {
    let (_, disk) = Machine::simulated(1);
    let buffered = |seed| on(&disk, seed).durability(crate::Durability::Buffered).open().expect("the disk works");
    let db = buffered(1);
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("it is taken");
    assert!(db.durable_version() < db.version());
    db.keep("first").expect("the disk works");
    table.insert("a", "2").expect("it is taken");
    disk.crash_keeping_nothing();
    drop((table, db));
    let db = buffered(2);
    let table = db.table("t").expect("the disk works");
    assert_eq!(value(&db, &table, "a").as_deref(), Some("1"));
    assert_eq!(value(&db.at("first").expect("it is kept"), &table, "a").as_deref(), Some("1"));
}

#[test]
fn a_recovery_keeps_versions_that_are_in_the_log_alone() {
    for compacts in [false, true] {
        let (disk, db, table) = with_table();
        table.insert("a", "1").expect("it is taken");
        db.keep("first").expect("the disk works");
        table.insert("a", "2").expect("it is taken");
        disk.crash();
        drop((table, db));
        let (db, table) = open(&disk, 2);
        if compacts {
            db.compact().expect("the disk works");
        }
        assert_eq!(value(&db.at("first").expect("it is kept"), &table, "a").as_deref(), Some("1"));
        assert_eq!(value(&db, &table, "a").as_deref(), Some("2"));
    }
}

#[test]
fn only_what_is_kept_pinned_or_newest_can_be_read_again() {
    let (_, db, table) = with_table();
    for number in 1..=4 {
        table.insert("a", number.to_string()).expect("it is taken");
        if number == 2 {
            db.keep("two").expect("the disk works");
        }
    }
    let snapshot = db.snapshot();
    table.insert("a", "5").expect("it is taken");
    let read = |version| db.at(Version(version)).map(|past| value(&past, &table, "a"));
    for there in [2, 4, 5] {
        assert_eq!(read(there).expect("it is there"), Some(there.to_string()));
    }
    for gone in [0, 1, 3, 6, u64::MAX] {
        assert!(matches!(read(gone), Err(Error::NotKept { newest: Version(5), .. })), "{gone}");
    }
    let again = db.at(snapshot.version()).expect("it is pinned");
    drop(snapshot);
    db.compact().expect("the disk works");
    assert_eq!(value(&again, &table, "a").as_deref(), Some("4"), "the second snapshot pins it, too");
    db.keep_at("four", &again).expect("the disk works");
    drop(again);
    db.compact().expect("the disk works");
    assert_eq!(read(4).expect("it is kept"), Some("4".to_owned()));
    assert_eq!(db.kept().into_iter().map(|kept| kept.name).collect::<Vec<_>>(), ["two", "four"]);
    let names = db.at("five").expect_err("no version has the name").to_string();
    assert_eq!(names, "no version is kept as \"five\"; choose from four and two");
}

#[test]
fn names_that_cannot_be_are_refused() {
    let (disk, db, table) = with_table();
    for name in ["", &"x".repeat(256), "a\nb"] {
        assert!(matches!(db.keep(name), Err(Error::BadKeptName(_))), "{name:?}");
    }
    db.keep("once").expect("the disk works");
    table.insert("a", "1").expect("it is taken");
    assert!(matches!(db.keep("once"), Err(Error::KeptAlready { version: Version(0), .. })));
    let other = Database::in_memory().expect("it opens");
    assert!(matches!(db.keep_at("other", &other.snapshot()), Err(Error::OtherSnapshot)));
    for number in 1..crate::base::kept::MAX_KEPT {
        db.keep(&number.to_string()).expect("the disk works");
    }
    assert!(matches!(db.keep("one more"), Err(Error::TooManyKept(1_000))));
    let read_only = on(&disk, 2).read_only(true).open().expect("it opens");
    assert!(matches!(read_only.keep("x"), Err(Error::ReadOnly)));
    assert!(matches!(read_only.forget("once"), Err(Error::ReadOnly)));
}

#[test]
fn a_release_that_keeps_no_versions_is_not_promised_the_database() {
    let (disk, db, table) = with_table();
    drop((table, db));
    let old = |seed| on(&disk, seed).compat(Release::V0_1).open();
    let refused = old(2).expect("no version has a name").keep("x").expect_err("0.1 would drop it");
    assert!(matches!(refused, Error::BadOptions(ref why) if why.contains("0.1")), "{refused}");
    let (db, table) = open(&disk, 3);
    db.keep("x").expect("the disk works");
    drop((table, db));
    let refused = old(4).expect_err("0.1 would drop it");
    assert!(matches!(refused, Error::BadOptions(ref why) if why.contains("\"x\"")), "{refused}");
    let (db, table) = open(&disk, 5);
    db.forget("x").expect("the disk works");
    drop((table, db));
    old(6).expect("no version has a name");
}

#[test]
fn a_follower_reads_the_past_and_learns_new_names() {
    let (disk, db, table) = with_table();
    table.insert("a", "1").expect("it is taken");
    db.keep("first").expect("the disk works");
    let follower = on(&disk, 2).follow(Follow::Commits).open().expect("it opens");
    let its = follower.existing_table("t").expect("it reads").expect("it is there");
    table.insert("a", "2").expect("it is taken");
    db.keep("second").expect("the disk works");
    table.insert("a", "3").expect("it is taken");
    let old = follower.at("first").expect("it is kept");
    db.compact().expect("the disk works");
    follower.catch_up().expect("the disk works");
    for (name, expected) in [("first", "1"), ("second", "2")] {
        assert_eq!(value(&follower.at(name).expect("it is kept"), &its, "a").as_deref(), Some(expected));
    }
    assert_eq!((value(&old, &its, "a").as_deref(), value(&follower, &its, "a").as_deref()), (Some("1"), Some("3")));
    // Without following, the files of the moment are read, and the past in them, also after a writer has replaced them.
    let beside = on(&disk, 3).read_only(true).open().expect("it opens");
    let its = beside.existing_table("t").expect("it reads").expect("it is there");
    let past = beside.at("first").expect("it is in files");
    for round in 0..3 {
        table.insert("a", format!("4 {round}")).expect("it is taken");
        table.insert("b", [0; 2000]).expect("it is taken");
        db.compact().expect("the disk works");
        assert_eq!(value(&past, &its, "a").as_deref(), Some("1"));
    }
}

#[test]
fn a_copy_has_the_names_of_its_past_and_of_nothing_later() {
    let (disk, db, table) = with_table();
    table.insert("a", "1").expect("it is taken");
    db.keep("first").expect("the disk works");
    table.insert("a", "2").expect("it is taken");
    // The rows of both versions are in memory.
    db.checkpoint("copy").expect("the disk works");
    on(&disk, 2).read_only(true).open().expect("it opens").checkpoint("beside").expect("the disk works");
    for directory in ["copy", "beside"] {
        let machine = Machine::simulated_on(disk.clone(), 3);
        let copy = Database::builder(directory).machine(machine).open().expect("it opens");
        let its = copy.table("t").expect("it is there");
        assert_eq!(value(&copy.at("first").expect("it is kept"), &its, "a").as_deref(), Some("1"), "{directory}");
        assert_eq!(value(&copy, &its, "a").as_deref(), Some("2"), "{directory}");
    }
}

#[test]
fn a_name_knows_its_time() {
    let (_, db, _table) = with_table();
    let wall = db.core().env.machine.clock.wall();
    let kept = db.keep("now").expect("the disk works");
    assert!(kept.since.abs_diff(wall) < Duration::from_secs(1), "{kept:?} {wall:?}");
    assert_eq!(db.kept(), [kept]);
}

#[test]
fn the_past_that_is_kept_can_be_read_at_each_commit_and_moves_on_with_flushes() {
    let (disk, mut db, mut table) = with_table();
    table.insert("a", "0").expect("it is taken");
    assert_eq!((db.retention(), db.retained_from(), db.version_at(Duration::MAX)), (Retention::None, None, None));
    db.retain(Retention::Versions(10)).expect("the disk works");
    let begin = db.version().0;
    for number in 1..=50_u64 {
        table.insert("a", number.to_string()).expect("it is taken");
        if number % 7 == 0 {
            db.flush().expect("the disk works");
        }
        if number == 25 {
            disk.crash();
            drop((table, db));
            (db, table) = open(&disk, 2);
            assert_eq!(db.retention(), Retention::Versions(10));
        }
        if number % 10 == 0 {
            db.compact().expect("the disk works");
        }
        let from = db.retained_from().expect("it keeps its past").0;
        assert!(from >= begin && from <= (begin + number).saturating_sub(10).max(begin), "{from} at {number}");
        for version in from..=begin + number {
            let then = db.at(Version(version)).expect("it is kept");
            assert_eq!(value(&then, &table, "a"), Some((version - begin).to_string()));
        }
        assert!(from == 0 || db.at(Version(from - 1)).is_err(), "what is older is refused");
    }
    assert!(db.retained_from().expect("it keeps its past").0 >= begin + 30, "the past moves on");
    db.retain(Retention::None).expect("the disk works");
    assert!(db.at(Version(begin + 45)).is_err());
    db.compact().expect("the disk works");
    assert_eq!(value(&db, &table, "a").as_deref(), Some("50"));
}

#[test]
fn times_lead_to_versions_within_the_time_that_is_kept() {
    let (_, db, table) = with_table();
    let clock = db.core().env.machine.clock.clone();
    table.insert("a", "0").expect("it is taken");
    db.retain(Retention::Time(Duration::from_secs(60))).expect("the disk works");
    let mut made = Vec::new();
    for number in 1..=10 {
        table.insert("a", number.to_string()).expect("it is taken");
        db.flush().expect("the disk works");
        made.push((clock.wall(), db.version()));
        clock.sleep(Duration::from_secs(10));
    }
    let now = clock.wall();
    for (time, version) in made {
        if time + Duration::from_secs(50) > now {
            assert_eq!(db.version_at(time), Some(version));
            assert!(db.time_of(version).is_some_and(|of| of.abs_diff(time) < Duration::from_secs(1)));
            let then = db.at(time + Duration::from_secs(5)).expect("it is kept");
            assert_eq!(value(&then, &table, "a"), Some((version.0 - 1).to_string()));
        }
    }
    assert_eq!(db.at(now).expect("it is the newest").version(), db.version());
    let refused = db.at(Duration::from_secs(1)).expect_err("nothing is known of that time").to_string();
    assert!(refused.contains("is before the past that is kept"), "{refused}");
}

#[test]
fn the_past_of_a_time_moves_on_while_nobody_writes_and_its_space_comes_back() {
    let (disk, db, table) = with_table();
    let clock = db.core().env.machine.clock.clone();
    db.retain(Retention::Time(Duration::from_secs(600))).expect("the disk works");
    let begin = db.version();
    for number in 0..50 {
        table.insert("a", vec![number; 10_000]).expect("it is taken");
        clock.sleep(Duration::from_secs(1));
    }
    db.flush().expect("the disk works");
    db.compact().expect("the disk works");
    assert_eq!(db.retained_from(), Some(begin));
    let idle = IdleJob::new(Arc::downgrade(db.core()));
    let before = disk.list("db".as_ref()).expect("the disk works").len();
    for _ in 0..40 {
        clock.sleep(Duration::from_secs(37));
        idle.poll();
        idle.poll();
    }
    assert_eq!(db.retained_from(), Some(db.version()), "all older versions are past");
    db.compact().expect("the disk works");
    let history = |table: &Table| table.stats().expect("the disk works").history_rows;
    assert_eq!((history(&table), table.history("a").expect("the disk works").len()), (0, 1));
    assert!(disk.list("db".as_ref()).expect("the disk works").len() <= before);
    let (db, table) = {
        drop((idle, table, db));
        open(&disk, 2)
    };
    assert_eq!(db.retained_from(), Some(db.version()), "it is in the manifest");
    assert_eq!(table.history("a").expect("the disk works").len(), 1);
}

#[test]
fn a_flush_that_began_before_the_rule_changed_does_not_bring_the_old_rule_back() {
    let (_, db, table) = with_table();
    let core = db.core();
    for rules in [
        [Retention::Versions(2), Retention::None, Retention::None],
        [Retention::Versions(2), Retention::Everything, Retention::Everything],
        [Retention::Versions(2), Retention::None, Retention::Versions(2)],
    ] {
        db.retain(rules[0]).expect("the disk works");
        (0..10).for_each(|number| table.insert("a", number.to_string()).expect("it is taken"));
        let late = keep::edits_of_flush(core, db.version());
        assert!(late.iter().any(|edit| matches!(edit, Edit::RetainFrom { .. })), "{late:?}");
        rules[1..].iter().for_each(|rule| db.retain(*rule).expect("the disk works"));
        let from = db.retained_from();
        core.install(&late, FreshFiles::new(&core.env.opener.leftovers), |_| {}).expect("the disk works");
        assert_eq!((db.retention(), db.retained_from()), (rules[2], from));
        db.retain(Retention::None).expect("the disk works");
    }
}

#[test]
fn a_change_of_the_rule_never_moves_the_beginning_back() {
    let (_, db, table) = with_table();
    db.retain(Retention::Versions(2)).expect("the disk works");
    (0..10).for_each(|number| table.insert("a", number.to_string()).expect("it is taken"));
    db.flush().expect("the disk works");
    let from = db.retained_from().expect("it keeps its past");
    assert_eq!(from, Version(db.version().0 - 2));
    db.retain(Retention::Everything).expect("the disk works");
    assert_eq!(db.retained_from(), Some(from));
}

#[test]
fn after_commits_are_lost_the_past_begins_with_what_is_left() {
    let (_, disk) = Machine::simulated(1);
    let buffered = |seed| on(&disk, seed).durability(crate::Durability::Buffered).open().expect("the disk works");
    let db = buffered(1);
    let table = db.table("t").expect("the disk works");
    (0..10).for_each(|number| table.insert("a", number.to_string()).expect("it is taken"));
    db.retain(Retention::Everything).expect("the disk works");
    assert_eq!(db.retained_from(), Some(Version(10)));
    disk.crash_keeping_nothing();
    drop((table, db));
    let db = buffered(2);
    let table = db.table("t").expect("the disk works");
    let begin = db.version();
    assert!(begin < Version(10), "the commits were not durable");
    assert_eq!(db.retained_from(), Some(begin));
    for number in 1..=3_u64 {
        table.insert("a", format!("again {number}")).expect("it is taken");
    }
    db.compact().expect("the disk works");
    for number in 1..=3_u64 {
        let then = db.at(Version(begin.0 + number)).expect("it is kept");
        assert_eq!(value(&then, &table, "a"), Some(format!("again {number}")));
    }
}

#[test]
fn times_outlive_a_flush_that_fails() {
    let (disk, db, table) = with_table();
    db.retain(Retention::Everything).expect("the disk works");
    let clock = db.core().env.machine.clock.clone();
    table.insert("a", "1").expect("it is taken");
    let (time, version) = (clock.wall(), db.version());
    let moments = keep::edits_of_flush(db.core(), version);
    assert!(!moments.is_empty(), "the time is to be noted");
    clock.sleep(Duration::from_secs(5));
    table.insert("a", "2").expect("it is taken");
    assert_eq!(db.version_at(time), Some(version), "the edits were not installed");
    db.flush().expect("the disk works");
    assert_eq!(db.core().writes.times.lock().iter().count(), 0, "the manifest has them");
    assert_eq!(db.version_at(time), Some(version));
    drop((table, db));
    // The clock of the next machine begins anew, so the list is asked itself.
    let (db, _) = open(&disk, 2);
    let noted = db.core().views.newest().files.times.version_at(time.as_micros() as u64);
    assert_eq!(noted, Some(version));
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn all(rows: &impl Readable, table: &Table) -> Result<Rows, Error> {
    rows.reader(table)?.range(..).map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
}

/// Compares tables that have rules of their own with a model that keeps everything, through flushes, compactions,
/// changes of rules, indexes, crashes and reopens.
#[test]
fn each_table_keeps_its_past_by_its_own_rule() {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    for seed in 0..60 {
        println!("seed {seed}");
        let rng = &mut StdRng::seed_from_u64(seed);
        let (_, disk) = Machine::simulated(seed);
        let mut db = on(&disk, seed).open().expect("the disk works");
        let open_tables = |db: &Database| {
            let tables = NAMES.map(|name| db.table(name).expect("the disk works"));
            tables[0].index_by("whole", |_, value, emit| emit(value)).expect("the disk works");
            tables
        };
        let mut tables = open_tables(&db);
        let mut model: BTreeMap<Version, [Rows; 3]> = BTreeMap::from([(db.version(), Default::default())]);
        let mut pinned: Vec<(Snapshot, usize)> = Vec::new();
        for _ in 0..rng.random_range(20..120) {
            let which = rng.random_range(0..3);
            let rule = |rng: &mut StdRng| match rng.random_range(0..4) {
                0 => Retention::None,
                1 => Retention::Versions(rng.random_range(0..30)),
                2 => Retention::Time(Duration::from_secs(rng.random_range(1..20))),
                _ => Retention::Everything,
            };
            match rng.random_range(0..30) {
                0..14 => {
                    let (key, value) = (vec![rng.random_range(0..12)], vec![rng.random(), rng.random()]);
                    tables[which].insert(&key, &value).expect("the disk works");
                    let mut now = model.last_key_value().expect("it is not empty").1.clone();
                    now[which].insert(key, value);
                    model.insert(db.version(), now);
                }
                14 | 15 => {
                    let key = vec![rng.random_range(0..12)];
                    tables[which].remove_range(&key[..]..).expect("the disk works");
                    let mut now = model.last_key_value().expect("it is not empty").1.clone();
                    now[which].retain(|other, _| *other < key);
                    model.insert(db.version(), now);
                }
                16 | 17 => db.flush().expect("the disk works"),
                18 | 19 => tables[which].compact().expect("the disk works"),
                20 => db.compact().expect("the disk works"),
                21 => tables[which].retain_as_database().expect("the disk works"),
                22 | 23 => {
                    let rule = rule(rng);
                    tables[which].retain(rule).expect("the disk works");
                    assert_eq!(tables[which].retention(), Some(rule));
                }
                24 | 25 => db.retain(rule(rng)).expect("the disk works"),
                26 => db.core().env.machine.clock.sleep(Duration::from_secs(rng.random_range(1..5))),
                27 if !pinned.is_empty() => drop(pinned.swap_remove(0)),
                28 => {
                    pinned.clear();
                    drop(tables);
                    if rng.random() {
                        disk.crash_keeping_everything();
                    }
                    drop(db);
                    db = on(&disk, seed).open().expect("the disk works");
                    tables = open_tables(&db);
                    // An index that is closed by a closure begins anew with it.
                    assert_eq!(all(&db.snapshot(), &tables[1]).ok().as_ref(), model.values().last().map(|now| &now[1]));
                }
                _ => {}
            }
            let newest = db.version();
            let first = model.keys().next().copied().expect("it is not empty");
            let at = Version(rng.random_range(first.0..=newest.0));
            let (_, then) = model.range(..=at).next_back().expect("it has the first version");
            let is_kept = |table: &Table| table.retained_from().is_some_and(|from| from <= at);
            match db.at(at) {
                Ok(past) => {
                    for (table, expected) in tables.iter().zip(then) {
                        match all(&past, table) {
                            Ok(rows) => assert_eq!(rows, *expected, "{} at {at:?}", table.name()),
                            Err(Error::NotKeptOf { .. }) => assert!(!is_kept(table), "{} at {at:?}", table.name()),
                            Err(error) => panic!("{error}"),
                        }
                    }
                    if pinned.len() < 3 && rng.random_range(0..8) == 0 {
                        let shown =
                            tables.iter().position(|table| past.reader(table).is_ok()).expect("some table shows it");
                        pinned.push((past, shown));
                    }
                }
                Err(Error::NotKept { .. }) => assert!(!tables.iter().any(is_kept), "{at:?}"),
                Err(error) => panic!("{error}"),
            }
            for (past, shown) in &pinned {
                let (_, then) = model.range(..=past.version()).next_back().expect("it has the first version");
                assert_eq!(all(past, &tables[*shown]).expect("it is pinned"), then[*shown]);
            }
        }
    }
}

#[test]
fn what_a_table_no_longer_keeps_gives_its_space_back_while_others_keep_theirs() {
    let (_, db, table) = with_table();
    let other = db.table("other").expect("the disk works");
    db.retain(Retention::Everything).expect("the disk works");
    other.retain(Retention::None).expect("the disk works");
    let first = db.version();
    for number in 0..50 {
        table.insert("a", number.to_string()).expect("it is taken");
        other.insert("a", number.to_string()).expect("it is taken");
    }
    let middle = db.version();
    db.compact().expect("the disk works");
    let history = |table: &Table| table.stats().expect("the disk works").history_rows;
    assert_eq!((history(&table), history(&other)), (49, 0));
    assert!(matches!(db.at(first).expect("it is kept").get(&other, "a"), Err(Error::NotKeptOf { .. })));
    assert!(matches!(db.keep_at("parts", &db.at(first).expect("it is kept")), Err(Error::NotKept { .. })));
    let copy = other.clone_as("copy").expect("the disk works");
    assert_eq!((copy.retention(), copy.retained_from()), (Some(Retention::None), None), "its files keep no more");
    assert!(matches!(db.at(first).expect("it is kept").get(&copy, "a"), Err(Error::NotKeptOf { .. })));
    let middle = db.version().max(middle);
    other.retain_as_database().expect("the disk works");
    assert_eq!(other.retained_from(), Some(middle), "its past begins anew");
    table.retain_as_database().expect("the disk works");
    assert_eq!(table.retained_from(), Some(first));
    other.insert("a", "50").expect("it is taken");
    assert_eq!(value(&db.at(middle).expect("it is kept"), &other, "a").as_deref(), Some("49"));
    db.drop_table("other").expect("the disk works");
    db.drop_table("copy").expect("the disk works");
    assert!(db.core().views.newest().files.table_pasts.is_empty());
}

#[test]
fn a_past_that_may_fill_the_disk_is_reported_long_before() {
    let (_, disk) = Machine::simulated(1);
    let reports = Arc::new(Mutex::new(Vec::new()));
    let noted = reports.clone();
    let note = move |event: &Event| {
        if let Event::PastFillsDisk { history_bytes, free_bytes } = event {
            noted.lock().push((*history_bytes, *free_bytes));
        }
    };
    let db = on(&disk, 1).on_event(note).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    db.retain(Retention::Everything).expect("the disk works");
    disk.set_capacity(disk.used_bytes() + (4 << 20));
    let step = |db: &Database| {
        for number in 0..10 {
            table.insert("a", vec![number; 10_000]).expect("it is taken");
        }
        db.flush().expect("the disk works");
        reports.lock().len()
    };
    let steps = (1..100).find(|_| step(&db) > 0).expect("it is reported before the disk is full");
    let (history_bytes, free_bytes) = reports.lock()[0];
    assert!(free_bytes < history_bytes && free_bytes > 1 << 20, "{history_bytes} {free_bytes} after {steps} steps");
    step(&db);
    assert_eq!(reports.lock().len(), 1, "it is said once");
    disk.set_capacity(u64::MAX);
    step(&db);
    disk.set_capacity(disk.used_bytes() + (1 << 20));
    step(&db);
    assert_eq!(reports.lock().len(), 2, "after there was room, it is said again");
}
