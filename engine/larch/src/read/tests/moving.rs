//! Tests that a cursor is always where a model's cursor is, in whichever form it is moved, whatever is in memory, and
//! while files and memory change. A move that does not finish leaves the cursor where it was.

use super::forms::{Held, open_held};
use super::*;
use crate::read::{Cursor, PartCursor, Tried};
use crate::{Readable, Result};
use os::Disk;
use std::ops::ControlFlow;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// A move of a cursor.
#[derive(Clone, Debug)]
pub(super) enum Move {
    Seek(Vec<u8>),
    SeekBack(Vec<u8>),
    First,
    Last,
    Next,
    Prev,
}

impl Move {
    /// A random move: usually a step, in runs of one direction.
    fn any(rng: &mut StdRng, run: &mut Self, key: &dyn Fn(&mut StdRng) -> Vec<u8>) -> Self {
        match rng.random_range(0..40) {
            0..2 => Self::Seek(key(rng)),
            2..4 => Self::SeekBack(key(rng)),
            4 => Self::First,
            5 => Self::Last,
            6..9 => {
                *run = if rng.random() { Self::Next } else { Self::Prev };
                run.clone()
            }
            9..12 => {
                if rng.random() {
                    Self::Next
                } else {
                    Self::Prev
                }
            }
            _ => run.clone(),
        }
    }

    pub(super) fn go(&self, cursor: &mut PartCursor) -> Result<bool> {
        match self {
            Self::Seek(key) => cursor.seek(key),
            Self::SeekBack(key) => cursor.seek_back(key),
            Self::First => cursor.first(),
            Self::Last => cursor.last(),
            Self::Next => cursor.next(),
            Self::Prev => cursor.prev(),
        }
    }

    fn try_go(&self, cursor: &mut PartCursor) -> Result<Tried<bool>> {
        match self {
            Self::Seek(key) => cursor.try_seek(key),
            Self::SeekBack(key) => cursor.try_seek_back(key),
            Self::First => cursor.try_first(),
            Self::Last => cursor.try_last(),
            Self::Next => cursor.try_next(),
            Self::Prev => cursor.try_prev(),
        }
    }

    async fn go_async(&self, cursor: &mut PartCursor) -> Result<bool> {
        match self {
            Self::Seek(key) => cursor.seek_async(key).await,
            Self::SeekBack(key) => cursor.seek_back_async(key).await,
            Self::First => cursor.first_async().await,
            Self::Last => cursor.last_async().await,
            Self::Next => cursor.next_async().await,
            Self::Prev => cursor.prev_async().await,
        }
    }

    /// Makes the move in the rows of a model.
    pub(super) fn in_model(&self, rows: &[(Vec<u8>, Row)], place: &mut usize) {
        *place = match self {
            Self::Seek(key) => 1 + rows.partition_point(|(row, _)| row < key),
            Self::SeekBack(key) => rows.partition_point(|(row, _)| row <= key),
            Self::First => 1,
            Self::Last => rows.len(),
            Self::Next => (*place + 1).min(rows.len() + 1),
            Self::Prev => place.saturating_sub(1),
        };
    }
}

fn nobody() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Makes the move in some form. `Break` if the move was given up halfway. Calls `happen` while a poll is pending.
pub(super) fn in_any_form(
    rng: &mut StdRng,
    cursor: &mut PartCursor,
    to: &Move,
    happen: &dyn Fn(),
) -> ControlFlow<(), bool> {
    match rng.random_range(0..8) {
        0..3 => ControlFlow::Continue(to.go(cursor).expect("the disk works")),
        3..5 => match to.try_go(cursor).expect("the disk works") {
            Tried::Ready(is_at_row) => ControlFlow::Continue(is_at_row),
            Tried::WouldFault => ControlFlow::Break(()),
        },
        form => {
            let polls = if form < 7 { u32::MAX } else { rng.random_range(0..4) };
            let mut future = pin!(to.go_async(cursor));
            for _ in 0..polls {
                match future.as_mut().poll(&mut nobody()) {
                    Poll::Ready(is_at_row) => return ControlFlow::Continue(is_at_row.expect("the disk works")),
                    Poll::Pending => happen(),
                }
            }
            ControlFlow::Break(())
        }
    }
}

