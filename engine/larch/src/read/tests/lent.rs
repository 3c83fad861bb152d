//! Tests ranges whose first rows are found under a guard: they give the rows of a model, enter no registry of ranges,
//! and hand over to a merge where memory alone does not have the answer.

use super::*;
use sst::Direction;

/// Asks for the first rows after random keys, in both directions, and returns how many of these ranges found their rows
/// without a merge, and how many with one.
#[track_caller]
fn check_first_rows(
    rng: &mut StdRng,
    (table, selection): (&Table, &Selection),
    model: &Model,
    groups: &[usize],
    key: fn(&mut StdRng) -> Vec<u8>,
) -> [u64; 2] {
    let mut found = [0, 0];
    for _ in 0..40 {
        let [start, end] = [key(rng), key(rng)];
        let direction = [Direction::Forward, Direction::Backward][rng.random_range(0..2)];
        let near = [Bound::Included(&start), Bound::Excluded(&start)][rng.random_range(0..2)];
        let far = match direction {
            Direction::Forward if start < end && rng.random() => Bound::Excluded(&end),
            Direction::Backward if start > end && rng.random() => Bound::Included(&end),
            _ => Bound::Unbounded,
        };
        let bounds = direction.near_far((near, far));
        let mut expected: Vec<(Vec<u8>, Row)> =
            model.range::<Vec<u8>, _>(bounds).map(|(key, row)| (key.clone(), picked(row, groups))).collect();
        if !direction.is_forward() {
            expected.reverse();
        }
        let mut range = selection.range((bounds.0.cloned(), bounds.1.cloned()));
        let count = rng.random_range(1..6);
        for i in 0..count {
            let row = if direction.is_forward() { range.next() } else { range.next_back() };
            let row = row.transpose().expect("the disk works").map(|(key, parts)| (key.to_vec(), bytes(&parts)));
            assert_eq!(row.as_ref(), expected.get(i), "row {i} of {bounds:?}, {direction:?}");
            if i == 0 {
                found[table.core().views.ranges.count()] += 1;
            }
        }
    }
    found
}

/// Reads the first rows of ranges over what `write` has written, as of all snapshots. Of a hundred ranges whose parts
/// lie in one group and whose pages are in memory, at least `least` find their rows without a merge.
fn check_first_rows_of(
    write: fn(&mut StdRng, &Database, &Table) -> Vec<(Snapshot, Model)>,
    key: fn(&mut StdRng) -> Vec<u8>,
    page_bytes: u32,
    least: u64,
) {
    let mut total = [0, 0];
    for seed in 0..6 {
        for cache_bytes in [64 << 20, 6 * 4400] {
            println!("seed {seed}, cache of {cache_bytes} bytes");
            let rng = &mut StdRng::seed_from_u64(seed);
            let db = open(&SimDisk::new(seed), cache_bytes);
            let options = TableOptions { page_bytes, ..tiny_pages(PageIndexKind::Btree) };
            let table = db.table_with("t", options).expect("the disk works");
            let shown = write(rng, &db, &table);
            for (snapshot, model) in &shown {
                for groups in [&[][..], &[0], &[1, 0]] {
                    let selection = chosen(&table, groups).at(snapshot).expect("it is of this database");
                    let found = check_first_rows(rng, (&table, &selection), model, groups, key);
                    if cache_bytes == 64 << 20 && groups.len() < 2 {
                        total = [total[0] + found[0], total[1] + found[1]];
                    }
                }
                if rng.random_range(0..8) == 0 {
                    table.compact().expect("the disk works");
                }
            }
            assert_eq!(table.core().env.cache.usage().pinned_bytes, 0);
            assert_eq!(table.core().env.cache.usage().cursor_bytes, 0);
        }
    }
    let [lent, merged] = total;
    println!("{lent} ranges found their rows without a merge, {merged} with one");
    assert!(merged > 0 && lent * 100 >= (lent + merged) * least, "{lent} of {}", lent + merged);
}

#[test]
fn the_first_rows_of_ranges_over_versions_and_range_erases_are_those_of_a_model() {
    check_first_rows_of(history, key, 256, 2);
}

