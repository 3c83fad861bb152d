//! Tests what indexes promise: after every commit they agree with their table, and they are built while writes go
//! on.

mod beside;
mod build;
mod closures;
mod model;
mod storage;

use super::*;
use crate::base::extractors::IndexKeys;
use crate::handle::database::{Builder, Database};
use crate::index::IndexEntry;
use crate::transaction::{Isolation, TransactionOptions};
use crate::view::value::Value;
use crate::{Readable, TableOptions};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use std::ops::ControlFlow;

/// The extractors that the tests use.
pub(super) enum Extractor {
    /// `words` makes a key from each word of the value.
    Words,
    /// `first` makes a key from the first word of the value, if it has one.
    First,
    /// `length` makes a key from the length of the value, and refuses values with an `!`.
    Length,
    /// `group 1` makes a key from the part in column group 1.
    Group(usize),
    /// `key` makes a key from the last byte of the row's key.
    Key,
    /// `value` uses the whole value as the key.
    Value,
    /// `panic` uses the whole value as the key, and panics if the value has an `!`.
    Panic,
    /// `hook` uses the whole value as the key, but first takes the function in [`HOOK`] and calls it.
    Hook,
}

/// What the extractor `hook` calls once, when it next makes keys.
type Hook = Box<dyn FnOnce()>;
thread_local! {
    pub(super) static HOOK: std::cell::Cell<Option<Hook>> = const { std::cell::Cell::new(None) };
}

impl Extractor {
    pub fn of(declaration: &[u8]) -> Result<Self, String> {
        Ok(match declaration {
            b"words" => Self::Words,
            b"first" => Self::First,
            b"length" => Self::Length,
            b"group 0" => Self::Group(0),
            b"group 1" => Self::Group(1),
            b"key" => Self::Key,
            b"value" => Self::Value,
            b"panic" => Self::Panic,
            b"hook" => Self::Hook,
            other => return Err(format!("{} is unknown", other.escape_ascii())),
        })
    }

    /// The index keys of a row with a whole value.
    pub fn keys(&self, key: &[u8], value: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let mut keys = Vec::new();
        self.index_keys(key, &|_| Some(value), &mut |key| keys.push(key.to_vec()))?;
        keys.sort();
        keys.dedup();
        Ok(keys)
    }
}

/// Ends a word so that it is not a prefix of another index key.
pub(super) fn ended(word: impl AsRef<[u8]>) -> Vec<u8> {
    [word.as_ref(), &[0]].concat()
}

impl IndexKeys for Extractor {
    fn groups(&self) -> &[usize] {
        match self {
            Self::Key => &[],
            Self::Group(1) => &[1],
            _ => &[0],
        }
    }

    fn index_keys<'r>(
        &self,
        key: &'r [u8],
        part: &dyn Fn(usize) -> Option<&'r [u8]>,
        emit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), String> {
        let value = || part(0).expect("group 0 was asked for");
        let words = |value: &'r [u8]| value.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        match self {
            Self::Words => words(value()).for_each(|word| emit(&ended(word))),
            Self::First => words(value()).take(1).for_each(|word| emit(&ended(word))),
            Self::Length if value().contains(&b'!') => return Err("it has an `!`".to_owned()),
            Self::Length => emit(&(value().len() as u32).to_be_bytes()),
            Self::Group(group) => emit(&ended(part(*group).ok_or("there is no such group")?)),
            Self::Key => emit(&[key.last().copied().unwrap_or_default()]),
            Self::Value => emit(value()),
            Self::Panic => {
                assert!(!value().contains(&b'!'), "it has an `!`");
                emit(value());
            }
            Self::Hook => {
                if let Some(hook) = HOOK.take() {
                    hook();
                }
                emit(value());
            }
        }
        Ok(())
    }
}

pub(super) fn on(disk: &Arc<SimDisk>, seed: u64) -> Builder {
    Database::builder("db")
        .machine(Machine::simulated_on(disk.clone(), seed))
        .extractors(|declaration| Extractor::of(declaration).map(|extractor| Box::new(extractor) as Box<dyn IndexKeys>))
}

