//! Tests which keys of flushed rows are kept, and where the floors are.

use super::*;
use crate::base::table::TableId;
use sst::RowKind;

const TABLE: TableId = TableId(3);

/// A memory set of the log `log`, with one row for each of `versions`.
fn memory(log: u64, versions: impl IntoIterator<Item = u64>) -> MemSet {
    let set = MemSet::new(log, Arc::default());
    for version in versions {
        set.note_commit(Version(version), 0);
        let key = format!("k{version:03}");
        set.table_or_new(TABLE).batch().apply(key.as_bytes(), Version(version), RowKind::Put, b"value");
    }
    set
}

const OTHER: TableId = TableId(4);

/// The floor of `table`.
fn floor_of(recent: &Recent, table: TableId) -> u64 {
    recent.commits.lock().floors[place(table)].0
}

fn floor(recent: &Recent) -> u64 {
    floor_of(recent, TABLE)
}

/// A transaction that has read `table`.
fn running(recent: &Arc<Recent>, table: TableId) -> Running {
    let running = Running::begin(recent, Tables::NONE);
    running.note(table);
    running.note(table);
    running
}

fn recent(most_bytes: u64) -> Arc<Recent> {
    Arc::new(Recent::new(most_bytes))
}

/// The kept keys for a transaction that has read [`TABLE`] and began at `since`.
fn kept(recent: &Recent, since: u64) -> Vec<Arc<Memtable>> {
    let kept = recent.commits(Version(since), Tables::of(TABLE)).expect("it is not too old");
    kept.of(TABLE, Version(since)).cloned().collect()
}

#[test]
fn nothing_is_kept_while_no_transaction_runs() {
    let recent = recent(1 << 20);
    recent.note_flush(&memory(1, 1..10), Version::MAX);
    assert_eq!((floor(&recent), recent.bytes()), (9, 0));
    recent.note_flush(&memory(2, 10..20), Version(12));
    assert_eq!((floor(&recent), recent.bytes()), (19, 0));
}

#[test]
fn the_keys_of_newer_rows_are_kept_while_a_transaction_runs() {
    let recent = recent(1 << 20);
    let running = running(&recent, TABLE);
    let flushed = memory(1, 1..10);
    flushed.table_or_new(TABLE).remove_range(b"x", b"z", Version(5));
    recent.note_flush(&flushed, Version(4));
    let kept = kept(&recent, 4);
    assert_eq!((floor(&recent), kept.len()), (4, 1));
    let rows: Vec<_> = kept[0].all_versions().collect();
    assert_eq!(rows.iter().map(|row| row.version().0).collect::<Vec<_>>(), [5, 6, 7, 8, 9]);
    assert!(rows.iter().all(|row| row.value().is_empty()));
    assert!(kept[0].has_changed(b"y", Version(4)));
    assert_eq!(recent.commits(Version(3), Tables::of(TABLE)).expect_err("it is too old"), Version(4));
    drop(running);
    assert_eq!((floor(&recent), recent.bytes()), (9, 0), "the last transaction takes them along");
}

#[test]
fn what_no_transaction_needs_any_more_goes_with_the_next_flush() {
    let recent = recent(1 << 20);
    let _running = running(&recent, TABLE);
    recent.note_flush(&memory(1, 1..10), Version(4));
    recent.note_flush(&memory(2, 10..20), Version(9));
    assert_eq!((floor(&recent), kept(&recent, 9).len()), (9, 1));
    recent.note_flush(&memory(3, 20..30), Version(40));
    assert_eq!((floor(&recent), recent.bytes()), (29, 0));
}

#[test]
fn a_flush_that_is_tried_again_replaces_what_the_first_one_kept() {
    let recent = recent(1 << 20);
    let _running = running(&recent, TABLE);
    let flushed = memory(1, 1..10);
    recent.note_flush(&flushed, Version(4));
    recent.note_flush(&flushed, Version(4));
    assert_eq!((floor(&recent), kept(&recent, 4).len()), (4, 1));
}

#[test]
fn its_memory_is_bounded_and_the_oldest_goes_first() {
    let recent = recent(48 << 10);
    let _running = running(&recent, TABLE);
    for log in 0..20 {
        recent.note_flush(&memory(log, log * 100 + 1..log * 100 + 101), Version(0));
        assert!(recent.bytes() <= 48 << 10);
    }
    let known = floor(&recent);
    assert!((1..2000).contains(&known) && !kept(&recent, known).is_empty(), "{known}");
    recent.note_flush(&memory(20, 2001..5000), Version(0));
    let known = floor(&recent);
    assert!(
        (3500..4999).contains(&known),
        "of one that is too large the newest keys are kept, and not those up to {known}"
    );
    assert!(recent.bytes() <= 48 << 10);
}

#[test]
fn a_busy_table_takes_nothing_from_transactions_that_do_not_use_it() {
    let recent = recent(48 << 10);
    let first = running(&recent, TABLE);
    let busy = running(&recent, OTHER);
    for busy in [Some(busy), None] {
        let before = floor(&recent);
        recent.note_flush(&memory(100, [9001]), Version(0));
        for log in 0..50 {
            let flushed = MemSet::new(log, Arc::default());
            for version in log * 500 + 1..log * 500 + 501 {
                flushed.note_commit(Version(version), 0);
                let key = version.to_be_bytes();
                flushed.table_or_new(OTHER).batch().apply(&key, Version(version), RowKind::Put, b"value");
            }
            recent.note_flush(&flushed, Version(0));
            assert!(recent.bytes() <= 48 << 10);
        }
        assert_eq!(floor(&recent), before, "used: {}", busy.is_some());
        assert_eq!(kept(&recent, 0).len(), 1);
        assert!(floor_of(&recent, OTHER) > 20_000);
        assert!(recent.commits(Version(0), Tables::of(OTHER)).is_err());
    }
    drop(first);
    assert!(recent.using.iter().all(|using| using.load(Ordering::SeqCst) == 0));
    assert_eq!((recent.running(), recent.bytes()), (0, 0));
}

#[test]
fn a_change_of_one_table_does_not_end_the_transactions_of_others() {
    let recent = recent(48 << 10);
    let _running = running(&recent, TABLE);
    recent.note_change_of_tables(Some(&[OTHER]), Version(7));
    assert!(recent.commits(Version(6), Tables::of(TABLE)).is_ok());
    assert!(recent.commits(Version(6), Tables::of(OTHER)).is_err());
    recent.note_change_of_tables(None, Version(8));
    assert_eq!(recent.commits(Version(7), Tables::of(TABLE)).expect_err("any table may have changed"), Version(8));
}
