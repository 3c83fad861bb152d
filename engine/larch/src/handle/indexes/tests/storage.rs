//! Tests what happens to indexes when tables change, and when another program or another release opens the database.

use super::*;
use crate::Conflict;
use crate::options::Release;
use crate::write::not_committed::NotCommitted;

#[test]
fn without_its_extractor_an_index_is_read_and_its_table_refuses_writes() {
    let (disk, db, table) = with_table();
    table.insert("1", "red").expect("it is taken");
    create(&table, "words", "words", false).expect("it is built");
    drop((table, db));
    let machine = || Machine::simulated_on(disk.clone(), 2);
    let db = Database::builder("db").machine(machine()).open().expect("it opens for reading");
    let table = db.table("t").expect("it is there");
    let index = table.index("words").expect("it is there");
    assert_eq!((get_by(&index, "red"), index.declaration()), ("1".to_owned(), &b"words"[..]));
    assert_eq!(table.get("1").expect("the disk works").as_deref(), Some(&b"red"[..]));
    let refused = table.insert("2", "red").expect_err("nothing makes its keys");
    assert_eq!(
        refused.to_string(),
        "index words of table t is declared as words, and no extractor for that is registered (this program has registered no \
         extractors); open the database with Builder::extractors, or drop the index"
    );
    let mut batch = db.batch();
    batch.remove(&table, "1");
    let mut tx = db.begin().expect("it begins");
    let refusals = [
        table.remove("1").err(),
        table.remove_range(..).err(),
        batch.commit().err(),
        tx.remove(&table, "1").err(),
        table.insert_new("3", "x").err(),
        index.check(|_| {}).err(),
        create(&table, "first", "first", false).err(),
    ];
    for refused in refusals {
        assert!(matches!(refused, Some(Error::NoExtractor { .. })), "{refused:?}");
    }
    db.table("other").expect("it is made").insert("1", "x").expect("other tables take writes");
    assert!(table.drop_index("words").expect("the disk works"));
    table.insert("2", "red").expect("it is taken");
}

#[test]
fn a_declaration_that_no_extractor_knows_makes_no_index() {
    let (_, _, table) = with_table();
    let refused = create(&table, "x", "unheard of", false).expect_err("it is not known");
    assert!(matches!(refused, Error::NoExtractor { ref why, .. } if why == "unheard of is unknown"), "{refused}");
    assert!(table.indexes().expect("it is there").is_empty());
    for name in ["", &"x".repeat(256), "a\nb", "\u{1b}[2J"] {
        assert!(matches!(create(&table, name, "words", false), Err(Error::BadIndexName(_))));
    }
    create(&table, "x", "words", false).expect("it is built");
    assert!(matches!(create(&table, "x", "words", false), Err(Error::IndexExists { .. })));
    assert!(matches!(table.index("y"), Err(Error::NoSuchIndex { .. })));
    assert!(!table.drop_index("y").expect("the disk works"));
}

#[test]
fn indexes_come_back_with_the_manifest_and_leave_with_their_table() {
    let (disk, mut db, mut table) = with_table();
    table.insert("1", "red").expect("it is taken");
    create(&table, "words", "words", false).expect("it is built");
    create(&table, "first", "first", true).expect("it is built");
    for seed in 2..5 {
        if seed == 3 {
            db.flush().expect("the disk works");
        }
        drop((table, db));
        db = on(&disk, seed).manifest_slack_bytes(0).open().expect("the disk works");
        table = db.rename_table("t", "u").and_then(|_| db.rename_table("u", "t")).expect("it is there");
        assert_eq!(table.indexes().expect("it is there"), ["first", "words"]);
        let first = table.index("first").expect("it is there");
        assert!(first.is_unique() && !table.index("words").expect("it is there").is_unique());
        table.insert(seed.to_string(), format!("red {seed}")).expect_err("the index is unique still");
        assert_eq!(get_by(&first, "red"), "1");
    }
    let first = table.index("first").expect("it is there");
    let snapshot = db.snapshot();
    assert!(db.drop_table("t").expect("the disk works"));
    assert!(matches!(snapshot.get_by(&first, ended("red")), Err(Error::TableDropped(_))));
    drop((snapshot, first, table));
    assert_eq!(db.core().views.newest().files.tables.values().count(), 0);
    assert_eq!(db.metrics().files, 0);
    assert!(!db.core().indexes.has(crate::base::table::TableId(0)));
}

#[test]
fn what_does_not_keep_indexes_is_refused() {
    let (_, db, table) = with_table();
    let mut early = table.import().expect("it begins");
    early.add(b"1", b"red").expect("it is taken");
    create(&table, "words", "words", false).expect("it is built");
    assert_eq!(
        early.finish(|_| {}).expect_err("there is an index now").to_string(),
        "the import does not keep the indexes of table t, words; drop them first, and create them again afterwards"
    );
    assert!(matches!(table.import(), Err(Error::HasIndexes { .. })));
    assert!(matches!(table.clone_as("u"), Err(Error::HasIndexes { .. })));
    assert!(matches!(table.split_off("k", "u"), Err(Error::HasIndexes { .. })));
    assert_eq!((db.tables(), table.iter().count()), (vec!["t".to_owned()], 0));
}