pub(super) fn with_table() -> (Arc<SimDisk>, Database, Table) {
    let (_, disk) = Machine::simulated(1);
    let db = on(&disk, 1).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    (disk, db, table)
}

pub(super) fn create(table: &Table, name: &str, declaration: &str, unique: bool) -> Result<Index> {
    table.create_index(name, declaration, &IndexOptions { unique }, |_| {})
}

/// The keys and values of `rows` as text, in the form `key=value key=value`.
#[track_caller]
pub(super) fn rows(rows: impl IntoIterator<Item = Result<(IndexEntry, Value)>>) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it is text");
    let row = |row: Result<(IndexEntry, Value)>| {
        let (entry, value) = row.expect("the disk works");
        format!("{}={}", text(entry.row_key()), text(&value))
    };
    rows.into_iter().map(row).collect::<Vec<_>>().join(" ")
}

#[track_caller]
pub(super) fn get_by(index: &Index, word: &str) -> String {
    let found = index.get_by(ended(word)).expect("the disk works");
    found.iter().map(|(key, _)| String::from_utf8(key.to_vec()).expect("it is text")).collect::<Vec<_>>().join(" ")
}

#[track_caller]
pub(super) fn is_clean(index: &Index) {
    let found = index.check(|_| {}).expect("the disk works");
    assert_eq!((found.problems, found.problems_left_out), (Vec::new(), 0), "index {}", index.name());
}

#[test]
fn an_index_has_the_rows_of_before_and_follows_every_write() {
    let (_, db, table) = with_table();
    table.insert("1", "red apple").expect("it is taken");
    let index = create(&table, "words", "words", false).expect("it is built");
    assert_eq!(table.indexes().expect("it is there"), ["words"]);
    assert_eq!(db.tables(), ["t"], "an index is no table");
    table.insert("2", "green apple").expect("it is taken");
    assert_eq!(get_by(&index, "apple"), "1 2");
    table.insert("1", "red cherry").expect("it is taken");
    assert_eq!((get_by(&index, "apple"), get_by(&index, "red")), ("2".to_owned(), "1".to_owned()));
    table.remove("2").expect("it is taken");
    assert_eq!(get_by(&index, "green"), "");
    let mut batch = db.batch();
    batch.insert(&table, "3", "red red plum");
    batch.remove_range(&table, "1".."2");
    batch.insert(&table, "4", "red");
    batch.commit().expect("it is taken");
    assert_eq!(get_by(&index, "red"), "3 4");
    assert!(table.insert_new("5", "blue").expect("it is taken"));
    assert!(table.compare_and_swap("5", Some("blue"), Some("red")).expect("it is taken").is_ok());
    table.fetch_update("4", |_| None).expect("it is taken");
    assert_eq!(get_by(&index, "red"), "3 5");
    table.remove_range(..).expect("it is taken");
    assert_eq!(index.entries(..).count(), 0);
    is_clean(&index);
}

#[test]
fn rows_come_in_the_order_of_the_index_from_either_end() {
    let (_, _, table) = with_table();
    for number in 0..300_u32 {
        table.insert(format!("{number:03}"), format!("{:03} x", 999 - number)).expect("it is taken");
    }
    let index = create(&table, "first", "first", true).expect("it is built");
    let words = || index.range_by(..).map(|row| row.expect("the disk works").0.row_key().to_vec());
    let expected: Vec<Vec<u8>> = (0..300).rev().map(|number| format!("{number:03}").into_bytes()).collect();
    assert_eq!(words().collect::<Vec<_>>(), expected);
    assert_eq!(words().rev().collect::<Vec<_>>(), expected.iter().rev().cloned().collect::<Vec<_>>());
    // Reads one row from the front, then two from the back, and so on, until no row is left.
    let (mut both, mut front, mut back) = (index.range_by(..), Vec::new(), Vec::new());
    loop {
        let Some(row) = both.next() else { break };
        front.push(row.expect("the disk works").0.row_key().to_vec());
        for row in both.by_ref().rev().take(2) {
            back.push(row.expect("the disk works").0.row_key().to_vec());
        }
    }
    assert_eq!([front, back.into_iter().rev().collect()].concat(), expected);
    assert_eq!(index.entries(ended("702")..=ended("704")).count(), 3);
}