#[test]
fn the_first_rows_of_ranges_over_rows_in_many_files_are_those_of_a_model() {
    let key: fn(&mut StdRng) -> Vec<u8> = |rng| following::numbered(rng.random_range(0..1000));
    check_first_rows_of(following::clusters, key, 2048, 30);
    check_first_rows_of(following::interleaved, key, 2048, 1);
}

/// A table of 1000 rows in pages of four rows, and two views of one file: all its pages are in memory.
fn in_memory() -> (Database, Table) {
    let db = open(&SimDisk::new(1), 64 << 20);
    let options = TableOptions { page_bytes: 256, node_bytes: 256, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    (0..1000_u32).for_each(|i| table.insert(numbered(i), [b'v'; 40]).expect("the disk works"));
    table.compact().expect("the disk works");
    assert_eq!(table.iter().count(), 1000);
    (db, table)
}

#[test]
fn a_short_range_in_memory_enters_no_registry_and_a_long_one_does() {
    let (_db, table) = in_memory();
    let open = || table.core().views.ranges.count();
    let usage = || table.core().env.cache.usage();
    for direction in [Direction::Forward, Direction::Backward] {
        let mut range = table.range(numbered(500)..numbered(600));
        let mut next = |i: u32| {
            let row = if direction.is_forward() { range.next_row() } else { range.next_row_back() };
            let at = if direction.is_forward() { 500 + i } else { 599 - i };
            assert_eq!(row.expect("the disk works").expect("it is there").key(), numbered(at));
        };
        (0..3).for_each(&mut next);
        assert_eq!(open(), 0, "{direction:?}");
        let pinned_bytes = usage().pinned_bytes;
        assert!(pinned_bytes > 0 && pinned_bytes < 2 * 4096, "{pinned_bytes} bytes are more than one page");
        assert_eq!(usage().cursor_bytes, pinned_bytes);
        (3..40).for_each(&mut next);
        assert_eq!(open(), 1, "{direction:?}");
        assert_eq!(range.count(), 60);
        assert_eq!((open(), usage().pinned_bytes), (0, 0));
    }
}

#[test]
fn a_short_range_that_ends_in_memory_makes_no_merge_to_find_its_end() {
    let (_db, table) = in_memory();
    for (range, count) in [
        (numbered(500)..numbered(502), 2),
        (numbered(998)..numbered(2000), 2),
        (b"number".to_vec()..numbered(0), 0),
        (numbered(2000)..numbered(3000), 0),
    ] {
        let mut rows = table.range(range.clone());
        let mut given = 0;
        while rows.next_row().expect("the disk works").is_some() {
            given += 1;
            assert_eq!(table.core().views.ranges.count(), 0, "{range:?}");
        }
        assert_eq!(given, count, "{range:?}");
    }
}

/// What a merge knows and files at hand do not say: rows in memory between rows of files, and erases of ranges.
#[test]
fn rows_that_memory_or_a_range_erase_hides_are_not_taken_from_the_page_of_a_file() {
    let (_db, table) = in_memory();
    let keys = |from: u32| -> Vec<Vec<u8>> {
        table.range(numbered(from)..).take(3).map(|row| row.expect("the disk works").0.to_vec()).collect()
    };
    table.remove(numbered(500)).expect("the disk works");
    table.insert(numbered(502), "newer").expect("the disk works");
    assert_eq!(keys(500), [numbered(501), numbered(502), numbered(503)]);
    assert_eq!(table.range(numbered(501)..).nth(1).expect("it is there").expect("the disk works").1[..], *b"newer");
    let before = table.core().views.visible();
    table.remove_range(numbered(600)..numbered(700)).expect("the disk works");
    assert!(table.core().views.visible() > before);
    assert_eq!(keys(599), [numbered(599), numbered(700), numbered(701)]);
    table.core().views.change(|_| {});
    flush(&table, 0, u64::MAX);
    assert_eq!(keys(599), [numbered(599), numbered(700), numbered(701)]);
    assert_eq!(keys(500), [numbered(501), numbered(502), numbered(503)]);
    let mut cursor = table.cursor();
    assert!(cursor.seek_back(numbered(699)).expect("the disk works"));
    assert_eq!(cursor.key(), Some(&numbered(599)[..]));
    assert!(cursor.seek(numbered(100)).expect("the disk works") && cursor.prev().expect("the disk works"));
    assert_eq!(cursor.key(), Some(&numbered(99)[..]));
}
