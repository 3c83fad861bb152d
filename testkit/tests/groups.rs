//! What reading only some parts of rows costs, in pages. A read must not touch the pages of parts that it does not
//! ask for.

use larch::options::{LevelOptions, PageIndexKind};
use larch::stats::PageKind;
use larch::{Compression, Database, Selection, Snapshot, Table, TableOptions};
use os::Machine;
use os::sim::SimDisk;
use os::sync::Arc;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use testkit::touched::Touched;

/// Each table has one file, so that trees can be compared.
fn open(disk: &Arc<SimDisk>) -> Database {
    let levels = LevelOptions { file_bytes: 1 << 40, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).levels(levels);
    builder.cache_bytes(256 << 20).open().expect("the disk works")
}

fn with_groups(groups: &[&str], options: TableOptions) -> TableOptions {
    TableOptions { groups: groups.iter().map(|&group| group.to_owned()).collect(), ..options }
}

mod a_large_cold_group {
    use super::*;

    const ROWS: u64 = 1_000_000;
    const COLD_BYTES: usize = 1 << 10;

    fn key(i: u64) -> [u8; 8] {
        i.to_be_bytes()
    }

    /// 20 bytes that do not compress well.
    fn hot(i: u64) -> [u8; 20] {
        let mut hot = [0; 20];
        for (n, chunk) in hot.chunks_mut(8).enumerate() {
            let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(21 * n as u32);
            chunk.copy_from_slice(&mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9).to_be_bytes()[..chunk.len()]);
        }
        hot
    }

    /// Makes two tables: the rows of `split` have a hot and a cold part, and those of `alone` only the hot part, as
    /// their value.
    fn both(index: PageIndexKind) -> Arc<SimDisk> {
        let disk = SimDisk::new(1);
        let db = open(&disk);
        let packed = || TableOptions { index, compression: Compression::Lz4, ..TableOptions::default() };
        let split = db.table_with("split", with_groups(&["hot", "cold"], packed())).expect("the disk works");
        let alone = db.table_with("alone", packed()).expect("the disk works");
        let mut cold = [b'c'; COLD_BYTES];
        let (mut into_split, mut into_alone) =
            (split.import().expect("the disk works"), alone.import().expect("the disk works"));
        for i in 0..ROWS {
            cold[..8].copy_from_slice(&key(i));
            into_split.add_parts(&key(i), &[&hot(i)[..], &cold]).expect("the disk works");
            into_alone.add(&key(i), &hot(i)).expect("the disk works");
        }
        for import in [into_split, into_alone] {
            let report = import.finish(|_| {}).expect("the disk works");
            assert_eq!((report.rows, report.files), (ROWS, 1));
        }
        let metrics = db.metrics();
        let (split, alone) = (split.stats().expect("it is there"), alone.stats().expect("it is there"));
        println!("{} MiB of files; split: {split:?}; alone: {alone:?}", metrics.file_bytes >> 20);
        assert_eq!((split.data_pages, split.index_height), (alone.data_pages, alone.index_height));
        assert!(split.group_bytes > 0, "cold parts are in a tree of their own");
        db.close().expect("the disk works");
        disk
    }

    /// Compares the pages that two reads touch, each from an empty cache: `of_split` reads the table with two parts,
    /// `of_alone` the one with whole values.
    fn compare(
        disk: &Arc<SimDisk>,
        what: &str,
        of_split: impl FnOnce(&Table, &Selection),
        of_alone: impl FnOnce(&Table),
    ) -> Touched {
        let db = open(disk);
        let split = db.table("split").expect("it is there");
        let selection = split.select(["hot"]).expect("it has this group");
        let by_split = Touched::by(&db, || of_split(&split, &selection));
        drop((selection, split, db));
        let db = open(disk);
        let alone = db.table("alone").expect("it is there");
        let by_alone = Touched::by(&db, || of_alone(&alone));
        println!("{what}: {by_split:?}, alone {by_alone:?}");
        assert_eq!(by_split.of(PageKind::Group).all(), 0, "{what}: pages of the cold group");
        // Only reads from disk are compared: a step that runs again after a miss hits some pages a second time.
        let reads = |touched: &Touched| {
            let of_rows = PageKind::ALL.into_iter().filter(|kind| ![PageKind::Index, PageKind::Flat].contains(kind));
            of_rows.map(|kind| (kind, touched.of(kind).reads, touched.of(kind).bytes)).collect::<Vec<_>>()
        };
        assert_eq!(reads(&by_split), reads(&by_alone), "{what}: pages of rows read and their bytes");
        let of_index = |kind| [&by_split, &by_alone].map(|touched| touched.of(kind).reads);
        let ([flat, flat_alone], [nodes, nodes_alone]) = (of_index(PageKind::Flat), of_index(PageKind::Index));
        assert_eq!(flat, flat_alone, "{what}: flat indexes");
        // The addresses and totals of pages that lie between pages of other trees take a few more bytes. So the same
        // 1839 children fill three leaf nodes in one tree and two in the other. Each node is read once.
        assert!((nodes_alone..=nodes_alone + 1).contains(&nodes), "{what}: nodes {nodes} {nodes_alone}");
        by_split
    }

    #[test]
    fn costs_reads_of_the_hot_one_nothing() {
        check(PageIndexKind::Btree);
    }

    #[test]
    fn costs_reads_of_the_hot_one_nothing_with_a_flat_index() {
        check(PageIndexKind::Flat);
    }

    fn check(index: PageIndexKind) {
        let disk = both(index);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let places: Vec<u64> = (0..1000).map(|_| rng.random_range(0..ROWS)).collect();
        let keys: Vec<[u8; 8]> = places.iter().map(|&i| key(i)).collect();

        let of_gets = compare(
            &disk,
            "1000 gets",
            |_, hot_of| {
                for &i in &places {
                    let parts = hot_of.get(key(i)).expect("the disk works").expect("it was imported");
                    assert_eq!(parts[0][..], hot(i));
                }
            },
            |alone| {
                for &i in &places {
                    let value = alone.get(key(i)).expect("the disk works").expect("it was imported");
                    assert_eq!(value[..], hot(i));
                }
            },
        );
        assert!(of_gets.of(PageKind::Data).all() == 1000, "a page a row: {of_gets:?}");

        compare(
            &disk,
            "1000 rows together",
            |_, hot_of| {
                let rows = hot_of.multi_get(&keys).expect("the disk works");
                let same = |(row, &i): (&Option<larch::Parts>, &u64)| row.as_ref().expect("imported")[0][..] == hot(i);
                assert!(rows.iter().zip(&places).all(same));
            },
            |alone| assert!(alone.multi_get(&keys).expect("the disk works").iter().all(Option::is_some)),
        );

        let (low, high) = (key(ROWS / 3), key(ROWS / 3 + 10_000));
        for backward in [false, true] {
            compare(
                &disk,
                &format!("10,000 rows in order, backward: {backward}"),
                |_, hot_of| {
                    let mut rows = hot_of.range(low..high);
                    for n in 0..10_000 {
                        let (row, n) = match backward {
                            false => (rows.next_row(), n),
                            true => (rows.next_row_back(), 9_999 - n),
                        };
                        let row = row.expect("the disk works").expect("there are 10,000");
                        let i = ROWS / 3 + n;
                        assert_eq!((row.key(), row.inline_part(0)), (&key(i)[..], Some(&hot(i)[..])));
                    }
                    assert!(rows.next_row().expect("the disk works").is_none());
                },
                |alone| {
                    let rows = alone.range(low..high);
                    assert_eq!(if backward { rows.rev().count() } else { rows.count() }, 10_000);
                },
            );
        }

        let whole = |mut next: Box<dyn FnMut() -> bool + '_>| {
            let mut count = 0;
            while next() {
                count += 1;
            }
            assert_eq!(count, ROWS);
        };
        for names in [&["hot"][..], &[]] {
            compare(
                &disk,
                &format!("counting all rows with {names:?}"),
                |split, _| {
                    let mut rows = split.select(names).expect("it has these groups").iter();
                    whole(Box::new(|| rows.next_row().expect("the disk works").is_some()));
                },
                |alone| {
                    let mut rows = alone.iter();
                    whole(Box::new(|| rows.next_row().expect("the disk works").is_some()));
                },
            );
        }

        // The cold parts do exist: a read that asks for them touches their pages.
        let db = open(&disk);
        let cold_of = db.table("split").and_then(|split| split.select(["cold", "hot"])).expect("it has these groups");
        let pages = Touched::by(&db, || {
            let parts = cold_of.get(key(77)).expect("the disk works").expect("it was imported");
            assert_eq!((&parts[0][..8], parts[0].len(), &parts[1][..]), (&key(77)[..], COLD_BYTES, &hot(77)[..]));
        });
        assert!(pages.of(PageKind::Group).all() > 0, "{pages:?}");
    }
}

