//! Tests reads of tables with column groups, and what these reads cost. Compares them with a model, for every kind of
//! selection, source and cache size.
//!
//! These tests write files themselves, level by level. The tests of the writers cover how the engine writes files.

use super::multi::AnswerBytes;
use super::{PartRange, content_of, multi};
use crate::base::ops::BatchOps;
use crate::base::parts;
use crate::manifest::Edit;
use crate::manifest::directory::fresh::FreshFiles;
use crate::options::PageIndexKind;
use crate::view::part_list::PartList;
use crate::view::point::PointRead;
use crate::view::value::Parts;
use crate::write::commit;
use crate::write::room::rotate;
use crate::{Database, Durability, Error, Readable, Selection, Snapshot, Table, TableOptions};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Access, Machine};
use pages::{Admit, Flaky, PageKind, PageLender, PageRef, PageSource, Reason, Session, retry};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use sst::{RowKind, SstBuilder};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;

mod excerpts;
mod following;
mod forms;
mod lent;
mod moving;
mod seeking;

type Row = Vec<Vec<u8>>;
type Model = BTreeMap<Vec<u8>, Row>;

const GROUPS: [&str; 3] = ["hot", "warm", "cold"];

fn options(groups: &[&str]) -> TableOptions {
    TableOptions { groups: groups.iter().map(|&name| name.to_owned()).collect(), ..TableOptions::default() }
}

fn tiny_pages(index: PageIndexKind) -> TableOptions {
    TableOptions { page_bytes: 256, node_bytes: 256, index, ..options(&GROUPS) }
}

fn open(disk: &Arc<SimDisk>, cache_bytes: u64) -> Database {
    let machine = Machine::simulated_on(disk.clone(), 1);
    Database::builder("db").machine(machine).cache_bytes(cache_bytes).open().expect("the disk works")
}

fn commit(table: &Table, fill: impl FnOnce(&mut BatchOps, u32)) {
    let mut ops = BatchOps::new();
    fill(&mut ops, table.id().0);
    commit::commit(table.core(), ops.resolve(), &[table.identity().clone()], Durability::Buffered)
        .expect("the disk works");
}

fn put(table: &Table, key: &[u8], row: &[impl AsRef<[u8]>]) {
    let mut value = Vec::new();
    parts::encode(row, &mut value);
    commit(table, |ops, id| ops.put(id, key, &value));
}

/// Writes the table's rows in memory to files of `level`, with at most `rows` keys each. The last file gets the range
/// erases. No other table may have rows in memory.
fn flush(table: &Table, level: u8, rows: u64) {
    let core = table.core();
    let old = {
        let mut guard = core.writes.writer.lock();
        let writer = guard.as_mut().expect("it is open for writing");
        let old = writer.memory().clone();
        rotate(core, writer).expect("the disk works");
        old
    };
    let options = table.options();
    let groups = options.groups.len().max(1);
    let begin = || {
        let number = core.writes.new_number();
        let path = core.env.opener.path(number, core.env.epoch);
        let file = core.env.machine.disk.open(&path, Access::Create).expect("the disk works");
        let options = sst::BuildOptions {
            groups: groups - 1,
            ..options.build(sst::FilterKind::None, crate::options::Release::NEWEST)
        };
        (SstBuilder::new(file, path, number, options), number)
    };
    let mut edits = Vec::new();
    let mut finish = |(builder, number): (SstBuilder, u64)| {
        let meta = builder.finish().expect("the disk works");
        edits.push(Edit::AddFile(crate::manifest::NewFile {
            table: table.id(),
            level,
            number,
            epoch: core.env.epoch,
            version_offset: 0,
            meta,
        }));
    };
    let memtable = old.table(table.id()).expect("something was written");
    let mut open = begin();
    for row in memtable.all_versions() {
        if open.0.rows() >= rows && open.0.last_key() != row.key() {
            finish(std::mem::replace(&mut open, begin()));
        }
        let slices = parts::Slices::of(row.value(), groups).filter(|_| row.kind() == RowKind::Put);
        let parts = slices.as_deref().unwrap_or_default();
        open.0.add(row.key(), row.version(), row.kind(), parts).expect("the disk works");
    }
    for erase in memtable.range_erases() {
        open.0.add_range_erase(&erase.keys, &erase.versions).expect("the disk works");
    }
    finish(open);
    let visible = core.views.visible();
    let oldest_log = core.views.newest().memory[0].log;
    edits.extend([Edit::OldestLog(oldest_log), Edit::LastVersion(visible), Edit::FlushedVersion(visible)]);
    core.install(&edits, FreshFiles::new(&core.env.opener.leftovers), |view| {
        view.memory.retain(|memory| memory.log != old.log)
    })
    .expect("the disk works");
}

