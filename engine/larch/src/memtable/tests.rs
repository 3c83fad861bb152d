//! Compares a memtable with a model that keeps every version in a sorted map.

#![allow(clippy::disallowed_methods, reason = "readers beside a writer are what is tested")]

use sst::KeyRange;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};
use std::thread;

use kit::allocations::{Counting, Thread};
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sst::{RowKind, Version};

use super::set::MemSet;
use super::*;
use crate::base::record::tests::seeds;
use crate::base::table::TableId;

#[global_allocator]
static COUNTING: Counting<Thread> = Counting::new();

/// A row in the model: its key, version, kind and value.
type Seen = (Vec<u8>, u64, RowKind, Vec<u8>);
/// The place of a row in the model. Places are ordered by key, then from the newest to the oldest version.
type Place = (Vec<u8>, Reverse<u64>);
type Content = (RowKind, Vec<u8>);

fn seen(row: &MemRow) -> Seen {
    (row.key().to_vec(), row.version().0, row.kind(), row.value().to_vec())
}

/// The simplest store of rows and range erases.
#[derive(Default)]
struct Model {
    rows: BTreeMap<Place, Content>,
    range_erases: Vec<(Vec<u8>, Vec<u8>, u64)>,
}

impl Model {
    fn row(((key, Reverse(version)), (kind, value)): (&Place, &Content)) -> Seen {
        (key.clone(), *version, *kind, value.clone())
    }

    fn get(&self, key: &[u8], at: u64) -> Option<Seen> {
        self.rows.range((key.to_vec(), Reverse(at))..=(key.to_vec(), Reverse(0))).next().map(Self::row)
    }

    fn visible(&self, at: u64) -> Vec<Seen> {
        let keys: BTreeSet<&Vec<u8>> = self.rows.keys().map(|(key, _)| key).collect();
        keys.into_iter().filter_map(|key| self.get(key, at)).collect()
    }

    fn cover(&self, key: &[u8], at: u64) -> Option<u64> {
        let covers = |(start, end, version): &&(Vec<u8>, Vec<u8>, u64)| {
            *version <= at && start.as_slice() <= key && (end.is_empty() || key < end.as_slice())
        };
        self.range_erases.iter().filter(covers).map(|(_, _, version)| *version).max()
    }
}

/// A short key of only a few different letters, so that many keys are equal. Some keys have a long common prefix, so
/// that their heads are equal.
fn random_key(random: &mut StdRng) -> Vec<u8> {
    let mut key = if random.random_bool(0.3) { b"prefix--".to_vec() } else { Vec::new() };
    let length = random.random_range(0..3);
    key.extend((0..length).map(|_| [0, b'a', b'b', 255][random.random_range(0..4)]));
    key
}

/// A memtable and its model after the same random commits, with the version of the last commit.
fn random_table(random: &mut StdRng, commits: u64) -> (Arc<Memtable>, Model, u64) {
    let (table, mut model) = (Arc::new(Memtable::new()), Model::default());
    let mut version = random.random_range(0..3);
    for commit in 0..commits {
        version += if commit == 0 { 0 } else { random.random_range(1..3) };
        for _ in 0..random.random_range(1..4) {
            let key = random_key(random);
            if random.random_bool(0.1) {
                let end = random_key(random);
                table.remove_range(&key, &end, Version(version));
                if end.is_empty() || key < end {
                    model.range_erases.push((key, end, version));
                }
                continue;
            }
            let (kind, value) = match random.random_range(0..4) {
                0 => (RowKind::Erase, Vec::new()),
                _ => (RowKind::Put, vec![random.random(); random.random_range(0..20)]),
            };
            table.apply(&key, Version(version), kind, &value);
            model.rows.insert((key, Reverse(version)), (kind, value));
        }
    }
    (table, model, version)
}

