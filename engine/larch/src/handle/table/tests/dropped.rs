//! Tests that all ways to read and write a dropped table give the same error, and so does everything that was open
//! before the drop.

use super::*;
use crate::handle::snapshot::Snapshot;
use crate::read::{PartRange, Tried};
use crate::rows::{AtMost, Direction};
use crate::stats::{Metric, Resolution};
use crate::{Error, Readable, Reader, Selection};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// A table, and what was made from it before the drop.
struct Made {
    db: Database,
    table: Table,
    snapshot: Snapshot,
    selection: Selection,
    /// The selection in the snapshot.
    then: Selection,
    statistics: Reader<'static>,
}

/// A database with a table that has rows in a file and rows in memory.
fn made() -> Made {
    let db = Database::builder("db").machine(Machine::simulated(1).0).open().expect("the disk works");
    let table = table(&db, "t", &[]);
    for i in 0..100 {
        table.insert(format!("f{i:03}"), "in a file").expect("the disk works");
    }
    db.flush().expect("the disk works");
    for i in 0..100 {
        table.insert(format!("m{i:03}"), "in memory").expect("the disk works");
    }
    let snapshot = db.snapshot();
    let selection = table.select(None::<&str>).expect("of no group");
    let then = selection.at(&snapshot).expect("it is of this database");
    let statistics = table.at(&snapshot).expect("it is of this database");
    Made { db, table, snapshot, selection, then, statistics }
}

fn polled<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits for nothing"),
    }
}

/// The first item of an iterator that must not be at its end.
fn first<T>(row: Option<Result<T>>) -> Result<T> {
    row.expect("neither a row nor an error")
}