fn key(rng: &mut StdRng) -> Vec<u8> {
    let mut key = format!("k{:03}", rng.random_range(0..200)).into_bytes();
    if key[3] == b'7' {
        key.extend_from_slice(&[b'x'; 80]);
    }
    key
}

/// A row with some empty parts, and some that are large enough to lie outside their pages.
fn row(rng: &mut StdRng) -> Row {
    let mut part = || {
        let bytes = [0, 3, 20, 60, 100, 700][rng.random_range(0..6)];
        vec![rng.random_range(b'a'..=b'z'); bytes]
    };
    (0..GROUPS.len()).map(|_| part()).collect()
}

/// Makes a random change to the table and the model.
fn change(rng: &mut StdRng, table: &Table, model: &mut Model, ranges: bool) {
    let key_now = key(rng);
    match rng.random_range(0..20) {
        0 if ranges => {
            let [start, end] = [key_now, key(rng)];
            model.retain(|key, _| *key < start || *key >= end);
            table.remove_range(start..end).expect("the disk works");
        }
        0..4 => {
            model.remove(&key_now);
            table.remove(&key_now).expect("the disk works");
        }
        _ => {
            let row = row(rng);
            put(table, &key_now, &row);
            model.insert(key_now, row);
        }
    }
}

/// Fills a table so that it has files in two levels, four overlapping files in level 0, rows in memory, and range
/// erases everywhere. Returns some snapshots of it with the models that they must show, newest last.
fn history(rng: &mut StdRng, db: &Database, table: &Table) -> Vec<(Snapshot, Model)> {
    let mut model = Model::new();
    let mut shown = Vec::new();
    for (writes, to) in [(300, Some(6)), (40, Some(0)), (40, Some(0)), (40, Some(0)), (20, None)] {
        for _ in 0..writes {
            change(rng, table, &mut model, to != Some(6));
            if rng.random_range(0..30) == 0 {
                shown.push((db.snapshot(), model.clone()));
            }
        }
        match to {
            Some(0) => flush(table, 0, u64::MAX),
            Some(level) => flush(table, level, 30),
            None => {}
        }
    }
    shown.push((db.snapshot(), model));
    shown
}

fn picked(row: &Row, groups: &[usize]) -> Row {
    groups.iter().map(|&group| row[group].clone()).collect()
}

fn bytes(parts: &[crate::Value]) -> Row {
    parts.iter().map(|part| part.to_vec()).collect()
}

const CHOICES: [&[usize]; 7] = [&[], &[0], &[1], &[2, 0], &[1, 2], &[0, 1, 2], &[2, 1, 0]];

fn chosen(table: &Table, groups: &[usize]) -> Selection {
    table.select(groups.iter().map(|&group| GROUPS[group])).expect("the table has them")
}

#[track_caller]
fn check_point_reads(rng: &mut StdRng, selection: &Selection, model: &Model, groups: &[usize]) {
    let mut keys: Vec<Vec<u8>> = (0..60).map(|_| key(rng)).collect();
    keys.extend(keys[..10].to_vec());
    keys.shuffle(rng);
    let expected: Vec<Option<Row>> = keys.iter().map(|key| model.get(key).map(|row| picked(row, groups))).collect();
    let one_by_one = keys.iter().map(|key| selection.get(key).expect("the disk works").map(|parts| bytes(&parts)));
    assert_eq!(one_by_one.collect::<Vec<_>>(), expected);
    let together = selection.multi_get(&keys).expect("the disk works");
    assert_eq!(together.iter().map(|parts| parts.as_deref().map(bytes)).collect::<Vec<_>>(), expected);
    for (key, expected) in keys.iter().zip(&expected) {
        assert_eq!(selection.contains_key(key).expect("the disk works"), expected.is_some());
    }
}

