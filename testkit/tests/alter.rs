//! When the options of a table are changed, old files must stay readable, and new files must have the new options.
//! After a crash, the table must have either the old or the new options.

use larch::check::DumpDetail;
use larch::options::{Expiry, FilterKind, Filters, LevelOptions, PageIndexKind};
use larch::{Compression, Database, Error, Result, Table, TableOptions};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Disk, Machine};
use std::path::Path;
use std::time::Duration;

const DIRECTORY: &str = "db";

fn builder(disk: &Arc<SimDisk>) -> larch::Builder {
    // Compaction runs only when a test asks for it.
    let levels = LevelOptions { level0_files: 100, slow_files: 100, ..LevelOptions::default() };
    Database::builder(DIRECTORY).machine(Machine::simulated_on(disk.clone(), 1)).levels(levels)
}

fn open(disk: &Arc<SimDisk>) -> Database {
    builder(disk).open().expect("the disk works")
}

/// Small pages and nodes, so that a few rows make tall trees.
fn options() -> TableOptions {
    TableOptions { page_bytes: 256, node_bytes: 256, ..TableOptions::default() }
}

fn key(i: u32) -> String {
    format!("k{i:04}")
}

fn value(i: u32) -> Vec<u8> {
    format!("{i} ").repeat(10).into_bytes()
}

/// Writes every third row from `first` on, into one new file.
fn write(db: &Database, table: &Table, first: u32) {
    let mut batch = db.batch();
    (first..600).step_by(3).for_each(|i| batch.insert(table, key(i), value(i)));
    batch.commit().expect("the disk works");
    db.flush().expect("the disk works");
}

#[track_caller]
fn check_rows(db: &Database, table: &Table) {
    for i in 0..600 {
        assert_eq!(table.get(key(i)).expect("the disk works").as_deref(), Some(value(i).as_slice()), "row {i}");
        assert!(table.get(key(i) + "x").expect("the disk works").is_none());
    }
    let all = |rows: Vec<Result<(larch::Key, larch::Value)>>| -> Vec<(Vec<u8>, Vec<u8>)> {
        rows.into_iter()
            .map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).expect("it is read"))
            .collect()
    };
    let expected: Vec<_> = (0..600).map(|i| (key(i).into_bytes(), value(i))).collect();
    assert_eq!(all(table.iter().collect()), expected);
    assert_eq!(all(table.range(key(100)..key(203)).collect()), expected[100..203]);
    assert_eq!(all(table.iter().rev().collect()).into_iter().rev().collect::<Vec<_>>(), expected);
    let report = db.check(|_| {}).expect("the disk works");
    assert!(report.problems.is_empty(), "{}", report.problems[0]);
}

#[test]
fn files_of_all_indexes_are_read_as_one_table() {
    for prefer_flat in [false, true] {
        let disk = SimDisk::new(1);
        let open = || builder(&disk).prefer_flat_index(prefer_flat).open().expect("the disk works");
        let db = open();
        let table = db.table_with("t", options()).expect("the disk works");
        for (first, index) in [PageIndexKind::Btree, PageIndexKind::Flat, PageIndexKind::Both].into_iter().enumerate() {
            table.alter(|options| options.index = index).expect("the disk works");
            write(&db, &table, first as u32);
        }
        let stats = table.stats().expect("the table is there");
        assert!(stats.files == 3 && stats.btree_bytes > 0 && stats.flat_bytes > 0, "{stats:?}");
        check_rows(&db, &table);
        drop((table, db));

        let db = open();
        let table = db.existing_table("t").expect("the disk works").expect("it was made");
        assert_eq!(table.options(), TableOptions { index: PageIndexKind::Both, ..options() });
        check_rows(&db, &table);

        // After a compaction of the whole table, all its files must be written with the last setting.
        table.alter(|options| options.index = PageIndexKind::Flat).expect("the disk works");
        table.compact().expect("the disk works");
        let stats = table.stats().expect("the table is there");
        assert!(stats.btree_bytes == 0 && stats.flat_bytes > 0, "{stats:?}");
        check_rows(&db, &table);
    }
}

