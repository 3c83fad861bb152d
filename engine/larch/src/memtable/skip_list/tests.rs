//! Compares a skip list with a sorted map, and tests it with several threads that insert and read.

#![allow(clippy::disallowed_methods, reason = "threads that insert at the same time are what is tested")]

use super::*;
use crate::base::record::tests::seeds;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::thread;

fn list() -> SkipList {
    SkipList::new(Arc::new(Arena::new(Arc::default())))
}

/// The key and version of a row, with its value.
type ModelRow<'m> = (&'m (Vec<u8>, Reverse<u64>), &'m Vec<u8>);

/// A key of only a few different letters. Therefore keys are often equal, or differ only in some bytes at any place.
fn random_key(random: &mut StdRng) -> Vec<u8> {
    let prefixes: [&[u8]; 4] = [b"", b"", b"prefix--", b"a much longer prefix"];
    let mut key = prefixes[random.random_range(0..4)].to_vec();
    let length = random.random_range(0..4);
    key.extend((0..length).map(|_| [0, 0, b'a', 255][random.random_range(0..4)]));
    if random.random_bool(0.3) {
        key.extend([0; 9]);
    }
    key
}

/// Key, version and value of every row, in list order.
fn rows(list: &SkipList) -> Vec<(Vec<u8>, u64, Vec<u8>)> {
    let mut next = list.first();
    let mut rows = Vec::new();
    while let Some(node) = next {
        rows.push((node.key().to_vec(), node.version().0, node.value().to_vec()));
        next = list.following(node);
    }
    rows
}

#[test]
fn rows_lie_as_in_a_sorted_map_however_they_are_inserted() {
    for seed in seeds(if cfg!(miri) { 3 } else { 200 }) {
        let mut random = StdRng::seed_from_u64(seed);
        let (list, mut model) = (list(), BTreeMap::new());
        let mut version = 0;
        for _ in 0..random.random_range(0..if cfg!(miri) { 15 } else { 60 }) {
            // Each batch has its own inserter and version. Its keys are in random or in ascending order.
            version += random.random_range(1..4);
            let mut keys: Vec<_> = (0..random.random_range(1..20)).map(|_| random_key(&mut random)).collect();
            if random.random() {
                keys.sort();
            }
            let mut inserter = list.inserter();
            for key in keys {
                let value = vec![random.random(); random.random_range(0..20)];
                let (kind, version) = (RowKind::Put, Version(version));
                let (bytes, is_new) =
                    inserter.insert(&Content { key: &key, version, kind, value: &value, until: None });
                assert!(bytes >= (24 + key.len() + value.len()) as u64);
                let replaced = model.insert((key, Reverse(version.0)), value);
                assert_eq!(is_new, replaced.is_none(), "seed {seed}");
            }
        }
        check_levels(&list);
        let mut found = rows(&list);
        found.dedup_by(|replaced, row| replaced.0 == row.0 && replaced.1 == row.1);
        let expected = |((key, Reverse(version)), value): ModelRow<'_>| (key.clone(), *version, value.clone());
        assert_eq!(found, model.iter().map(expected).collect::<Vec<_>>(), "seed {seed}");
        let seen = |node: Option<Node<'_>>| node.map(|node| (node.key().to_vec(), node.version().0));
        let place = |row: Option<ModelRow<'_>>| row.map(|((key, at), _)| (key.clone(), at.0));
        assert_eq!(seen(list.last()), place(model.last_key_value()), "seed {seed}");
        for _ in 0..50 {
            let (key, at) = (random_key(&mut random), random.random_range(0..version + 2));
            let from = (key.clone(), Reverse(at));
            let probe = Probe::new(&key, Version(at));
            assert_eq!(seen(list.first_from(&probe)), place(model.range(from.clone()..).next()), "seed {seed}");
            assert_eq!(seen(list.last_before(&probe)), place(model.range(..from).next_back()), "seed {seed}");
            let (first, end) = ((key.clone(), Reverse(u64::MAX)), (key.clone(), Reverse(0)));
            let before = list.last_before(&Probe::before(&key));
            assert_eq!(seen(before), place(model.range(..first).next_back()), "seed {seed}");
            let after = list.first_from(&Probe::after(&key));
            let bounds = (std::ops::Bound::Excluded(end), std::ops::Bound::Unbounded);
            assert_eq!(seen(after), place(model.range(bounds).next()), "seed {seed}");
        }
    }
}

#[test]
fn a_quarter_of_the_nodes_of_a_level_is_in_the_next() {
    const ROWS: usize = if cfg!(miri) { 300 } else { 100_000 };
    for value_bytes in [0, 8, 100] {
        let list = list();
        for number in 0..ROWS as u64 {
            let (key, version) = (&number.to_be_bytes(), Version(1));
            list.inserter().insert(&Content {
                key,
                version,
                kind: RowKind::Put,
                value: &vec![0; value_bytes],
                until: None,
            });
        }
        let mut heights = [0; MAX_HEIGHT + 1];
        let mut next = list.first();
        while let Some(node) = next {
            heights[node.height()] += 1;
            next = list.following(node);
        }
        for height in 1..if cfg!(miri) { 2 } else { 5 } {
            let higher: usize = heights[height + 1..].iter().sum();
            let share = higher as f64 / (higher + heights[height]) as f64;
            assert!((0.15..0.35).contains(&share), "values of {value_bytes}: {heights:?}");
        }
    }
}

#[test]
fn rows_of_several_threads_are_all_there_and_in_order_at_any_time() {
    const ROWS: u64 = if cfg!(miri) { 40 } else { 4000 };
    for seed in seeds(if cfg!(miri) { 2 } else { 10 }) {
        let list = list();
        thread::scope(|scope| {
            for writer in 0..3u64 {
                let list = &list;
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed * 10 + writer);
                    let mut inserter = list.inserter();
                    for number in 0..ROWS {
                        // Half of the keys are ascending, so that all threads often insert at the end of the list.
                        // The others are anywhere.
                        let at = if random.random() { number } else { random.random_range(0..ROWS) };
                        let (key, version) = ((at * 3 + writer).to_be_bytes(), Version(number));
                        let content = Content { key: &key, version, kind: RowKind::Put, value: &key, until: None };
                        inserter.insert(&content);
                        let found = list.first_from(&Probe::new(&key, version)).expect("it was inserted");
                        assert!(found.key() == key && found.version() == version && found.value() == key);
                        if random.random_bool(0.1) {
                            inserter = list.inserter();
                        }
                    }
                });
            }
            let list = &list;
            scope.spawn(move || {
                for _ in 0..if cfg!(miri) { 3 } else { 50 } {
                    let seen = rows(list);
                    assert!(seen.is_sorted_by_key(|(key, version, _)| (key.clone(), Reverse(*version))));
                    assert!(seen.iter().all(|(key, _, value)| key == value));
                }
            });
        });
        check_levels(&list);
        assert_eq!(rows(&list).len() as u64, 3 * ROWS);
    }
}