#[test]
fn rows_that_are_handed_over_are_those_that_a_range_by_index_gives() {
    let (disk, db, table) = with_table();
    for number in 0..700_u32 {
        let value = format!("{:03} {}", number % 7, "x".repeat(if number % 50 == 0 { 9000 } else { 40 }));
        table.insert(format!("{number:03}"), value).expect("it is taken");
    }
    create(&table, "first", "first", false).expect("it is built");
    db.compact().expect("the disk works");
    drop((table, db));
    let db = on(&disk, 2).cache_bytes(256 << 10).open().expect("the disk works");
    let table = db.table("t").expect("it is there");
    // This newer row is in memory only; all others are in files.
    table.insert("400", "007 new").expect("it is taken");
    let index = table.index("first").expect("it is there");
    let all: Vec<_> = index.range_by(..).map(|row| row.expect("the disk works")).collect();
    let all: Vec<_> = all.iter().map(|(entry, value)| (entry.index_key(), entry.row_key(), &**value)).collect();
    let owned =
        |(entry, value): (IndexEntry, Value)| (entry.index_key().to_vec(), entry.row_key().to_vec(), value.to_vec());
    // In turn, passes `handed` rows to a closure, reads `front` rows from the front, and `back` rows from the back,
    // until no row is left in the range.
    for (handed, front, back) in [(1000, 0, 0), (1, 0, 0), (7, 0, 0), (100, 1, 0), (130, 0, 3), (3, 2, 1), (0, 1, 1)] {
        for limit in [u64::MAX, 200, 1, 0] {
            let mut rows = index.range_by(..).limit(limit);
            let (mut seen, mut seen_back) = (Vec::new(), Vec::new());
            loop {
                let before = seen.len() + seen_back.len();
                let mut left = handed;
                while left > 0 {
                    let end = rows.for_each_row(|row| {
                        seen.push((row.index_key().to_vec(), row.row_key().to_vec(), row.value().to_vec()));
                        left -= 1;
                        if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                    });
                    if end.expect("the disk works").is_continue() {
                        break;
                    }
                }
                seen.extend(rows.by_ref().take(front).map(|row| owned(row.expect("the disk works"))));
                seen_back.extend(rows.by_ref().rev().take(back).map(|row| owned(row.expect("the disk works"))));
                if before == seen.len() + seen_back.len() {
                    break;
                }
            }
            let (first, last) = (seen.len(), all.len() - seen_back.len());
            seen.extend(seen_back.into_iter().rev());
            let seen: Vec<_> = seen.iter().map(|(index, key, value)| (&index[..], &key[..], &value[..])).collect();
            assert!(seen.len() as u64 == limit.min(all.len() as u64), "{} rows of {limit}", seen.len());
            assert!(seen == [&all[..first], &all[last..]].concat(), "{handed}, {front}, {back}, {limit}");
        }
    }
    let refused =
        index.range_by(..).failed(Error::Cancelled("a test")).for_each_row(|_| ControlFlow::<()>::Continue(()));
    assert!(matches!(refused, Err(Error::Cancelled("a test"))), "{refused:?}");
}