/// Takes rows from both ends in the order of `rng`, and checks that all forms of a row agree.
#[track_caller]
fn check_range(rng: &mut StdRng, mut range: PartRange, expected: &[(Vec<u8>, Row)]) {
    let mut left = expected;
    loop {
        let forward = rng.random();
        let expected = if forward { left.split_first() } else { left.split_last() };
        if rng.random() {
            let next = if forward { range.next() } else { range.next_back() };
            let next = next.transpose().expect("the disk works");
            assert_eq!(next.map(|(key, parts)| (key.to_vec(), bytes(&parts))).as_ref(), expected.map(|(row, _)| row));
        } else {
            let next = if forward { range.next_row() } else { range.next_row_back() };
            let next = next.expect("the disk works");
            assert_eq!(next.is_some(), expected.is_some());
            if let (Some(row), Some(((key, parts), _))) = (&next, expected) {
                assert_eq!((row.key(), row.part_count()), (&key[..], parts.len()));
                for (i, part) in parts.iter().enumerate() {
                    assert_eq!(row.part_len(i), part.len() as u64);
                    assert!(row.inline_part(i).is_none_or(|inline| inline == part));
                    assert_eq!(row.part(i).expect("the disk works")[..], part[..]);
                }
                if let [only] = &parts[..] {
                    assert_eq!(row.value().expect("the disk works")[..], only[..]);
                    assert_eq!((row.value_len(), row.inline_value()), (only.len() as u64, row.inline_part(0)));
                }
            }
        }
        let Some((_, rest)) = expected else { return };
        left = rest;
    }
}

#[track_caller]
fn check_ranges(rng: &mut StdRng, selection: &Selection, model: &Model, groups: &[usize]) {
    let rows = |low: Bound<&Vec<u8>>, high: Bound<&Vec<u8>>| -> Vec<(Vec<u8>, Row)> {
        let rows = model.range::<Vec<u8>, _>((low, high));
        rows.map(|(key, row)| (key.clone(), picked(row, groups))).collect()
    };
    let all = rows(Bound::Unbounded, Bound::Unbounded);
    check_range(rng, selection.iter(), &all);
    for _ in 0..4 {
        let [low, high] = [key(rng), key(rng)];
        if low < high {
            check_range(
                rng,
                selection.range(low.clone()..high.clone()),
                &rows(Bound::Included(&low), Bound::Excluded(&high)),
            );
            let (low, high) = (Bound::Excluded(&low), Bound::Included(&high));
            check_range(rng, selection.range((low, high)), &rows(low, high));
        }
    }
    let of_prefix: Vec<_> = all.iter().filter(|(key, _)| key.starts_with(b"k1")).cloned().collect();
    check_range(rng, selection.prefix("k1"), &of_prefix);
    let owned = |row: Option<(crate::Key, Parts)>| row.map(|(key, parts)| (key.to_vec(), bytes(&parts)));
    assert_eq!(owned(selection.first_key_value().expect("the disk works")).as_ref(), all.first());
    assert_eq!(owned(selection.last_key_value().expect("the disk works")).as_ref(), all.last());
}

