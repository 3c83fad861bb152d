//! Tests what transactions promise: they see their own writes, and a committed transaction is as if it had run
//! alone.

mod executors;
mod model;
mod retries;

use super::*;
use crate::TableOptions;
use crate::handle::database::Database;
use crate::read::{Range, Tried};
use crate::transaction::Expected;
use os::Machine;

pub(super) fn simulated(seed: u64) -> Database {
    Database::builder("db").machine(Machine::simulated(seed).0).open().expect("the disk works")
}

fn with_table() -> (Database, Table) {
    let db = simulated(1);
    let table = db.table("t").expect("the disk works");
    (db, table)
}

fn snapshot_isolation() -> TransactionOptions {
    TransactionOptions { isolation: Isolation::Snapshot, ..TransactionOptions::default() }
}

/// The keys of a range, as text.
fn keys(range: Range) -> String {
    let keys = range.map(|row| String::from_utf8(row.expect("the disk works").0.to_vec()).expect("it is text"));
    keys.collect::<Vec<_>>().join(" ")
}

/// Runs a transaction that does `work` while another one commits `meanwhile`, and checks which conflict the first
/// one's commit finds.
#[track_caller]
fn check(
    options: &TransactionOptions,
    work: impl Fn(&mut Transaction, &Table) -> Result<()>,
    meanwhile: impl Fn(&Table) -> Result<()>,
    expected: Option<&str>,
) {
    for is_flushed in [false, true] {
        let (db, table) = with_table();
        for key in ["a", "c", "e", "g"] {
            table.insert(key, "0").expect("the disk works");
        }
        let mut tx = db.begin_with(options).expect("it begins");
        work(&mut tx, &table).expect("the disk works");
        tx.insert(&table, "z", "mine").expect("it is taken");
        meanwhile(&table).expect("the disk works");
        if is_flushed {
            db.flush().expect("the disk works");
        }
        let found = match tx.commit().expect("the disk works") {
            Ok(_) => None,
            Err(Conflict::Changed { table, key }) => Some(format!("{table} {}", key.escape_ascii())),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(found.as_deref(), expected, "flushed: {is_flushed}");
        assert_eq!(table.contains_key("z").expect("the disk works"), expected.is_none());
        assert_eq!(db.core().writes.recent.running(), 0);
        assert_eq!(db.core().writes.recent.bytes(), 0, "nothing is kept when no transaction runs");
    }
}

fn serializable(
    work: impl Fn(&mut Transaction, &Table) -> Result<()>,
    meanwhile: impl Fn(&Table) -> Result<()>,
    expected: Option<&str>,
) {
    check(&TransactionOptions::default(), work, meanwhile, expected);
}

#[test]
fn what_a_transaction_has_read_must_not_change() {
    let get = |tx: &mut Transaction, table: &Table| tx.get(table, "c").map(drop);
    serializable(get, |table| table.insert("c", "1"), Some("t c"));
    serializable(get, |table| table.remove("c"), Some("t c"));
    serializable(get, |table| table.remove_range("b".."d"), Some("t c"));
    serializable(get, |table| table.insert("b", "1"), None);
    serializable(get, |table| table.remove_range("d"..), None);
    serializable(|_, _| Ok(()), |table| table.insert("z", "1"), None);
    let in_memory = |tx: &mut Transaction, table: &Table| tx.try_get(table, "c").map(drop);
    serializable(in_memory, |table| table.insert("c", "1"), Some("t c"));
    let many = |tx: &mut Transaction, table: &Table| tx.multi_get(table, ["a", "c"]).map(drop);
    serializable(many, |table| table.insert("c", "1"), Some("t c"));
    serializable(many, |table| table.insert("b", "1"), None);
}

#[test]
fn an_absent_key_must_stay_absent() {
    let absent = |tx: &mut Transaction, table: &Table| tx.get(table, "b").map(drop);
    serializable(absent, |table| table.insert("b", "1"), Some("t b"));
    let contains = |tx: &mut Transaction, table: &Table| tx.contains_key(table, "b").map(drop);
    serializable(contains, |table| table.insert("b", "1"), Some("t b"));
    serializable(contains, |table| table.insert("bb", "1"), None);
}

#[test]
fn a_range_that_was_read_must_not_change() {
    let whole = |tx: &mut Transaction, table: &Table| {
        tx.range(table, "b".."f").for_each(drop);
        Ok(())
    };
    serializable(whole, |table| table.insert("d", "1"), Some("t d"));
    serializable(whole, |table| table.insert("e", "1"), Some("t e"));
    serializable(whole, |table| table.remove("c"), Some("t c"));
    serializable(whole, |table| table.remove_range("d".."dd"), Some("t d"));
    serializable(whole, |table| table.remove_range(.."bb"), Some("t b"));
    serializable(whole, |table| table.insert("f", "1"), None);
    serializable(whole, |table| table.insert("a", "1"), None);
    serializable(whole, |table| table.remove_range("f"..), None);
}

#[test]
fn a_range_counts_only_as_far_as_it_was_read() {
    let first = |tx: &mut Transaction, table: &Table| tx.range(table, "b"..).next().transpose().map(drop);
    serializable(first, |table| table.insert("b", "1"), Some("t b"));
    serializable(first, |table| table.insert("c", "1"), Some("t c"));
    serializable(first, |table| table.insert("cc", "1"), None);
    serializable(first, |table| table.insert("a", "1"), None);
    let last = |tx: &mut Transaction, table: &Table| tx.range(table, .."f").next_back().transpose().map(drop);
    serializable(last, |table| table.insert("ee", "1"), Some("t ee"));
    serializable(last, |table| table.insert("e", "1"), Some("t e"));
    serializable(last, |table| table.insert("d", "1"), None);
    let limited = |tx: &mut Transaction, table: &Table| {
        assert_eq!(tx.iter(table).limit(2).count(), 2);
        Ok(())
    };
    serializable(limited, |table| table.insert("b", "1"), Some("t b"));
    serializable(limited, |table| table.insert("d", "1"), None);
    let tried = |tx: &mut Transaction, table: &Table| tx.range(table, "b"..).try_next().map(drop);
    serializable(tried, |table| table.insert("b", "1"), Some("t b"));
    serializable(tried, |table| table.insert("d", "1"), None);
    let nothing = |tx: &mut Transaction, table: &Table| {
        drop(tx.range(table, ..));
        Ok(())
    };
    serializable(nothing, |table| table.insert("c", "1"), None);
    let to_the_end = |tx: &mut Transaction, table: &Table| {
        assert_eq!(tx.range(table, "g"..).count(), 1);
        Ok(())
    };
    serializable(to_the_end, |table| table.insert("x", "1"), Some("t x"));
    let split = |tx: &mut Transaction, table: &Table| {
        let parts = tx.range(table, "b".."f").split(2)?;
        assert_eq!(parts.into_iter().flatten().count(), 2);
        Ok(())
    };
    serializable(split, |table| table.insert("d", "1"), Some("t d"));
    serializable(split, |table| table.insert("a", "1"), None);
}

#[test]
fn a_cursor_counts_only_where_it_was() {
    let around = |tx: &mut Transaction, table: &Table| {
        let mut cursor = tx.cursor(table);
        assert!(cursor.seek("d")? && cursor.prev()?);
        assert_eq!(cursor.key(), Some(&b"c"[..]));
        Ok(())
    };
    serializable(around, |table| table.insert("dd", "1"), Some("t dd"));
    serializable(around, |table| table.insert("cc", "1"), Some("t cc"));
    serializable(around, |table| table.insert("e", "1"), Some("t e"));
    serializable(around, |table| table.insert("c", "1"), Some("t c"));
    serializable(around, |table| table.insert("b", "1"), None);
    serializable(around, |table| table.insert("f", "1"), None);
    let two_places = |tx: &mut Transaction, table: &Table| {
        let mut cursor = tx.cursor(table);
        assert!(cursor.seek("b")? && cursor.seek_back("h")?);
        assert_eq!(cursor.key(), Some(&b"g"[..]));
        Ok(())
    };
    serializable(two_places, |table| table.insert("b", "1"), Some("t b"));
    serializable(two_places, |table| table.insert("gg", "1"), Some("t gg"));
    serializable(two_places, |table| table.insert("d", "1"), None);
    serializable(two_places, |table| table.insert("x", "1"), None);
    let to_the_end = |tx: &mut Transaction, table: &Table| {
        let mut cursor = tx.cursor(table);
        assert!(!cursor.seek("h")? && cursor.seek("a")?);
        Ok(())
    };
    serializable(to_the_end, |table| table.insert("x", "1"), Some("t x"));
    serializable(to_the_end, |table| table.insert("c", "1"), None);
    let in_bounds = |tx: &mut Transaction, table: &Table| {
        let mut cursor = tx.cursor_in(table, "b".."d");
        assert!(!cursor.seek("x")? && cursor.seek("a")? && !cursor.next()?);
        Ok(())
    };
    serializable(in_bounds, |table| table.insert("b", "1"), Some("t b"));
    serializable(in_bounds, |table| table.insert("cc", "1"), Some("t cc"));
    serializable(in_bounds, |table| table.insert("d", "1"), None);
    let unmoved = |tx: &mut Transaction, table: &Table| {
        drop(tx.cursor(table));
        Ok(())
    };
    serializable(unmoved, |table| table.insert("c", "1"), None);
}

/// A cursor goes on reading at the version of its transaction, even if it has not found any row yet.
#[test]
fn a_transaction_with_a_cursor_does_not_begin_again_at_another_version() {
    let (db, table) = with_table();
    table.insert("c", "old").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    let mut cursor = tx.cursor_in(&table, "b".."d");
    assert!(!cursor.seek("x").expect("the disk works"));
    table.insert("c", "new").expect("the disk works");
    let version = tx.version();
    tx.get_for_update(&table, "k").expect("the disk works");
    assert_eq!(tx.version(), version);
    assert!(cursor.prev().expect("the disk works"));
    assert_eq!(cursor.value(), Some(&b"old"[..]));
    drop(cursor);
    tx.insert(&table, "k", "1").expect("it is taken");
    assert!(tx.commit().expect("the disk works").is_err(), "what the cursor has shown was changed");
}

#[test]
fn a_range_that_is_open_at_the_commit_counts_as_read_whole() {
    let (db, table) = with_table();
    table.insert("a", "0").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    let mut open = tx.iter(&table);
    open.next();
    tx.insert(&table, "b", "1").expect("it is taken");
    table.insert("x", "1").expect("the disk works");
    assert!(tx.commit().expect("the disk works").is_err());
    assert!(open.next().is_none(), "it goes on as of its version, without the writes that came after it");
}

#[test]
fn under_snapshot_isolation_only_writes_conflict() {
    let check = |work: &dyn Fn(&mut Transaction, &Table) -> Result<()>, meanwhile: &str, expected| {
        check(&snapshot_isolation(), work, |table| table.insert(meanwhile, "1"), expected);
    };
    check(&|tx, table| tx.get(table, "c").map(drop), "c", None);
    check(&|tx, table| tx.insert(table, "c", "2"), "c", Some("t c"));
    check(&|tx, table| tx.remove(table, "c"), "c", Some("t c"));
    check(&|tx, table| tx.remove_range(table, "b".."d"), "c", Some("t c"));
    check(&|tx, table| tx.remove_range(table, "b".."d"), "d", None);
    check(&|tx, table| tx.get_for_update(table, "c").map(drop), "c", Some("t c"));
}

#[test]
fn a_transaction_that_only_reads_never_conflicts() {
    let (db, table) = with_table();
    table.insert("a", "0").expect("the disk works");
    let tx = db.begin().expect("it begins");
    assert_eq!(tx.iter(&table).count(), 1);
    table.insert("a", "1").and_then(|()| table.insert("b", "1")).expect("the disk works");
    assert_eq!(tx.get(&table, "a").expect("the disk works").as_deref(), Some(&b"0"[..]));
    let began = tx.version();
    assert_eq!(tx.commit().expect("the disk works"), Ok(began));
}

#[test]
fn a_transaction_that_is_dropped_has_no_effect() {
    let (db, table) = with_table();
    let mut tx = db.begin().expect("it begins");
    tx.insert(&table, "a", "1").expect("it is taken");
    drop(tx);
    let mut tx = db.begin().expect("it begins");
    tx.insert(&table, "b", "1").expect("it is taken");
    tx.rollback();
    assert!(table.iter().next().is_none());
    assert_eq!(db.core().views.snapshots.count(), 0);
}

#[test]
fn own_writes_are_seen_by_every_form_of_a_read() {
    let (db, table) = with_table();
    for key in ["a", "b", "c", "d"] {
        table.insert(key, "old").expect("the disk works");
    }
    db.flush().expect("the disk works");
    table.insert("b", "in memory").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    tx.remove(&table, "a").expect("it is taken");
    tx.insert(&table, "b", "new").expect("it is taken");
    tx.remove_range(&table, "c"..="d").expect("it is taken");
    tx.insert(&table, "d", "new").expect("it is taken");
    tx.insert(&table, "e", "new").expect("it is taken");
    let new = Some(b"new".to_vec());
    let expected = [None, new.clone(), None, new.clone(), new];
    for (key, expected) in ["a", "b", "c", "d", "e"].into_iter().zip(&expected) {
        let read = [
            tx.get(&table, key).expect("the disk works"),
            tx.try_get(&table, key).expect("the disk works").ready().expect("it is in memory"),
            smol::block_on(tx.get_async(&table, key)).expect("the disk works"),
            tx.get_for_update(&table, key).expect("the disk works"),
        ];
        for value in read {
            assert_eq!(value.as_deref(), expected.as_deref(), "{key}");
        }
        assert_eq!(tx.contains_key(&table, key).expect("the disk works"), expected.is_some());
    }
    let many = tx.multi_get(&table, ["a", "b", "c", "d", "e"]).expect("the disk works");
    assert_eq!(many.iter().map(Option::as_deref).collect::<Vec<_>>(), expected.each_ref().map(Option::as_deref));
    assert_eq!(keys(tx.iter(&table)), "b d e");
    let back = tx.iter(&table).rev().map(|row| row.expect("the disk works").0[0]).collect::<Vec<_>>();
    assert_eq!(back, b"edb");
    assert!(matches!(tx.iter(&table).try_next(), Ok(Tried::Ready(Some(_)))));
    assert_eq!(keys(tx.range(&table, "c".."e")), "d");
    let mut cursor = tx.cursor(&table);
    assert!(cursor.seek("c").expect("the disk works"));
    assert_eq!(cursor.key_value(), Some((&b"d"[..], &b"new"[..])));
    assert!(cursor.prev().expect("the disk works"));
    assert_eq!(cursor.key_value(), Some((&b"b"[..], &b"new"[..])));
    drop(cursor);
    assert_eq!(keys(table.iter()), "a b c d", "others do not see them");
    tx.commit().expect("the disk works").expect("nothing else was written");
    assert_eq!(keys(table.iter()), "b d e");
}

#[test]
fn a_range_sees_the_writes_that_came_before_it() {
    let (db, table) = with_table();
    let mut tx = db.begin().expect("it begins");
    tx.insert(&table, "a", "1").expect("it is taken");
    let before = tx.iter(&table);
    tx.insert(&table, "b", "1").expect("it is taken");
    tx.remove(&table, "a").expect("it is taken");
    assert_eq!(keys(tx.iter(&table)), "b");
    assert_eq!(keys(before), "a");
}

#[test]
fn column_groups_are_read_and_written_in_a_transaction() {
    let db = simulated(1);
    let groups = ["hot", "cold"].map(str::to_owned).to_vec();
    let table = db.table_with("t", TableOptions { groups, ..TableOptions::default() }).expect("the disk works");
    table.insert_parts("a", &["1", "one"]).and_then(|()| db.flush()).expect("the disk works");
    let cold = table.select(["cold"]).expect("it is there");
    let mut tx = db.begin().expect("it begins");
    tx.insert_parts(&table, "b", &["2", "two"]).expect("it is taken");
    let selected = tx.select(&cold).expect("it is of this database");
    let part = |key: &str| selected.get(key).expect("the disk works").map(|parts| parts[0].to_vec());
    assert_eq!((part("a"), part("b"), part("c")), (Some(b"one".to_vec()), Some(b"two".to_vec()), None));
    assert_eq!(selected.range(..).count(), 2);
    assert_eq!(selected.multi_get(["b"]).expect("the disk works")[0].as_ref().map(|parts| parts.len()), Some(1));
    assert!(matches!(tx.insert(&table, "c", "3"), Err(Error::Grouped { .. })));
    table.insert_parts("c", &["3", "three"]).expect("the disk works");
    assert!(tx.commit().expect("the disk works").is_err(), "a range over all keys was read");
}

#[test]
fn rows_that_a_table_cannot_take_are_refused_at_once_and_leave_the_transaction_as_it_was() {
    let (db, table) = with_table();
    let other = simulated(2).table("t").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    tx.insert(&table, "a", "1").expect("it is taken");
    assert!(matches!(tx.insert(&other, "b", "1"), Err(Error::ForeignTable(_))));
    assert!(matches!(tx.get(&other, "b"), Err(Error::ForeignTable(_))));
    assert!(matches!(tx.remove(&table, vec![0; crate::MAX_KEY_BYTES + 1]), Err(Error::KeyTooLong { .. })));
    assert_eq!(tx.len(), 1);
    tx.commit().expect("the disk works").expect("it is alone");
    assert_eq!(keys(table.iter()), "a");
}

#[test]
fn a_transaction_goes_back_to_its_savepoints() {
    let (db, table) = with_table();
    let mut tx = db.begin().expect("it begins");
    let start = tx.savepoint();
    tx.insert(&table, "a", "1").expect("it is taken");
    let first = tx.savepoint();
    tx.remove_range(&table, ..).expect("it is taken");
    tx.insert(&table, "b", "1").expect("it is taken");
    assert_eq!(keys(tx.iter(&table)), "b");
    let second = tx.savepoint();
    tx.rollback_to(&first).expect("it is there");
    assert_eq!(keys(tx.iter(&table)), "a");
    tx.insert(&table, "c", "1").expect("it is taken");
    assert_eq!(keys(tx.iter(&table)), "a c");
    assert!(matches!(tx.rollback_to(&second), Err(Error::NoSuchSavepoint)));
    tx.rollback_to(&first).expect("it can be gone back to again");
    let foreign = db.begin().expect("it begins").savepoint();
    assert!(matches!(tx.rollback_to(&foreign), Err(Error::NoSuchSavepoint)));
    tx.commit().expect("the disk works").expect("it is alone");
    assert_eq!(keys(table.iter()), "a");
    let mut tx = db.begin().expect("it begins");
    assert!(matches!(tx.rollback_to(&start), Err(Error::NoSuchSavepoint)));
    let start = tx.savepoint();
    tx.remove(&table, "a").expect("it is taken");
    tx.rollback_to(&start).expect("it is there");
    assert!(tx.is_empty());
    assert!(tx.commit().expect("the disk works").is_ok());
    assert_eq!(keys(table.iter()), "a");
}

#[test]
fn what_was_read_before_going_back_to_a_savepoint_still_counts() {
    let back = |tx: &mut Transaction, table: &Table| {
        let start = tx.savepoint();
        tx.get(table, "c")?;
        tx.rollback_to(&start)
    };
    serializable(back, |table| table.insert("c", "1"), Some("t c"));
}

#[test]
fn a_transaction_that_reads_very_much_keeps_ranges() {
    let (machine, _) = Machine::simulated(1);
    let db = Database::builder("db").machine(machine).write_buffer_bytes(64 << 10).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let read = |tx: &mut Transaction| {
        for i in 0..1000 {
            tx.get(&table, format!("k{i:04}")).expect("the disk works");
        }
        let bytes = tx.work.keys().bytes();
        assert!(bytes <= 4 << 10, "{bytes} bytes");
    };
    for (written, conflicts) in [("k0500", true), ("k0000", true), ("k0999", true), ("j", false), ("l", false)] {
        let mut tx = db.begin().expect("it begins");
        read(&mut tx);
        tx.insert(&table, "z", "1").expect("it is taken");
        table.insert(written, "1").expect("the disk works");
        assert_eq!(tx.commit().expect("the disk works").is_err(), conflicts, "{written}");
    }
}

#[test]
fn a_transaction_that_is_too_old_says_so() {
    let (machine, _) = Machine::simulated(1);
    let db = Database::builder("db").machine(machine).write_buffer_bytes(64 << 10).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let mut old = db.begin().expect("it begins");
    old.get(&table, "a").expect("the disk works");
    old.insert(&table, "z", "1").expect("it is taken");
    let mut blind = db.begin().expect("it begins");
    blind.insert(&table, "y", "1").expect("it is taken");
    for i in 0..2000 {
        table.insert(format!("k{i:04}"), "value").expect("the disk works");
    }
    db.flush().expect("the disk works");
    assert!(db.core().writes.recent.bytes() <= 64 << 10);
    let conflict = old.commit().expect("the disk works").expect_err("commits of after its begin are forgotten");
    assert!(matches!(conflict, Conflict::TooOld { .. }), "{conflict}");
    assert!(blind.commit().expect("the disk works").is_ok(), "it depends on nothing");
}

#[test]
fn a_table_that_is_imported_ends_the_transactions_that_run() {
    let (db, table) = with_table();
    let mut tx = db.begin().expect("it begins");
    tx.get(&table, "a").expect("the disk works");
    tx.insert(&table, "z", "1").expect("it is taken");
    let mut import = table.import().expect("the database takes writes");
    import.add(b"a", b"1").expect("it is taken");
    import.finish(|_| {}).expect("the disk works");
    assert!(matches!(tx.commit().expect("the disk works"), Err(Conflict::TooOld { .. })));
}

#[test]
fn savepoints_cost_as_much_as_the_writes_however_many_there_are() {
    let (db, table) = with_table();
    let other = db.table("other").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    const TIMES: u32 = 2000;
    for i in 0..TIMES {
        let savepoint = tx.savepoint();
        tx.insert(&table, i.to_be_bytes(), "mine").expect("it is taken");
        tx.insert(&other, i.to_be_bytes(), "mine").expect("it is taken");
        assert_eq!(tx.get(&table, i.to_be_bytes()).expect("the disk works").as_deref(), Some(&b"mine"[..]));
        if i % 2 == 0 {
            tx.rollback_to(&savepoint).expect("it is there");
        }
        let before = tx.get(&table, (i / 2).to_be_bytes()).expect("the disk works");
        assert_eq!(before.is_some(), i / 2 % 2 == 1, "{i}");
        assert!(tx.get(&table, "none").expect("the disk works").is_none());
    }
    let (applied, writes) = (tx.work.writes.applied(), 2 * u64::from(TIMES));
    assert!(applied <= 4 * writes, "{applied} writes were put into memtables, of {writes}");
    tx.commit().expect("the disk works").expect("it is alone");
    assert_eq!(table.iter().count() as u32, TIMES / 2);
}

#[test]
fn get_for_update_sees_what_was_committed_before_it() {
    let (db, table) = with_table();
    let mut tx = db.begin().expect("it begins");
    table.insert("a", "1").expect("the disk works");
    assert_eq!(tx.get_for_update(&table, "a").expect("the disk works").as_deref(), Some(&b"1"[..]));
    tx.insert(&table, "a", "2").expect("it is taken");
    assert_eq!(db.core().writes.reserved.count(), 1);
    assert!(tx.commit().expect("the disk works").is_ok());
    assert_eq!(db.core().writes.reserved.count(), 0);
}

#[test]
fn a_batch_commits_if_all_that_it_expects_is_there() {
    let (db, table) = with_table();
    table.insert("a", "1").expect("the disk works");
    let version = table.version_of("a").expect("the disk works").expect("it is there");
    assert_eq!(version, db.version());
    let commit = |key: &str, expected: Expected| {
        let mut batch = db.batch();
        batch.insert(&table, "b", "written");
        batch.expect(&table, key, expected);
        batch.commit_if().expect("the disk works").map(drop).map_err(|unmet| unmet.key.to_vec())
    };
    assert_eq!(commit("a", Expected::Absent), Err(b"a".to_vec()));
    assert_eq!(commit("a", Expected::Value(b"2".to_vec())), Err(b"a".to_vec()));
    assert_eq!(commit("x", Expected::Value(b"2".to_vec())), Err(b"x".to_vec()));
    assert_eq!(commit("a", Expected::Version(Version(version.0 + 1))), Err(b"a".to_vec()));
    assert_eq!(commit("x", Expected::Version(version)), Err(b"x".to_vec()));
    assert!(!table.contains_key("b").expect("the disk works"));
    for (key, expected) in [
        ("a", Expected::Version(version)),
        ("a", Expected::Value(b"1".to_vec())),
        ("b", Expected::Value(b"written".to_vec())),
        ("x", Expected::Absent),
    ] {
        assert_eq!(commit(key, expected), Ok(()));
    }
    let mut batch = db.batch();
    batch.expect(&table, "x", Expected::Absent);
    assert!(matches!(batch.commit(), Err(Error::HasConditions)));
    let mut batch = db.batch();
    batch.expect(&table, "x", Expected::Absent);
    assert_eq!(batch.commit_if().expect("the disk works"), Ok(db.version()), "nothing is written");
    let mut batch = db.batch();
    batch.insert(&table, "c", "1");
    batch.remove_range(&table, ..);
    batch.insert(&table, "d", "1");
    batch.expect(&table, "a", Expected::Value(b"1".to_vec()));
    assert!(batch.commit_if().expect("the disk works").is_ok(), "its own writes do not count");
    assert_eq!(keys(table.iter()), "d");
}

#[test]
fn a_range_that_was_read_to_its_end_counts_so_whatever_limit_it_gets_then() {
    let read = |tx: &mut Transaction, table: &Table| {
        let mut range = tx.range(table, "b"..);
        while range.next_row()?.is_some() {}
        drop(range.limit(0));
        Ok(())
    };
    serializable(read, |table| table.insert("x", "1"), Some("t x"));
}

#[test]
fn a_table_that_is_cloned_or_renamed_ends_the_transactions_that_run() {
    let (db, table) = with_table();
    table.insert("x", "1").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    table.insert("x", "2").expect("the disk works");
    let clone = table.clone_as("clone").expect("the disk works");
    assert_eq!(tx.get(&clone, "x").expect("the disk works").as_deref(), Some(&b"1"[..]), "of before the clone");
    tx.insert(&table, "z", "1").expect("it is taken");
    assert!(matches!(tx.commit().expect("the disk works"), Err(Conflict::TooOld { .. })));
    let mut first = db.begin().expect("it begins");
    first.get(&table, "x").expect("the disk works");
    first.insert(&clone, "y", "1").expect("it is taken");
    let renamed = db.rename_table("t", "u").expect("the disk works");
    let mut second = db.begin().expect("it begins");
    second.get(&clone, "y").expect("the disk works");
    second.insert(&renamed, "x", "3").expect("it is taken");
    assert!(second.commit().expect("the disk works").is_ok());
    assert!(first.commit().expect("the disk works").is_err(), "the other one has written what it has read");
}

#[test]
fn a_table_that_is_not_written_to_any_more_may_be_dropped() {
    let (db, table) = with_table();
    let other = db.table("other").expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    let start = tx.savepoint();
    tx.insert(&other, "a", "1").expect("it is taken");
    tx.rollback_to(&start).expect("it is there");
    tx.insert(&table, "a", "1").expect("it is taken");
    assert!(db.drop_table("other").expect("the disk works"));
    assert!(tx.commit().expect("the disk works").is_ok());
}

#[test]
fn every_form_of_a_commit_applies_the_writes() {
    let (db, table) = with_table();
    let begin = |key: &str| {
        let mut tx = db.begin().expect("it begins");
        tx.get(&table, key).expect("the disk works");
        tx.insert(&table, key, "1").expect("it is taken");
        tx
    };
    let version = begin("a").commit().expect("the disk works").expect("it is alone");
    assert_eq!(db.durable_version(), version);
    let commit = begin("b").submit().expect("the disk works").expect("it is alone");
    assert_eq!((commit.version(), commit.is_durable()), (db.version(), false));
    let reader = db.begin().expect("it begins");
    assert_eq!(keys(reader.iter(&table)), "a b");
    assert_eq!(reader.commit().expect("the disk works"), Ok(commit.version()));
    assert!(commit.is_durable(), "who has read it is not told so before it is durable");
    let version = smol::block_on(begin("c").commit_async()).expect("the disk works").expect("it is alone");
    assert_eq!(db.durable_version(), version);
    let conflicting = begin("d");
    table.insert("d", "2").expect("the disk works");
    assert!(conflicting.submit().expect("the disk works").is_err());
}
