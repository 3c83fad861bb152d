//! Tests that the sizes in the metrics agree with the pages that a check finds in the files, and with those in the
//! cache.

use super::*;
use crate::base::options::{LevelOptions, TableOptions};
use crate::handle::database::Database;
use crate::handle::table::Table;
use os::sync::Arc;
use os::{Access, Machine};
use pages::{Admit, Reason, Session, retry};
use sst::{Compression, FileReport, Groups, PageIndexKind, Seek, SstCursor};

fn database() -> Database {
    let (machine, _) = Machine::simulated(1);
    // The limits of level 0 are so high that nothing is compacted unless the test asks for it.
    let levels = LevelOptions { level0_files: 100, slow_files: 100, file_bytes: 32 << 10, ..LevelOptions::default() };
    Database::builder("db").machine(machine).levels(levels).open().expect("the disk works")
}

fn options(groups: &[&str], index: PageIndexKind) -> TableOptions {
    let groups = groups.iter().map(|&group| group.to_owned()).collect();
    TableOptions { page_bytes: 512, node_bytes: 512, groups, index, ..TableOptions::default() }
}

/// Makes rows with older versions, an erased range, and values outside their pages, in several files.
fn fill(db: &Database, table: &Table) {
    let count = table.options().groups.len().max(1);
    let snapshots = (0..4u32).map(|round| {
        for i in 0..200 {
            let part = |group: u32| vec![b'v'; ((i * 7 + group * 31 + round) % 400) as usize];
            let parts: Vec<Vec<u8>> = (0..count as u32).map(part).collect();
            table.insert_parts(format!("{i:04}"), &parts).expect("the disk works");
        }
        table.remove_range(format!("{:04}", 20 * round)..format!("{:04}", 20 * round + 5)).expect("the disk works");
        let snapshot = db.snapshot();
        if round % 2 == 1 {
            db.flush().expect("the disk works");
        }
        snapshot
    });
    drop(snapshots.collect::<Vec<_>>());
}

/// What a check finds in the table's files.
fn reports(table: &Table) -> Vec<FileReport> {
    let core = table.core();
    let view = core.views.newest();
    let verify = |file: &Arc<crate::manifest::DbFile>| {
        let session = Session::new(&core.env.cache, Reason::Check, Admit::Pass);
        let raw = core.env.machine.disk.open(file.path(), Access::ReadDirect).expect("the disk works");
        sst::verify(&file.sst, &session, &*raw, &mut |_| {}).expect("the file is sound")
    };
    view.files.tables[&table.id()].files().map(|(_, file)| verify(file)).collect()
}

#[test]
fn sizes_are_those_of_the_pages_that_a_check_finds() {
    for groups in [&[][..], &["all"], &["hot", "warm", "cold"]] {
        for index in [PageIndexKind::Btree, PageIndexKind::Flat, PageIndexKind::Both] {
            for compression in [Compression::None, Compression::Lz4, Compression::ZSTD] {
                let db = database();
                let options = TableOptions { compression, ..options(groups, index) };
                let table = db.table_with("t", options).expect("the disk works");
                fill(&db, &table);
                let reports = reports(&table);
                let stats = table.stats().expect("the table is there");
                let found = |kind: PageKind| reports.iter().map(|report| report.pages_of(kind).bytes).sum::<u64>();
                let sizes = [
                    (stats.data_bytes, PageKind::Data),
                    (stats.history_bytes, PageKind::History),
                    (stats.group_bytes, PageKind::Group),
                    (stats.group_history_bytes, PageKind::GroupHistory),
                    (stats.value_bytes, PageKind::Value),
                    (stats.range_erase_bytes, PageKind::RangeErase),
                    (stats.btree_bytes, PageKind::Index),
                    (stats.flat_bytes, PageKind::Flat),
                    (stats.filter_bytes, PageKind::Filter),
                ];
                for (bytes, kind) in sizes {
                    assert_eq!(bytes, found(kind), "{kind:?} of {index:?}, groups {groups:?}");
                }
                assert!(reports.len() > 1 && stats.value_bytes > 0 && stats.history_bytes > 0);
                assert_eq!((index.has_btree(), index.has_flat()), (stats.btree_bytes > 0, stats.flat_bytes > 0));
                // Each kind of index counts once. All sizes, the padding and the footers add up to the files.
                assert_eq!(stats.index_bytes, found(PageKind::Index) + found(PageKind::Flat));
                let pages: u64 = sizes.iter().map(|(bytes, _)| bytes).sum();
                let padding: u64 = reports.iter().map(|report| report.padding_bytes).sum();
                let footers = (os::BLOCK_BYTES * reports.len()) as u64;
                assert_eq!(stats.file_bytes, pages + padding + footers);

                assert!(stats.groups.iter().map(|group| group.name.as_str()).eq(groups.iter().copied()));
                if let [main, others @ ..] = stats.groups.as_slice() {
                    assert_eq!((main.data_bytes, main.history_bytes), (stats.data_bytes, stats.history_bytes));
                    let sum = |of: fn(&GroupStats) -> u64| others.iter().map(of).sum::<u64>();
                    assert_eq!(sum(|group| group.data_bytes), stats.group_bytes);
                    assert_eq!(sum(|group| group.history_bytes), stats.group_history_bytes);
                    assert!(others.iter().all(|group| group.data_bytes > 0 && group.history_bytes > 0));
                }
            }
        }
    }
}