#[test]
fn selections_show_what_was_written_at_every_snapshot_with_any_cache() {
    for seed in 0..4 {
        for (index, cache_bytes) in
            [(PageIndexKind::Btree, 64 << 20), (PageIndexKind::Both, 3 * 4400), (PageIndexKind::Flat, 40 * 4400)]
        {
            println!("seed {seed}, {index:?}, cache of {cache_bytes} bytes");
            let mut rng = StdRng::seed_from_u64(seed);
            let disk = SimDisk::new(seed);
            let db = open(&disk, cache_bytes);
            let table = db.table_with("t", tiny_pages(index)).expect("the disk works");
            let shown = history(&mut rng, &db, &table);
            for (snapshot, model) in shown.iter().skip(seed as usize % 3).step_by(3) {
                for groups in CHOICES {
                    let selection = chosen(&table, groups).at(snapshot).expect("it is of this database");
                    check_point_reads(&mut rng, &selection, model, groups);
                    check_ranges(&mut rng, &selection, model, groups);
                }
            }
            let (_, now) = shown.last().expect("the newest");
            for groups in CHOICES {
                let selection = chosen(&table, groups);
                check_point_reads(&mut rng, &selection, now, groups);
                check_ranges(&mut rng, &selection, now, groups);
            }
        }
    }
}

#[test]
fn parts_are_found_whatever_pages_are_refused() {
    let mut rng = StdRng::seed_from_u64(7);
    let db = open(&SimDisk::new(7), 8 << 20);
    let table = db.table_with("t", tiny_pages(PageIndexKind::Btree)).expect("the disk works");
    let shown = history(&mut rng, &db, &table);
    let (_, model) = &shown[shown.len() - 1];
    let keys: Vec<Vec<u8>> = (0..80).map(|_| key(&mut rng)).collect();
    for groups in CHOICES {
        let wanted = groups.iter().try_fold(PartList::nothing(3), |wanted, &group| wanted.with(group)).expect("once");
        let expected: Vec<Option<Row>> = keys.iter().map(|key| model.get(key).map(|row| picked(row, groups))).collect();
        let cache = &table.core().env.cache;
        let session = || Session::new(cache, Reason::Point, Admit::Keep);
        for source in [Flaky::once(session()), Flaky::forgetful(session(), 1), Flaky::forgetful(session(), 2)] {
            let found = table.look(|table| {
                let one_by_one = keys.iter().map(|key| {
                    let mut read = PointRead::new(table, key);
                    retry(&source, || content_of::<Parts, _>(&mut read, &source, cache, &wanted))
                });
                Ok((
                    one_by_one.collect::<Vec<_>>(),
                    multi::get::<Parts, _>(&source, cache, table, &keys, (&wanted, AnswerBytes::ALL))?,
                ))
            });
            let (one_by_one, together) = found.expect("the disk works");
            assert!(source.refusals() > 0);
            for (i, expected) in expected.iter().enumerate() {
                let one = one_by_one[i].as_ref().expect("the disk works");
                assert_eq!(one.as_deref().map(bytes).as_ref(), expected.as_ref(), "{groups:?}");
                assert_eq!(together[i].as_deref().map(bytes).as_ref(), expected.as_ref(), "{groups:?}");
            }
        }
    }
}

#[test]
fn a_range_goes_on_in_files_that_were_memory_when_it_began() {
    let db = open(&SimDisk::new(1), 1 << 20);
    let table = db.table_with("t", tiny_pages(PageIndexKind::Btree)).expect("the disk works");
    for i in 0..100 {
        put(&table, format!("k{i:03}").as_bytes(), &[format!("hot {i}"), format!("warm {i}"), "cold ".repeat(i)]);
    }
    let mut range = chosen(&table, &[2, 0]).iter();
    for i in 0..100 {
        if i % 25 == 10 {
            put(&table, b"z", &["", "", ""]);
            flush(&table, 0, u64::MAX);
        }
        let row = range.next_row().expect("the disk works").expect("a hundred rows");
        assert_eq!(row.part(0).expect("the disk works")[..], *"cold ".repeat(i).as_bytes());
        assert_eq!(row.inline_part(1), Some(format!("hot {i}").as_bytes()));
    }
    assert!(range.next().is_none(), "z is newer than the range");
}

