//! Tests when a table is at rest, and which looks are counted.

use super::*;
use crate::levels::pick::tests::{Described, table};

/// A table whose level 0 has the files with these numbers, its newest.
fn with_level0(numbers: std::ops::RangeInclusive<u64>) -> TableFiles {
    let level = |number: u64| if numbers.contains(&number) { 0 } else { 6 };
    let bounds = |number: u64| if numbers.contains(&number) { ("a", "z") } else { KEYS[number as usize] };
    let files: Vec<Described> =
        (1..=*numbers.end()).map(|number| (level(number), bounds(number).0, bounds(number).1, 10, 0, number)).collect();
    table(&files)
}

/// The keys of the files below level 0.
const KEYS: [(&str, &str); 6] = [("a", "a"), ("b", "b"), ("c", "c"), ("d", "d"), ("e", "e"), ("f", "f")];

fn now(millis: u64, looks: u64) -> Now {
    Now { time: Duration::from_millis(millis), is_asked: false, looks }
}

#[test]
fn a_table_is_at_rest_when_no_file_came_for_some_times_as_long_as_between_the_last_two() {
    let check = |interval: u64, rest: u64| {
        let mut watch = Watch::default();
        watch.look(&with_level0(1..=4), now(5000, 0), 4, false);
        let grown = with_level0(1..=5);
        let last = 5000 + interval;
        assert!(!watch.look(&grown, now(last, 0), 4, false).is_at_rest);
        let time = Duration::from_millis(last + rest);
        assert_eq!(watch.next_rest(Duration::from_millis(last)), Some(Duration::from_millis(rest)), "{interval}");
        assert!(watch.take_resting(now(last + rest - 1, 0)).is_empty());
        assert_eq!(watch.take_resting(now(last + rest, 0)), [TableId(1)]);
        assert!(watch.look(&grown, now(last + rest, 0), 4, false).is_at_rest);
        assert_eq!(watch.next_rest(time), None, "it is looked at once");
    };
    check(20, 1000);
    check(700, 2800);
    check(60_000, 10_000);
}

#[test]
fn a_caller_that_asks_finds_every_table_at_rest() {
    let mut watch = Watch::default();
    let files = with_level0(1..=4);
    assert!(!watch.look(&files, now(5000, 0), 4, false).is_at_rest);
    let asked = Now { is_asked: true, ..now(5000, 0) };
    assert_eq!(watch.take_resting(asked), [TableId(1)]);
    assert!(watch.look(&files, asked, 4, false).is_at_rest);
    assert!(!watch.look(&files, now(5000, 0), 4, false).is_at_rest, "and leaves the others as they were");
}

#[test]
fn tables_with_few_files_are_not_waited_for() {
    let mut watch = Watch::default();
    watch.look(&with_level0(1..=3), now(5000, 0), 4, false);
    assert_eq!(watch.next_rest(Duration::ZERO), None);
    watch.look(&with_level0(1..=4), now(5000, 0), 4, false);
    watch.forget(TableId(1));
    assert_eq!(watch.next_rest(Duration::ZERO), None);
}

#[test]
fn looks_count_from_the_last_compaction_of_level_0() {
    let mut watch = Watch::default();
    let looks = |watch: &mut Watch, numbers, looks| watch.look(&with_level0(numbers), now(5000, looks), 4, false).looks;
    assert_eq!(looks(&mut watch, 1..=4, 100), 0, "none is known of the time before");
    assert_eq!(looks(&mut watch, 1..=5, 150), 50);
    assert_eq!(looks(&mut watch, 3..=6, 180), 0, "the oldest files were compacted");
    assert_eq!(looks(&mut watch, 3..=6, 190), 10);
}