mod a_long_history {
    use super::*;

    const ROWS: u64 = 400;
    const VERSIONS: u64 = 100;

    fn key(i: u64) -> Vec<u8> {
        format!("key {i:05}").into_bytes()
    }

    /// The parts of a row at a version, of all lengths from empty to longer than a page.
    fn parts(i: u64, version: u64, groups: usize) -> Vec<Vec<u8>> {
        let part = |group: u64| {
            let bytes = match (i + 3 * version + 7 * group) % 23 {
                0 => 0,
                1 if version % 10 == 3 => 1500,
                other => 4 + other * 2,
            };
            format!("{version} of {i} in {group};").bytes().cycle().take(bytes as usize).collect()
        };
        (0..groups.max(1) as u64).map(part).collect()
    }

    fn small_pages(index: PageIndexKind, groups: usize) -> TableOptions {
        let options = TableOptions { page_bytes: 1 << 10, node_bytes: 256, index, ..TableOptions::default() };
        with_groups(&["a", "b", "c"][..groups], options)
    }

    /// Writes all rows once for each of `versions`, with a snapshot of each so that all versions are kept. Then
    /// compacts everything into one file.
    fn written(db: &Database, options: TableOptions, versions: std::ops::Range<u64>) -> (Table, Vec<Snapshot>) {
        let groups = options.groups.len();
        let table = db.table_with("t", options).expect("the disk works");
        let write = |version| {
            let mut batch = db.batch();
            (0..ROWS).for_each(|i| batch.insert_parts(&table, key(i), &parts(i, version, groups)));
            batch.commit().expect("the disk works");
            // Some flushes in between, whose files the compaction at the end merges.
            if version % 40 == 7 {
                db.flush().expect("the disk works");
            }
            db.snapshot()
        };
        let snapshots: Vec<Snapshot> = versions.map(write).collect();
        db.flush().and_then(|()| db.compact()).expect("the disk works");
        let stats = table.stats().expect("it is there");
        let older = ROWS * (snapshots.len() as u64 - 1);
        assert_eq!((stats.files, stats.rows, stats.history_rows), (1, ROWS, older), "all in one file");
        assert_eq!(stats.group_history_bytes > 0, groups > 1 && older > 0);
        (table, snapshots)
    }