type Form = (&'static str, fn(&Made) -> Result<()>);

/// A list of ways to read or write `$made`. The name of each way is its source code.
macro_rules! forms {
    ($($form:expr),* $(,)?) => {
        [$((stringify!($form), |made| { let form: fn(&Made) -> Result<_> = $form; form(made).map(drop) })),*]
    };
}

fn forms() -> Vec<Form> {
    let points: [Form; _] = forms![
        |m| m.table.get("f001"),
        |m| m.table.get("m001"),
        |m| m.table.get("nothing has this key"),
        |m| m.table.try_get("f001"),
        |m| polled(m.table.get_async("f001")),
        |m| m.table.contains_key("f001"),
        |m| m.table.try_contains_key("m001"),
        |m| polled(m.table.contains_key_async("f001")),
        |m| m.table.multi_get(["f001", "m001"]),
        |m| m.table.multi_get(None::<&str>),
        |m| polled(m.table.multi_get_async(["f001"])),
        |m| m.snapshot.get(&m.table, "f001"),
        |m| m.snapshot.try_get(&m.table, "f001"),
        |m| polled(m.snapshot.get_async(&m.table, "f001")),
        |m| m.snapshot.contains_key(&m.table, "f001"),
        |m| m.snapshot.multi_get(&m.table, ["f001"]),
        |m| polled(m.snapshot.multi_get_async(&m.table, ["f001"])),
        |m| m.db.get(&m.table, "f001"),
        |m| m.selection.get("f001"),
        |m| m.selection.try_get("m001"),
        |m| polled(m.selection.get_async("f001")),
        |m| m.selection.contains_key("f001"),
        |m| m.selection.multi_get(["f001"]),
        |m| polled(m.selection.multi_get_async(["f001"])),
        |m| m.then.get("f001"),
        |m| polled(m.then.contains_key_async("m001")),
    ];
    let ranges: [Form; _] = forms![
        |m| first(m.table.range("a"..).next()),
        |m| first(m.table.range("a"..).next_back()),
        |m| first(m.table.range("m"..).limit(3).next()),
        |m| first(m.table.range("b".."a").next()),
        |m| m.table.range("a"..).next_row().map(drop),
        |m| m.table.range("a"..).try_next(),
        |m| m.table.iter().split(2),
        |m| m.table.prefix("m").next_row_back().map(drop),
        |m| m.table.first_key_value(),
        |m| m.table.last_key_value(),
        |m| polled(async { first(m.table.scan_async("a"..).next().await) }),
        |m| polled(async { first(m.table.scan_async("a"..).limit(2).next_back().await) }),
        |m| first(m.snapshot.range(&m.table, "a"..).next()),
        |m| polled(async { first(m.snapshot.scan_async(&m.table, "a"..).next().await) }),
        |m| first(m.selection.range("a"..).next()),
        |m| first(m.then.range("a"..).next_back()),
        |m| polled(async { first(m.then.scan_async("a"..).next().await) }),
        |m| m.selection.last_key_value(),
    ];
    let others: [Form; _] = forms![
        |m| m.table.prefetch("a".., AtMost::rows(3)),
        |m| m.selection.prefetch_back("a".., AtMost::rows(3)),
        |m| m.table.warm("a"..),
        |m| m.table.count("a"..),
        |m| m.table.count("b".."a"),
        |m| m.table.count_exact("a"..),
        |m| m.table.size("a"..),
        |m| m.table.range_stats("a"..),
        |m| m.table.histogram("a".., Metric::Rows, Resolution::Buckets(10)),
        |m| m.table.split_points("a".., 4),
        |m| m.table.nth("a".., 1),
        |m| m.table.sample("a".., 4, 1),
        |m| m.statistics.count("a"..),
        |m| m.statistics.nth_between("a".., 1),
        |m| m.table.stats(),
        |m| m.table.check(|_| {}),
        |m| m.table.dump(DumpDetail::Loaded, &mut Vec::new()),
        |m| m.table.explain_get("f001"),
        |m| m.table.explain_scan("a".., None, Direction::Forward),
        |m| m.table.at(&m.snapshot)?.explain_get("f001"),
        |m| m.table.at(&m.snapshot)?.explain_scan("a".., Some(2), Direction::Backward),
        |m| m.selection.explain_get("m001"),
    ];
    let writes: [Form; _] = forms![
        |m| m.table.insert("k", "v"),
        |m| m.table.insert_parts("k", &["v"]),
        |m| m.table.remove("f001"),
        |m| m.table.remove_range("a".."z"),
        |m| m.table.remove_range("b".."a"),
        |m| {
            let mut batch = m.db.batch();
            batch.insert(&m.db.table("other")?, "k", "v");
            batch.remove(&m.table, "f001");
            batch.commit()
        },
        |m| m.table.import(),
        |m| m.table.alter(|options| options.page_bytes = 512),
        |m| m.table.clone_as("copy"),
        |m| m.table.split_off("m", "rest"),
        |m| m.table.compact(),
    ];
    points.into_iter().chain(ranges).chain(others).chain(writes).collect()
}

#[track_caller]
fn is_refused<T>(outcome: Result<T>, form: &str) {
    match outcome {
        Err(Error::TableDropped(name)) => assert_eq!(name, "t", "{form}"),
        Err(error) => panic!("{form}: {error}"),
        Ok(_) => panic!("{form}: no error"),
    }
}

#[test]
fn every_form_of_reading_and_writing_a_dropped_table_says_that_it_was_dropped() {
    let there = made();
    for (form, run) in forms() {
        // Some forms take the first row of a range, which a range without keys does not have.
        if !form.contains("\"b\"") {
            run(&there).unwrap_or_else(|error| panic!("{form}: {error}"));
        }
    }
    let made = made();
    assert!(made.db.drop_table("t").expect("the disk works"));
    for (form, run) in forms() {
        is_refused(run(&made), form);
    }
    // Handles, snapshots and selections of the old table must not use a new table of the same name.
    let anew = table(&made.db, "t", &[]);
    anew.insert("f001", "another").expect("the disk works");
    for (form, run) in forms() {
        is_refused(run(&made), form);
    }
    assert_eq!(anew.get("f001").expect("the disk works").as_deref(), Some(&b"another"[..]));
    assert_eq!(anew.iter().count(), 1);
    let other = made.db.table("other").expect("the disk works");
    assert_eq!(other.iter().count(), 0, "a batch with a row of a dropped table has no effect");
    assert_eq!(made.db.tables(), ["other", "t"]);
}

#[test]
fn an_import_that_ends_after_its_table_was_dropped_says_so() {
    for rows in [0, 10] {
        let made = made();
        let mut import = made.table.import().expect("the table is there");
        (0..rows).for_each(|i| import.add(&[i], b"v").expect("the disk works"));
        made.db.drop_table("t").expect("the disk works");
        is_refused(import.finish(|_| {}), &format!("import of {rows} rows"));
    }
}

/// A range or cursor that was open when the table was dropped may return more rows, but must then end with the
/// error, not as if there were no more rows.
#[test]
fn what_is_open_when_its_table_is_dropped_ends_with_that_error() {
    for taken in [0, 1, 2, 3, 50, 99, 100, 101, 150, 199] {
        let made = made();
        let mut forward = made.table.iter();
        let mut backward = made.snapshot.iter(&made.table);
        let mut limited = made.table.iter().limit(taken as u64 + 10);
        let mut keys = made.selection.iter();
        let mut scan = made.table.scan_async(..);
        for _ in 0..taken {
            assert!(forward.next().is_some_and(|row| row.is_ok()));
            assert!(backward.next_back().is_some_and(|row| row.is_ok()));
            assert!(limited.next_row().is_ok_and(|row| row.is_some()));
            assert!(keys.next_row().is_ok_and(|row| row.is_some()));
            assert!(polled(async { first(scan.next().await) }).is_ok());
        }
        made.db.drop_table("t").expect("the disk works");
        for _ in 0..2 {
            is_refused(first(forward.next()), "forward");
            is_refused(first(backward.next_back()), "backward");
            is_refused(limited.next_row().map(drop), "limited");
            is_refused(keys.next_row().map(drop), "keys");
            is_refused(polled(async { first(scan.next().await) }), "scan");
        }
        is_refused(PartRange::try_next(&mut keys).map(|tried| matches!(tried, Tried::Ready(None))), "keys, tried");
    }
}