#[test]
fn a_range_by_index_ends_where_its_bounds_say() {
    use std::ops::Bound::{Excluded, Included};
    let (_, _, table) = with_table();
    for word in ["a", "b", "c", "d"] {
        table.insert(format!("{word}1"), word).expect("it is taken");
        table.insert(format!("{word}2"), word).expect("it is taken");
    }
    let index = create(&table, "first", "first", false).expect("it is built");
    let (b, c) = (ended("b"), ended("c"));
    assert_eq!(rows(index.range_by(&b..&c)), "b1=b b2=b");
    assert_eq!(rows(index.range_by(&b..=&c)), "b1=b b2=b c1=c c2=c");
    assert_eq!(rows(index.range_by((Excluded(&b), Included(&c)))), "c1=c c2=c");
    assert_eq!(rows(index.range_by(..&b)), "a1=a a2=a");
    assert_eq!(rows(index.range_by(&c..)), "c1=c c2=c d1=d d2=d");
    assert_eq!(rows(index.range_by(&c..).limit(3)), "c1=c c2=c d1=d");
    let mut both_ends = index.range_by(..).limit(4).limit(3);
    let (front, back) = (both_ends.next(), both_ends.next_back());
    assert_eq!(rows(front.into_iter().chain(back)), "a1=a d2=d");
    assert_eq!((both_ends.next_back().into_iter().count(), both_ends.next().into_iter().count()), (1, 0));
    assert_eq!(rows(index.range_by("b".."c")), "b1=b b2=b", "bounds need not be keys of the index");
}

#[test]
fn a_unique_index_refuses_a_second_row_and_names_the_first() {
    let (_, db, table) = with_table();
    let index = create(&table, "first", "first", true).expect("it is built");
    table.insert("1", "ada").expect("it is taken");
    table.insert("1", "ada again").expect("a row may keep its key");
    let refused = table.insert("2", "ada").expect_err("there is one");
    assert_eq!(
        refused.to_string(),
        "key ada\\x00 of the unique index first of table t belongs to row 1; write a row with another one, or change that row first"
    );
    assert!(table.get("2").expect("the disk works").is_none());
    let mut batch = db.batch();
    batch.insert(&table, "3", "alan");
    batch.insert(&table, "4", "alan");
    assert!(matches!(batch.commit(), Err(Error::Duplicate { .. })));
    assert!(table.get("3").expect("the disk works").is_none(), "nothing of the batch was written");
    let mut batch = db.batch();
    batch.insert(&table, "1", "alan");
    batch.insert(&table, "2", "ada");
    batch.commit().expect("the key was given up before");
    assert_eq!((get_by(&index, "ada"), get_by(&index, "alan")), ("2".to_owned(), "1".to_owned()));
    is_clean(&index);
}

#[test]
fn a_unique_index_judges_the_outcome_of_writes_and_not_their_order() {
    let (_, disk) = Machine::simulated(1);
    for rows in [2_u32, 600] {
        let db = on(&disk, 1).write_buffer_bytes(64 << 10).open().expect("the disk works");
        let table = db.table(&format!("t{rows}")).expect("the disk works");
        let index = create(&table, "value", "value", true).expect("it is built");
        let value = |number: u32| [&number.to_be_bytes()[..], &[7; 60]].concat();
        // Each row gets the value of the next row, so two rows share an index key until the next row is written,
        // too.
        let rotated =
            |write: &mut dyn FnMut(u32, Vec<u8>)| (0..rows).for_each(|row| write(row, value((row + 1) % rows)));
        let mut batch = db.batch();
        (0..rows).for_each(|row| batch.insert(&table, row.to_be_bytes(), value(row)));
        batch.commit().expect("all values differ");
        let mut batch = db.batch();
        rotated(&mut |row, value| batch.insert(&table, row.to_be_bytes(), value));
        batch.commit().expect("all values differ at the end");
        let row_of = |number| index.get_by(value(number)).expect("the disk works")[0].0.to_vec();
        assert_eq!(row_of(1), 0_u32.to_be_bytes());
        (0..rows).for_each(|row| table.remove(row.to_be_bytes()).expect("it is taken"));
        let mut tx = db.begin().expect("it begins");
        rotated(&mut |row, value| tx.insert(&table, row.to_be_bytes(), value).expect("it is taken"));
        tx.insert(&table, "more", value(1)).expect("the commit decides");
        tx.remove(&table, 0_u32.to_be_bytes()).expect("it is taken");
        tx.commit().expect("the value was given up").expect("nothing else happens");
        assert_eq!(row_of(1), b"more");
        let mut tx = db.begin().expect("it begins");
        tx.insert(&table, "more", value(rows)).expect("it is taken");
        let before = tx.savepoint();
        rotated(&mut |row, _| tx.insert(&table, row.to_be_bytes(), value(rows)).expect("the commit decides"));
        if rows == 2 {
            tx.rollback_to(&before).expect("the disk works");
            smol::block_on(tx.commit_async()).expect("what was taken back does not count").expect("it is alone");
        } else {
            let refused = smol::block_on(tx.commit_async()).expect_err("many rows have one value");
            assert!(matches!(refused, Error::Duplicate { .. }), "{refused}");
        }
        is_clean(&index);
        db.close().expect("the disk works");
    }
}

