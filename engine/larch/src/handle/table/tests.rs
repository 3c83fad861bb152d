//! Tests which rows tables with column groups accept and which they refuse.

mod admit;
mod dropped;
mod erased;
mod files;
mod values;

use super::*;
use crate::Error;
use crate::Readable;
use crate::handle::database::Database;
use os::Machine;
use sst::MAX_KEY_BYTES;
use std::ops::Bound;
use std::ops::RangeBounds;

/// A database with a write buffer for values of at most 1 KiB.
fn database() -> Database {
    let (machine, _) = Machine::simulated(1);
    Database::builder("db").machine(machine).write_buffer_bytes(4 << 10).open().expect("the disk works")
}

fn table(db: &Database, name: &str, groups: &[&str]) -> Table {
    let groups = groups.iter().map(|&group| group.to_owned()).collect();
    db.table_with(name, TableOptions { groups, ..TableOptions::default() }).expect("the disk works")
}

/// Writes a row in every possible way, and checks that all give the same result. Returns it: the error as text, or
/// `None` if the row was accepted.
#[track_caller]
fn written(db: &Database, table: &Table, key: &[u8], parts: &[&[u8]]) -> Option<String> {
    let mut batch = db.batch();
    batch.insert_parts(table, key, parts);
    let mut import = table.import().expect("the database takes writes");
    let ways = [table.insert_parts(key, parts), batch.commit().map(|_| ()), import.add_parts(key, parts)];
    let [one, others @ ..] = ways.map(|outcome| outcome.err().map(|error| error.to_string()));
    assert_eq!(others, [one.clone(), one.clone()]);
    one
}

/// Like [`written`], but for a row with a whole value.
#[track_caller]
fn written_whole(db: &Database, table: &Table, key: &[u8], value: &[u8]) -> Option<String> {
    let mut batch = db.batch();
    batch.insert(table, key, value);
    let mut import = table.import().expect("the database takes writes");
    let ways = [table.insert(key, value), batch.commit().map(|_| ()), import.add(key, value)];
    let [one, others @ ..] = ways.map(|outcome| outcome.err().map(|error| error.to_string()));
    assert_eq!(others, [one.clone(), one.clone()]);
    one
}

#[test]
fn a_new_table_has_a_name_that_stands_on_one_line() {
    let db = database();
    let old = table(&db, "k\u{e4}se und brot", &[]);
    for name in ["", "a\nb", "a\r", "\t", "\0", "\u{1b}[2J", "\u{7f}", &"x".repeat(256)] {
        let refused = [
            db.table(name).err(),
            old.clone_as(name).err(),
            old.split_off("k", name).err(),
            db.rename_table("k\u{e4}se und brot", name).err(),
        ];
        for error in refused {
            assert!(matches!(error, Some(Error::BadTableName(_))), "{name:?}: {error:?}");
        }
    }
    assert_eq!(db.tables(), ["k\u{e4}se und brot"]);
}

#[test]
fn a_row_has_as_many_parts_as_the_table_has_groups() {
    let db = database();
    let none = table(&db, "none", &[]);
    let one = table(&db, "one", &["all"]);
    let two = table(&db, "two", &["hot", "cold"]);
    for table in [&none, &one] {
        assert_eq!(written(&db, table, b"k", &[b"v"]), None);
        assert_eq!(written_whole(&db, table, b"k", b"v"), None);
    }
    assert_eq!(written(&db, &two, b"k", &[b"v", b""]), None);
    let refusal = |parts: &str| Some(format!("a row of table {parts}"));
    let not_split = "none, which is not split in groups, has 1 part; ";
    assert_eq!(written(&db, &none, b"k", &[]), refusal(&format!("{not_split}0 were given")));
    assert_eq!(written(&db, &none, b"k", &[b"", b""]), refusal(&format!("{not_split}2 were given")));
    assert_eq!(written(&db, &one, b"k", &[b"", b""]), refusal("one has 1 part, all; 2 were given"));
    assert_eq!(written(&db, &two, b"k", &[b""]), refusal("two has 2 parts, hot and cold; 1 was given"));
    let why = written_whole(&db, &two, b"k", b"v").expect("it is refused");
    assert!(why.starts_with("table two is split in the groups hot, cold; write its rows with insert_parts"), "{why}");
    two.remove("k").and_then(|()| two.remove_range("a"..)).expect("removing needs no parts");
}

#[test]
fn the_limit_of_values_is_that_of_the_sum_of_their_parts() {
    let db = database();
    let table = table(&db, "t", &["a", "b", "c"]);
    let (half, more) = ([b'v'; 512], [b'v'; 513]);
    assert_eq!(written(&db, &table, b"k", &[&half, b"", &half]), None);
    let why = written(&db, &table, b"k", &[&half, b"", &more]).expect("it is refused");
    assert!(why.starts_with("a value of 1025 bytes is longer than 1024"), "{why}");
    let why = written(&db, &table, &[b'k'; sst::MAX_KEY_BYTES + 1], &[b"", b"", b""]).expect("it is refused");
    assert!(why.starts_with("a key of "), "{why}");
}