    /// Lists of groups to read, all of which the table has.
    fn choices(groups: usize) -> Vec<Vec<usize>> {
        let some = vec![vec![], vec![0], vec![1], vec![2, 0], vec![1, 2], vec![0, 1, 2]];
        some.into_iter().filter(|chosen| chosen.iter().all(|&group| group < groups.max(1))).collect()
    }

    /// Selects groups of a table that has groups.
    fn selected(table: &Table, chosen: &[usize]) -> Selection {
        let names = table.options().groups;
        table.select(chosen.iter().map(|&group| &names[group])).expect("it has these groups")
    }

    fn picked(i: u64, version: u64, groups: usize, chosen: &[usize]) -> Vec<Vec<u8>> {
        let parts = parts(i, version, groups);
        chosen.iter().map(|&group| parts[group].clone()).collect()
    }

    fn is_row(found: &[larch::Value], expected: &[Vec<u8>]) -> bool {
        found.iter().map(|part| &part[..]).eq(expected.iter().map(|part| &part[..]))
    }

    /// Reads every row of `selection` in all ways, and expects the rows of `version`.
    fn read_all(selection: &Selection, version: u64, groups: usize, chosen: &[usize]) {
        let expected: Vec<_> = (0..ROWS).map(|i| picked(i, version, groups, chosen)).collect();
        let keys: Vec<_> = (0..ROWS).map(key).collect();
        for (key, expected) in keys.iter().zip(&expected) {
            let found = selection.get(key).expect("the disk works").expect("it is there");
            assert!(is_row(&found, expected), "{} at {version}, {chosen:?}", key.escape_ascii());
        }
        let together = selection.multi_get(&keys).expect("the disk works");
        let together = together.iter().map(|row| row.as_ref().expect("it is there"));
        assert!(together.zip(&expected).all(|(found, expected)| is_row(found, expected)), "at {version}, {chosen:?}");
        let of_range = |rows: Vec<larch::Result<(larch::Key, larch::Parts)>>| {
            let rows: Vec<_> = rows.into_iter().map(|row| row.expect("the disk works")).collect();
            let same = |(i, (at, parts)): (usize, &(larch::Key, larch::Parts))| {
                at[..] == keys[i][..] && is_row(parts, &expected[i])
            };
            assert!(rows.len() == keys.len() && rows.iter().enumerate().all(same), "at {version}, {chosen:?}");
        };
        of_range(selection.iter().collect());
        let mut backward: Vec<_> = selection.iter().rev().collect();
        backward.reverse();
        of_range(backward);
    }

