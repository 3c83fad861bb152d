//! Tests that the rows that a range takes from their pages without merging are those of its version, whatever is in
//! other sources, from whichever end they are taken, and whatever happens between two rows.

use super::forms::{Borrowed, Held, batch, next, open_held, together};
use super::*;
use crate::base::bounds;
use crate::read::Tried;
use crate::read::range::{Range, RangeRows};
use os::Disk;
use pages::PageKind;
use sst::Direction;
use std::ops::ControlFlow;
use std::task::{Context, Waker};

const KEYS: usize = 1_000;

pub(super) fn numbered(i: usize) -> Vec<u8> {
    format!("k{i:04}").into_bytes()
}

/// A row that is usually small and sometimes lies outside its page.
fn row(rng: &mut StdRng) -> Row {
    let mut part = |most| vec![rng.random_range(b'a'..=b'z'); rng.random_range(0..=most)];
    let most = if part(50).len() == 50 { 700 } else { 20 };
    (0..GROUPS.len()).map(|_| part(most)).collect()
}

fn change(rng: &mut StdRng, table: &Table, model: &mut Model, key: Vec<u8>) {
    if rng.random_range(0..8) == 0 {
        model.remove(&key);
        table.remove(&key).expect("the disk works");
    } else {
        let row = row(rng);
        put(table, &key, &row);
        model.insert(key, row);
    }
}

/// Writes most rows to the deepest level, and some clusters and scattered rows above it and in memory. There are no
/// range erases. Returns some snapshots with the models that they must show, newest last.
pub(super) fn clusters(rng: &mut StdRng, db: &Database, table: &Table) -> Vec<(Snapshot, Model)> {
    let mut model = Model::new();
    let mut shown = Vec::new();
    for i in 0..KEYS {
        if rng.random_range(0..5) > 0 {
            change(rng, table, &mut model, numbered(i));
        }
    }
    flush(table, 6, 300);
    shown.push((db.snapshot(), model.clone()));
    for to in [Some(0), Some(0), Some(0), None] {
        let cluster = rng.random_range(0..KEYS - 40);
        for _ in 0..40 {
            let any = if rng.random_range(0..4) == 0 { 0..KEYS } else { cluster..cluster + 40 };
            let key = numbered(rng.random_range(any));
            change(rng, table, &mut model, key);
        }
        shown.push((db.snapshot(), model.clone()));
        if let Some(level) = to {
            flush(table, level, u64::MAX);
        }
    }
    shown
}

/// Writes interleaved rows to five files and to memory, densely in some places and sparsely in others. Many keys are
/// in several sources, and some sources erase keys or ranges. Returns some snapshots with the models that they must
/// show, newest last.
pub(super) fn interleaved(rng: &mut StdRng, db: &Database, table: &Table) -> Vec<(Snapshot, Model)> {
    let mut model = Model::new();
    let mut shown = Vec::new();
    for to in [Some(6), Some(0), Some(0), Some(0), Some(0), None] {
        let one_in = rng.random_range(if to.is_some() { 2..6 } else { 3..60 });
        for i in 0..KEYS {
            if rng.random_range(0..one_in) == 0 {
                change(rng, table, &mut model, numbered(i));
            }
            if rng.random_range(0..KEYS) == 0 {
                let start = rng.random_range(0..KEYS);
                let (low, high) = (numbered(start), numbered(start + rng.random_range(1..30)));
                model.retain(|key, _| *key < low || *key >= high);
                table.remove_range(low..high).expect("the disk works");
            }
            if rng.random_range(0..KEYS) == 0 {
                shown.push((db.snapshot(), model.clone()));
            }
        }
        if let Some(level) = to {
            flush(table, level, u64::MAX);
        }
    }
    shown.push((db.snapshot(), model));
    shown
}

#[test]
fn rows_that_follow_in_a_page_are_those_of_a_model_whatever_happens_between_them() {
    check_followed(clusters, [2, 3]);
}