#[test]
fn a_selection_keeps_the_snapshot_it_is_of() {
    let db = open(&SimDisk::new(1), 1 << 20);
    let table = db.table_with("t", options(&GROUPS)).expect("the disk works");
    put(&table, b"k", &["old hot", "old warm", "old cold"]);
    let snapshot = db.snapshot();
    let old = chosen(&table, &[1]).at(&snapshot).expect("it is of this database");
    drop(snapshot);
    assert_eq!(db.metrics().pinned_versions, 1);
    put(&table, b"k", &["new hot", "new warm", "new cold"]);
    let old = {
        let another = old.clone();
        drop(old);
        another
    };
    flush(&table, 0, u64::MAX);
    for (selection, expected) in [(old, "old warm"), (chosen(&table, &[1]), "new warm")] {
        assert_eq!(selection.get("k").expect("the disk works").expect("a row")[0], *expected.as_bytes());
        let row = selection.iter().next().expect("a row").expect("the disk works");
        assert_eq!(row.1[0], *expected.as_bytes());
    }
    assert_eq!(db.metrics().pinned_versions, 0);

    let other = open(&SimDisk::new(2), 1 << 20);
    let error = chosen(&table, &[1]).at(&other.snapshot()).expect_err("of another database");
    assert!(matches!(error, Error::ForeignTable(_)), "{error}");
}

#[test]
fn whole_reads_of_a_table_in_several_groups_are_refused_and_existence_is_not() {
    let db = open(&SimDisk::new(1), 1 << 20);
    let table = db.table_with("t", options(&["hot", "cold"])).expect("the disk works");
    put(&table, b"k", &["1", "2"]);
    let snapshot = db.snapshot();
    let refused = |error: Error| {
        assert_eq!(
            error.to_string(),
            "table t is split in the groups hot, cold; write its rows with insert_parts and choose what to read with \
             select"
        );
    };
    refused(table.get("k").expect_err("it is split"));
    refused(table.get("absent").expect_err("whatever there is"));
    refused(table.multi_get(["k"]).expect_err("it is split"));
    refused(table.first_key_value().expect_err("it is split"));
    refused(table.last_key_value().expect_err("it is split"));
    refused(db.get(&table, "k").expect_err("it is split"));
    refused(snapshot.get(&table, "k").expect_err("it is split"));
    refused(db.multi_get(&table, ["k"]).expect_err("it is split"));
    refused(snapshot.multi_get(&table, ["k"]).expect_err("it is split"));
    for mut range in [table.iter(), table.range("a".."z"), table.prefix("k"), db.iter(&table), snapshot.iter(&table)] {
        refused(range.next_row().map(|_| ()).expect_err("it is split"));
        refused(range.next_back().expect("it stays failed").expect_err("it is split"));
    }
    assert!(table.contains_key("k").expect("it needs no value"));
    assert!(db.contains_key(&table, "k").expect("it needs no value"));
    assert!(snapshot.contains_key(&table, "k").expect("it needs no value"));
    table.remove("k").expect("the disk works");
    assert!(!table.contains_key("k").expect("it needs no value"));
    assert!(snapshot.contains_key(&table, "k").expect("it needs no value"));
    table.remove_range("a".."z").expect("the disk works");
}

#[test]
fn a_table_with_one_group_is_read_as_if_it_had_none() {
    let db = open(&SimDisk::new(1), 1 << 20);
    let table = db.table_with("t", options(&["only"])).expect("the disk works");
    put(&table, b"k", &["the part"]);
    for in_file in [false, true] {
        if in_file {
            flush(&table, 0, u64::MAX);
        }
        assert_eq!(table.get("k").expect("the disk works").expect("a row")[..], *b"the part");
        assert_eq!(table.multi_get(["x", "k"]).expect("the disk works")[1].as_deref(), Some(&b"the part"[..]));
        let (_, value) = table.first_key_value().expect("the disk works").expect("a row");
        assert_eq!(value[..], *b"the part");
        let only = table.select(["only"]).expect("it has it");
        assert_eq!(only.get("k").expect("the disk works").expect("a row")[0][..], *b"the part");
    }
}

