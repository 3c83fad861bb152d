//! Tests which files are dropped or rewritten because of rows that have expired. Every row has 100 bytes.

use super::*;
use crate::levels::pick::tests::{Described, table_of};
use sst::{Expiry, Meta, Until};
use std::collections::BTreeSet;

const BASE: usize = 6;

/// A table whose files have these times for their first rows: for each file, how many rows have a time, and which.
fn table(files: &[(Described, &[(u64, u64)])]) -> TableFiles {
    let described: Vec<Described> = files.iter().map(|(file, _)| *file).collect();
    table_of(&described, |number, meta| {
        let times = files[number as usize - 1].1;
        let each = |&(rows, time): &(u64, u64)| (0..rows).map(move |_| (Until::from_millis(time), 100));
        let expiry = Expiry::of(times.iter().flat_map(each)).map(Box::new);
        Meta { expiry, user_bytes: meta.file_bytes, ..meta }
    })
}

fn dropped(table: &TableFiles, now: u64) -> Vec<u64> {
    match drop_files(table, now, &[]) {
        Pick::Nothing => Vec::new(),
        Pick::Drop { files, .. } => {
            let numbers: BTreeSet<u64> = files.into_iter().map(|(_, number)| number).collect();
            numbers.into_iter().collect()
        }
        other => panic!("{other:?} drops nothing"),
    }
}

#[test]
fn a_file_is_dropped_once_all_its_rows_have_expired_and_no_older_file_lies_under_it() {
    let alone = table(&[((6, "a", "c", 10, 0, 1), &[(4, 50), (6, 70)])]);
    assert_eq!((dropped(&alone, 69), dropped(&alone, 70)), (vec![], vec![1]));
    let with_erase = table(&[((6, "a", "c", 10, 2, 1), &[(8, 50)])]);
    assert_eq!(dropped(&with_erase, 50), [1], "an erase has nothing to hide");
    let with_row = table(&[((6, "a", "c", 10, 0, 1), &[(9, 50)])]);
    assert_eq!(dropped(&with_row, 1000), [] as [u64; 0], "a row has no time");
    let over_others = table(&[((6, "b", "b", 10, 0, 1), &[]), ((5, "a", "c", 10, 0, 2), &[(10, 50)])]);
    assert_eq!(dropped(&over_others, 50), [] as [u64; 0], "it hides rows of an older file");
    let beside = table(&[((6, "x", "z", 10, 0, 1), &[]), ((5, "a", "c", 10, 0, 2), &[(10, 50)])]);
    assert_eq!(dropped(&beside, 50), [2]);
}

#[test]
fn files_over_files_that_are_dropped_go_with_them() {
    let files: &[(Described, &[(u64, u64)])] = &[
        ((6, "a", "c", 10, 0, 1), &[(10, 50)]),
        ((6, "d", "f", 10, 0, 2), &[(10, 90)]),
        ((5, "a", "c", 10, 0, 3), &[(10, 50)]),
        ((0, "a", "b", 10, 0, 4), &[(10, 60)]),
        ((0, "b", "e", 10, 0, 5), &[(10, 60)]),
    ];
    let table = table(files);
    assert_eq!(dropped(&table, 49), [] as [u64; 0]);
    assert_eq!(dropped(&table, 50), [1, 3]);
    assert_eq!(dropped(&table, 60), [1, 3, 4], "the last one lies over a file that stays");
    assert_eq!(dropped(&table, 90), [1, 2, 3, 4, 5]);
    let claim = Pick::Drop { files: vec![(6, 1)], score: 1.0 }.claim(&table).expect("it is there");
    assert_eq!(drop_files(&table, 60, &[claim]), Pick::Nothing, "another compaction has it");
}

#[test]
fn a_file_is_rewritten_when_a_quarter_of_it_has_expired() {
    let table = table(&[((6, "a", "c", 10_000, 0, 1), &[(2000, 50), (1000, 80), (1000, 200)])]);
    assert_eq!(pick(&table, BASE, 79, &[]), Pick::Nothing);
    // The histogram says what has certainly expired.
    let time = next(&table, 0).expect("a quarter of it will expire");
    assert!((80..=200).contains(&time));
    assert_eq!(pick(&table, BASE, time - 1, &[]), Pick::Nothing);
    let Pick::Merge { inputs, to, .. } = pick(&table, BASE, time, &[]) else { panic!("a quarter has expired") };
    assert_eq!((inputs, to), (vec![(6, 1)], 6));
    assert_eq!(next(&table, time), None);
}

#[test]
fn few_expired_bytes_are_not_worth_a_rewrite_but_a_whole_file_is_dropped() {
    let small = table(&[((6, "a", "c", 100, 0, 1), &[(100, 50)])]);
    assert_eq!(pick(&small, BASE, 50, &[]), Pick::Nothing);
    assert_eq!((dropped(&small, 50), next(&small, 0)), (vec![1], Some(50)));
}

#[test]
fn a_file_of_level_0_is_merged_into_the_base() {
    let table = table(&[((0, "a", "c", 10_000, 0, 1), &[(5000, 50)]), ((0, "x", "z", 10, 0, 2), &[])]);
    let Pick::Merge { inputs, to, .. } = pick(&table, BASE, 50, &[]) else { panic!("half of it has expired") };
    assert_eq!((inputs, to), (vec![(0, 2), (0, 1)], BASE));
}