    /// The same as [`read_all`], for a table that is read as a whole.
    fn read_whole(table: &Table, version: u64) {
        let keys: Vec<_> = (0..ROWS).map(key).collect();
        let expected: Vec<_> = (0..ROWS).map(|i| parts(i, version, 1).remove(0)).collect();
        for (key, expected) in keys.iter().zip(&expected) {
            assert_eq!(table.get(key).expect("the disk works").as_deref(), Some(&expected[..]));
        }
        let together = table.multi_get(&keys).expect("the disk works");
        assert!(together.iter().zip(&expected).all(|(found, expected)| found.as_deref() == Some(&expected[..])));
        let values = table.iter().map(|row| row.expect("the disk works").1.to_vec());
        assert_eq!(values.collect::<Vec<_>>(), expected);
        let values = table.iter().rev().map(|row| row.expect("the disk works").1.to_vec());
        assert_eq!(values.collect::<Vec<_>>(), expected.into_iter().rev().collect::<Vec<_>>());
    }

    /// Reads the newest version of everything in several ways, first with an empty cache and then with a full one.
    /// Returns the pages that each way touched.
    fn touched_by_newest(db: &Database, table: &Table) -> Vec<Touched> {
        let groups = table.options().groups.len();
        let mut all = Vec::new();
        for _ in 0..2 {
            for chosen in choices(groups) {
                let by_choice = Touched::by(db, || match (groups, chosen.is_empty()) {
                    (0, false) => read_whole(table, VERSIONS - 1),
                    _ => read_all(&selected(table, &chosen), VERSIONS - 1, groups, &chosen),
                });
                all.push(by_choice);
            }
        }
        all
    }

    #[test]
    fn costs_reads_of_the_newest_nothing() {
        for index in [PageIndexKind::Btree, PageIndexKind::Flat] {
            for groups in [0, 1, 2, 3] {
                let check = |all: &[Touched], when: &str| {
                    for pages in all {
                        let older = [PageKind::History, PageKind::GroupHistory].map(|kind| pages.of(kind).all());
                        assert_eq!(older, [0, 0], "{when}, {index:?}, {groups} groups: {pages:?}");
                    }
                };
                let disk = SimDisk::new(1);
                let db = open(&disk);
                let (table, snapshots) = written(&db, small_pages(index, groups), 0..VERSIONS);
                // Pages that were just written are not in the cache, because compaction does not use the cache.
                check(&touched_by_newest(&db, &table), "while snapshots keep it");
                drop((snapshots, table));
                db.close().expect("the disk works");
                let db = open(&disk);
                let table = db.table("t").expect("it is there");
                let reopened = touched_by_newest(&db, &table);
                check(&reopened, "opened again");
                let stats = table.stats().expect("it is there");
                assert_eq!(stats.history_rows, ROWS * (VERSIONS - 1), "it is still in the file");
                drop((table, db));

                // For comparison, a file without a history. There, reads of the newest versions may touch only a few
                // nodes less: totals in nodes also count the history, so a node may have one child less.
                let db = open(&SimDisk::new(1));
                let (table, _) = written(&db, small_pages(index, groups), VERSIONS - 1..VERSIONS);
                let without = touched_by_newest(&db, &table);
                println!("{index:?}, {groups} groups: {reopened:?}");
                let counts = |all: &[Touched]| {
                    let total = |kind| all.iter().map(|pages| pages.of(kind).all()).sum::<u64>();
                    PageKind::ALL.map(total)
                };
                let (with, without) = (counts(&reopened), counts(&without));
                for (kind, (with, without)) in PageKind::ALL.into_iter().zip(with.into_iter().zip(without)) {
                    let most = if kind == PageKind::Index { without / 20 } else { 0 };
                    let what = format!("{index:?}, {groups} groups, {kind:?}");
                    assert!(with.abs_diff(without) <= most, "{what}: {with} with a history, {without} without");
                }
            }
        }
    }

    #[test]
    fn shows_every_version_of_every_part() {
        for index in [PageIndexKind::Btree, PageIndexKind::Flat] {
            for groups in [0, 1, 2, 3] {
                let db = open(&SimDisk::new(1));
                let (table, snapshots) = written(&db, small_pages(index, groups), 0..VERSIONS);
                let pages = Touched::by(&db, || {
                    for (version, snapshot) in snapshots.iter().enumerate().step_by(9) {
                        for chosen in choices(groups).iter().filter(|chosen| groups > 0 || chosen.is_empty()) {
                            let then = selected(&table, chosen).at(snapshot).expect("it is of this database");
                            read_all(&then, version as u64, groups, chosen);
                        }
                        if groups < 2 {
                            use larch::Readable;
                            let values = snapshot.iter(&table).map(|row| row.expect("the disk works").1.to_vec());
                            let expected = (0..ROWS).map(|i| parts(i, version as u64, 1).remove(0));
                            assert!(values.eq(expected), "whole values at {version}");
                        }
                    }
                });
                assert!(pages.of(PageKind::History).all() > 0, "{pages:?}");
                assert_eq!(pages.of(PageKind::GroupHistory).all() > 0, groups > 1, "{pages:?}");
            }
        }
    }
}