#[test]
fn groups_that_cannot_be_selected_are_refused() {
    let db = open(&SimDisk::new(1), 1 << 20);
    let table = db.table_with("t", options(&["hot", "cold"])).expect("the disk works");
    let check = |groups: &[&str], expected: &str| {
        assert_eq!(table.select(groups).expect_err("it is refused").to_string(), expected);
    };
    check(&["cold", "warm"], "table t has no group warm; choose from hot and cold");
    check(&["cold", "hot", "cold"], "group cold of table t is selected twice; name it once");
    let whole = db.table("whole").expect("the disk works");
    let error = whole.select(["hot"]).expect_err("it is not split").to_string();
    assert_eq!(error, "table whole is not split in groups and so has no group hot; read its rows whole");

    whole.insert("k", "v").expect("the disk works");
    let keys = whole.select(None::<&str>).expect("keys alone can be read of any table");
    assert!(keys.get("k").expect("the disk works").expect("a row").is_empty());
    assert!(keys.get("x").expect("the disk works").is_none());
}

const ROWS: u32 = 20_000;

fn numbered(i: u32) -> Vec<u8> {
    format!("key {i:08}").into_bytes()
}

/// Makes two tables with the same hot parts, each in one file. One has two further groups, the other none.
fn hot_and_cold() -> Arc<SimDisk> {
    let disk = SimDisk::new(1);
    let db = open(&disk, 1 << 20);
    let options = |groups: &[&str]| TableOptions { page_bytes: 4 << 10, node_bytes: 4 << 10, ..options(groups) };
    let split = db.table_with("split", options(&["hot", "cold", "large"])).expect("the disk works");
    let whole = db.table_with("whole", options(&[])).expect("the disk works");
    let fill = |table: &Table, row: &dyn Fn(u32) -> Row| {
        for first in (0..ROWS).step_by(1000) {
            commit(table, |ops, id| {
                for i in first..first + 1000 {
                    let mut value = Vec::new();
                    parts::encode(&row(i), &mut value);
                    ops.put(id, &numbered(i), &value);
                }
            });
        }
        flush(table, 6, u64::MAX);
    };
    let large = |i: u32| vec![b'l'; if i.is_multiple_of(1000) { 3000 } else { 10 }];
    fill(&split, &|i| vec![vec![b'h'; 100], vec![b'c'; 300], large(i)]);
    fill(&whole, &|_| vec![vec![b'h'; 100]]);
    disk
}

/// What a read cost.
struct Cost {
    reads: u64,
    rounds: u64,
    pages: pages::counters::CounterSnapshot,
}

impl Cost {
    fn of(&self, kind: PageKind) -> u64 {
        self.pages.of_kind(kind).faults
    }
}

/// What `read` costs if nothing is in memory.
fn cost(disk: &Arc<SimDisk>, table: &str, read: impl FnOnce(&Table)) -> Cost {
    let db = open(disk, 64 << 20);
    read(&db.existing_table(table).expect("a name").expect("it is there"));
    let metrics = db.metrics();
    Cost { reads: metrics.page_reads, rounds: metrics.pages.all_rounds(), pages: metrics.pages }
}

