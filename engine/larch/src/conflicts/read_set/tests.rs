//! Tests that a set includes every key that was added, however many keys are added.

use super::*;
use crate::base::record::tests::seeds;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::ops::Bound;

/// The contents of a set, with each key as a range of one key.
fn all(set: &ReadSet) -> Vec<TableRange> {
    let keys = set.keys().map(|(table, key)| (table, KeyRange::of_key(key)));
    keys.chain(set.ranges().cloned()).collect()
}

#[test]
fn a_range_that_is_opened_takes_the_place_of_one_that_was_closed() {
    let mut set = ReadSet::new(1 << 20);
    let range = |number: u32| KeyRange::of_key(&number.to_be_bytes());
    let numbers: Vec<usize> = (0..1000).map(|number| set.open(TableId(1), range(number))).collect();
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
    for number in [7, 700, 70] {
        set.close(number, None);
        set.close(number, None);
    }
    assert_eq!([0; 3].map(|_| set.open(TableId(1), range(1))), [70, 700, 7], "no place is looked for");
    assert_eq!(set.open(TableId(1), range(1)), 1000);
    assert!(!set.is_empty());
    let mut set = ReadSet::new(1 << 20);
    let number = set.open(TableId(1), range(1));
    set.close(number, Some((Bound::Unbounded, Bound::Unbounded)));
    assert!(set.is_empty(), "nothing of it was read");
}

#[test]
fn keys_and_ranges_stay_in_a_set_that_joins_them_and_its_memory_is_bounded() {
    for seed in seeds(100) {
        let mut rng = StdRng::seed_from_u64(seed);
        let most_bytes = rng.random_range(200..4000);
        let (mut set, mut read) = (ReadSet::new(most_bytes), Vec::new());
        for _ in 0..rng.random_range(0..500) {
            let table = TableId(rng.random_range(0..3));
            let mut key = || format!("{:03}", rng.random_range(0..1000)).into_bytes();
            let (start, end) = (key(), key());
            if rng.random_range(0..5) > 0 {
                set.add_key(table, &start);
                read.push((table, KeyRange::of_key(&start)));
            } else if let Some(range) = KeyRange::new(start, Some(end)) {
                set.add_range(table, range.clone());
                read.push((table, range));
            }
            // One range for each of the three tables is left, even if they take more than `most_bytes`.
            assert!(set.bytes() <= most_bytes.max(3 * 200), "{} of {most_bytes}", set.bytes());
        }
        let kept = all(&set);
        for (table, range) in &read {
            let is_kept = kept.iter().any(|(of, kept)| of == table && kept.holds(range.low(), range.high()));
            assert!(is_kept, "{range:?} of {table:?}");
        }
    }
}

#[test]
fn what_fits_is_kept_as_it_was_read() {
    let mut set = ReadSet::new(1000);
    assert!(set.is_empty());
    set.add_key(TableId(7), b"b");
    set.add_key(TableId(7), b"");
    assert_eq!(set.keys().collect::<Vec<_>>(), [(TableId(7), b"b".as_slice()), (TableId(7), b"")]);
    assert!(!set.is_empty() && set.ranges().next().is_none());
}

#[test]
fn a_range_counts_whole_until_it_is_closed_and_then_what_was_read() {
    let set = Arc::new(Mutex::new(ReadSet::new(1000)));
    let whole = KeyRange { start: b"b".to_vec(), end: Some(b"y".to_vec()) };
    let ranges = || set.lock().ranges().map(|(_, keys)| keys.clone()).collect::<Vec<_>>();
    let open = OpenRead::begin(&set, TableId(1), whole.clone());
    assert_eq!(ranges(), std::slice::from_ref(&whole));
    let range = |start: &[u8], end: &[u8]| KeyRange { start: start.to_vec(), end: Some(end.to_vec()) };
    open.close(Some((Bound::Excluded(b"d"), Bound::Included(b"w"))));
    assert_eq!(ranges(), [range(b"b", b"d\0"), range(b"w\0", b"y")]);
    let open = OpenRead::begin(&set, TableId(1), whole.clone());
    open.close(Some((Bound::Included(b"b"), Bound::Excluded(b"y"))));
    assert_eq!(ranges().len(), 2, "nothing was read of it");
    let open = OpenRead::begin(&set, TableId(1), whole.clone());
    open.close(None);
    assert_eq!(ranges().last(), Some(&whole));
    let open = OpenRead::begin(&set, TableId(1), KeyRange::ALL);
    open.close(Some((Bound::Excluded(b"d"), Bound::Unbounded)));
    assert_eq!(ranges().last(), Some(&range(b"", b"d\0")));
    // This range was read from both ends up to the key `m`, and so as a whole.
    let open = OpenRead::begin(&set, TableId(1), whole.clone());
    open.close(Some((Bound::Excluded(b"m"), Bound::Excluded(b"m"))));
    assert_eq!(ranges().last(), Some(&whole));
}

#[test]
fn a_read_that_goes_elsewhere_counts_where_it_was_and_where_it_is() {
    let set = Arc::new(Mutex::new(ReadSet::new(1000)));
    let range = |start: &[u8], end: Option<&[u8]>| KeyRange { start: start.to_vec(), end: end.map(<[u8]>::to_vec) };
    let ranges = || set.lock().ranges().map(|(_, keys)| keys.clone()).collect::<Vec<_>>();
    let mut open = OpenRead::begin(&set, TableId(1), KeyRange::ALL);
    // End the first range before any of its keys was read.
    open.restart(Some((Bound::Unbounded, Bound::Unbounded)), (Bound::Included(b"m"), Bound::Unbounded));
    assert_eq!(ranges(), [range(b"m", None)]);
    let read = range(b"m", Some(b"p\0"));
    open.restart(Some((Bound::Excluded(b"p"), Bound::Unbounded)), (Bound::Included(b"b"), Bound::Excluded(b"b")));
    let bound = KeyRange::of_key(b"b");
    assert_eq!(ranges(), [read.clone(), bound.clone()], "no key is being read, but somebody reads");
    let another = OpenRead::begin(&set, TableId(2), range(b"x", None));
    open.restart(None, (Bound::Unbounded, Bound::Excluded(b"c")));
    let all = ranges();
    assert_eq!(all.len(), 4);
    assert!([&read, &bound, &range(b"x", None), &range(b"", Some(b"c"))].iter().all(|range| all.contains(range)));
    open.close(Some((Bound::Unbounded, Bound::Excluded(b"a"))));
    another.close(Some((Bound::Included(b"x"), Bound::Unbounded)));
    assert_eq!(ranges(), [read, bound, range(b"a", Some(b"c"))]);
}