#[test]
fn rows_that_follow_in_the_pages_of_several_files_are_those_of_a_model() {
    check_followed(interleaved, [3, 4]);
}

/// Reads what `write` has written, in all forms and from both ends, and compares each row with the model. At least
/// one in `one_in` lent rows must come from a streak: the first number is for rows in the main group, the second for
/// rows with parts beside it.
fn check_followed(write: fn(&mut StdRng, &Database, &Table) -> Vec<(Snapshot, Model)>, one_in: [u64; 2]) {
    let mut total = [Borrowed::default(), Borrowed::default()];
    for seed in 0..8 {
        for cache_bytes in [64 << 20, 5 * 4400] {
            println!("seed {seed}, cache of {cache_bytes} bytes");
            let rng = &mut StdRng::seed_from_u64(seed);
            let Held { reads, db } = open_held(&SimDisk::new(seed), cache_bytes, seed);
            let options = TableOptions { page_bytes: 2048, ..tiny_pages(PageIndexKind::Btree) };
            let table = db.table_with("t", options).expect("the disk works");
            let shown = write(rng, &db, &table);
            let while_pending = || {
                table.core().views.change(|_| {});
                reads.step();
            };
            let mut now = shown.last().expect("the newest").1.clone();
            for (number, (snapshot, model)) in shown.iter().enumerate() {
                let groups: &[usize] = [&[][..], &[0], &[0, 2], &[1], &[2, 0, 1]][(number + seed as usize) % 5];
                let wanted = groups.iter().try_fold(PartList::nothing(3), |wanted, &group| wanted.with(group));
                let wanted = wanted.expect("each once");
                let ends = [numbered(rng.random_range(0..KEYS)), numbered(rng.random_range(0..KEYS))];
                let (range, rows) = if ends[0] < ends[1] && rng.random() {
                    (bounds::owned(&(ends[0].clone()..ends[1].clone())), model.range(ends[0].clone()..ends[1].clone()))
                } else {
                    (bounds::owned(&..), model.range::<Vec<u8>, _>(..))
                };
                let expected: Vec<(Vec<u8>, Row)> = rows.map(|(key, row)| (key.clone(), picked(row, groups))).collect();
                let mut expected = expected.as_slice();
                let pin = snapshot.pin_of(&table).expect("it is of this database").clone();
                let mut rows = RangeRows::new(table.inner().session(Reason::Scan), table.inner(), wanted, pin, range);
                let mut borrowed = Borrowed::default();
                let limit = if rng.random_range(0..3) == 0 { rng.random_range(0..600) } else { u64::MAX };
                if limit < u64::MAX {
                    rows = rows.limit(limit);
                }
                let (mut direction, mut count) = (Direction::Forward, 0);
                loop {
                    match rng.random_range(0..200) {
                        0 => table.compact().expect("the disk works"),
                        1..4 => table.core().views.change(|_| {}),
                        4..10 => {
                            let key = numbered(rng.random_range(0..KEYS));
                            change(rng, &table, &mut now, key);
                        }
                        10..20 => {
                            direction = [Direction::Forward, Direction::Backward][rng.random_range(0..2)];
                        }
                        _ => {}
                    }
                    let given = match rng.random_range(0..20) {
                        0 => together(rng, &mut rows, direction, &while_pending),
                        1 => batch(rng, &mut rows, direction, &mut borrowed),
                        _ => vec![next(rng, &mut rows, direction, &mut borrowed, &while_pending)],
                    };
                    let mut is_over = false;
                    for row in given {
                        let split = match direction {
                            Direction::Forward => expected.split_first(),
                            Direction::Backward => expected.split_last(),
                        };
                        let split = split.filter(|_| count < limit);
                        assert_eq!(row.as_ref(), split.map(|(row, _)| row), "row {count}, {direction:?}");
                        match split {
                            Some((_, rest)) => (expected, count) = (rest, count + 1),
                            None => is_over = true,
                        }
                    }
                    if is_over {
                        break;
                    }
                }
                let total = &mut total[usize::from(wanted.set().any_beside_main())];
                total.rows += borrowed.rows;
                total.followed += borrowed.followed;
                total.batched += borrowed.batched;
                drop(rows);
                reads.finish();
                assert_eq!(table.core().env.cache.usage().pinned_bytes, 0);
            }
        }
    }
    for (Borrowed { rows: borrowed, followed, batched }, one_in) in total.into_iter().zip(one_in) {
        println!("of {borrowed} rows {followed} were followed, and {batched} came in batches");
        assert!(followed * one_in > borrowed, "of {borrowed} rows {followed} were followed");
        assert!(batched > 300, "{batched} rows came in batches");
    }
}

