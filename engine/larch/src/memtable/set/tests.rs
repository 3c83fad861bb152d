//! Tests what a memory set promises about its tables.

#![allow(clippy::disallowed_methods, reason = "threads that add tables at the same time are what is tested")]

use super::*;
use sst::RowKind;
use std::thread;

fn set() -> MemSet {
    MemSet::new(1, Arc::default())
}

#[test]
fn every_table_has_one_memtable_whichever_thread_asks_first() {
    let set = set();
    let tables = || (0..500u32).map(|i| TableId(i * 7919)).chain((0..20).map(|bit| TableId(1 << bit)));
    let memtables = thread::scope(|scope| {
        let threads = [0, 1, 2].map(|_| {
            scope.spawn(|| tables().map(|table| Arc::as_ptr(set.table_or_new(table)) as usize).collect::<Vec<_>>())
        });
        threads.map(|thread| thread.join().expect("it does not panic"))
    });
    assert!(memtables[0] == memtables[1] && memtables[0] == memtables[2]);
    for (table, memtable) in tables().zip(&memtables[0]) {
        assert_eq!(set.table(table).map(|found| Arc::as_ptr(found) as usize), Some(*memtable));
    }
    assert!(set.table(TableId(3)).is_none());
    let all: Vec<TableId> = set.all().into_iter().map(|(table, _)| table).collect();
    let mut expected: Vec<TableId> = tables().collect();
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(all, expected);
}

#[test]
fn a_table_is_found_in_few_steps_among_many() {
    let set = set();
    (0..10_000).for_each(|i| drop(set.table_or_new(TableId(i)).clone()));
    fn depth(place: &OnceLock<Box<TableNode>>) -> usize {
        place.get().map_or(0, |node| 1 + node.below.iter().map(depth).max().unwrap_or(0))
    }
    assert!(depth(&set.tables) <= 10, "{} levels", depth(&set.tables));
}

#[test]
fn the_memory_of_a_set_grows_with_its_rows_and_ends_with_it() {
    let kept = Arc::new(RowMemory::default());
    let set = MemSet::new(1, kept.clone());
    let empty = set.bytes();
    let memtable = set.table_or_new(TableId(1)).clone();
    let before = set.used_bytes();
    (0..100u32).for_each(|i| memtable.apply(&i.to_be_bytes(), Version(1), RowKind::Put, &[7; 100]));
    let rows: u64 = memtable.all_versions().map(|row| row.memory_bytes()).sum();
    assert_eq!(memtable.bytes(), rows);
    let used = set.used_bytes() - before;
    assert!((rows..rows + rows / 10).contains(&used), "{used} bytes for rows of {rows}");
    assert!(set.used_bytes() <= set.bytes() && empty == 0);
    let row = memtable.all_versions().next().expect("there are some");
    let bytes = set.arena.bytes();
    drop((set, memtable));
    assert_eq!((kept.kept_bytes(), row.may_be_kept()), (bytes, false));
    drop(row);
    assert_eq!(kept.kept_bytes(), 0);
}