#[test]
fn files_of_all_compressions_are_read_as_one_table_and_rewritten_from_each_to_each() {
    const ALL: [Compression; 4] =
        [Compression::None, Compression::Lz4, Compression::ZSTD, Compression::Zstd { level: 19 }];
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = db.table_with("t", options()).expect("the disk works");
    for (first, compression) in ALL.into_iter().take(3).enumerate() {
        table.alter(|options| options.compression = compression).expect("the disk works");
        write(&db, &table, first as u32);
    }
    assert_eq!(table.stats().expect("the table is there").files, 3);
    check_rows(&db, &table);
    drop((table, db));

    let db = open(&disk);
    let table = db.existing_table("t").expect("the disk works").expect("it was made");
    assert_eq!(table.options().compression, Compression::ZSTD);
    check_rows(&db, &table);
    let rewrite = |compression| {
        table.alter(|options| options.compression = compression).expect("the disk works");
        table.compact().expect("the disk works");
        check_rows(&db, &table);
        table.stats().expect("the table is there").data_bytes
    };
    for from in ALL {
        for to in ALL {
            let (before, after) = (rewrite(from), rewrite(to));
            let is_plain = |compression| compression == Compression::None;
            assert_eq!(
                is_plain(from) != is_plain(to),
                before.abs_diff(after) > before.max(after) / 2,
                "{from} to {to}"
            );
        }
    }
}

#[test]
fn compacting_after_an_alter_rewrites_once_though_the_database_was_closed() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = db.table_with("t", options()).expect("the disk works");
    (0..3).for_each(|first| write(&db, &table, first));
    table.compact().expect("the disk works");
    let pages = table.stats().expect("the table is there").data_pages;
    table.alter(|options| options.page_bytes = 4096).expect("the disk works");
    drop((table, db));

    for expected in [1, 0, 0] {
        let db = open(&disk);
        let table = db.table("t").expect("the disk works");
        table.compact().expect("the disk works");
        assert_eq!(db.metrics().compactions, expected);
        let left = table.stats().expect("the table is there").data_pages;
        assert!(left < pages / 4, "{left} pages of 4 KiB, {pages} of 256 B");
        check_rows(&db, &table);
        // A change of an option that does not affect files must not rewrite any.
        table.alter(|options| options.metadata.push(b'm')).expect("the disk works");
    }
}

#[test]
fn a_dump_of_the_manifest_shows_groups_and_alters() {
    let (machine, disk) = Machine::simulated(1);
    let db = Database::builder(DIRECTORY).machine(machine.clone()).open().expect("the disk works");
    let groups = vec!["hot".to_owned(), "cold".to_owned()];
    let table = db.table_with("t", TableOptions { groups, ..options() }).expect("the disk works");
    let alter = |options: &mut TableOptions| {
        (options.index, options.filter_prefix_bytes) = (PageIndexKind::Both, 9);
        options.expiry = Expiry::After(Duration::from_millis(90_500));
    };
    table.alter(alter).expect("the disk works");
    let directory = Path::new(DIRECTORY);
    let current = disk.read_all(&directory.join("CURRENT")).expect("the disk works");
    let manifest = directory.join(String::from_utf8_lossy(&current).trim_end());
    let mut text = Vec::new();
    larch::check::dump_on(&machine, &manifest, DumpDetail::default(), &mut text).expect("the disk works");
    let text = String::from_utf8(text).expect("a dump is text");
    let made = "  table 0 \"t\" page 256 node 256 index Btree compression None filters 20,12 metadata 0 bytes groups hot cold\n";
    assert!(text.contains(made), "{text}");
    let altered = "node 256 index Both compression None filters 20,12 with prefixes of 9 \
                   expiry after 90.5s metadata 0 bytes groups hot cold\n";
    let line = text.lines().find(|line| line.starts_with("  alter table 0 since file ")).expect("it was altered");
    assert!(format!("{line}\n").ends_with(altered), "{text}");
}

#[test]
fn files_get_the_filters_of_their_level_and_lose_them_when_rewritten() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let filters = Filters { upper: FilterKind::Bits20, deepest: FilterKind::None };
    let table = db.table_with("t", TableOptions { filters, ..options() }).expect("the disk works");
    let filter_bytes = || table.stats().expect("the table is there").filter_bytes;
    let fill = || {
        (0..600).for_each(|i| table.insert(key(i), value(i)).expect("the disk works"));
        db.flush().expect("the disk works");
    };
    fill();
    let upper = filter_bytes();
    assert!(upper > 0, "a flush is not the deepest");
    table.compact().expect("the disk works");
    assert_eq!(filter_bytes(), 0, "what is merged into the deepest level is");
    table.alter(|options| options.filters = Filters::all(FilterKind::Bits12)).expect("the disk works");
    assert_eq!(filter_bytes(), 0, "files stay as they are");
    table.compact().expect("the disk works");
    assert!(0 < filter_bytes() && filter_bytes() < upper, "as they are rewritten");
    check_rows(&db, &table);
    table.alter(|options| options.filters = Filters::all(FilterKind::None)).expect("the disk works");
    fill();
    table.compact().expect("the disk works");
    assert_eq!(filter_bytes(), 0);
    check_rows(&db, &table);
}