/// An idle range keeps the page that it follows, but no files or memtables of an old view. If a new view is made in
/// the middle of a page, the range goes on in that page.
#[test]
fn a_range_in_the_middle_of_a_page_keeps_that_page_alone() {
    let disk = SimDisk::new(1);
    let db = open(&disk, 64 << 20);
    let table = db.table_with("t", options(&[])).expect("the disk works");
    for i in 0..200 {
        put(&table, &numbered(i), &["value"]);
    }
    flush(&table, 6, u64::MAX);
    let mut range = table.iter();
    for i in 0..20 {
        assert_eq!(range.next_row().expect("the disk works").expect("a row").key(), numbered(i));
    }
    let usage = || db.metrics().cache;
    let pinned = usage().pinned_bytes;
    put(&table, &numbered(500), &["value"]);
    table.compact().expect("the disk works");
    let files =
        || disk.list("db".as_ref()).expect("it is there").iter().filter(|entry| entry.name.ends_with(".sst")).count();
    assert_eq!(files(), 1, "the old file is gone");
    assert!(usage().pinned_bytes <= pinned, "{} bytes are pinned, {pinned} were", usage().pinned_bytes);
    for i in 20..200 {
        let row = range.next_row().expect("the disk works").expect("a row");
        assert_eq!((row.key(), row.inline_value()), (&numbered(i)[..], Some(&b"value"[..])));
    }
    assert!(range.next_row().expect("the disk works").is_none(), "the row written since is not of its version");
    assert_eq!(usage().pinned_bytes, 0);
}

/// The newer file has every fifth key in a version that the snapshot does not see, also as the last row of a page.
#[test]
fn a_key_that_the_last_row_of_a_page_says_nothing_about_is_not_passed_when_the_next_page_is_missing() {
    for cache_bytes in [5 * 4400, 1 << 20] {
        let db = open(&SimDisk::new(1), cache_bytes);
        let small = TableOptions { page_bytes: 2048, node_bytes: 2048, ..options(&[]) };
        let table = db.table_with("t", small).expect("the disk works");
        let all: Vec<String> = (0..KEYS).map(numbered).map(|key| key.escape_ascii().to_string()).collect();
        (0..KEYS).for_each(|i| put(&table, &numbered(i), &[vec![b'o'; 30]]));
        flush(&table, 6, u64::MAX);
        (0..KEYS).filter(|i| i % 5 != 0).for_each(|i| put(&table, &numbered(i), &[vec![b'n'; 70]]));
        let snapshot = db.snapshot();
        (0..KEYS).step_by(5).for_each(|i| put(&table, &numbered(i), &[vec![b'n'; 70]]));
        flush(&table, 0, u64::MAX);
        let mut range = snapshot.range(&table, ..);
        let (mut given, mut faults) = (Vec::new(), 0);
        loop {
            let row = match range.try_next().expect("the disk works") {
                Tried::Ready(row) => row,
                Tried::WouldFault => {
                    faults += 1;
                    // Takes the range's place away.
                    table.core().views.change(|_| {});
                    range.next().transpose().expect("the disk works")
                }
            };
            let Some((key, _)) = row else { break };
            given.push(key.escape_ascii().to_string());
        }
        assert!(faults > 10, "{faults} pages were missing");
        assert!(given == all, "{} of {KEYS} rows with a cache of {cache_bytes} bytes", given.len());
    }
}

