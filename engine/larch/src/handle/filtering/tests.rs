//! Tests that a filter takes nothing from those who still see it, that it never touches a row that was written again,
//! and that it has the last word once all rows were judged.

use super::*;
use crate::filter::{JudgedRow, Verdict};
use crate::past::{ChangeKind, Retention};
use crate::{Database, Readable, Snapshot, TableOptions, Version};
use os::Machine;
use os::sim::SimDisk;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// What becomes of a row with `value`: values that begin with 0 go, and those that begin with 1 begin with 9 from then
/// on.
fn verdict(value: &[u8]) -> Verdict {
    match value.first() {
        Some(0) => Verdict::Remove,
        Some(1) => Verdict::replace([&[9], &value[1..]].concat()),
        _ => Verdict::Keep,
    }
}

fn by_value(row: &JudgedRow<'_>) -> Verdict {
    verdict(row.value())
}

fn judged(model: &Model) -> Model {
    let new = |(key, value): (&Vec<u8>, &Vec<u8>)| match verdict(value) {
        Verdict::Keep => Some((key.clone(), value.clone())),
        Verdict::Remove => None,
        Verdict::Replace(parts) => Some((key.clone(), parts.concat())),
    };
    model.iter().filter_map(new).collect()
}

fn rows(from: &Snapshot, table: &Table) -> Model {
    collect(from.reader(table).expect("it is a table of the database").range(..))
}

fn now(table: &Table) -> Model {
    collect(table.range(..))
}

fn collect(rows: crate::Range) -> Model {
    rows.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).expect("the disk works")).collect()
}

fn open(disk: &Arc<SimDisk>) -> Database {
    Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).open().expect("the disk works")
}

fn key(i: u32) -> [u8; 2] {
    (i as u16).to_be_bytes()
}

