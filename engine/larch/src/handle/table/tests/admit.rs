//! Tests which pages of a handle's reads the cache keeps, see [`Table::admitting`].

use crate::base::options::TableOptions;
use crate::handle::database::Database;
use crate::handle::table::Table;
use crate::read::PartRange;
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use pages::{Admit, PageKind};
use sst::AtMost;

const ROWS: usize = 400;

fn key(i: usize) -> String {
    format!("k{i:05}")
}

/// Most values are short, but some are stored outside of their pages.
fn value(i: usize) -> Vec<u8> {
    vec![i as u8; if i.is_multiple_of(40) { 3000 } else { 100 }]
}

/// A disk with a table that has files with two levels of nodes, two column groups, and a range erase.
fn disk() -> Arc<SimDisk> {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let groups = ["hot", "cold"].map(str::to_owned).to_vec();
    let options = TableOptions { page_bytes: 1 << 10, node_bytes: 512, groups, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    let mut import = table.import().expect("the disk works");
    (0..ROWS).for_each(|i| import.add_parts(key(i).as_bytes(), &[value(i), value(i + 1)]).expect("the disk works"));
    import.finish(|_| {}).expect("the disk works");
    table.remove_range(key(ROWS)..key(ROWS + 9)).expect("the disk works");
    db.close().expect("the disk works");
    disk
}

fn open(disk: &Arc<SimDisk>) -> Database {
    let machine = Machine::simulated_on(disk.clone(), 1);
    Database::builder("db").machine(machine).cache_bytes(16 << 20).open().expect("the disk works")
}

type Read = fn(&Database, &Table) -> usize;

/// All ways to read. Each returns how many rows it has found.
const READS: [(&str, Read); 8] = [
    ("get", |_, table| {
        let all = table.select(["hot", "cold"]).expect("they are its groups");
        (0..ROWS).for_each(|i| {
            let parts = all.get(key(i)).expect("the disk works").expect("it is there");
            assert_eq!((&parts[0][..], &parts[1][..]), (&value(i)[..], &value(i + 1)[..]));
        });
        ROWS
    }),
    ("contains_key", |_, table| (0..ROWS).filter(|&i| table.contains_key(key(i)).expect("the disk works")).count()),
    ("multi_get", |_, table| {
        let hot = table.select(["hot"]).expect("it is a group");
        let found = hot.multi_get((0..ROWS).map(key)).expect("the disk works");
        found.into_iter().flatten().enumerate().inspect(|(i, parts)| assert_eq!(parts[0][..], value(*i))).count()
    }),
    ("forward", |_, table| rows(table).count()),
    ("backward", |_, table| rows(table).rev().count()),
    ("limited", |_, table| rows(table).limit(300).count() + 100),
    ("split", |_, table| {
        let parts = rows(table).split(4).expect("the disk works");
        assert!(parts.len() > 1);
        parts.into_iter().map(Iterator::count).sum()
    }),
    ("snapshot", |db, table| {
        let hot = table.select(["hot"]).expect("it is a group").at(&db.snapshot()).expect("it is of the database");
        hot.iter().count()
    }),
];

fn rows(table: &Table) -> PartRange {
    table.select(["hot", "cold"]).expect("they are its groups").iter()
}

const LEADING: [PageKind; 4] = [PageKind::Index, PageKind::Flat, PageKind::Filter, PageKind::RangeErase];

#[test]
fn the_cache_keeps_what_the_handle_says_whatever_the_way_of_reading() {
    let disk = disk();
    for (name, read) in READS {
        for admit in [Admit::Keep, Admit::Nodes, Admit::Pass] {
            let db = open(&disk);
            let table = db.table("t").expect("it is there").admitting(admit);
            assert_eq!(read(&db, &table), ROWS, "{name}");
            let cached = |kinds: &dyn Fn(PageKind) -> bool| -> u64 {
                let kinds = PageKind::ALL.into_iter().filter(|kind| kinds(*kind));
                kinds.map(|kind| db.metrics().cached_bytes(kind)).sum()
            };
            let (nodes, others) = (cached(&|kind| LEADING.contains(&kind)), cached(&|kind| !LEADING.contains(&kind)));
            // A split reads index nodes, and ignores the setting of the handle.
            let nodes_stay = admit != Admit::Pass || name == "split";
            assert_eq!((nodes > 0, others > 0), (nodes_stay, admit == Admit::Keep), "{name}, {admit:?}");
        }
    }
}

#[test]
fn a_scan_reads_every_page_once_whatever_the_cache_keeps() {
    let disk = disk();
    let mut all_pages = 0;
    for (name, read) in READS.into_iter().filter(|(name, _)| ["forward", "backward", "limited"].contains(name)) {
        let reads = [Admit::Keep, Admit::Nodes, Admit::Pass].map(|admit| {
            let db = open(&disk);
            read(&db, &db.table("t").expect("it is there").admitting(admit));
            db.metrics().page_reads
        });
        all_pages = all_pages.max(reads[0]);
        match name {
            // A scan with a limit may read ahead past its last row, but it reads no page twice.
            "limited" => assert!(reads.iter().all(|&pages| pages <= all_pages), "{reads:?} of {all_pages}"),
            _ => assert_eq!(reads, [all_pages; 3], "{name}"),
        }
    }
}

#[test]
fn what_others_keep_is_used_and_stays() {
    let disk = disk();
    let db = open(&disk);
    let table = db.table("t").expect("it is there");
    assert_eq!(rows(&table).count(), ROWS);
    let (reads, cached) = (db.metrics().page_reads, db.metrics().cache.used_bytes);
    for admit in [Admit::Nodes, Admit::Pass] {
        assert_eq!(rows(&table.admitting(admit)).count(), ROWS);
        assert_eq!((db.metrics().page_reads, db.metrics().cache.used_bytes), (reads, cached));
    }
}

#[test]
fn a_prefetch_keeps_what_it_reads() {
    let disk = disk();
    let db = open(&disk);
    let table = db.table("t").expect("it is there").admitting(Admit::Pass);
    table.prefetch(.., AtMost::ALL).expect("the disk works");
    let reads = db.metrics().page_reads;
    assert!(reads > 0);
    assert_eq!(rows(&table).count(), ROWS);
    assert_eq!(db.metrics().page_reads, reads);
}