#[test]
fn a_range_may_begin_and_end_at_a_key_of_the_greatest_length() {
    let longest = |last: u8| [vec![b'k'; MAX_KEY_BYTES - 1], vec![last]].concat();
    let greatest = vec![0xff; MAX_KEY_BYTES];
    let keys = [b"a".to_vec(), longest(b'a'), longest(b'b'), b"z".to_vec(), greatest.clone()];
    type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);
    let check = |range: Range| {
        let db = Database::builder("db").machine(Machine::simulated(1).0).open().expect("the disk works");
        let table = db.table("t").expect("the disk works");
        for in_a_batch in [false, true] {
            for key in &keys {
                table.insert(key, "v").expect("the disk works");
            }
            let inside = keys.iter().filter(|key| range.contains(*key)).count();
            assert_eq!(table.count_exact(range.clone()).expect("the disk works"), inside as u64);
            if in_a_batch {
                let mut batch = db.batch();
                batch.remove_range(&table, range.clone());
                batch.commit().expect("every bound is a key");
            } else {
                table.remove_range(range.clone()).expect("every bound is a key");
            }
            let left: Vec<Vec<u8>> = table.iter().map(|row| row.expect("the disk works").0.to_vec()).collect();
            let expected: Vec<Vec<u8>> = keys.iter().filter(|key| !range.contains(*key)).cloned().collect();
            assert!(left == expected, "{} keys are left, not {}", left.len(), expected.len());
        }
    };
    check((Bound::Unbounded, Bound::Included(longest(b'a'))));
    check((Bound::Included(longest(b'a')), Bound::Included(longest(b'a'))));
    check((Bound::Excluded(longest(b'a')), Bound::Included(longest(b'b'))));
    check((Bound::Excluded(longest(b'b')), Bound::Unbounded));
    check((Bound::Excluded(b"z".to_vec()), Bound::Included(greatest.clone())));
    check((Bound::Excluded(greatest), Bound::Unbounded));
}

#[test]
fn a_batch_takes_no_parts_for_another_database() {
    let (db, other) = (database(), database());
    let table = table(&other, "t", &["a", "b"]);
    let mut batch = db.batch();
    batch.insert_parts(&table, "k", &["v", "w"]);
    assert!(matches!(batch.commit(), Err(Error::ForeignTable(_))));
}

#[test]
fn a_dump_of_a_table_shows_its_groups_and_reads_nothing_unless_asked() {
    let (machine, disk) = Machine::simulated(1);
    let db = Database::builder("db").machine(machine).open().expect("the disk works");
    let table = table(&db, "t", &["hot", "cold"]);
    let mut import = table.import().expect("the database takes writes");
    for i in 0..3_000_u32 {
        import.add_parts(&i.to_be_bytes(), &[&b"small"[..], &[b'c'; 100]]).expect("the disk works");
    }
    import.finish(|_| {}).expect("the disk works");
    let dumped = |detail: DumpDetail| {
        let mut out = Vec::new();
        table.dump(detail, &mut out).expect("the disk works");
        String::from_utf8(out).expect("everything else is escaped")
    };
    let reads = || disk.counts().reads;
    let before = reads();
    let nothing = dumped(DumpDetail::Loaded);
    assert!(nothing.starts_with("groups: 0 hot, 1 cold\nlevel 6: "), "{nothing}");
    assert_eq!(nothing.matches("not in memory").count(), 3, "two trees and a filter: {nothing}");
    table.select(["cold"]).expect("it is there").get(7_u32.to_be_bytes()).expect("the disk works");
    let after_get = reads();
    let some = dumped(DumpDetail::Loaded);
    assert!(before < after_get && after_get == reads());
    assert!(some.contains("group page at") && some.contains("not in memory"), "{some}");
    let rows = dumped(DumpDetail::Rows);
    assert_eq!(rows.matches("put \"small\"").count(), 3_000);
    assert_eq!(rows.matches(&format!("\"{}\"… (100 bytes)", "c".repeat(64))).count(), 3_000);
}

#[test]
fn extend_commits_a_megabyte_at_a_time_and_what_comes_before_a_bad_row() {
    let (machine, _) = Machine::simulated(1);
    let db = Database::builder("db").machine(machine).write_buffer_bytes(64 << 20).open().expect("the disk works");
    let table = table(&db, "t", &[]);
    let before = db.version();
    table.extend((0..25_u32).map(|i| (i.to_be_bytes(), vec![b'x'; 100_000]))).expect("the disk works");
    assert_eq!(table.len().expect("the disk works"), 25);
    assert_eq!(db.version().0 - before.0, 3, "ten rows, ten rows, five rows");

    let long = vec![b'k'; MAX_KEY_BYTES + 1];
    let rows = [(b"a".to_vec(), "1"), (long, "2"), (b"b".to_vec(), "3")];
    assert!(matches!(table.extend(rows), Err(Error::KeyTooLong { .. })));
    assert!(table.contains_key("a").expect("the disk works") && !table.contains_key("b").expect("the disk works"));
    table.extend(None::<(&str, &str)>).expect("nothing is no work");
    table.clear().expect("the disk works");
    assert!(table.is_empty().expect("the disk works"));
}

#[test]
fn a_table_of_parts_says_whether_it_is_empty() {
    let db = database();
    let table = table(&db, "t", &["a", "b"]);
    assert!(table.is_empty().expect("the disk works"));
    table.insert_parts("k", &["1", "2"]).expect("the disk works");
    assert!(!table.is_empty().expect("the disk works"));
    let mut tx = db.begin().expect("the disk works");
    tx.remove(&table, "k").expect("the disk works");
    assert!(tx.reader(&table).expect("of this database").is_empty().expect("the disk works"));
}