#[test]
fn a_row_that_does_not_fit_is_refused() {
    let (_, _, table) = with_table();
    create(&table, "length", "length", false).expect("it is built");
    let refused = table.insert("1", "no!").expect_err("it does not fit");
    assert_eq!(
        refused.to_string(),
        "row 1 of table t does not fit its index length: it has an `!`; write another row, or drop the index"
    );
    create(&table, "words", "words", false).expect("it is built");
    let long = table.insert([b'k'; 40_000], "x".repeat(40_000)).expect_err("it is too long");
    assert!(matches!(long, Error::IndexKeyTooLong { ref index, .. } if **index == *"words"), "{long}");
    assert_eq!(table.iter().count(), 0);
}

#[test]
fn a_transaction_sees_its_own_writes_through_an_index() {
    let (_, db, table) = with_table();
    let index = create(&table, "words", "words", false).expect("it is built");
    for key in ["1", "2", "3"] {
        table.insert(key, "red").expect("it is taken");
    }
    let mut tx = db.begin().expect("it begins");
    tx.insert(&table, "2", "green").expect("it is taken");
    tx.remove(&table, "3").expect("it is taken");
    let before = tx.range_by(&index, ..);
    let savepoint = tx.savepoint();
    tx.insert(&table, "4", "red green").expect("it is taken");
    assert_eq!(rows(tx.range_by(&index, ..)), "2=green 4=red green 1=red 4=red green");
    assert_eq!(rows(before), "2=green 1=red", "it sees what was written before it");
    tx.rollback_to(&savepoint).expect("it is there");
    assert_eq!(rows(tx.range_by(&index, ..)), "2=green 1=red");
    assert_eq!(tx.entries(&index, ..).count(), 2);
    assert_eq!(rows(index.range_by(..)), "1=red 2=red 3=red");
    tx.commit().expect("the disk works").expect("nothing else happened");
    assert_eq!(rows(index.range_by(..)), "2=green 1=red");
    is_clean(&index);
}

#[test]
fn what_a_transaction_has_read_by_an_index_must_not_change() {
    let check = |change: &dyn Fn(&Table), conflicts: bool| {
        let (_, db, table) = with_table();
        let index = create(&table, "words", "words", false).expect("it is built");
        for (key, value) in [("1", "red"), ("2", "green"), ("3", "blue")] {
            table.insert(key, value).expect("it is taken");
        }
        let mut tx = db.begin().expect("it begins");
        assert_eq!(tx.get_by(&index, ended("red")).expect("the disk works").len(), 1);
        tx.insert(&table, "9", "mine").expect("it is taken");
        change(&table);
        assert_eq!(tx.commit().expect("the disk works").is_err(), conflicts);
        is_clean(&index);
    };
    check(&|table| table.insert("1", "red again").expect("it is taken"), true);
    check(&|table| table.insert("4", "red").expect("it is taken"), true);
    check(&|table| table.remove("1").expect("it is taken"), true);
    check(&|table| table.insert("4", "yellow").expect("it is taken"), false);
    check(&|table| table.remove("2").expect("it is taken"), false);
}