#[test]
fn a_read_touches_no_page_of_groups_it_does_not_want() {
    let disk = hot_and_cold();
    let heights = {
        let db = open(&disk, 1 << 20);
        let table = db.existing_table("split").expect("a name").expect("it is there");
        let view = table.core().views.newest();
        let (_, file) = view.files.tables[&table.id()].files().next().expect("one file");
        let meta = file.sst.meta.clone();
        let height = |tree: Option<sst::Tree>| u64::from(tree.expect("it has rows").root(false).height);
        [height(meta.main), height(meta.groups[0].newest), height(meta.groups[1].newest)]
    };
    let [main, cold, large] = heights.map(|height| height + 1);
    assert!(main > 2 && cold > 2, "trees worth counting: {heights:?}");
    let keys: Vec<Vec<u8>> = (0..200).map(|i| numbered(i * 97 % ROWS)).collect();
    let get = |selection: &[&str], key: &[u8]| {
        cost(&disk, "split", |table| {
            let parts = table.select(selection).expect("it has them").get(key).expect("the disk works");
            assert_eq!(parts.expect("it is there").len(), selection.len());
        })
    };
    for key in [&keys[0], &keys[77]] {
        let whole = cost(&disk, "whole", |table| {
            assert!(table.get(key).expect("the disk works").is_some());
        });
        let hot = get(&["hot"], key);
        assert_eq!((hot.reads, hot.of(PageKind::Group)), (whole.reads, 0));
        assert_eq!(get(&[], key).reads, main);
        let cold_alone = get(&["cold"], key);
        assert_eq!(
            (cold_alone.reads, cold_alone.rounds, cold_alone.of(PageKind::Group)),
            (main + cold, main + cold, 1)
        );
        // Key 0 has a large part outside its page.
        let outside = u64::from(key == &keys[0]);
        let all = get(&["large", "hot", "cold"], key);
        assert_eq!((all.reads, all.rounds), (main + cold + large + outside, main + cold.max(large + outside)));
        assert_eq!((all.of(PageKind::Group), all.of(PageKind::Value)), (2, outside));
        let exists = cost(&disk, "split", |table| assert!(table.contains_key(key).expect("the disk works")));
        assert_eq!((exists.reads, exists.of(PageKind::Value)), (main, 0));
    }

    let scan = |table: &str, groups: Option<&[&str]>| {
        cost(&disk, table, |table| {
            let count = match groups {
                Some(groups) => table.select(groups).expect("it has them").iter().filter(Result::is_ok).count(),
                None => table.iter().filter(Result::is_ok).count(),
            };
            assert_eq!(count, ROWS as usize);
        })
    };
    let (whole, hot, cold) = (scan("whole", None), scan("split", Some(&["hot"])), scan("split", Some(&["cold"])));
    assert_eq!(hot.of(PageKind::Data), whole.of(PageKind::Data));
    assert_eq!((hot.of(PageKind::Group), hot.of(PageKind::Value)), (0, 0));
    // Larger rows have larger totals, which take a little more room in nodes.
    assert!(hot.reads <= whole.reads + whole.reads / 50, "{} page reads, {} without groups", hot.reads, whole.reads);
    assert_eq!((cold.of(PageKind::Data), cold.of(PageKind::Value)), (hot.of(PageKind::Data), 0));

    let many = |table: &str, hot: bool| {
        cost(&disk, table, |table| {
            let found = if hot {
                let rows = table.select(["hot"]).expect("it has it").multi_get(&keys).expect("the disk works");
                rows.iter().flatten().count()
            } else {
                table.multi_get(&keys).expect("the disk works").iter().flatten().count()
            };
            assert_eq!(found, keys.len());
        })
    };
    let (whole, hot) = (many("whole", false), many("split", true));
    assert_eq!((hot.of(PageKind::Group), hot.of(PageKind::Data)), (0, whole.of(PageKind::Data)));
    assert_eq!((hot.rounds, whole.rounds), (main, main));
}

#[test]
fn many_keys_and_their_parts_take_as_many_rounds_as_the_longest_ways() {
    let disk = hot_and_cold();
    let keys: Vec<Vec<u8>> = (0..150).map(|i| numbered(i * 131 % ROWS)).collect();
    let groups = ["cold", "hot", "large"];
    let one_by_one = cost(&disk, "split", |table| {
        let selection = table.select(groups).expect("it has them");
        assert!(keys.iter().all(|key| selection.get(key).expect("the disk works").is_some()));
    });
    let together = cost(&disk, "split", |table| {
        let rows = table.select(groups).expect("it has them").multi_get(&keys).expect("the disk works");
        assert!(rows.iter().all(Option::is_some));
    });
    let one = cost(&disk, "split", |table| {
        let parts = table.select(groups).expect("it has them").get(&keys[1]).expect("the disk works");
        assert_eq!(parts.expect("it is there").len(), 3);
    });
    assert_eq!(together.reads, one_by_one.reads, "every page once, and none in vain");
    // Some of the large parts lie outside their pages, which costs one more round.
    assert_eq!(together.rounds, one.rounds + 1, "one by one: {}", one_by_one.rounds);
}