/// The row that a cursor lends.
pub(super) fn lent(cursor: &PartCursor) -> Option<(Vec<u8>, Row)> {
    let parts = (0..cursor.part_count()).map(|i| cursor.part(i).map(<[u8]>::to_vec)).collect::<Option<_>>();
    let key = cursor.key().map(<[u8]>::to_vec);
    if cursor.part_count() > 0 {
        assert_eq!(key.is_some(), parts.is_some(), "a row is lent whole");
    }
    Some((key?, parts?))
}

/// Writes a table for a test.
type Writes = fn(&mut StdRng, &Database, &Table) -> Vec<(Snapshot, Model)>;

/// Moves cursors over what `write` has written, with pages of this size, and compares each place with the model.
fn check_moves(write: Writes, key: fn(&mut StdRng) -> Vec<u8>, page_bytes: u32) {
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
            let while_pending = || {
                table.core().views.change(|_| {});
                reads.step();
            };
            for (number, (snapshot, model)) in shown.iter().enumerate().skip(seed as usize % 3).step_by(3) {
                let groups = CHOICES[number % CHOICES.len()];
                let selection = chosen(&table, groups).at(snapshot).expect("it is of this database");
                let (low, high) = (key(rng), key(rng));
                let (mut cursor, rows) = if low < high && rng.random() {
                    (selection.cursor_in(low.clone()..high.clone()), model.range(low..high))
                } else {
                    (selection.cursor(), model.range::<Vec<u8>, _>(..))
                };
                let rows: Vec<(Vec<u8>, Row)> = rows.map(|(key, row)| (key.clone(), picked(row, groups))).collect();
                // Places: 0 is the start, 1 the first row, and so on; the last number is the end.
                let (mut place, mut run, mut is_kept) = (0_usize, Move::Next, true);
                for count in 0..150 {
                    match rng.random_range(0..60) {
                        0..3 => put(&table, &key(rng), &super::row(rng)),
                        3 if table.core().views.newest().memory[0].table(table.id()).is_some() => {
                            flush(&table, 0, u64::MAX);
                        }
                        4 if rng.random_range(0..4) == 0 => table.compact().expect("the disk works"),
                        5 => table.core().views.change(|_| {}),
                        _ => {}
                    }
                    let expected = if is_kept { place.checked_sub(1).and_then(|at| rows.get(at)) } else { None };
                    assert_eq!(lent(&cursor).as_ref(), expected, "before move {count}");
                    let to = Move::any(rng, &mut run, &key);
                    match in_any_form(rng, &mut cursor, &to, &while_pending) {
                        ControlFlow::Continue(is_at_row) => {
                            to.in_model(&rows, &mut place);
                            is_kept = true;
                            let expected = place.checked_sub(1).and_then(|at| rows.get(at));
                            assert_eq!(lent(&cursor).as_ref(), expected, "after move {count}, {to:?}");
                            assert_eq!(is_at_row, expected.is_some(), "after move {count}, {to:?}");
                        }
                        // A future that was never polled has not touched the cursor.
                        ControlFlow::Break(()) => is_kept &= lent(&cursor).is_some(),
                    }
                }
                drop(cursor);
                reads.finish();
                assert_eq!(table.core().env.cache.usage().pinned_bytes, 0);
            }
        }
    }
}

#[test]
fn a_cursor_moved_in_all_forms_stands_where_one_over_a_model_does_while_files_change() {
    check_moves(history, key, 256);
}

#[test]
fn a_cursor_over_rows_that_follow_in_their_pages_stands_where_one_over_a_model_does() {
    check_moves(super::following::interleaved, |rng| super::following::numbered(rng.random_range(0..1000)), 2048);
}

/// Checks a table with these keys, once in memory and once in a file.
fn check_edges(keys: &[&str], check: impl Fn(Cursor)) {
    let db = open(&SimDisk::new(1), 1 << 20);
    let table = db.table_with("t", options(&[])).expect("the disk works");
    for key in keys {
        put(&table, key.as_bytes(), &[format!("value of {key}")]);
    }
    check(table.cursor());
    if !keys.is_empty() {
        flush(&table, 0, u64::MAX);
        check(table.cursor());
        check(db.cursor(&table));
        check(db.snapshot().cursor(&table));
    }
}

/// Checks where the cursor stands.
#[track_caller]
fn stands_at(cursor: &Cursor, key: Option<&str>) {
    assert_eq!(cursor.key(), key.map(str::as_bytes));
    assert_eq!(cursor.value().map(<[u8]>::to_vec), key.map(|key| format!("value of {key}").into_bytes()));
}

