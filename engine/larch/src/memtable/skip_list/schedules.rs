//! Tests what a skip list promises in any order of its threads' steps: under shuttle, several threads in random
//! schedules; under loom, two threads in all schedules.

use super::*;
#[cfg(loom)]
use os::sync::loom::thread;
#[cfg(shuttle)]
use os::sync::shuttle::{self, thread};

fn content(key: &[u8], version: u64) -> Content<'_> {
    Content { key, version: Version(version), kind: RowKind::Put, value: key, until: None }
}

fn insert(inserter: &mut Inserter<'_>, key: &[u8], version: u64) {
    inserter.insert(&content(key, version));
}

/// Checks that all rows are in order and complete, and returns their number.
fn check_rows(list: &SkipList) -> usize {
    let mut count = 0;
    let mut next = list.first();
    let mut last: Option<Node<'_>> = None;
    while let Some(node) = next {
        assert_eq!(node.key(), node.value(), "a row is whole once it is reached");
        if let Some(last) = last {
            assert!((last.key(), node.version()) <= (node.key(), last.version()), "rows are in order");
        }
        count += 1;
        last = next;
        next = list.following(node);
    }
    count
}

/// Runs `threads` threads that each insert a row for every key in `keys`, with a version of their own, while this
/// thread reads the list.
fn check(threads: u64, keys: &'static [&'static [u8]]) {
    let list = Arc::new(SkipList::new(Arc::new(Arena::new(Arc::default()))));
    insert(&mut list.inserter(), b"m", 1);
    let writers: Vec<_> = (0..threads)
        .map(|writer| {
            let list = list.clone();
            thread::spawn(move || {
                let mut inserter = list.inserter();
                for key in keys {
                    insert(&mut inserter, key, 10 + writer);
                    let found = list.first_from(&Probe::new(key, Version(10 + writer))).expect("it was inserted");
                    assert_eq!((found.key(), found.version()), (*key, Version(10 + writer)));
                }
            })
        })
        .collect();
    assert!(check_rows(&list) > 0, "what was there stays");
    writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
    assert_eq!(check_rows(&list), 1 + threads as usize * keys.len());
    check_levels(&list);
}

/// Finds the place of version 2 of a key and inserts a row there, while another thread inserts version 3 of the key and
/// a row of the key `neighbour`. Version 1 is there before.
fn check_place(neighbour: &'static [u8]) {
    let list = Arc::new(SkipList::new(Arc::new(Arena::new(Arc::default()))));
    insert(&mut list.inserter(), b"k", 1);
    let later = {
        let list = list.clone();
        thread::spawn(move || {
            let mut inserter = list.inserter();
            insert(&mut inserter, b"k", 3);
            insert(&mut inserter, neighbour, 3);
        })
    };
    let mut inserter = list.inserter();
    let place = inserter.seek(b"k", Version(2));
    let after = place.after.expect("version 1 is there");
    assert_eq!((after.key(), after.version()), (b"k".as_slice(), Version(1)));
    inserter.insert_at(place, &content(b"k", 2));
    later.join().expect("it does not panic");
    let mut versions = Vec::new();
    let mut next = list.first();
    while let Some(node) = next {
        if node.key() == b"k" {
            versions.push(node.version().0);
        }
        next = list.following(node);
    }
    assert_eq!(versions, [3, 2, 1]);
    assert_eq!(check_rows(&list), 4);
    check_levels(&list);
}

#[cfg(shuttle)]
#[test]
fn the_row_below_a_place_is_known_in_every_schedule_in_which_only_later_versions_are_added() {
    for neighbour in [b"j", b"l"] {
        shuttle::check_random(move || check_place(neighbour), 3_000);
        shuttle::check_pct(move || check_place(neighbour), 3_000, 3);
    }
}

#[cfg(loom)]
#[test]
fn the_row_below_a_place_is_known_in_every_schedule_in_which_only_later_versions_are_added() {
    let mut model = os::sync::loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| check_place(b"j"));
    model.check(|| check_place(b"l"));
}

#[cfg(shuttle)]
#[test]
fn rows_of_all_threads_are_there_and_in_order_in_every_schedule() {
    let keys: &[&[u8]] = &[b"b", b"m", b"n", b"a", b"z"];
    shuttle::check_random(move || check(3, keys), 3_000);
    shuttle::check_pct(move || check(3, keys), 3_000, 3);
}

#[cfg(loom)]
#[test]
fn rows_of_all_threads_are_there_and_in_order_in_every_schedule() {
    let mut model = os::sync::loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| check(1, &[b"k", b"m"]));
    model.check(|| check(2, &[b"k"]));
}
