//! What is kept of flushed rows, and from which version on everything is known.

use super::*;
use crate::manifest::TableId;
use sst::RowKind;

const TABLE: TableId = TableId(3);

/// Memory with one row for each of `versions`, and its log number.
fn memory(log: u64, versions: impl IntoIterator<Item = u64>) -> MemSet {
    let set = MemSet::new(log, Arc::default());
    for version in versions {
        set.note_commit(Version(version), 0);
        let key = format!("k{version:03}");
        set.table_or_new(TABLE).batch().apply(key.as_bytes(), Version(version), RowKind::Put, b"value");
    }
    set
}

fn floor(recent: &Recent) -> u64 {
    recent.commits().0.0
}

#[test]
fn nothing_is_kept_while_no_transaction_runs() {
    let recent = Recent::new(1 << 20);
    recent.note_flush(&memory(1, 1..10), Version::MAX);
    assert_eq!((floor(&recent), recent.bytes()), (9, 0));
    recent.note_flush(&memory(2, 10..20), Version(12));
    assert_eq!((floor(&recent), recent.bytes()), (19, 0));
}

#[test]
fn the_keys_of_newer_rows_are_kept_while_a_transaction_runs() {
    let recent = Recent::new(1 << 20);
    recent.enter();
    let flushed = memory(1, 1..10);
    flushed.table_or_new(TABLE).remove_range(b"x", b"z", Version(5));
    recent.note_flush(&flushed, Version(4));
    let (floor, kept) = recent.commits();
    assert_eq!((floor, kept.len()), (Version(4), 1));
    let rows: Vec<_> = kept[0].table(TABLE).expect("it has rows").all_versions().collect();
    assert_eq!(rows.iter().map(|row| row.version().0).collect::<Vec<_>>(), [5, 6, 7, 8, 9]);
    assert!(rows.iter().all(|row| row.value().is_empty()));
    assert!(kept[0].table(TABLE).expect("it has rows").has_changed(b"y", Version(4)));
    recent.leave();
    assert_eq!((self::floor(&recent), recent.bytes()), (9, 0), "the last transaction takes them along");
}

#[test]
fn what_no_transaction_needs_any_more_goes_with_the_next_flush() {
    let recent = Recent::new(1 << 20);
    recent.enter();
    recent.note_flush(&memory(1, 1..10), Version(4));
    recent.note_flush(&memory(2, 10..20), Version(9));
    assert_eq!((floor(&recent), recent.commits().1.len()), (9, 1));
    recent.note_flush(&memory(3, 20..30), Version(40));
    assert_eq!((floor(&recent), recent.bytes()), (29, 0));
}

#[test]
fn a_flush_that_is_tried_again_replaces_what_the_first_one_kept() {
    let recent = Recent::new(1 << 20);
    recent.enter();
    let flushed = memory(1, 1..10);
    recent.note_flush(&flushed, Version(4));
    recent.note_flush(&flushed, Version(4));
    assert_eq!((floor(&recent), recent.commits().1.len()), (4, 1));
}

#[test]
fn its_memory_is_bounded_and_the_oldest_goes_first() {
    let recent = Recent::new(48 << 10);
    recent.enter();
    for log in 0..20 {
        recent.note_flush(&memory(log, log * 100 + 1..log * 100 + 101), Version(0));
        assert!(recent.bytes() <= 48 << 10);
    }
    let (floor, kept) = recent.commits();
    assert!(!kept.is_empty() && kept[0].oldest() > floor);
    recent.note_flush(&memory(20, 2001..5000), Version(0));
    assert_eq!((self::floor(&recent), recent.bytes()), (4999, 0), "one that is too large leaves nothing");
}