/// Reads one row of the table's newest file into the cache, with all its older versions and all its parts.
fn warm(table: &Table) {
    let core = table.core();
    let session = Session::new(&core.env.cache, Reason::Point, Admit::Keep);
    let files = core.views.newest();
    let (_, file) = files.files.tables[&table.id()].files().next().expect("it has files");
    let mut cursor = SstCursor::new(file.sst.clone());
    retry(&session, || cursor.seek(&session, b"0150", Seek::Lower)).expect("the disk works");
    assert!(retry(&session, || cursor.first_older(&session)).expect("the disk works"), "it has an older version");
    let groups = Groups::first(table.options().groups.len());
    for row in [cursor.newest(), cursor.older()].into_iter().flatten() {
        let mut parts = Vec::new();
        retry(&session, || cursor.parts(&session, groups, row.place, &mut parts)).expect("the disk works");
    }
}

#[test]
fn memory_of_a_table_is_that_of_its_own_pages() {
    let db = database();
    let tables = ["one", "two"].map(|name| {
        let table = db.table_with(name, options(&["hot", "cold"], PageIndexKind::Btree)).expect("the disk works");
        fill(&db, &table);
        table
    });
    let cached = |table: &Table| {
        let stats = table.stats().expect("the table is there");
        assert_eq!(stats.cached_filter_bytes, 0);
        [stats.cached_index_bytes, stats.cached_data_bytes, stats.cached_history_bytes]
    };
    assert_eq!(cached(&tables[0]), [0; 3], "flushes leave nothing in the cache");
    warm(&tables[0]);
    let one = cached(&tables[0]);
    assert!(one.iter().all(|&bytes| bytes > 0), "{one:?}");
    assert_eq!(cached(&tables[1]), [0; 3]);
    warm(&tables[1]);
    assert_eq!(cached(&tables[0]), one);
    let two = cached(&tables[1]);

    let metrics = db.metrics();
    let [index, data, history] = [0, 1, 2].map(|i| one[i] + two[i]);
    assert_eq!(metrics.cached_index_bytes, index);
    assert_eq!((metrics.cached_data_bytes, metrics.cached_history_bytes), (data, history));
    assert_eq!(metrics.cached_filter_bytes, 0);
    assert_eq!(metrics.cache.used_bytes, index + data + history);
    assert_eq!(metrics.cached_bytes(PageKind::Index), metrics.cached_index_bytes);
}

#[test]
fn another_budget_holds_at_once_for_all_who_read_and_pages_come_back_with_more() {
    let db = database();
    let table = db.table_with("t", options(&[], PageIndexKind::Btree)).expect("the disk works");
    fill(&db, &table);
    db.compact().expect("the disk works");
    let read = || (0..200).for_each(|i| drop(table.get(format!("{i:04}")).expect("the disk works")));
    let cached = || db.metrics().cache;
    read();
    let all = cached();
    assert_eq!(all.budget_bytes, 64 << 20);

    db.set_cache_bytes(all.used_bytes / 2);
    let half = cached();
    assert_eq!(half.budget_bytes, all.used_bytes / 2);
    assert!(half.used_bytes <= half.budget_bytes && half.used_bytes > 0, "{half:?}");
    read();
    assert!(cached().used_bytes <= half.budget_bytes);

    // Even a cache of 0 bytes does not stop reads: each step has the pages that it needs.
    db.set_cache_bytes(0);
    read();
    assert_eq!(cached().used_bytes, 0);
    db.set_cache_bytes(64 << 20);
    read();
    assert_eq!(cached().used_bytes, all.used_bytes);
}

#[cfg(feature = "serde")]
#[test]
fn metrics_are_serialized_as_the_json_that_they_are_written_as() {
    let db = database();
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("the disk works");
    let metrics = db.metrics();
    let read: serde_json::Value = serde_json::from_str(&metrics.to_json()).expect("it is JSON");
    assert_eq!(serde_json::to_value(&metrics).expect("it has names alone"), read);
    assert_eq!(read["flushes"], 0);
    let stats = serde_json::to_value(table.stats().expect("it is there")).expect("it has names alone");
    assert_eq!((&stats["memtable_rows"], &stats["rows"]), (&1.into(), &0.into()));
}

#[cfg(feature = "serde")]
#[test]
fn reports_are_serialized_under_the_names_of_their_fields() {
    use crate::base::error::Error;
    use crate::core::background::problem::Problem;
    use crate::indexes::check::IndexProblem;
    use crate::view::value::Key;

    let db = database();
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("the disk works");
    db.flush().expect("the disk works");
    let range = table.range_stats(..).expect("the disk works");
    let range = serde_json::to_value(&range).expect("it has names alone");
    assert_eq!(range["rows"], serde_json::json!({ "low": 1, "high": 1 }));
    assert_eq!((&range["levels"][0]["level"], &range["memory_rows"]), (&0.into(), &0.into()));
    let check = serde_json::to_value(db.check(|_| ()).expect("the disk works")).expect("it has names alone");
    assert_eq!((&check["rows"], &check["problems"]), (&1.into(), &serde_json::json!([])));
    let problem = Problem { table: "t".to_owned(), file: "1.sst".into(), error: Error::Cancelled("the check") };
    let problem = serde_json::to_value(&problem).expect("it has names alone");
    assert_eq!(problem["error"], Error::Cancelled("the check").to_string());
    let missing = IndexProblem::NoEntry { key: Key::from(&b"k"[..]) };
    let missing = serde_json::to_value(&missing).expect("it has names alone");
    assert_eq!(missing, serde_json::json!({ "NoEntry": { "key": [107] } }));
}