#[test]
fn imports_write_as_the_table_says_now() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = db.table_with("t", options()).expect("the disk works");
    table.alter(|options| options.index = PageIndexKind::Flat).expect("the disk works");
    let mut import = table.import().expect("the disk works");
    (0..600).for_each(|i| import.add(key(i).as_bytes(), &value(i)).expect("the disk works"));
    import.finish(|_| {}).expect("the disk works");
    let stats = table.stats().expect("the table is there");
    assert!(stats.btree_bytes == 0 && stats.flat_bytes > 0, "{stats:?}");
    check_rows(&db, &table);
}

#[test]
fn what_cannot_be_altered_is_refused_and_stays() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let groups = vec!["hot".to_owned(), "cold".to_owned()];
    let split = TableOptions { groups, ..options() };
    let table = db.table_with("t", split.clone()).expect("the disk works");
    let refused = |change: fn(&mut TableOptions), part: &str| {
        let error = table.alter(change).expect_err("it is refused");
        assert!(matches!(error, Error::BadOptions(_)) && error.to_string().contains(part), "{error}");
        assert_eq!(table.options(), split);
    };
    refused(|options| options.groups.reverse(), "the groups of table t were fixed when it was created");
    refused(|options| options.groups.clear(), "copy the rows");
    refused(|options| options.page_bytes = 100, "a page of 100 bytes");

    let reader = builder(&disk).read_only(true).open().expect("the disk works");
    let theirs = reader.table("t").expect("the disk works");
    assert_eq!(theirs.options(), split);
    assert!(matches!(theirs.alter(|_| panic!("it is not asked")), Err(Error::ReadOnly)));

    assert!(db.drop_table("t").expect("the disk works"));
    assert!(matches!(table.alter(|options| options.page_bytes = 512), Err(Error::TableDropped(name)) if name == "t"));
    assert_eq!(table.options(), split, "as it was");
}

#[test]
fn a_crash_at_any_sync_leaves_an_alter_wholly_or_not_at_all() {
    let states = [
        options(),
        TableOptions { index: PageIndexKind::Flat, compression: Compression::Lz4, ..options() },
        TableOptions { index: PageIndexKind::Both, node_bytes: 4096, metadata: b"m".to_vec(), ..options() },
        TableOptions { compression: Compression::Zstd { level: 9 }, ..options() },
        TableOptions { expiry: Expiry::After(Duration::from_secs(1 << 32)), ..options() },
        TableOptions { expiry: Expiry::By(b"a declaration".to_vec()), ..options() },
    ];
    // Makes the table and then alters it. Returns how many alters were done, and the outcome.
    let run = |disk: &Arc<SimDisk>| -> (usize, Result<()>) {
        let mut done = 0;
        let outcome = (|| {
            let db = builder(disk).open()?;
            let table = db.table_with("t", states[0].clone())?;
            done = 1;
            for state in &states[1..] {
                // A row with a time of its own, because nothing computes one from the declaration.
                table.insert_for(format!("{done}"), "v", Duration::from_secs(1 << 32))?;
                table.alter(|options| *options = state.clone())?;
                done += 1;
                db.flush()?;
            }
            db.close()
        })();
        (done, outcome)
    };
    let whole = SimDisk::new(1);
    let (done, outcome) = run(&whole);
    outcome.expect("the disk works");
    assert_eq!(done, states.len());
    for sync in 1..=whole.sync_count() {
        for seed in 1..=4 {
            let disk = SimDisk::new(seed);
            disk.crash_at_sync(sync);
            let (done, _) = run(&disk);
            assert!(disk.has_crashed(), "sync {sync}");
            if seed == 1 {
                disk.crash_keeping_nothing()
            } else {
                disk.crash()
            }
            let db = open(&disk);
            let found = db.existing_table("t").expect("the disk works").map(|table| table.options());
            let at = found.map_or(0, |found| 1 + states.iter().position(|state| *state == found).expect("a whole one"));
            assert!((done..=done + 1).contains(&at), "sync {sync}: {done} were acknowledged, {at} are there");
            let report = db.check(|_| {}).expect("the disk works");
            assert!(report.problems.is_empty(), "{}", report.problems[0]);
        }
    }
}
