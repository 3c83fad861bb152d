//! A read has three forms: it blocks, it tries, or it is a future. Tests that all of them give the same rows,
//! whichever form takes the next row, whatever is in memory, and while files and memory change; and that a dropped
//! future leaves nothing behind.

use super::*;
use crate::base::bounds;
use crate::read::again::Again;
use crate::read::multi::{AnswerBytes, MultiRead};
use crate::read::range::RangeRows;
use crate::read::{Tried, content};
use crate::view::found::Spot;
use crate::view::value::Value;
use os::sim::SimReads;
use pages::retry_async;
use sst::Direction;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// A database whose reads complete only when the test says so, or when a thread waits for them.
pub(super) struct Held {
    pub reads: Arc<SimReads>,
    pub db: Database,
}

pub(super) fn open_held(disk: &Arc<SimDisk>, cache_bytes: u64, seed: u64) -> Held {
    let reads = SimReads::new(seed);
    let machine = Machine { reads: reads.clone(), ..Machine::simulated_on(disk.clone(), seed) };
    let db = Database::builder("db").machine(machine).cache_bytes(cache_bytes).open().expect("the disk works");
    Held { reads, db }
}

/// Counts the rows that were lent: all of them, those that needed no merging, and those that were given together in a
/// batch.
#[derive(Default)]
pub(super) struct Borrowed {
    pub rows: u64,
    pub followed: u64,
    pub batched: u64,
}

fn session(table: &Table) -> Session {
    Session::new(&table.core().env.cache, Reason::Point, Admit::Keep)
}

fn nobody() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Polls until the future is done. Between two polls it calls `between`, which completes some reads or does something
/// else.
fn run<T>(future: impl Future<Output = T>, mut between: impl FnMut()) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut nobody()) {
            return done;
        }
        between();
    }
}

/// Whether the future is done after `polls` polls. Between two polls one read completes.
fn is_done_after(polls: u32, reads: &SimReads, future: impl Future<Output = ()>) -> bool {
    let mut future = pin!(future);
    (0..polls).any(|_| {
        let is_done = future.as_mut().poll(&mut nobody()).is_ready();
        reads.step();
        is_done
    })
}

type Next = Option<(Vec<u8>, Row)>;

fn given(row: Option<(crate::Key, Parts)>) -> Next {
    row.map(|(key, parts)| (key.to_vec(), bytes(&parts)))
}