#[test]
fn a_new_cursor_is_before_the_first_row() {
    check_edges(&["b", "d"], |mut cursor| {
        stands_at(&cursor, None);
        assert!(!cursor.prev().expect("the disk works"));
        stands_at(&cursor, None);
        assert!(cursor.next().expect("the disk works"));
        stands_at(&cursor, Some("b"));
    });
}

#[test]
fn after_the_last_row_a_cursor_stays_and_goes_back_to_the_last_row() {
    check_edges(&["b", "d"], |mut cursor| {
        assert!(cursor.last().expect("the disk works"));
        stands_at(&cursor, Some("d"));
        for _ in 0..3 {
            assert!(!cursor.next().expect("the disk works"));
            stands_at(&cursor, None);
        }
        assert!(cursor.prev().expect("the disk works"));
        stands_at(&cursor, Some("d"));
        assert!(!cursor.next().expect("the disk works"));
        assert!(cursor.prev().expect("the disk works") && cursor.prev().expect("the disk works"));
        stands_at(&cursor, Some("b"));
    });
}

#[test]
fn before_the_first_row_a_cursor_stays_and_goes_on_to_the_first_row() {
    check_edges(&["b", "d"], |mut cursor| {
        assert!(cursor.first().expect("the disk works"));
        for _ in 0..3 {
            assert!(!cursor.prev().expect("the disk works"));
            stands_at(&cursor, None);
        }
        assert!(cursor.next().expect("the disk works"));
        stands_at(&cursor, Some("b"));
        assert!(cursor.next().expect("the disk works"));
        stands_at(&cursor, Some("d"));
    });
}

#[test]
fn a_seek_that_finds_no_row_goes_to_the_edge_where_it_ran_out_of_rows() {
    check_edges(&["b", "d"], |mut cursor| {
        assert!(!cursor.seek("e").expect("the disk works"));
        stands_at(&cursor, None);
        assert!(cursor.prev().expect("the disk works"));
        stands_at(&cursor, Some("d"));
        assert!(!cursor.seek_back("a").expect("the disk works"));
        stands_at(&cursor, None);
        assert!(cursor.next().expect("the disk works"));
        stands_at(&cursor, Some("b"));
        for (key, forward, back) in [("b", "b", "b"), ("c", "d", "b"), ("d", "d", "d")] {
            assert!(cursor.seek(key).expect("the disk works"));
            stands_at(&cursor, Some(forward));
            assert!(cursor.seek_back(key).expect("the disk works"));
            stands_at(&cursor, Some(back));
        }
    });
}

#[test]
fn in_an_empty_table_no_move_finds_a_row() {
    check_edges(&[], |mut cursor| {
        for _ in 0..2 {
            assert!(!cursor.next().expect("the disk works") && !cursor.prev().expect("the disk works"));
            assert!(!cursor.first().expect("the disk works") && !cursor.last().expect("the disk works"));
            assert!(!cursor.seek("a").expect("the disk works") && !cursor.seek_back("a").expect("the disk works"));
            stands_at(&cursor, None);
        }
    });
}

#[test]
fn a_cursor_in_a_range_sees_no_row_outside_of_it() {
    let db = open(&SimDisk::new(1), 1 << 20);
    let table = db.table_with("t", options(&[])).expect("the disk works");
    for key in ["a", "b", "c", "d"] {
        put(&table, key.as_bytes(), &[format!("value of {key}")]);
    }
    let mut cursor = table.cursor_in("b"..="c");
    assert!(cursor.seek("a").expect("the disk works"));
    stands_at(&cursor, Some("b"));
    assert!(!cursor.prev().expect("the disk works"));
    assert!(cursor.seek_back("x").expect("the disk works"));
    stands_at(&cursor, Some("c"));
    assert!(!cursor.next().expect("the disk works"));
    assert!(!cursor.seek("d").expect("the disk works"));
    assert!(!cursor.seek_back("a").expect("the disk works"));
    let mut cursor = table.cursor_in((Bound::Excluded("b"), Bound::Excluded("c")));
    assert!(!cursor.first().expect("the disk works") && !cursor.last().expect("the disk works"));
    assert!(!cursor.seek("b").expect("the disk works") && !cursor.seek_back("c").expect("the disk works"));
}