#[test]
fn a_release_without_indexes_gets_none() {
    let (disk, db, table) = with_table();
    drop((table, db));
    let old = on(&disk, 2).compat(Release::V0_1).open().expect("it has no index yet");
    let refused =
        create(&old.table("t").expect("it is there"), "words", "words", false).expect_err("0.1 does not read it");
    assert!(matches!(refused, Error::BadOptions(ref why) if why.contains("0.1")), "{refused}");
    drop(old);
    let db = on(&disk, 3).open().expect("the disk works");
    create(&db.table("t").expect("it is there"), "words", "words", false).expect("it is built");
    drop(db);
    let refused = on(&disk, 4).compat(Release::V0_1).open().expect_err("0.1 does not read it");
    assert!(matches!(refused, Error::BadOptions(ref why) if why.contains("words of t")), "{refused}");
}

#[test]
fn readers_of_an_index_that_is_dropped_end_with_an_error() {
    let (_, db, table) = with_table();
    let index = create(&table, "words", "words", false).expect("it is built");
    for number in 0..1000 {
        table.insert(format!("{number:04}"), "red").expect("it is taken");
    }
    db.flush().expect("the disk works");
    let mut tx = db.begin().expect("it begins");
    tx.insert(&table, "0001", "green").expect("it is taken");
    let mut open = index.range_by(..);
    assert!(open.next().expect("there are rows").is_ok());
    assert!(table.drop_index("words").expect("the disk works"));
    // The range still returns the rows that it has already fetched before the error.
    let end = open.find_map(Result::err);
    assert!(matches!(end, Some(Error::TableDropped(ref name)) if name == "words of t"), "{end:?}");
    let refused = index.get_by(ended("red")).expect_err("it was dropped");
    assert!(matches!(refused, Error::TableDropped(ref name) if name == "words of t"), "{refused}");
    tx.commit().expect("the disk works").expect_err("it wrote entries of the index");
    table.insert("0001", "green").expect("it is taken");
    let again = create(&table, "words", "words", false).expect("it is built");
    assert_eq!((get_by(&again, "green"), again.entries(..).count()), ("0001".to_owned(), 1000));
}

#[test]
fn a_check_names_what_differs() {
    use crate::indexes::check::IndexProblem;
    use crate::indexes::entry;
    let (_, db, table) = with_table();
    let index = create(&table, "words", "words", false).expect("it is built");
    table.insert("1", "red").expect("it is taken");
    table.insert("2", "red").expect("it is taken");
    // The entries are rows of a table, so the test can remove one behind the back of the index.
    index.entry_table().remove(entry::key(&ended("red"), b"1")).expect("it is taken");
    index.entry_table().insert(entry::key(&ended("green"), b"2"), []).expect("it is taken");
    index.entry_table().insert("nonsense", [200]).expect("it is taken");
    let found = index.check(|_| {}).expect("the disk works");
    assert_eq!((found.rows, found.entries), (2, 3));
    assert_eq!(
        found.problems,
        [
            IndexProblem::Missing { row: b"1"[..].into(), index_key: ended("red").into() },
            IndexProblem::NoEntry { key: b"nonsense"[..].into() },
            IndexProblem::TooMuch { row: b"2"[..].into(), index_key: ended("green").into() },
        ]
    );
    index.entry_table().insert(entry::key(&ended("blue"), b"9"), []).expect("it is taken");
    let refused = index.get_by(ended("blue")).expect_err("there is no row");
    assert!(matches!(refused, Error::BadEntry { .. }) && refused.is_corruption(), "{refused}");
    drop(db);
}

#[test]
fn a_commit_that_knows_nothing_of_a_new_index_is_not_made() {
    use crate::base::ops::BatchOps;
    use crate::write::commit;
    let (_, db, table) = with_table();
    let mut blind = db.begin().expect("it begins");
    blind.insert(&table, "1", "red").expect("it is taken");
    let index = create(&table, "words", "words", false).expect("it is built");
    let conflict = blind.commit().expect("the disk works").expect_err("its write lacks an entry");
    assert_eq!(
        conflict.to_string(),
        "an index was created or dropped since the transaction began to write to table t; do it again"
    );
    let mut ops = BatchOps::new();
    ops.put(table.id().0, b"1", b"red");
    let tables = [table.identity().clone()];
    let committed = commit::commit(table.core(), ops.resolve(), &tables, crate::Durability::Synced);
    assert!(matches!(committed, Err(NotCommitted::Conflict(Conflict::Indexes { .. }))), "{committed:?}");
    assert_eq!(table.iter().count(), 0);
    is_clean(&index);
}

