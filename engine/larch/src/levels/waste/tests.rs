//! Tests which bytes count as waste, and which compaction is picked for them. Every row has 100 bytes.

use super::*;
use crate::levels::pick::tests::{Described, table};

const BASE: usize = 6;

/// Level and number of each input, and the level into which they are merged.
type Merged = (Vec<(usize, u64)>, usize);

#[track_caller]
fn check(files: &[Described], oldest: u64, expected: Option<Merged>) {
    let picked = match pick(&table(files), BASE, Version(oldest), &[]) {
        Pick::Nothing => None,
        Pick::Merge { inputs, to, .. } => Some((inputs, to)),
        choice @ (Pick::Move { .. } | Pick::Drop { .. }) => panic!("{choice:?} gives no space back"),
    };
    assert_eq!(picked, expected, "{files:?}");
}

#[test]
fn rows_over_a_fifth_of_a_file_have_it_merged_with_them() {
    check(&[(6, "a", "z", 10_000, 0, 3), (0, "a", "z", 3000, 3000, 5)], 5, Some((vec![(0, 2), (6, 1)], 6)));
    check(&[(6, "a", "z", 10_000, 0, 3), (0, "a", "z", 2000, 2000, 5)], 5, None);
    // Of several wasteful files, the worst is merged with the whole of level 0 and the files in the levels between.
    let two = [(6, "a", "c", 10_000, 0, 1), (6, "x", "z", 2000, 0, 1)];
    let over = [(5, "y", "z", 1900, 0, 2), (0, "a", "b", 5000, 0, 3), (0, "l", "m", 10, 0, 4)];
    let all: Vec<Described> = two.into_iter().chain(over).collect();
    check(&all, 5, Some((vec![(5, 3), (6, 2)], 6)));
    check(&all[..4], 2, None);
}

#[test]
fn few_bytes_are_not_worth_a_merge() {
    check(&[(6, "a", "z", 2000, 0, 3), (0, "a", "z", 2000, 2000, 5)], 5, None);
}

#[test]
fn what_a_reader_may_need_is_no_waste_and_waits_for_the_end_of_the_reader() {
    let files = [(6, "a", "z", 10_000, 0, 3), (0, "a", "z", 9000, 9000, 5)];
    let table = table(&files);
    assert!(is_waiting(&table, Version(4)) && !is_due(&table, Version(4)));
    assert!(!is_waiting(&table, Version(5)) && is_due(&table, Version(5)));
    check(&files, 4, None);
}

#[test]
fn what_range_erases_hide_beyond_slices_is_merged_with_what_is_over_it() {
    let files = [(6, "a", "z", 10_000, 0, 3), (0, "a", "z", 1, 0, 5)];
    check(&files, 5, None);
    let table = table(&files);
    table.levels[6].iter().for_each(|file| file.hidden_bytes.store(500_000, Ordering::Relaxed));
    let Pick::Merge { inputs, to, .. } = pick(&table, BASE, Version(5), &[]) else { panic!("half of it is hidden") };
    assert_eq!((inputs, to), (vec![(0, 2), (6, 1)], 6));
}

#[test]
fn a_merge_that_meets_one_under_way_waits() {
    let table = table(&[(6, "a", "z", 10_000, 0, 3), (0, "a", "z", 9000, 9000, 5)]);
    let due = pick(&table, BASE, Version(5), &[]);
    let claim = due.claim(&table).expect("it changes something");
    assert_eq!(pick(&table, BASE, Version(5), &[claim]), Pick::Nothing);
}
