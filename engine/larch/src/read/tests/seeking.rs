//! Tests cursors that seek again and again, so that each seek restarts the merge of the one before. Such a cursor comes
//! to the same rows as a new cursor, and pins no more than a new one.

use super::forms::{Held, open_held};
use super::moving::{Move, in_any_form, lent};
use super::*;
use crate::read::PartCursor;
use os::sim::DiskCounts;
use std::io::ErrorKind;
use std::ops::{ControlFlow, RangeBounds};

/// A move that is usually a seek. Steps follow each other, so that a seek also begins behind rows that were followed.
fn any_move(rng: &mut StdRng, last: &Move, key: fn(&mut StdRng) -> Vec<u8>) -> Move {
    let step = |rng: &mut StdRng| if rng.random() { Move::Next } else { Move::Prev };
    match (rng.random_range(0..20), last) {
        (0, _) => Move::First,
        (1, _) => Move::Last,
        (2..8, _) => Move::Seek(key(rng)),
        (8..14, _) => Move::SeekBack(key(rng)),
        (14..18, Move::Next | Move::Prev) => last.clone(),
        _ => step(rng),
    }
}

/// Makes new cursors.
type NewCursors<'n> = &'n dyn Fn() -> PartCursor;

/// Moves one cursor, in all forms, and a new cursor for each move except a step. The two must lend the same rows as
/// the model. Between two moves `happen` is called.
fn check_against_new(
    rng: &mut StdRng,
    (new, rows): (NewCursors<'_>, &[(Vec<u8>, Row)]),
    key: fn(&mut StdRng) -> Vec<u8>,
    happen: &mut dyn FnMut(&mut StdRng),
    while_pending: &dyn Fn(),
) {
    let mut cursor = new();
    let (mut place, mut last) = (0_usize, Move::First);
    for count in 0..120 {
        happen(rng);
        let to = any_move(rng, &last, key);
        if let ControlFlow::Continue(is_at_row) = in_any_form(rng, &mut cursor, &to, while_pending) {
            to.in_model(rows, &mut place);
            let row = lent(&cursor);
            assert_eq!(row.as_ref(), place.checked_sub(1).and_then(|at| rows.get(at)), "move {count}, {to:?}");
            assert_eq!(is_at_row, row.is_some(), "move {count}, {to:?}");
            if !matches!(to, Move::Next | Move::Prev) {
                let mut fresh = new();
                to.go(&mut fresh).expect("the disk works");
                assert_eq!(lent(&fresh), row, "a new cursor, move {count}, {to:?}");
            }
            last = to;
        }
    }
}

/// Compares cursors over snapshots of what `write` has written, while views are replaced now and then.
fn check_seeks(
    write: fn(&mut StdRng, &Database, &Table) -> Vec<(Snapshot, Model)>,
    key: fn(&mut StdRng) -> Vec<u8>,
    page_bytes: u32,
) {
    for seed in 0..6 {
        for (index, cache_bytes) in
            [(PageIndexKind::Btree, 64 << 20), (PageIndexKind::Both, 3 * 4400), (PageIndexKind::Flat, 40 * 4400)]
        {
            println!("seed {seed}, {index:?}, cache of {cache_bytes} bytes");
            let rng = &mut StdRng::seed_from_u64(seed);
            let Held { reads, db } = open_held(&SimDisk::new(seed), cache_bytes, seed);
            let options = TableOptions { page_bytes, ..tiny_pages(index) };
            let table = db.table_with("t", options).expect("the disk works");
            let shown = write(rng, &db, &table);
            let while_pending = || _ = reads.step();
            for (number, (snapshot, model)) in shown.iter().enumerate().skip(seed as usize % 3).step_by(3) {
                let groups = CHOICES[number % CHOICES.len()];
                let selection = chosen(&table, groups).at(snapshot).expect("it is of this database");
                let mut bounds = [key(rng), key(rng)];
                bounds.sort();
                let [low, high] = bounds;
                let bounds = if rng.random() {
                    (Bound::Included(low), Bound::Excluded(high))
                } else {
                    (Bound::Unbounded, Bound::Unbounded)
                };
                let in_bounds = model.iter().filter(|(key, _)| bounds.contains(*key));
                let rows: Vec<(Vec<u8>, Row)> =
                    in_bounds.map(|(key, row)| (key.clone(), picked(row, groups))).collect();
                let new = || selection.cursor_in(bounds.clone());
                let mut happen = |rng: &mut StdRng| match rng.random_range(0..100) {
                    0 => put(&table, &key(rng), &super::row(rng)),
                    1 if table.core().views.newest().memory[0].table(table.id()).is_some() => {
                        flush(&table, 0, u64::MAX);
                    }
                    2 if rng.random_range(0..8) == 0 => table.compact().expect("the disk works"),
                    3 => table.core().views.change(|_| {}),
                    _ => {}
                };
                check_against_new(rng, (&new, &rows), key, &mut happen, &while_pending);
                reads.finish();
                assert_eq!(table.core().env.cache.usage().pinned_bytes, 0);
                assert_eq!(table.core().env.cache.usage().cursor_bytes, 0);
            }
        }
    }
}

#[test]
fn a_seek_of_a_used_cursor_comes_to_the_row_of_a_new_one_over_versions_and_range_erases() {
    check_seeks(history, key, 256);
}

#[test]
fn a_seek_of_a_used_cursor_comes_to_the_row_of_a_new_one_over_rows_in_many_files() {
    check_seeks(super::following::interleaved, |rng| super::following::numbered(rng.random_range(0..1000)), 2048);
}

/// The transaction's writes lie over all other rows. Cursors see those that were made before them.
#[test]
fn a_seek_of_a_used_cursor_in_a_transaction_comes_to_the_row_of_a_new_one() {
    for seed in 0..6 {
        for cache_bytes in [64 << 20, 3 * 4400] {
            println!("seed {seed}, cache of {cache_bytes} bytes");
            let rng = &mut StdRng::seed_from_u64(seed);
            let Held { reads, db } = open_held(&SimDisk::new(seed), cache_bytes, seed);
            let table = db.table_with("t", tiny_pages(PageIndexKind::Btree)).expect("the disk works");
            let (_, mut model) = history(rng, &db, &table).pop().expect("the newest");
            let mut transaction = db.begin().expect("the disk works");
            for _ in 0..3 {
                for _ in 0..10 {
                    let (key, row) = (key(rng), row(rng));
                    match rng.random_range(0..6) {
                        0 => {
                            let high = super::key(rng);
                            model.retain(|at, _| *at < key || *at >= high);
                            transaction.remove_range(&table, key..high).expect("the disk works");
                        }
                        1 => {
                            model.remove(&key);
                            transaction.remove(&table, key).expect("the disk works");
                        }
                        _ => {
                            transaction.insert_parts(&table, &key, &row).expect("the disk works");
                            model.insert(key, row);
                        }
                    }
                }
                let rows: Vec<(Vec<u8>, Row)> =
                    model.iter().map(|(key, row)| (key.clone(), picked(row, &[0, 2]))).collect();
                let selection = chosen(&table, &[0, 2]);
                let new = || transaction.select(&selection).expect("it is of this database").cursor();
                check_against_new(rng, (&new, &rows), key, &mut |_| {}, &|| _ = reads.step());
            }
            drop(transaction);
            reads.finish();
            assert_eq!(table.core().env.cache.usage().pinned_bytes, 0);
        }
    }
}

/// The pinned bytes of the cache, and those of them that cursors have counted.
fn pinned(table: &Table) -> (u64, u64) {
    let usage = table.core().env.cache.usage();
    (usage.pinned_bytes, usage.cursor_bytes)
}

#[test]
fn a_cursor_pins_after_a_seek_what_a_new_one_does_whatever_it_has_done_before() {
    let db = open(&SimDisk::new(1), 64 << 20);
    let table = db.table_with("t", tiny_pages(PageIndexKind::Btree)).expect("the disk works");
    let rng = &mut StdRng::seed_from_u64(1);
    let (snapshot, _) = history(rng, &db, &table).pop().expect("the newest");
    let selection = chosen(&table, &[0, 1, 2]).at(&snapshot).expect("it is of this database");
    let mut used = selection.cursor();
    for _ in 0..200 {
        for _ in 0..rng.random_range(0..4) {
            let key = key(rng);
            any_move(rng, &Move::Next, |_| b"k1".to_vec()).go(&mut used).expect("the disk works");
            used.seek(&key).expect("the disk works");
        }
        let key = key(rng);
        for to in [Move::Seek(key.clone()), Move::SeekBack(key.clone()), Move::Seek(key)] {
            to.go(&mut used).expect("the disk works");
            let of_used = pinned(&table);
            // A cursor that is dropped pins nothing, so the other one is made from a clean state.
            drop(std::mem::replace(&mut used, selection.cursor()));
            assert_eq!(pinned(&table), (0, 0));
            to.go(&mut used).expect("the disk works");
            assert_eq!(of_used, pinned(&table), "{to:?}");
        }
    }
}

/// Lets each read of a seek fail in turn.
#[test]
fn a_cursor_whose_seek_has_failed_gives_no_row_and_pins_nothing() {
    let (disk, mut failures) = (hot_and_cold(), 0);
    let (near, far) = (super::numbered(ROWS / 5), super::numbered(ROWS / 5 * 4));
    for back in [false, true] {
        for failing in 1.. {
            let disk = disk.image();
            let db = open(&disk, 3 * 4400);
            let table = db.existing_table("split").expect("a name").expect("it is there");
            let mut cursor = table.select(["large", "hot"]).expect("it has them").cursor();
            for to in [Move::Seek(near.clone()), Move::SeekBack(far.clone()), Move::Seek(near.clone())] {
                assert!(to.go(&mut cursor).expect("the disk works"));
            }
            disk.fail_operation(failing, ErrorKind::Other);
            let to = if back { Move::SeekBack(far.clone()) } else { Move::Seek(far.clone()) };
            if to.go(&mut cursor).is_ok() {
                assert_eq!(cursor.key(), Some(&far[..]), "no read failed");
                break;
            }
            failures += 1;
            assert_eq!(pinned(&table), (0, 0));
            for to in [Move::Next, Move::Prev, Move::Seek(near.clone()), Move::SeekBack(near.clone())] {
                assert!(to.go(&mut cursor).is_err() && lent(&cursor).is_none(), "{to:?}");
            }
        }
    }
    assert!(failures > 3, "{failures} reads failed");
}

/// Of seeks to keys that lie near each other, none asks for pages ahead because of the one before.
#[test]
fn the_seeks_of_a_cursor_read_no_more_than_new_cursors_do() {
    let disk = hot_and_cold();
    let read = |seek_all: &dyn Fn(NewCursors<'_>)| {
        let disk = disk.image();
        let db = open(&disk, 64 << 20);
        let table = db.existing_table("split").expect("a name").expect("it is there");
        let before = disk.counts();
        seek_all(&|| table.select(["large", "hot"]).expect("it has them").cursor());
        let DiskCounts { reads, read_bytes, .. } = disk.counts();
        (reads - before.reads, read_bytes - before.read_bytes)
    };
    let seek = |cursor: &mut PartCursor, i: u32| {
        assert!(cursor.seek(super::numbered(i * 20)).expect("the disk works"));
        assert!(cursor.seek_back(super::numbered(ROWS - 1 - i * 20)).expect("the disk works"));
    };
    let by_one = read(&|new| {
        let mut cursor = new();
        (0..200).for_each(|i| seek(&mut cursor, i));
    });
    let by_many = read(&|new| (0..200).for_each(|i| seek(&mut new(), i)));
    assert!(by_one.0 <= by_many.0 && by_one.1 <= by_many.1, "{by_one:?}, and {by_many:?} by new cursors");
}