/// Takes up to a hundred rows in one call, with a `None` at the end if the range ends before. Sometimes calls `happen`
/// between two rows.
pub(super) fn together(rng: &mut StdRng, rows: &mut RangeRows, direction: Direction, happen: &dyn Fn()) -> Vec<Next> {
    let most = rng.random_range(1..=100);
    let mut given = Vec::new();
    let end = rows.for_each(direction, |row| {
        given.push(Some((row.key().to_vec(), bytes(&row.parts().expect("the disk works")))));
        if rng.random_range(0..30) == 0 {
            happen();
        }
        if given.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if end.expect("the disk works").is_continue() {
        given.push(None);
    }
    given
}

/// Takes up to a hundred rows in one batch, or a single `None` if no row is left.
pub(super) fn batch(
    rng: &mut StdRng,
    rows: &mut RangeRows,
    direction: Direction,
    borrowed: &mut Borrowed,
) -> Vec<Next> {
    let most = rng.random_range(1..=100);
    let Some(batch) = rows.next_batch(direction, most).expect("the disk works") else { return vec![None] };
    assert!((1..=most).contains(&batch.len()), "{} rows of at most {most}", batch.len());
    if batch.len() > 1 {
        borrowed.batched += batch.len() as u64;
    }
    let mut given = Vec::new();
    batch.for_each_key(|key| given.push((key.to_vec(), Row::new())));
    for part in 0..batch.part_count() {
        match batch.inline_parts(part) {
            Some(parts) => {
                assert_eq!(parts.len(), batch.len());
                let parts: Vec<&[u8]> = if rng.random() { parts.collect() } else { parts.fold(Vec::new(), pushed) };
                given.iter_mut().zip(parts).for_each(|((_, row), part)| row.push(part.to_vec()));
            }
            None => given[0].1.push(batch.row().expect("it comes alone").part(part).expect("the disk works").to_vec()),
        }
    }
    given.into_iter().map(Some).collect()
}

fn pushed<T>(mut all: Vec<T>, next: T) -> Vec<T> {
    all.push(next);
    all
}

/// Takes the next row, with forms chosen by `rng` until one gives the row. Calls `happen` while a poll is pending.
pub(super) fn next(
    rng: &mut StdRng,
    rows: &mut RangeRows,
    direction: Direction,
    borrowed: &mut Borrowed,
    happen: &dyn Fn(),
) -> Next {
    loop {
        match rng.random_range(0..5) {
            0 => return given(rows.wait(direction, content::owned::<Parts>).expect("the disk works")),
            4 => {
                let row = rows.next(direction).expect("the disk works")?;
                borrowed.rows += 1;
                borrowed.followed += u64::from(matches!(row.spot, Spot::InPage(..) | Spot::Copied(_)));
                return Some((row.key().to_vec(), bytes(&row.parts().expect("the disk works"))));
            }
            1 => match rows.try_once(direction, content::owned::<Parts>).expect("the disk works") {
                Tried::Ready(row) => return given(row),
                Tried::WouldFault => {}
            },
            // Polls until the row is ready, or gives up after a few polls.
            form => {
                for _ in 0..if form == 2 { u32::MAX } else { rng.random_range(0..4) } {
                    match rows.poll(&mut nobody(), direction, content::owned::<Parts>) {
                        Poll::Ready(row) => return given(row.expect("the disk works")),
                        Poll::Pending => happen(),
                    }
                }
                rows.abandon();
            }
        }
    }
}

#[test]
fn all_forms_of_a_range_together_give_each_row_once_while_files_change() {
    for seed in 0..6 {
        for (index, cache_bytes) in
            [(PageIndexKind::Btree, 64 << 20), (PageIndexKind::Both, 3 * 4400), (PageIndexKind::Flat, 40 * 4400)]
        {
            println!("seed {seed}, {index:?}, cache of {cache_bytes} bytes");
            let rng = &mut StdRng::seed_from_u64(seed);
            let Held { reads, db } = open_held(&SimDisk::new(seed), cache_bytes, seed);
            let table = db.table_with("t", tiny_pages(index)).expect("the disk works");
            let shown = history(rng, &db, &table);
            let while_pending = || {
                table.core().views.change(|_| {});
                reads.step();
            };
            let mut now = shown.last().expect("the newest").1.clone();
            // Writes something, and sometimes flushes. Without background threads, a write or a flush may compact on
            // this thread, and then it waits for memory that a half-done read would hold. So this is called only
            // between two rows.
            let mut happen = |rng: &mut StdRng| match rng.random_range(0..60) {
                0..8 => super::change(rng, &table, &mut now, true),
                8 => {
                    super::change(rng, &table, &mut now, true);
                    // A range erase whose end comes before its start writes nothing.
                    if table.core().views.newest().memory[0].table(table.id()).is_some() {
                        flush(&table, 0, u64::MAX);
                    }
                }
                _ => {}
            };
            for (number, (snapshot, model)) in shown.iter().enumerate().skip(seed as usize % 3).step_by(3) {
                let groups = CHOICES[number % CHOICES.len()];
                let wanted = groups.iter().try_fold(PartList::nothing(3), |wanted, &group| wanted.with(group));
                let wanted = wanted.expect("each once");
                let (low, high) = (key(rng), key(rng));
                let (range, rows) = if low < high && rng.random() {
                    (bounds::owned(&(low.clone()..high.clone())), model.range(low..high))
                } else {
                    (bounds::owned(&..), model.range::<Vec<u8>, _>(..))
                };
                let expected: Vec<(Vec<u8>, Row)> = rows.map(|(key, row)| (key.clone(), picked(row, groups))).collect();
                let mut expected = expected.as_slice();
                let pin = snapshot.pin_of(&table).expect("it is of this database").clone();
                let mut rows = RangeRows::new(session(&table), table.inner(), wanted, pin, range);
                let limit = if rng.random() { rng.random_range(0..40) } else { u64::MAX };
                if limit < u64::MAX {
                    rows = rows.limit(limit);
                }
                let both_ends = rng.random_bool(0.3);
                let mut count = 0;
                loop {
                    happen(rng);
                    if rng.random_range(0..60) == 0 {
                        table.compact().expect("the disk works");
                    }
                    let forward = !both_ends || rng.random();
                    let direction = if forward { Direction::Forward } else { Direction::Backward };
                    let row = next(rng, &mut rows, direction, &mut Borrowed::default(), &while_pending);
                    if count == limit {
                        assert_eq!(row, None);
                        break;
                    }
                    let split = if forward { expected.split_first() } else { expected.split_last() };
                    assert_eq!(row.as_ref(), split.map(|(row, _)| row), "row {count}, {direction:?}");
                    let Some((_, rest)) = split else { break };
                    (expected, count) = (rest, count + 1);
                }
                drop(rows);
                reads.finish();
                assert_eq!(table.core().env.cache.usage().pinned_bytes, 0);
            }
        }
    }
}

#[test]
fn futures_say_of_keys_what_reads_that_wait_do() {
    for seed in 0..4 {
        for cache_bytes in [64 << 20, 3 * 4400, 40 * 4400] {
            println!("seed {seed}, cache of {cache_bytes} bytes");
            let rng = &mut StdRng::seed_from_u64(seed);
            let Held { reads, db } = open_held(&SimDisk::new(seed), cache_bytes, seed);
            let table = db.table_with("t", tiny_pages(PageIndexKind::Btree)).expect("the disk works");
            let shown = history(rng, &db, &table);
            let step = || {
                reads.step();
            };
            for (snapshot, model) in shown.iter().skip(seed as usize % 4).step_by(4) {
                for groups in CHOICES {
                    let selection = chosen(&table, groups).at(snapshot).expect("it is of this database");
                    let keys: Vec<Vec<u8>> = (0..20).map(|_| key(rng)).collect();
                    let expected: Vec<Option<Row>> =
                        keys.iter().map(|key| model.get(key).map(|row| picked(row, groups))).collect();
                    let (view, at) = Again::new(table.core(), selection.pinned_at()).view();
                    let seen = view.table(table.identity(), at).expect("it is there");
                    let cache = &table.core().env.cache;
                    for (key, expected) in keys.iter().zip(&expected) {
                        let mut session = session(&table);
                        let mut read = PointRead::new(seen, key);
                        let wanted = selection.wanted();
                        let row = run(
                            retry_async(&mut session, |session| {
                                content_of::<Parts, _>(&mut read, session, cache, wanted)
                            }),
                            || {
                                table.core().views.change(|_| {});
                                reads.step();
                            },
                        );
                        assert_eq!(row.expect("the disk works").as_deref().map(bytes).as_ref(), expected.as_ref());
                        if let Tried::Ready(row) = selection.try_get(key).expect("the disk works") {
                            assert_eq!(row.as_deref().map(bytes).as_ref(), expected.as_ref());
                        }
                        let row = run(selection.get_async(key), step).expect("the disk works");
                        assert_eq!(row.as_deref().map(bytes).as_ref(), expected.as_ref());
                        let there = run(selection.contains_key_async(key), step).expect("the disk works");
                        assert_eq!(there, expected.is_some());
                        if cache_bytes == 64 << 20 {
                            // The row was just read, so it is in memory.
                            let row =
                                selection.try_get(key).expect("the disk works").ready().expect("it was just read");
                            assert_eq!(row.as_deref().map(bytes).as_ref(), expected.as_ref());
                            let there = selection.try_contains_key(key).expect("the disk works");
                            assert_eq!(there, Tried::Ready(expected.is_some()));
                        }
                    }
                    let mut session = session(&table);
                    let mut read =
                        MultiRead::<_, Parts>::new(seen, &keys, (selection.wanted(), AnswerBytes::ALL), cache);
                    let rows = run(retry_async(&mut session, |session| read.get(session, cache)), step);
                    let rows = rows.expect("the disk works");
                    assert_eq!(rows.iter().map(|row| row.as_deref().map(bytes)).collect::<Vec<_>>(), expected);
                    let rows = run(selection.multi_get_async(&keys), step).expect("the disk works");
                    assert_eq!(rows.iter().map(|row| row.as_deref().map(bytes)).collect::<Vec<_>>(), expected);
                }
            }
        }
    }
}

#[test]
fn a_future_dropped_after_any_number_of_polls_leaves_nothing_behind() {
    let disk = hot_and_cold();
    let keys: Vec<Vec<u8>> = (0..40).map(|i| numbered(i * 500)).collect();
    for cache_bytes in [3 * 4400, 1 << 20] {
        for polls in 0.. {
            let Held { reads, db } = open_held(&disk, cache_bytes, 1);
            let table = db.existing_table("split").expect("a name").expect("it is there");
            let cache = &table.core().env.cache;
            let wanted = [2, 0].into_iter().try_fold(PartList::nothing(3), PartList::with).expect("each once");
            let (view, at) = table.core().views.now();
            let seen = view.table(table.identity(), at).expect("it is there");
            let nothing_is_left = || {
                reads.finish();
                let usage = cache.usage();
                let left = (usage.pinned_bytes, usage.held_bytes, usage.in_flight_bytes, usage.queued);
                assert_eq!(left, (0, 0, 0, 0), "after {polls} polls");
            };
            let mut done = 0;
            {
                let mut session = session(&table);
                let mut read = PointRead::new(seen, &keys[20]);
                done += u32::from(is_done_after(polls, &reads, async {
                    let read =
                        retry_async(&mut session, |session| content_of::<Parts, _>(&mut read, session, cache, &wanted))
                            .await;
                    assert!(read.expect("the disk works").is_some());
                }));
            }
            nothing_is_left();
            {
                let mut session = session(&table);
                let mut read = MultiRead::<_, Parts>::new(seen, &keys, (&wanted, AnswerBytes::ALL), cache);
                done += u32::from(is_done_after(polls, &reads, async {
                    let read = retry_async(&mut session, |session| read.get(session, cache)).await;
                    assert!(read.expect("the disk works").iter().all(Option::is_some));
                }));
            }
            nothing_is_left();
            {
                let range = bounds::owned(&(numbered(100)..numbered(130)));
                let mut rows =
                    RangeRows::new(session(&table), table.inner(), wanted, table.inner().pin(), range).limit(25);
                done += u32::from((0..polls).any(|_| {
                    let row = rows.poll(&mut nobody(), Direction::Forward, content::owned::<Parts>);
                    reads.step();
                    matches!(row, Poll::Ready(Ok(None)))
                }));
            }
            nothing_is_left();
            assert_eq!(table.core().views.snapshots.count(), 0);
            if done == 3 {
                println!("cache of {cache_bytes} bytes: done after {polls} polls");
                break;
            }
        }
    }
}

#[test]
fn what_would_fault_touches_no_disk_and_opens_no_file() {
    let disk = hot_and_cold();
    let db = open(&disk, 64 << 20);
    let table = db.existing_table("split").expect("a name").expect("it is there");
    let selection = table.select(["large", "hot"]).expect("it has them");
    let (before, operations) = (disk.counts(), disk.operation_count());
    let mut range = selection.range(numbered(7)..).limit(10);
    for _ in 0..3 {
        assert!(selection.try_get(numbered(7)).expect("nothing is read").would_fault());
        assert!(selection.try_contains_key(numbered(7)).expect("nothing is read").would_fault());
        assert!(range.try_next().expect("nothing is read").would_fault());
        assert!(range.try_next_back().expect("nothing is read").would_fault());
    }
    assert_eq!((disk.counts(), disk.operation_count()), (before, operations));
    let usage = db.metrics().cache;
    assert_eq!((usage.pinned_bytes, usage.in_flight_bytes, usage.open_files, usage.frames), (0, 0, 0, 0));

    // The range is where it was. With the first row, it loads what all its rows need.
    assert_eq!(range.next().expect("a row").expect("the disk works").0[..], *numbered(7));
    assert_eq!(range.next().expect("a row").expect("the disk works").0[..], *numbered(8));
    let before = disk.counts();
    for i in 9..17 {
        let row = range.try_next().expect("it works").ready().expect("it is in memory").expect("a row");
        assert_eq!(row.0[..], *numbered(i));
    }
    assert!(range.try_next().expect("it works").ready().expect("that is known").is_none());
    assert!(selection.try_get(numbered(7)).expect("it works").ready().expect("it is in memory").is_some());
    assert_eq!(disk.counts(), before);
}

#[test]
fn a_long_way_over_erased_rows_pins_little_and_is_not_begun_anew_when_files_change() {
    let disk = hot_and_cold();
    let erased = 1000..ROWS - 1000;
    {
        let db = open(&disk, 8 << 20);
        let table = db.existing_table("whole").expect("a name").expect("it is there");
        commit(&table, |ops, id| erased.clone().for_each(|i| ops.erase(id, &numbered(i))));
        flush(&table, 0, u64::MAX);
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let Held { reads, db } = open_held(&disk, 40 * 4400, 4);
        let table = db.existing_table("whole").expect("a name").expect("it is there");
        let range = bounds::owned(&(numbered(erased.start - 1)..=numbered(erased.end)));
        let mut rows = RangeRows::new(session(&table), table.inner(), PartList::whole(), table.inner().pin(), range);
        let (mut polls, mut most) = (0, 0);
        for _ in 0..2 {
            loop {
                polls += 1;
                // Whoever makes a new view takes the range's place away.
                table.core().views.change(|_| {});
                match rows.poll(&mut nobody(), direction, content::owned::<Value>) {
                    Poll::Ready(row) => break assert!(row.expect("the disk works").is_some()),
                    Poll::Pending => {
                        reads.step();
                        most = most.max(db.metrics().cache.pinned_bytes);
                    }
                }
            }
        }
        let reads = db.metrics().page_reads;
        println!("{direction:?}: {polls} polls, {reads} page reads, {most} bytes pinned");
        assert!(most <= 16 * 4400, "{most} bytes were pinned");
        assert!(reads < 2500, "{reads} pages of some 1,000 were read");
    }
}

/// Many futures on one thread, over reads that are held back and complete in any order. Some futures are dropped
/// halfway.
#[test]
fn futures_over_reads_that_are_held_back_end_in_any_order_or_are_dropped() {
    let disk = hot_and_cold();
    for seed in 0..20 {
        for cache_bytes in [40 * 4400, 8 << 20] {
            println!("seed {seed}, cache of {cache_bytes} bytes");
            let rng = &mut StdRng::seed_from_u64(seed);
            let Held { reads, db } = open_held(&disk, cache_bytes, seed);
            let table = db.existing_table("split").expect("a name").expect("it is there");
            let selection = table.select(["large", "hot"]).expect("it has them");
            let mut futures: Vec<Option<Pin<Box<dyn Future<Output = ()> + '_>>>> = Vec::new();
            for _ in 0..24 {
                let first = rng.random_range(0..ROWS - 20);
                let (selection, cut) = (&selection, rng.random_range(1..20));
                futures.push(Some(match rng.random_range(0..3) {
                    0 => Box::pin(async move {
                        let row = selection.get_async(numbered(first)).await.expect("the disk works").expect("a row");
                        assert_eq!(row[1].len(), 100);
                    }),
                    1 => Box::pin(async move {
                        let keys = (first..first + cut).map(|i| numbered(i * 977 % (ROWS + 10)));
                        let rows = selection.multi_get_async(keys).await.expect("the disk works");
                        for (i, row) in (first..).zip(rows) {
                            assert_eq!(row.is_some(), i * 977 % (ROWS + 10) < ROWS);
                        }
                    }),
                    _ => Box::pin(async move {
                        let mut scan = selection.scan_async(numbered(first)..numbered(first + cut)).limit(15);
                        let mut rows = 0;
                        while let Some(row) = scan.next().await {
                            assert_eq!(row.expect("the disk works").0[..], *numbered(first + rows));
                            rows += 1;
                        }
                        assert_eq!(rows, cut.min(15));
                    }),
                }));
            }
            while futures.iter().any(Option::is_some) {
                let some = rng.random_range(0..futures.len());
                match rng.random_range(0..8) {
                    0..4 => {
                        if let Some(future) = &mut futures[some]
                            && future.as_mut().poll(&mut nobody()).is_ready()
                        {
                            futures[some] = None;
                        }
                    }
                    4 if rng.random_range(0..40) == 0 => futures[some] = None,
                    _ => drop(reads.step()),
                }
            }
            drop(futures);
            reads.finish();
            let usage = db.metrics().cache;
            let left = (usage.pinned_bytes, usage.held_bytes, usage.in_flight_bytes, usage.queued);
            assert_eq!(left, (0, 0, 0, 0));
        }
    }
}