/// A session that records the largest number of pinned bytes.
struct Watched {
    session: Session,
    most_pinned: Cell<u64>,
}

impl PageLender for Watched {
    type Page = PageRef;

    fn fetches(&self) -> bool {
        true
    }

    pages::pass_on!(session: page, peek, ahead, ahead_if_spare, take_read, release);
}

impl PageSource for Watched {
    fn fetch(&self) -> pages::Result<()> {
        self.session.fetch()?;
        let pinned = self.session.cache().usage().pinned_bytes;
        self.most_pinned.set(self.most_pinned.get().max(pinned));
        Ok(())
    }

    pages::pass_on!(session: glance, ahead_bytes);
}

#[test]
fn many_keys_pin_a_quarter_of_the_cache_at_most() {
    let disk = hot_and_cold();
    let keys: Vec<Vec<u8>> = (0..1000).map(|i| numbered(i * 19 % ROWS)).collect();
    for cache_bytes in [16 << 10, 256 << 10, 1 << 20, 4 << 20] {
        let db = open(&disk, cache_bytes);
        let table = db.existing_table("split").expect("a name").expect("it is there");
        let selection = table.select(["large", "hot"]).expect("it has them");
        let session = Session::new(&table.core().env.cache, Reason::Point, Admit::Keep);
        let source = Watched { session, most_pinned: Cell::new(0) };
        let wanted = [2, 0].into_iter().try_fold(PartList::nothing(3), PartList::with).expect("each once");
        let cache = &table.core().env.cache;
        let watched =
            table.look(|table| multi::get::<Parts, _>(&source, cache, table, &keys, (&wanted, AnswerBytes::ALL)));
        for rows in [watched, selection.multi_get(&keys)] {
            for (i, row) in rows.expect("the disk works").iter().enumerate() {
                let large = if (i as u32 * 19 % ROWS).is_multiple_of(1000) { 3000 } else { 10 };
                let row = row.as_ref().expect("it is there");
                assert_eq!((row[0].len(), row[1].len()), (large, 100));
            }
        }
        let (most, usage) = (source.most_pinned.get(), db.metrics().cache);
        println!("cache {cache_bytes}: pinned {most}, {usage:?}");
        assert!(usage.used_bytes <= cache_bytes + (16 << 10), "{usage:?}");
        // Values of earlier batches may keep a quarter of the cache, and the current batch may pin another quarter,
        // or the pages on the way to one key.
        assert!(most <= (cache_bytes / 2).max(64 << 10), "{most} bytes pinned of a cache of {cache_bytes}");
    }
}

/// A range that ends within erased keys must not read the older rows after its end.
#[test]
fn nothing_is_read_beyond_the_far_end_of_a_range_whatever_was_erased_there() {
    let disk = hot_and_cold();
    {
        let db = open(&disk, 8 << 20);
        let table = db.existing_table("whole").expect("a name").expect("it is there");
        let (start, end) = (numbered(1000), numbered(ROWS - 1000));
        commit(&table, |ops, id| ops.range_erase(id, &start, &end));
        flush(&table, 0, u64::MAX);
    }
    // Each range ends among the erased rows in one of the directions.
    for (range, rows) in [(900..3000, 100), (ROWS - 3000..ROWS - 900, 100)] {
        for forward in [true, false] {
            let db = open(&disk, 64 << 20);
            let table = db.existing_table("whole").expect("a name").expect("it is there");
            let range = numbered(range.start)..numbered(range.end);
            let limits = sst::AtMost::ALL;
            match forward {
                true => table.prefetch(range.clone(), limits),
                false => table.prefetch_back(range.clone(), limits),
            }
            .expect("the disk works");
            let before = db.metrics().page_reads;
            assert!(before > 0, "the range was brought to memory");
            let read = table.range(range);
            let keys: Vec<_> = if forward { read.collect() } else { read.rev().collect() };
            assert_eq!(keys.len(), rows);
            assert_eq!(db.metrics().page_reads, before, "forward: {forward}");
        }
    }
}