#[test]
fn of_two_transactions_with_one_unique_key_only_one_commits() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let (_, db, table) = with_table();
        let index = create(&table, "first", "first", true).expect("it is built");
        let options = TransactionOptions { isolation, ..TransactionOptions::default() };
        let mut both = [(); 2].map(|()| db.begin_with(&options).expect("it begins"));
        for (number, tx) in both.iter_mut().enumerate() {
            tx.insert(&table, number.to_string(), "ada").expect("it sees no other one");
        }
        let [first, second] = both;
        assert!(first.commit().expect("the disk works").is_ok());
        assert!(second.commit().expect("the disk works").is_err(), "{isolation:?}");
        assert_eq!(get_by(&index, "ada"), "0");
    }
}

#[test]
fn under_snapshot_isolation_the_row_that_is_replaced_counts_as_read() {
    let (_, db, table) = with_table();
    let index = create(&table, "words", "words", false).expect("it is built");
    table.insert("1", "red").expect("it is taken");
    table.insert("2", "red").expect("it is taken");
    let options = TransactionOptions { isolation: Isolation::Snapshot, ..TransactionOptions::default() };
    let mut tx = db.begin_with(&options).expect("it begins");
    tx.remove_range(&table, "1".."2").expect("it is taken");
    table.insert("1", "green").expect("it is taken");
    assert!(tx.commit().expect("the disk works").is_err());
    is_clean(&index);
}

#[test]
fn column_groups_are_read_only_as_far_as_an_index_needs_them() {
    let (_, db, _) = with_table();
    let groups = ["name", "colour"].map(str::to_owned).to_vec();
    let table = db.table_with("g", TableOptions { groups, ..TableOptions::default() }).expect("it is made");
    table.insert_parts("1", &["apple", "red"]).expect("it is taken");
    let by_colour = create(&table, "colour", "group 1", false).expect("it is built");
    let by_name = create(&table, "name", "group 0", true).expect("it is built");
    let by_key = create(&table, "key", "key", false).expect("it is built");
    table.insert_parts("2", &["plum", "blue"]).expect("it is taken");
    table.insert_parts("2", &["plum", "red"]).expect("it is taken");
    let names = table.select(["name"]).expect("there is one");
    let red: Vec<Vec<u8>> = names
        .range_by(&by_colour, ended("red")..=ended("red"))
        .map(|row| row.expect("the disk works").1[0].to_vec())
        .collect();
    assert_eq!(red, [b"apple".to_vec(), b"plum".to_vec()]);
    assert_eq!(names.get_by(&by_name, ended("plum")).expect("the disk works").len(), 1);
    assert!(matches!(by_colour.get_by(ended("red")), Err(Error::Grouped { .. })));
    assert_eq!(by_colour.entries(..).count(), 2);
    let tx = db.begin().expect("it begins");
    assert_eq!(
        tx.select(&names).expect("it is of this database").get_by(&by_key, "2").expect("the disk works").len(),
        1
    );
    for index in [&by_colour, &by_name, &by_key] {
        is_clean(index);
    }
}

#[test]
fn a_future_gives_what_a_range_gives_and_loses_nothing_when_it_is_dropped() {
    let (disk, db, table) = with_table();
    for number in 0..500_u32 {
        table.insert(format!("{number:03}"), format!("{:03} {}", number % 7, "x".repeat(300))).expect("it is taken");
    }
    create(&table, "first", "first", false).expect("it is built");
    db.compact().expect("the disk works");
    drop((table, db));
    let db = on(&disk, 2).cache_bytes(256 << 10).open().expect("the disk works");
    let index = db.table("t").expect("it is there").index("first").expect("it is there");
    let expected = rows(index.range_by(..));
    let scanned = smol::block_on(async {
        let (mut scan, mut all) = (index.scan_by_async(..), Vec::new());
        loop {
            // Polls a future once and drops it. Then awaits a new future for the next row.
            if let Some(row) = smol::future::poll_once(scan.next()).await.flatten() {
                all.push(row);
            }
            match scan.next().await {
                Some(row) => all.push(row),
                None => return all,
            }
        }
    });
    assert_eq!(rows(scanned), expected);
    let found = smol::block_on(index.get_by_async(ended("003"))).expect("the disk works");
    assert_eq!(found.len(), index.get_by(ended("003")).expect("the disk works").len());
}