/// A seek passes the file rows that a range erase hides, although rows in memory lie between them.
#[test]
fn rows_of_a_file_that_a_range_erase_hides_are_not_read_between_rows_in_memory() {
    let db = open(&SimDisk::new(1), 1 << 20);
    let table = db.table_with("t", options(&[])).expect("the disk works");
    let write = |byte| (0..KEYS).for_each(|i| put(&table, &numbered(i), &[vec![byte; 400]]));
    write(b'o');
    flush(&table, 6, u64::MAX);
    table.remove_range(..).expect("the disk works");
    write(b'n');
    let pages = || table.core().env.cache.counters().snapshot().pages(Reason::Scan, PageKind::Data);
    let before = pages();
    for direction in [Direction::Forward, Direction::Backward] {
        let mut range = table.iter();
        let mut count = 0;
        let end = match direction {
            Direction::Forward => range.for_each_row(|_| all(&mut count)),
            Direction::Backward => range.for_each_row_back(|_| all(&mut count)),
        };
        assert!(end.expect("the disk works").is_continue() && count == KEYS);
    }
    let read = pages().hits + pages().faults - before.hits - before.faults;
    assert!(read < 10, "{read} pages");
}

fn all(count: &mut usize) -> ControlFlow<()> {
    *count += 1;
    ControlFlow::Continue(())
}

/// A poll from one end that was given up leaves the range waiting, and rows from the other end go on in their page.
#[test]
fn rows_come_once_from_one_end_while_a_poll_from_the_other_waits() {
    let Held { reads, db } = open_held(&SimDisk::new(1), 5 * 4400, 1);
    let table = db.table_with("t", TableOptions { page_bytes: 2048, ..options(&[]) }).expect("the disk works");
    (0..KEYS).for_each(|i| put(&table, &numbered(i), &["value"]));
    flush(&table, 6, u64::MAX);
    let wanted = PartList::nothing(1).with(0).expect("each once");
    let pin = db.snapshot().pin_of(&table).expect("it is of this database").clone();
    let range = bounds::owned(&..);
    let mut rows = RangeRows::new(table.inner().session(Reason::Scan), table.inner(), wanted, pin, range);
    let back =
        |rows: &mut RangeRows| rows.wait(Direction::Backward, |row| Ok(row.key().to_vec())).expect("the disk works");
    assert_eq!(back(&mut rows), Some(numbered(KEYS - 1)));
    let mut nobody = Context::from_waker(Waker::noop());
    assert!(rows.poll(&mut nobody, Direction::Forward, |_| Ok(())).is_pending(), "the first page is not in memory");
    assert_eq!(back(&mut rows), Some(numbered(KEYS - 2)));
    table.core().views.change(|_| {});
    for i in (0..KEYS - 2).rev() {
        assert_eq!(back(&mut rows), Some(numbered(i)));
    }
    assert_eq!(back(&mut rows), None);
    drop(rows);
    reads.finish();
    assert_eq!(table.core().env.cache.usage().pinned_bytes, 0);
}

#[test]
fn a_range_that_is_split_into_one_goes_on_where_it_was() {
    let db = open(&SimDisk::new(1), 1 << 20);
    let table = db.table_with("t", options(&[])).expect("the disk works");
    (0..KEYS).for_each(|i| put(&table, &numbered(i), &["value"]));
    flush(&table, 6, u64::MAX);
    for limit in [KEYS as u64, u64::MAX] {
        let mut range = table.range(..).limit(limit);
        let key = |range: &mut Range| Some(range.next()?.expect("the disk works").0.to_vec());
        for i in 0..5 {
            assert_eq!(key(&mut range), Some(numbered(i)));
        }
        let mut parts = range.split(1).expect("the disk works");
        let mut range = parts.pop().expect("one");
        assert!(parts.is_empty());
        for i in 5..KEYS {
            assert_eq!(key(&mut range), Some(numbered(i)));
        }
        assert_eq!(key(&mut range), None);
    }
}