#[test]
fn a_read_gives_the_newest_version_at_or_before_its_own() {
    for seed in seeds(300) {
        let mut random = StdRng::seed_from_u64(seed);
        let commits = random.random_range(0..80);
        let (table, model, newest) = random_table(&mut random, commits);
        for _ in 0..200 {
            let (key, at) = (random_key(&mut random), random.random_range(0..=newest + 1));
            let found = table.get(&key, Version(at));
            assert_eq!(found.as_ref().map(seen), model.get(&key, at), "seed {seed}");
            let cover = table.cover(&key, Version(at)).map(|version| version.0);
            let erases = || table.range_erases().collect::<Vec<_>>();
            assert_eq!(cover, model.cover(&key, at), "seed {seed}: {key:?} at {at} in {:?}", erases());
            for direction in [Direction::Forward, Direction::Backward] {
                let around = table.cover_around(&key, Version(at), direction);
                assert_eq!(
                    around.cover.map(|version| version.0),
                    cover,
                    "seed {seed}: {key:?} at {at} in {:?}",
                    erases()
                );
                let other = random_key(&mut random);
                let (near, far) = match direction {
                    Direction::Forward => (Bound::Included(key.as_slice()), around.edge.as_ref().map(Vec::as_slice)),
                    Direction::Backward => (around.edge.as_ref().map(Vec::as_slice), Bound::Included(key.as_slice())),
                };
                if RangeBounds::<[u8]>::contains(&(near, far), other.as_slice()) {
                    let there = model.cover(&other, at);
                    assert_eq!(there, cover, "seed {seed}: {other:?} beside {key:?} at {at} in {:?}", erases());
                }
            }
        }
        let all: Vec<Seen> = table.all_versions().map(|row| seen(&row)).collect();
        assert_eq!(all, model.rows.iter().map(Model::row).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(table.rows(), model.rows.len() as u64, "seed {seed}");
        assert_eq!(table.is_empty(), model.rows.is_empty() && model.range_erases.is_empty(), "seed {seed}");
    }
}

#[test]
fn range_erases_are_listed_as_sorted_fragments_that_do_not_overlap() {
    let table = Memtable::new();
    assert!(table.range_erases().next().is_none() && !table.has_range_erases());
    table.remove_range(b"a", b"m", Version(5));
    table.remove_range(b"f", b"t", Version(9));
    table.remove_range(b"x", b"", Version(9));
    table.remove_range(b"q", b"q", Version(10));
    table.remove_range(b"z", b"q", Version(10));
    table.remove_range(b"f", b"m", Version(11));
    table.remove_range(b"f", b"m", Version(11));
    let list: Vec<String> = table
        .range_erases()
        .map(|erase| {
            let versions: Vec<u64> = erase.versions.iter().map(|version| version.0).collect();
            let KeyRange { start, end } = erase.keys;
            format!("{}..{} {versions:?}", start.escape_ascii(), end.unwrap_or_default().escape_ascii())
        })
        .collect();
    assert_eq!(list, ["a..f [5]", "f..m [11, 9, 5]", "m..t [9]", "x.. [9]"]);
    table.remove_range(b"", b"", Version(12));
    let starts: Vec<_> = table.range_erases().map(|erase| erase.keys.start.to_vec()).collect();
    assert_eq!(starts, [b"".to_vec(), b"a".to_vec(), b"f".to_vec(), b"m".to_vec(), b"t".to_vec(), b"x".to_vec()]);
    assert_eq!(table.cover(b"zzz", Version::MAX), Some(Version(12)));
    assert_eq!(table.cover(b"zzz", Version(11)), Some(Version(9)));
    assert_eq!(table.cover(b"t", Version(11)), None);
}

#[test]
fn a_later_write_of_one_batch_replaces_an_earlier_one() {
    let table = Memtable::new();
    table.apply(b"k", Version(3), RowKind::Put, b"old");
    table.apply(b"k", Version(3), RowKind::Erase, b"");
    table.apply(b"k", Version(3), RowKind::Put, b"new");
    assert_eq!(table.rows(), 1);
    assert_eq!(table.get(b"k", Version(3)).expect("it is there").value(), b"new");
    assert!(table.get(b"k", Version(2)).is_none());
}

/// Moves the cursor at random and compares every position with `visible`.
fn walk(cursor: &mut MemCursor, visible: &[Seen], random: &mut StdRng, seed: u64) {
    // The n rows have the places 1 to n. 0 is the place before the first row, and n + 1 the place after the last one.
    let mut place = 0;
    for _ in 0..150 {
        let key = random_key(random);
        let first_at = visible.partition_point(|row| row.0 < key);
        let first_after = visible.partition_point(|row| row.0 <= key);
        match random.random_range(0..14) {
            0 => {
                cursor.seek(Bound::Included(&key));
                place = first_at + 1;
            }
            1 => {
                cursor.seek(Bound::Excluded(&key));
                place = first_after + 1;
            }
            2 => {
                cursor.seek_back(Bound::Included(&key));
                place = first_after;
            }
            3 => {
                cursor.seek_back(Bound::Excluded(&key));
                place = first_at;
            }
            4 => {
                cursor.seek(Bound::Unbounded);
                place = 1;
            }
            5 => {
                cursor.seek_back(Bound::Unbounded);
                place = visible.len();
            }
            6..10 => {
                cursor.next();
                place = (place + 1).min(visible.len() + 1);
            }
            _ => {
                cursor.prev();
                place = place.saturating_sub(1);
            }
        }
        let expected = place.checked_sub(1).and_then(|index| visible.get(index));
        assert_eq!(cursor.key(), expected.map(|row| row.0.as_slice()), "seed {seed}");
        if let Some(expected) = expected {
            assert_eq!(seen(cursor.row()), *expected, "seed {seed}");
        }
    }
}

#[test]
fn a_cursor_stands_where_a_list_of_the_visible_rows_says() {
    for seed in seeds(300) {
        let mut random = StdRng::seed_from_u64(seed);
        let commits = random.random_range(0..120);
        let (table, model, newest) = random_table(&mut random, commits);
        let at = random.random_range(0..=newest + 1);
        let mut cursor = MemCursor::new(table, Version(at));
        assert_eq!((cursor.key(), cursor.at()), (None, Version(at)));
        walk(&mut cursor, &model.visible(at), &mut random, seed);
    }
}

#[test]
fn no_visible_key_lies_before_the_next_key_and_few_rows_are_passed_to_find_it() {
    for seed in seeds(300) {
        let mut random = StdRng::seed_from_u64(seed);
        let commits = random.random_range(0..120);
        let (table, model, newest) = random_table(&mut random, commits);
        let (at, key) = (random.random_range(0..=newest), random_key(&mut random));
        let keys: Vec<Vec<u8>> = model.visible(at).into_iter().map(|(key, ..)| key).collect();
        let next = |direction| table.next_key(Bound::Excluded(&key), direction, Version(at));
        let forward = keys.iter().find(|other| **other > key);
        let found = next(Direction::Forward);
        assert!(forward.is_none_or(|first| found.is_some_and(|found| *found <= first[..])), "seed {seed}: {found:?}");
        let backward = keys.iter().rev().find(|other| **other < key);
        let found = next(Direction::Backward);
        assert!(backward.is_none_or(|last| found.is_some_and(|found| *found >= last[..])), "seed {seed}: {found:?}");
    }
    let table = Memtable::new();
    (0..1000u32).for_each(|i| table.apply(&i.to_be_bytes(), Version(9), RowKind::Put, b""));
    let next = |direction, at| table.next_key(Bound::Unbounded, direction, Version(at)).map(<[u8]>::to_vec);
    assert_eq!(next(Direction::Forward, 9), Some(0u32.to_be_bytes().to_vec()));
    assert!(next(Direction::Forward, 8) < Some(100u32.to_be_bytes().to_vec()));
    assert!(next(Direction::Backward, 8) > Some(900u32.to_be_bytes().to_vec()));
}

fn forward(cursor: &mut MemCursor) -> Vec<Seen> {
    cursor.seek(Bound::Unbounded);
    std::iter::from_fn(|| {
        cursor.key()?;
        let row = seen(cursor.row());
        cursor.next();
        Some(row)
    })
    .collect()
}

fn backward(cursor: &mut MemCursor) -> Vec<Seen> {
    cursor.seek_back(Bound::Unbounded);
    std::iter::from_fn(|| {
        cursor.key()?;
        let row = seen(cursor.row());
        cursor.prev();
        Some(row)
    })
    .collect()
}

#[test]
fn keys_with_many_versions_are_yielded_once_at_any_version() {
    let table = Arc::new(Memtable::new());
    for version in 1..=2000u64 {
        for key in [b"a", b"b", b"d"] {
            table.apply(key, Version(version * 2), RowKind::Put, &version.to_le_bytes());
        }
    }
    table.apply(b"c", Version(3999), RowKind::Erase, b"");
    for at in [1, 2, 3, 1000, 3998, 3999, 5000] {
        let mut cursor = MemCursor::new(table.clone(), Version(at));
        let keys: &[&[u8]] = match at {
            1 => &[],
            ..3999 => &[b"a", b"b", b"d"],
            _ => &[b"a", b"b", b"c", b"d"],
        };
        let mut rows = forward(&mut cursor);
        assert_eq!(rows.iter().map(|row| row.0.as_slice()).collect::<Vec<_>>(), keys, "at {at}");
        assert!(rows.iter().all(|row| row.1 == (at / 2 * 2).min(4000) || (row.1, row.2) == (3999, RowKind::Erase)));
        rows.reverse();
        assert_eq!(backward(&mut cursor), rows, "at {at}");
    }
}

#[test]
fn readers_at_a_version_are_not_disturbed_by_newer_commits() {
    for seed in seeds(3) {
        let mut random = StdRng::seed_from_u64(seed);
        let (table, model, at) = random_table(&mut random, 300);
        let expected = model.visible(at);
        let reversed: Vec<Seen> = expected.iter().rev().cloned().collect();
        let is_done = AtomicBool::new(false);
        let published = AtomicU64::new(at);
        thread::scope(|scope| {
            for reader in 0..2 {
                let (table, expected, reversed) = (table.clone(), &expected, &reversed);
                let (is_done, published, model) = (&is_done, &published, &model);
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed + 1000 + reader);
                    let mut cursor = MemCursor::new(table.clone(), Version(at));
                    while !is_done.load(Ordering::Relaxed) {
                        assert_eq!(forward(&mut cursor), *expected, "seed {seed}");
                        assert_eq!(backward(&mut cursor), *reversed, "seed {seed}");
                        walk(&mut cursor, expected, &mut random, seed);
                        let key = random_key(&mut random);
                        let cover = table.cover(&key, Version(at)).map(|version| version.0);
                        assert_eq!(cover, model.cover(&key, at), "seed {seed}");
                        // Every commit writes this key again, so it has a row with exactly the published version.
                        let newest = published.load(Ordering::Acquire);
                        if newest > at {
                            let row = table.get(b"every commit", Version(newest)).expect("it was published");
                            assert_eq!((row.version().0, row.value()), (newest, newest.to_le_bytes().as_slice()));
                        }
                    }
                });
            }
            for version in at + 1..at + 3000 {
                for _ in 0..3 {
                    let key = random_key(&mut random);
                    table.apply(&key, Version(version), RowKind::Put, b"newer");
                    table.apply(&key, Version(version), RowKind::Erase, b"");
                }
                table.apply(b"every commit", Version(version), RowKind::Put, &version.to_le_bytes());
                if version % 50 == 0 {
                    table.remove_range(&random_key(&mut random), &random_key(&mut random), Version(version));
                }
                published.store(version, Ordering::Release);
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_read_allocates_nothing() {
    let table = Memtable::new();
    let key = |number: u32| [b"a key that is longer than a head ", number.to_be_bytes().as_slice()].concat();
    for number in 0..1000 {
        table.apply(&key(number), Version(1), RowKind::Put, &[1; 100]);
    }
    table.remove_range(b"b", b"c", Version(2));
    let keys: Vec<Vec<u8>> = (0..1200).map(key).collect();
    table.get(&keys[0], Version(1)).expect("it is there");
    let before = Thread::so_far();
    let mut found = 0;
    for key in &keys {
        found += usize::from(table.get(key, Version(1)).is_some_and(|row| row.value().len() == 100));
        found += usize::from(table.cover(key, Version(2)).is_some());
    }
    assert_eq!(found, 1000);
    assert_eq!(Thread::so_far().count - before.count, 0);
}

/// A row with a key of 20 bytes and a value of 100 bytes takes more than 120 bytes: also a header, a link, and on
/// average a third of another link.
#[test]
fn a_row_takes_less_than_40_bytes_besides_its_own() {
    // With this few rows, all chunks are on the heap and none in the pool.
    const ROWS: u64 = 4000;
    for (key_bytes, value_bytes) in [(20, 100), (19, 100), (8, 1)] {
        let before = Thread::so_far();
        let set = MemSet::new(1, Arc::default()).with_filter();
        let memtable = set.table_or_new(TableId(1));
        let mut key = vec![0; key_bytes];
        for number in 0..ROWS {
            key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
            memtable.apply(&key, Version(number), RowKind::Put, &vec![7; value_bytes]);
        }
        let taken = Thread::so_far().since(before);
        let real = taken.heap_bytes - taken.freed_heap_bytes;
        let excess_percent = (set.bytes() as f64 / real as f64 - 1.0) * 100.0;
        assert!((-2.0..2.0).contains(&excess_percent), "{} bytes are counted of {real}", set.bytes());
        let each = memtable.bytes() as f64 / ROWS as f64 - (key_bytes + value_bytes) as f64;
        println!("rows of {key_bytes} and {value_bytes} bytes: {each:.1} bytes more");
        assert!(each <= 40.0, "{each}");
        let rows: u64 = memtable.all_versions().map(|row| row.memory_bytes()).sum();
        assert_eq!(memtable.bytes(), rows);
        // The used bytes exceed those of the rows by the filter and by what is lost at the ends of chunks.
        assert!(set.used_bytes() - rows <= set.bytes() / 12, "{} bytes are used for rows of {rows}", set.used_bytes());
    }
}

/// The estimate must be at most 5 % below and 40 % above the memory that the range erases take.
fn check_estimate(what: &str, table: &Memtable, real: u64) {
    let excess_percent = (table.bytes() as f64 / real as f64 - 1.0) * 100.0;
    println!("{what}: {real} bytes, estimate {} ({excess_percent:+.1} %)", table.bytes());
    assert!((-5.0..=40.0).contains(&excess_percent), "{what}: {excess_percent:+.1} %");
}

/// Adding range erases also allocates temporary values, which are freed at once. The table has no rows, so all memory
/// that remains allocated is that of its range erases.
fn check_range_erases_estimate(what: &str, range_erases: &[(u64, u64)]) {
    let key = |number: u64| format!("{number:016}").into_bytes();
    let range_erases: Vec<_> = range_erases.iter().map(|(start, end)| (key(*start), key(*end))).collect();
    let table = Memtable::new();
    let before = Thread::so_far();
    for (version, (start, end)) in range_erases.iter().enumerate() {
        table.remove_range(start, end, Version(version as u64));
    }
    let taken = Thread::so_far().since(before);
    check_estimate(what, &table, taken.heap_bytes - taken.freed_heap_bytes);
}

#[test]
fn the_estimate_of_memory_for_range_erases_is_close_and_not_below() {
    let mut random = StdRng::seed_from_u64(1);
    let mut random_range = |length| {
        let start = random.random_range(0..10_000);
        (start, start + random.random_range(1..length))
    };
    check_range_erases_estimate("one range", &[(1, 2)]);
    check_range_erases_estimate("separate ranges in order", &(0..5000).map(|n| (n * 2, n * 2 + 1)).collect::<Vec<_>>());
    check_range_erases_estimate(
        "separate in reverse",
        &(0..5000).rev().map(|n| (n * 2, n * 2 + 1)).collect::<Vec<_>>(),
    );
    check_range_erases_estimate("adjacent ranges", &(0..5000).map(|n| (n, n + 1)).collect::<Vec<_>>());
    check_range_erases_estimate("small random ranges", &(0..3000).map(|_| random_range(3)).collect::<Vec<_>>());
    check_range_erases_estimate("overlapping ranges", &(0..1000).map(|_| random_range(300)).collect::<Vec<_>>());
    check_range_erases_estimate("nested ranges", &(0..300).map(|n| (n, 1000 - n)).collect::<Vec<_>>());
    check_range_erases_estimate("one range again and again", &[(1, 2); 1000]);
}

#[test]
fn a_row_outlives_its_memtable() {
    let table = Arc::new(Memtable::new());
    table.apply(b"k", Version(1), RowKind::Put, b"value");
    let row = table.get(b"k", Version(1)).expect("it is there");
    let mut cursor = MemCursor::new(table.clone(), Version(1));
    drop(table);
    cursor.next();
    let copy = cursor.row().clone();
    drop(cursor);
    assert_eq!((row.value(), copy.value(), copy.key()), (b"value".as_slice(), b"value".as_slice(), b"k".as_slice()));
}