#[test]
fn a_repair_saves_the_rows_and_names_the_indexes_that_it_leaves_out() {
    for has_manifest in [true, false] {
        let (disk, db, table) = with_table();
        create(&table, "words", "words", false).expect("it is built");
        table.insert("1", "red").expect("it is taken");
        db.flush().expect("the disk works");
        // This row and its entries are in the log but not in files.
        table.insert("2", "green").expect("it is taken");
        drop((table, db));
        let machine = Machine::simulated_on(disk.clone(), 2);
        if !has_manifest {
            machine.disk.remove(std::path::Path::new("db/CURRENT")).expect("it is there");
            for entry in machine.disk.list(std::path::Path::new("db")).expect("it is there") {
                if entry.name.starts_with("MANIFEST") {
                    machine.disk.remove(&std::path::Path::new("db").join(&entry.name)).expect("it is there");
                }
            }
        }
        let report =
            crate::repair::repair_on(&machine, "db".as_ref(), "new".as_ref(), |_| {}).expect("there are files");
        assert!(report.lost.is_empty(), "{report:?}");
        let told: Vec<&String> = report.guesses.iter().filter(|guess| guess.contains("index words")).collect();
        assert_eq!(told.len(), 1, "{report:?}");
        let db = Database::builder("new").machine(machine).open().expect("it was made");
        assert_eq!(db.tables(), ["t"]);
        assert_eq!(db.table("t").expect("it is there").iter().count(), 2);
        assert!(db.table("t").expect("it is there").indexes().expect("it is there").is_empty());
    }
}

#[test]
fn writes_larger_than_the_write_buffer_keep_indexes_too() {
    let (disk, db, table) = with_table();
    drop((table, db));
    let db = on(&disk, 2).write_buffer_bytes(16 << 10).open().expect("the disk works");
    let table = db.table("t").expect("it is there");
    let index = create(&table, "words", "words", false).expect("it is built");
    let mut batch = db.batch();
    for number in 0..1000 {
        batch.insert(&table, format!("{number:04}"), format!("w{} same", number % 7));
    }
    batch.submit().expect("it goes into files").wait().expect("the disk works");
    assert_eq!(index.entries(..).count(), 2000);
    is_clean(&index);
    table.remove_range("0100"..).expect("it goes into files");
    assert_eq!(index.entries(..).count(), 200);
    is_clean(&index);
}

#[test]
fn a_range_of_many_write_buffers_is_removed_with_its_entries_or_not_at_all() {
    let disk = SimDisk::new(11);
    let db = on(&disk, 11).write_buffer_bytes(16 << 10).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    let index = create(&table, "words", "words", false).expect("it is built");
    for number in 0..3000 {
        table.insert(format!("{number:05}"), format!("w{} same", number % 97)).expect("it is taken");
    }
    db.flush().expect("the disk works");

    let mut tx = db.begin().expect("it begins");
    tx.insert(&table, "x", "mine").expect("it is taken");
    disk.set_capacity(0);
    let error = tx.remove_range(&table, ..).expect_err("its entries take more than a share of the write buffer");
    assert!(error.is_disk_full(), "{error}");
    disk.set_capacity(u64::MAX);
    assert_eq!((tx.len(), tx.iter(&table).count()), (2, 3001), "it is as it was before: a row and an entry");
    tx.remove_range(&table, "01000".."02000").expect("there is room again");
    assert!(tx.work().writes.in_runs() > 0);
    assert_eq!(tx.entries(&index, ..).count(), 4001);
    tx.commit().expect("the disk works").expect("nobody else writes");
    is_clean(&index);

    table.remove_range(..).expect("the disk works");
    assert_eq!((table.iter().count(), index.entries(..).count()), (0, 0));
    is_clean(&index);
}

#[test]
fn an_index_is_not_asked_about_a_time_before_it_was_made() {
    let (disk, mut db, mut table) = with_table();
    table.insert("1", "red").expect("it is taken");
    db.keep("before").expect("the disk works");
    table.remove("1").expect("it is taken");
    table.insert("2", "red").expect("it is taken");
    create(&table, "words", "words", false).expect("it is built");
    db.keep("after").expect("the disk works");
    for seed in 2..5 {
        let index = table.index("words").expect("it is there");
        let before = db.at("before").expect("it is kept");
        let refused = before.get_by(&index, ended("red")).map(drop).expect_err("it has no entries of that time");
        assert!(matches!(refused, Error::IndexNotReady { .. }), "{refused}");
        db.at("after").expect("it is kept").get_by(&index, ended("red")).expect("it was ready");
        assert_eq!(get_by(&index, "red"), "2");
        drop((before, index, table, db));
        db = on(&disk, seed).open().expect("the disk works");
        table = db.table("t").expect("it is there");
    }
}