#[test]
fn a_row_that_was_removed_since_is_still_shown_by_a_cursor() {
    let db = open(&SimDisk::new(1), 1 << 20);
    let table = db.table_with("t", options(&[])).expect("the disk works");
    for key in ["a", "b", "c"] {
        put(&table, key.as_bytes(), &[format!("value of {key}")]);
    }
    let mut cursor = table.cursor();
    assert!(cursor.seek("b").expect("the disk works"));
    table.remove("b").expect("the disk works");
    table.remove_range("c"..).expect("the disk works");
    flush(&table, 0, u64::MAX);
    table.compact().expect("the disk works");
    stands_at(&cursor, Some("b"));
    assert!(cursor.next().expect("the disk works"));
    stands_at(&cursor, Some("c"));
    assert!(cursor.prev().expect("the disk works"));
    stands_at(&cursor, Some("b"));
    assert!(!table.cursor().seek("b").expect("the disk works"));
}

#[test]
fn a_try_that_would_fault_touches_no_disk_and_leaves_the_cursor_where_it_was() {
    let disk = hot_and_cold();
    let db = open(&disk, 64 << 20);
    let table = db.existing_table("split").expect("a name").expect("it is there");
    let mut cursor = table.select(["large", "hot"]).expect("it has them").cursor();
    assert!(cursor.seek(numbered(7)).expect("the disk works"));
    let (before, operations) = (disk.counts(), disk.operation_count());
    let far = numbered(ROWS / 2);
    for _ in 0..3 {
        assert!(cursor.try_seek(&far).expect("nothing is read").would_fault());
        assert!(cursor.key().is_none() && cursor.part(1).is_none());
        assert!(cursor.try_seek_back(&far).expect("nothing is read").would_fault());
        assert!(cursor.try_last().expect("nothing is read").would_fault());
    }
    assert_eq!((disk.counts(), disk.operation_count()), (before, operations));
    assert!(cursor.next().expect("the disk works"));
    assert_eq!(cursor.key(), Some(&numbered(8)[..]));
    assert!(cursor.try_last().expect("nothing is read").would_fault());
    assert!(cursor.prev().expect("the disk works"));
    assert_eq!(cursor.key(), Some(&numbered(7)[..]));
    // Goes on to the end of what is in memory.
    let mut at = 7;
    while let Tried::Ready(is_at_row) = cursor.try_next().expect("it works") {
        assert!(is_at_row);
        at += 1;
        assert_eq!((cursor.key(), cursor.part(1)), (Some(&numbered(at)[..]), Some(&[b'h'; 100][..])));
    }
    assert!(at > 8, "a page has several rows");
    assert!(cursor.prev().expect("the disk works"));
    assert_eq!(cursor.key(), Some(&numbered(at - 1)[..]));
}

#[test]
fn a_move_loads_the_parts_outside_their_pages_so_that_they_are_lent_without_a_read() {
    let disk = hot_and_cold();
    let db = open(&disk, 64 << 20);
    let table = db.existing_table("split").expect("a name").expect("it is there");
    let mut cursor = table.select(["large", "hot"]).expect("it has them").cursor();
    assert!(cursor.seek(numbered(3000)).expect("the disk works"));
    let before = disk.counts();
    assert_eq!(cursor.part(0), Some(&[b'l'; 3000][..]));
    assert_eq!(disk.counts(), before);
    drop((cursor, table, db));
    // Without the group, nothing of it is read.
    let keys = cost(&disk, "split", |table| {
        let mut cursor = table.select(None::<&str>).expect("keys alone").cursor();
        assert!(cursor.seek(numbered(3000)).expect("the disk works") && cursor.next().expect("the disk works"));
    });
    assert_eq!((keys.of(PageKind::Group), keys.of(PageKind::Value)), (0, 0));
}