#[test]
fn a_filter_takes_nothing_from_snapshots_and_kept_versions_and_is_in_the_feed() {
    let (_, disk) = Machine::simulated(1);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    let by_first = table.index_by("first", |_, value, emit| emit(&value[..1])).expect("the disk works");
    db.retain(Retention::Everything).expect("the disk works");
    for i in 0..300 {
        table.insert(key(i), [(i % 3) as u8, 7]).expect("the disk works");
    }
    let (before, before_filter) = (db.snapshot(), db.version());
    db.keep("before").expect("the disk works");
    let expected = now(&table);
    let filtering = table.filter(by_value).expect("the table has no filter");
    assert!(matches!(table.filter(by_value), Err(Error::Filtered(name)) if name == "t"));
    table.compact().expect("the disk works");
    assert_eq!(now(&table), expected, "a compaction changes nothing by itself");
    assert_eq!(filtering.carry_out().expect("the disk works"), 200);
    let counts = filtering.counts();
    assert_eq!((counts.judged, counts.removed, counts.replaced, counts.outdated), (300, 100, 100, 0), "{counts}");
    assert_eq!(now(&table), judged(&expected));
    table.compact().expect("the disk works");
    filtering.carry_out().expect("the disk works");
    for then in [before, db.at("before").expect("it is kept")] {
        assert_eq!(rows(&then, &table), expected);
        assert_eq!(then.get_by(&by_first, [0]).expect("the index is complete").len(), 100);
    }
    assert_eq!(by_first.get_by([0]).expect("the disk works").len(), 0);
    assert_eq!(by_first.get_by([9]).expect("the disk works").len(), 100);
    let mut feed = db.changes(Version(before_filter.0)).expect("it is retained");
    let (mut erased, mut put) = (0, 0);
    while let Some(change) = feed.next_change().expect("the disk works") {
        match change.kind() {
            ChangeKind::Erase { .. } => erased += 1,
            ChangeKind::Put { value, .. } => put += u32::from(value.whole()[0] == 9),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((erased, put), (100, 100));
}

#[test]
fn all_parts_and_the_time_of_a_row_are_judged_and_stay() {
    let (_, disk) = Machine::simulated(1);
    let db = open(&disk);
    let groups = ["name", "photo"].map(str::to_owned).to_vec();
    let table = db.table_with("t", TableOptions { groups, ..TableOptions::default() }).expect("the disk works");
    let until = db.clock() + Duration::from_secs(1000);
    table.insert_parts_until("a", &[&b"ada"[..], &[1; 9000]], until).expect("the disk works");
    table.insert_parts("b", &[&b"bob"[..], &[2; 9000]]).expect("the disk works");
    table.insert_parts_until("c", &[&b"gone"[..], b""], db.clock()).expect("the disk works");
    let filter = move |row: &JudgedRow<'_>| {
        assert_eq!((row.parts.len(), row.parts[1].len()), (2, 9000));
        assert_eq!(row.until, (row.key == b"a").then_some(until));
        Verdict::Replace(vec![[row.value(), b"!"].concat(), row.parts[1][..1].to_vec()])
    };
    let filtering = table.filter(filter).expect("the table has no filter");
    table.compact().expect("the disk works");
    assert_eq!(filtering.carry_out().expect("the disk works"), 2, "{}", filtering.counts());
    let parts = |key| {
        let parts = table.select(["name", "photo"]).expect("they are its groups").get(key);
        let parts = parts.expect("the disk works").expect("it is there");
        parts.iter().map(|part| part.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(parts("a"), [b"ada!".to_vec(), vec![1]]);
    assert_eq!(parts("b"), [b"bob!".to_vec(), vec![2]]);
    assert_eq!(table.until("a").expect("the disk works"), Some(until));
    assert_eq!(table.until("b").expect("the disk works"), None);
}

#[test]
fn rows_that_a_commit_refuses_stay_and_the_others_go() {
    let (_, disk) = Machine::simulated(1);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    let options = crate::index::IndexOptions { unique: true };
    table.index_by_with("whole", &options, |_, value, emit| emit(value)).expect("the disk works");
    for i in 0..6 {
        table.insert(key(i), [i as u8]).expect("it is unique");
    }
    // 2 and 3 would both become 9, so the second one stays; 4 would get two parts, which the table does not have.
    let filter = |row: &JudgedRow<'_>| match row.value()[0] {
        2 | 3 => Verdict::replace([9]),
        4 => Verdict::Replace(vec![vec![4], vec![4]]),
        5 => Verdict::Remove,
        _ => Verdict::Keep,
    };
    let filtering = table.filter(filter).expect("the table has no filter");
    table.compact().expect("the disk works");
    filtering.carry_out().expect_err("two rows are refused");
    let counts = filtering.counts();
    assert_eq!((counts.removed, counts.replaced, counts.left), (1, 1, 2), "{counts}");
    let values: Vec<u8> = now(&table).into_values().map(|value| value[0]).collect();
    assert_eq!(values, [0, 1, 9, 3, 4]);
}

#[test]
fn a_filter_that_panics_ends_and_its_table_goes_on() {
    let (_, disk) = Machine::simulated(1);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("the disk works");
    let filtering =
        table.filter(|_: &JudgedRow<'_>| panic!("a fault of the program")).expect("the table has no filter");
    table.compact().expect("the compaction goes on");
    assert_eq!(filtering.carry_out().expect("there is nothing to do"), 0);
    assert!(filtering.counts().has_panicked, "{}", filtering.counts());
    drop(filtering);
    let filtering = table.filter(by_value).expect("the first filter is gone");
    table.insert("b", [0]).expect("the disk works");
    table.compact().expect("the disk works");
    assert_eq!(filtering.carry_out().expect("the disk works"), 1);
}

/// Compares a filtered table with a model through random writes, snapshots, compactions, crashes and reopens.
#[test]
fn a_filtered_table_equals_its_model() {
    for seed in 0..40 {
        println!("seed {seed}");
        let rng = &mut StdRng::seed_from_u64(seed);
        let (_, disk) = Machine::simulated(seed);
        let mut db = open(&disk);
        let mut table = db.table("t").expect("the disk works");
        let mut filtering = Some(table.filter(by_value).expect("the table has no filter"));
        let mut model = Model::new();
        let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
        for _ in 0..rng.random_range(20..150) {
            let name = key(rng.random_range(0..40));
            match rng.random_range(0..20) {
                0..10 => {
                    let value = vec![rng.random_range(0..4), rng.random_range(0..200)];
                    table.insert(name, &value).expect("the disk works");
                    model.insert(name.to_vec(), value);
                }
                10 => {
                    table.remove(name).expect("the disk works");
                    model.remove(&name[..]);
                }
                11 => {
                    table.remove_range(name..key(u32::from(u16::from_be_bytes(name)) + 5)).expect("the disk works");
                    let end = key(u32::from(u16::from_be_bytes(name)) + 5);
                    model.retain(|key, _| key[..] < name[..] || key[..] >= end[..]);
                }
                12 | 13 => db.flush().expect("the disk works"),
                14 => table.compact().expect("the disk works"),
                15 => snapshots.push((db.snapshot(), now(&table))),
                16 if !snapshots.is_empty() => {
                    let (snapshot, then) = snapshots.swap_remove(rng.random_range(0..snapshots.len()));
                    assert_eq!(rows(&snapshot, &table), then);
                }
                17 => {
                    if let Some(filtering) = &filtering {
                        filtering.carry_out().expect("the disk works");
                    }
                    // What was carried out is what the filter says of the rows, and nothing else has changed.
                    let now = now(&table);
                    for (key, value) in &model {
                        let found = now.get(key);
                        let new = judged(&Model::from([(key.clone(), value.clone())])).remove(key);
                        assert!(found == Some(value) || found == new.as_ref(), "{key:?} {value:?} {found:?}");
                    }
                    assert!(now.keys().all(|key| model.contains_key(key)));
                    model = now;
                }
                18 => {
                    let has_filter = filtering.take().is_some();
                    if !has_filter {
                        filtering = Some(table.filter(by_value).expect("the last filter is gone"));
                    }
                }
                19 if rng.random_range(0..4) == 0 => {
                    snapshots.clear();
                    let before = now(&table);
                    drop((filtering.take(), table));
                    if rng.random() {
                        drop(db);
                    } else {
                        disk.crash_keeping_everything();
                        drop(db);
                    }
                    db = open(&disk);
                    table = db.table("t").expect("the disk works");
                    assert_eq!(now(&table), before);
                    model = before;
                }
                _ => {}
            }
        }
        let filtering = filtering.unwrap_or_else(|| table.filter(by_value).expect("the last filter is gone"));
        let left: Vec<Model> = snapshots.iter().map(|(snapshot, _)| rows(snapshot, &table)).collect();
        table.compact().expect("the disk works");
        filtering.carry_out().expect("the disk works");
        assert_eq!(now(&table), judged(&model));
        for ((snapshot, then), left) in snapshots.iter().zip(left) {
            assert_eq!((&rows(snapshot, &table), &left), (then, then));
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test needs threads")]
fn rows_that_are_written_while_compactions_run_are_never_judged_by_an_older_value() {
    let directory = tempfile::tempdir().expect("a directory");
    let db = Database::builder(&directory).write_buffer_bytes(64 << 10).durability(Durability::Buffered).open();
    let db = db.expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let filtering = table.filter(by_value).expect("the table has no filter");
    let last: Vec<Model> = thread::scope(|scope| {
        let write = |number: u64| {
            let table = &table;
            move || {
                println!("seed {number}");
                let rng = &mut StdRng::seed_from_u64(number);
                let mut last = Model::new();
                for i in 0..8_000u32 {
                    let key = [&[number as u8][..], &key(rng.random_range(0..200))].concat();
                    let value = [&[rng.random_range(0..4)][..], &i.to_be_bytes()].concat();
                    table.insert(&key, &value).expect("the disk works");
                    last.insert(key, value);
                }
                last
            }
        };
        let writers: Vec<_> = (0..3).map(|number| scope.spawn(write(number))).collect();
        for _ in 0..5 {
            table.compact().expect("the disk works");
        }
        writers.into_iter().map(|writer| writer.join().expect("it does not panic")).collect()
    });
    table.compact().expect("the disk works");
    filtering.carry_out().expect("the disk works");
    let expected: Model = last.iter().flat_map(judged).collect();
    assert_eq!(now(&table), expected, "{}", filtering.counts());
    // A filter that is dropped holds nothing back: the database closes, and opens again at once.
    drop((filtering, table));
    db.close().expect("no handle is left");
    Database::open(&directory).expect("it was closed");
}