#[test]
fn an_index_of_another_table_or_database_is_refused() {
    let (_, db, table) = with_table();
    let index = create(&table, "words", "words", false).expect("it is built");
    let other = db.table("other").expect("it is made");
    let mut by_other = other.select([] as [&str; 0]).expect("no group is one").range_by(&index, ..);
    assert!(matches!(by_other.next(), Some(Err(Error::NoSuchIndex { .. }))));
    let (_, foreign, _) = with_table();
    assert!(matches!(foreign.get_by(&index, "x"), Err(Error::ForeignTable(_))));
    assert!(matches!(foreign.range_by(&index, ..).next(), Some(Err(Error::ForeignTable(_)))));
    let table_of_foreign = foreign.table("t").expect("it is there");
    let mut by_foreign = table_of_foreign.select([] as [&str; 0]).expect("no group is one").range_by(&index, ..);
    assert!(matches!(by_foreign.next(), Some(Err(Error::ForeignTable(_)))));
}

#[test]
fn a_read_by_an_index_is_explained_as_pages_of_both_and_rows_come_in_few_rounds() {
    let (disk, db, table) = with_table();
    for number in 0..2000_u32 {
        // Two rows that are neighbours in the index are far from each other in the table.
        let (key, word) = (format!("{:04}", number * 997 % 2000), format!("{number:04}"));
        table.insert(key, format!("{word} {}", "x".repeat(500))).expect("it is taken");
    }
    create(&table, "first", "first", true).expect("it is built");
    db.compact().expect("the disk works");
    drop((table, db));
    let db = on(&disk, 2).open().expect("the disk works");
    let index = db.table("t").expect("it is there").index("first").expect("it is there");
    let explained =
        index.explain_range_by(ended("0100").., Some(100), sst::Direction::Forward).expect("the disk works");
    let rows = |of: &crate::explain::Explanation| match of.answer {
        crate::explain::Explained::Rows { rows, .. } => rows,
        _ => 0,
    };
    assert_eq!((rows(&explained.entries), rows(&explained.rows)), (100, 100));
    assert!(explained.entries.page_reads() < 6, "{explained}");
    assert!(explained.rows.page_reads() > 20, "{explained}");
    assert!(explained.rounds() < 6, "the pages of the rows are read together: {explained}");
    assert!(explained.to_string().starts_with("entries of the index\n"));
}

#[test]
fn keys_that_begin_with_one_another_are_told_apart_and_bounds_may_lie_between_them() {
    let (_, db, table) = with_table();
    let index = create(&table, "value", "value", false).expect("it is built");
    for (key, value) in [("c", "a"), ("bc", "a"), ("c2", "ab"), ("", "abc"), ("d", "b"), ("e", "a\0")] {
        table.insert(key, value).expect("it is taken");
    }
    let by = |range: (std::ops::Bound<&[u8]>, std::ops::Bound<&[u8]>)| {
        let forward: Vec<String> =
            index.entries(range).map(|entry| format!("{:?}", entry.expect("it is one"))).collect();
        let mut back: Vec<String> =
            index.entries(range).rev().map(|entry| format!("{:?}", entry.expect("it is one"))).collect();
        back.reverse();
        assert_eq!(forward, back);
        forward.join(", ")
    };
    use std::ops::Bound::{Excluded, Included, Unbounded};
    assert_eq!(by((Unbounded, Unbounded)), "a -> bc, a -> c, a\\x00 -> e, ab -> c2, abc -> , b -> d");
    assert_eq!(by((Unbounded, Included(b"a\0"))), "a -> bc, a -> c, a\\x00 -> e");
    assert_eq!(by((Excluded(b"a"), Excluded(b"abc"))), "a\\x00 -> e, ab -> c2");
    assert_eq!(index.get_by("a").expect("the disk works").len(), 2);
    is_clean(&index);
    drop(db);
}