#[test]
fn a_cursor_whose_futures_are_dropped_after_any_number_of_polls_stays_and_leaves_nothing_behind() {
    let disk = hot_and_cold();
    for cache_bytes in [3 * 4400, 1 << 20] {
        for to in [Move::Seek(numbered(15_000)), Move::SeekBack(numbered(15_000)), Move::Last, Move::Next, Move::Prev] {
            for polls in 0.. {
                let Held { reads, db } = open_held(&disk, cache_bytes, 1);
                let table = db.existing_table("split").expect("a name").expect("it is there");
                let mut cursor = table.select(["large", "hot"]).expect("it has them").cursor();
                assert!(cursor.seek(numbered(4999)).expect("the disk works"));
                let is_done = {
                    let mut future = pin!(to.go_async(&mut cursor));
                    (0..polls).any(|_| {
                        let poll = future.as_mut().poll(&mut nobody());
                        reads.step();
                        poll.is_ready()
                    })
                };
                if !is_done {
                    assert!(cursor.next().expect("the disk works"));
                    assert_eq!(cursor.key(), Some(&numbered(5000)[..]), "{to:?} given up after {polls} polls");
                }
                drop(cursor);
                reads.finish();
                let usage = db.metrics().cache;
                let left = (usage.pinned_bytes, usage.held_bytes, usage.in_flight_bytes, usage.queued);
                assert_eq!(left, (0, 0, 0, 0), "{to:?} given up after {polls} polls");
                assert_eq!(table.core().views.snapshots.count(), 0);
                assert_eq!(table.core().views.ranges.count(), 0);
                if is_done {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_cursor_that_stands_still_keeps_no_old_file_and_lends_its_row() {
    let disk = SimDisk::new(1);
    let db = open(&disk, 64 << 20);
    let table = db.table_with("t", options(&[])).expect("the disk works");
    (0..200).for_each(|i| put(&table, &numbered(i), &["value"]));
    flush(&table, 6, u64::MAX);
    for steps in [0, 20] {
        let mut cursor = table.cursor();
        assert!(cursor.seek(numbered(10)).expect("the disk works"));
        (0..steps).for_each(|_| assert!(cursor.next().expect("the disk works")));
        put(&table, &numbered(500 + steps), &["value"]);
        table.compact().expect("the disk works");
        let files = disk.list("db".as_ref()).expect("it is there");
        let files = files.iter().filter(|entry| entry.name.ends_with(".sst")).count();
        assert_eq!(files, 1, "the old file is gone");
        assert_eq!((cursor.key(), cursor.value()), (Some(&numbered(10 + steps)[..]), Some(&b"value"[..])));
        assert!(cursor.prev().expect("the disk works"));
        assert_eq!(cursor.key(), Some(&numbered(9 + steps)[..]));
        assert!(table.core().views.ranges.count() <= 1);
    }
    assert_eq!((db.metrics().cache.pinned_bytes, db.metrics().cache.held_bytes), (0, 0));
}

/// Tells whether an error is the expected one.
type IsExpected = fn(&Error) -> bool;

#[test]
fn a_cursor_that_has_failed_answers_every_move_with_its_error() {
    let db = open(&SimDisk::new(1), 1 << 20);
    let table = db.table_with("t", options(&["hot", "cold"])).expect("the disk works");
    put(&table, b"k", &["1", "2"]);
    let other = open(&SimDisk::new(2), 1 << 20);
    let foreign = other.table("t").expect("the disk works");
    let is_grouped: IsExpected = |error| matches!(error, Error::Grouped { .. });
    let is_foreign: IsExpected = |error| matches!(error, Error::ForeignTable(_));
    let cases: [(Cursor, IsExpected); 4] = [
        (table.cursor(), is_grouped),
        (db.snapshot().cursor(&table), is_grouped),
        (db.cursor(&foreign), is_foreign),
        (db.snapshot().cursor(&foreign), is_foreign),
    ];
    for (mut cursor, is_expected) in cases {
        for _ in 0..2 {
            for moved in [cursor.prev(), cursor.next(), cursor.first(), cursor.last(), cursor.seek("k")] {
                assert!(is_expected(&moved.expect_err("it has failed")));
            }
            assert!(is_expected(&cursor.try_next().expect_err("it has failed")));
            assert!(cursor.key().is_none() && cursor.value().is_none());
        }
    }
    let mut cursor = table.select(["cold"]).expect("it has it").cursor();
    assert!(cursor.first().expect("the disk works"));
    assert!(db.drop_table("t").expect("the disk works"));
    assert!(matches!(cursor.seek("k").expect_err("it is gone"), Error::TableDropped(_)));
    assert!(matches!(cursor.prev().expect_err("it stays failed"), Error::TableDropped(_)));
}

#[test]
#[should_panic(expected = "part 1 of a row of 1 parts")]
fn a_part_that_was_not_selected_is_not_lent() {
    let db = open(&SimDisk::new(1), 1 << 20);
    let table = db.table_with("t", options(&["hot", "cold"])).expect("the disk works");
    put(&table, b"k", &["1", "2"]);
    let mut cursor = table.select(["hot"]).expect("it has it").cursor();
    assert!(cursor.first().expect("the disk works"));
    drop(cursor.part(1).map(<[u8]>::to_vec));
}
