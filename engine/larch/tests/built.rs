//! Tests of built files: a table ingests either all of them or none, and reads then see the same rows as if they had
//! been written to the table.

#![allow(clippy::disallowed_methods, reason = "threads of the machine write while files are taken in")]

use larch::backup::Backups;
use larch::bulk::{BuiltFiles, IngestOptions, IngestReport};
use larch::machine::Machine;
use larch::options::{FilterKind, Filters, LevelOptions, PageIndexKind};
use larch::{Compression, Database, Error, Follow, Readable, Table, TableOptions};
use os::sim::SimDisk;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};
use os::{Access, Disk};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;

/// The values by key. A value is in one piece here, even if the table has column groups.
type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const HERE: &str = "db";

fn open(machine: &Machine) -> larch::Result<Database> {
    let levels = LevelOptions { base_bytes: 8 << 10, file_bytes: 2 << 10, ..LevelOptions::default() };
    let builder = Database::builder(HERE).machine(machine.clone()).levels(levels);
    builder.write_buffer_bytes(64 << 10).cache_bytes(1 << 20).open()
}

/// Options of tables that depend on the seed. Over all seeds, every way in which files can store rows occurs.
fn options(seed: u64) -> TableOptions {
    let kinds = [PageIndexKind::Btree, PageIndexKind::Flat, PageIndexKind::Both];
    let compressions = [Compression::None, Compression::Lz4, Compression::ZSTD];
    TableOptions {
        page_bytes: [512, 4096][seed as usize % 2],
        node_bytes: [512, 4096][seed as usize / 2 % 2],
        index: kinds[seed as usize % 3],
        compression: compressions[seed as usize / 3 % 3],
        filters: Filters::all(FilterKind::Bits12),
        groups: if seed % 4 < 2 { Vec::new() } else { ["left", "right"].map(str::to_owned).to_vec() },
        ..TableOptions::default()
    }
}

fn halves(value: &[u8]) -> [&[u8]; 2] {
    let (left, right) = value.split_at(value.len() / 2);
    [left, right]
}

/// Builds files in `directory` from `rows`, in this order.
fn build(
    machine: &Machine,
    directory: &str,
    options: &TableOptions,
    rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
) -> larch::Result<()> {
    let levels = LevelOptions { base_bytes: 8 << 10, file_bytes: 2 << 10, ..LevelOptions::default() };
    let builder = Database::builder(directory).machine(machine.clone()).levels(levels).write_buffer_bytes(16 << 10);
    let mut files = builder.build_files(options.clone())?;
    for (key, value) in rows {
        match options.groups.len() {
            0 => files.add(&key, &value)?,
            _ => files.add_parts(&key, &halves(&value))?,
        }
    }
    files.finish(|_| {}).map(drop)
}

fn ingest(table: &Table, directories: &[&str]) -> larch::Result<IngestReport> {
    table.ingest(directories, IngestOptions::default())
}

fn insert(table: &Table, key: &[u8], value: &[u8]) {
    match table.options().groups.len() {
        0 => table.insert(key, value),
        _ => table.insert_parts(key, &halves(value)),
    }
    .expect("the disk works");
}

fn rows(table: &Table) -> Rows {
    if table.options().groups.is_empty() {
        return table.iter().map(|row| row.expect("the disk works")).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    }
    let all = table.select(["left", "right"]).expect("it has them");
    all.iter()
        .map(|row| row.expect("the disk works"))
        .map(|(key, parts)| (key.to_vec(), [&*parts[0], &*parts[1]].concat()))
        .collect()
}

#[track_caller]
fn is_sound(db: &Database) {
    let report = db.check(|_| {}).expect("the disk works");
    assert!(report.problems.is_empty(), "{}", report.problems[0]);
}

fn random_rows(random: &mut StdRng, count: usize, keys: u32, mark: u8) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut row = || {
        let key = format!("{:06}", random.random_range(0..keys)).into_bytes();
        (key, vec![mark; [0, 5, 50, 900][random.random_range(0..4)]])
    };
    (0..count).map(|_| row()).collect()
}

#[test]
fn a_table_has_what_writes_of_the_same_rows_would_give() {
    for seed in 0..36 {
        println!("seed {seed}");
        let random = &mut StdRng::seed_from_u64(seed);
        let (machine, _) = Machine::simulated(seed);
        let db = open(&machine).expect("the disk works");
        let options = options(seed);
        let table = db.table_with("t", options.clone()).expect("the options are fine");
        let mut expected = Rows::new();
        let mut built = 0;
        for round in 0..6u8 {
            for (key, value) in random_rows(random, 40, 3000, round) {
                insert(&table, &key, &value);
                expected.insert(key, value);
            }
            if random.random_bool(0.3) {
                let low = format!("{:06}", random.random_range(0..3000)).into_bytes();
                let high = format!("{:06}", random.random_range(0..3000)).into_bytes();
                if low < high {
                    table.remove_range(&low[..]..&high[..]).expect("the disk works");
                    expected.retain(|key, _| *key < low || *key >= high);
                }
            }
            let snapshot = db.snapshot();
            let before = expected.clone();
            let mut directories = Vec::new();
            for _ in 0..random.random_range(1..4) {
                let directory = format!("shard-{built}");
                built += 1;
                let count = [0, 1, 30, 300][random.random_range(0..4)];
                let mut new = random_rows(random, count, 3000, 100 + built);
                if random.random_bool(0.3) {
                    new.sort();
                }
                // The files may be built with other options than those of the table.
                let form = if random.random_bool(0.5) { seed } else { seed + 13 };
                let form = TableOptions { groups: options.groups.clone(), ..self::options(form) };
                build(&machine, &directory, &form, new.clone()).expect("the disk works");
                expected.extend(new);
                directories.push(directory);
            }
            let names: Vec<&str> = directories.iter().map(String::as_str).collect();
            let verify = random.random_bool(0.5);
            let report = table.ingest(&names, IngestOptions { verify, remove: random.random_bool(0.5) });
            let report = report.expect("the disk works");
            assert_eq!((report.copied_bytes, report.not_removed.len()), (0, 0));
            assert!(rows(&table) == expected, "round {round}");
            for (key, value) in expected.iter().step_by(17) {
                if options.groups.is_empty() {
                    assert_eq!(table.get(key).expect("the disk works").as_deref(), Some(&value[..]));
                }
            }
            if options.groups.is_empty() {
                let seen = snapshot.range(&table, ..).map(|row| row.expect("the disk works"));
                let seen: Rows = seen.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
                assert!(seen == before, "a snapshot of before does not see them");
            }
            match random.random_range(0..4) {
                0 => table.compact().expect("the disk works"),
                1 => db.flush().expect("the disk works"),
                _ => {}
            }
            is_sound(&db);
            assert!(rows(&table) == expected, "round {round}, after compactions");
        }
        drop((table, db));
        let db = open(&machine).expect("the disk works");
        assert!(rows(&db.table("t").expect("it is there")) == expected);
        is_sound(&db);
    }
}

#[test]
fn files_without_a_neighbour_go_to_the_deepest_level_and_later_directories_win() {
    let (machine, _) = Machine::simulated(1);
    let db = open(&machine).expect("the disk works");
    let table = db.table("t").expect("a table");
    let shard = |directory: &str, keys: std::ops::Range<u32>, mark: u8| {
        let rows = keys.map(|key| (format!("{key:06}").into_bytes(), vec![mark; 100]));
        build(&machine, directory, &TableOptions::default(), rows).expect("the disk works");
    };
    shard("low", 0..500, 1);
    shard("high", 500..1000, 2);
    let report = ingest(&table, &["high", "low"]).expect("the disk works");
    assert_eq!((report.rows, report.bytes > 100_000), (1000, true));
    let files = |level: usize| {
        let levels = table.stats().expect("it is there").levels;
        levels.iter().find(|stats| stats.level == level).map_or(0, |stats| stats.files)
    };
    assert!(report.files > 4 && files(6) == report.files, "{report:?}");
    shard("again", 400..600, 3);
    shard("last", 450..550, 4);
    let report = ingest(&table, &["again", "last", "high"]).expect("the disk works");
    assert_eq!(report.version, Some(db.version()));
    let mark = |key: u32| table.get(format!("{key:06}")).expect("the disk works").expect("it is there")[0];
    assert_eq!([399, 400, 449, 450, 499, 500, 999].map(mark), [1, 3, 3, 4, 4, 2, 2]);
    assert_eq!(files(0), 0, "each goes above what it overlaps, and no higher");
    // The same files are ingested once more. Their rows are newer than all rows of the table, as if written again.
    ingest(&table, &["again", "again"]).expect("the disk works");
    assert_eq!([399, 400, 500, 599, 600].map(mark), [1, 3, 3, 3, 2]);
    is_sound(&db);
    table.compact().expect("the disk works");
    is_sound(&db);
    assert_eq!([399, 400, 450, 599, 600].map(mark), [1, 3, 3, 3, 2]);
    assert_eq!(table.iter().count(), 1000);
}

#[test]
fn no_files_and_no_rows_change_nothing() {
    let (machine, disk) = Machine::simulated(1);
    let db = open(&machine).expect("the disk works");
    let table = db.table("t").expect("a table");
    build(&machine, "none", &TableOptions::default(), []).expect("the disk works");
    let version = db.version();
    let none: [&str; 0] = [];
    assert_eq!(table.ingest(&none, IngestOptions::default()).expect("the disk works").files, 0);
    let report = table.ingest(&["none"], IngestOptions { verify: true, remove: true }).expect("the disk works");
    assert_eq!((report.files, report.version, db.version()), (0, None, version));
    assert!(!disk.exists(Path::new("none")).expect("the disk works"));
    db.drop_table("t").expect("the disk works");
    assert!(matches!(table.ingest(&none, IngestOptions::default()), Err(Error::TableDropped(_))));
}

/// Makes a table with some rows, and builds files in two other directories.
fn prepare(machine: &Machine) -> (Rows, Rows) {
    let db = open(machine).expect("the disk works");
    let table = db.table("t").expect("a table");
    let mut before = Rows::new();
    for (key, value) in random_rows(&mut StdRng::seed_from_u64(1), 60, 200, 1) {
        table.insert(&key, &value).expect("the disk works");
        before.insert(key, value);
    }
    let mut after = before.clone();
    for (directory, seed) in [("a", 2), ("b", 3)] {
        let new = random_rows(&mut StdRng::seed_from_u64(seed), 80, 200, seed as u8);
        build(machine, directory, &TableOptions::default(), new.clone()).expect("the disk works");
        after.extend(new);
    }
    (before, after)
}

fn sst_names(disk: &SimDisk, directory: &str) -> Vec<String> {
    let names = disk.list(Path::new(directory)).unwrap_or_default().into_iter().map(|entry| entry.name);
    names.filter(|name| name.ends_with(".sst")).collect()
}

#[test]
fn a_crash_at_any_moment_leaves_all_rows_or_none() {
    for (links, remove) in [(true, false), (false, false), (true, true)] {
        let mut outcomes = [0, 0];
        for operation in 0.. {
            println!("links {links}, remove {remove}, operation {operation}");
            let (machine, disk) = Machine::simulated(operation);
            let (before, after) = prepare(&machine);
            let db = open(&machine).expect("the disk works");
            if !links {
                disk.fail_links(ErrorKind::CrossesDevices);
            }
            disk.fail_all_after(operation, ErrorKind::Other);
            let outcome =
                db.table("t").and_then(|table| table.ingest(&["a", "b"], IngestOptions { verify: false, remove }));
            let is_done = outcome.as_ref().is_ok_and(|report| report.not_removed.is_empty());
            // If the ingest has succeeded, the rows must survive a crash.
            disk.crash();
            drop(db);
            let db = open(&machine).expect("the disk works");
            let seen = rows(&db.table("t").expect("it is there"));
            assert!(seen == before || seen == after, "all rows or none");
            assert!(outcome.is_err() || seen == after);
            outcomes[usize::from(seen == after)] += 1;
            is_sound(&db);
            let files = db.table("t").expect("it is there").stats().expect("it is there").files;
            assert_eq!(sst_names(&disk, HERE).len() as u64, files, "orphans are removed");
            if seen == before {
                // If the crash came before the install, the directories are still complete and can be ingested now.
                let table = db.table("t").expect("it is there");
                ingest(&table, &["a", "b"]).expect("the disk works");
                assert!(rows(&table) == after);
            }
            if is_done {
                break;
            }
        }
        println!("{outcomes:?}");
        assert!(outcomes[0] > 5 && outcomes[1] > 0, "{outcomes:?}");
    }
}

#[test]
fn an_error_at_any_operation_leaves_the_table_as_it_was() {
    for operation in 1.. {
        println!("operation {operation}");
        let (machine, disk) = Machine::simulated(operation);
        let (before, after) = prepare(&machine);
        let db = open(&machine).expect("the disk works");
        let table = db.table("t").expect("it is there");
        let operations_before = disk.operation_count();
        disk.fail_operation(operation, ErrorKind::StorageFull);
        let outcome = ingest(&table, &["a", "b"]);
        disk.clear_faults();
        let is_last = operation > disk.operation_count() - operations_before;
        let seen = rows(&table);
        match outcome {
            Ok(_) => assert!(seen == after),
            Err(Error::OutcomeUnknown { .. } | Error::WritesStopped(_)) => continue,
            Err(error) => {
                assert!(error.is_disk_full() || matches!(error, Error::Page(_) | Error::Log(_)), "{error}");
                assert!(seen == before, "{error}");
                ingest(&table, &["a", "b"]).expect("the disk works");
                assert!(rows(&table) == after);
            }
        }
        is_sound(&db);
        if is_last {
            break;
        }
    }
}

#[test]
fn damage_and_wrong_files_are_refused_by_name_and_change_nothing() {
    fn check(what: &str, damage: impl Fn(&Machine, &SimDisk), expected: &[&str]) {
        for verify in [false, true] {
            let (machine, disk): (Machine, Arc<SimDisk>) = Machine::simulated(7);
            let (before, _) = prepare(&machine);
            damage(&machine, &disk);
            let db = open(&machine).expect("the disk works");
            let table = db.table("t").expect("it is there");
            let names = sst_names(&disk, HERE);
            let error = table.ingest(&["a", "b"], IngestOptions { verify, remove: true });
            let error = error.map(drop).expect_err(what).to_string();
            assert!(expected.iter().all(|part| error.contains(part)), "{what}: {error}");
            assert!(rows(&table) == before && sst_names(&disk, HERE) == names, "{what}");
            assert!(disk.exists(Path::new("a")).expect("the disk works"), "{what}: nothing is removed");
        }
    }
    fn first(disk: &SimDisk) -> String {
        format!("b/{}", sst_names(disk, "b")[0])
    }
    let list = Path::new("b/LIST");
    check("a bit of the list", |_, disk| disk.flip_bit(list, 30, 1), &["b/LIST of built files", "checksum"]);
    check("no list", |_, disk| disk.remove(list).expect("it is there"), &["b has no list of built files"]);
    check("a list that is cut", |_, disk| cut(disk, "b/LIST", 20), &["b/LIST of built files", "shorter"]);
    check(
        "no file",
        |_, disk| disk.remove(Path::new(&first(disk))).expect("it is there"),
        &["-0.sst of built files", "it is missing"],
    );
    check("a file that is cut", |_, disk| cut(disk, &first(disk), 8192), &["-0.sst of built files", "footer"]);
    check(
        "a footer",
        |_, disk| disk.flip_bit(first(disk), length(disk, &first(disk)) - 4000, 0),
        &["-0.sst of built files", "footer"],
    );
    let other = |machine: &Machine, disk: &SimDisk| {
        let rows = [(b"k".to_vec(), b"v".to_vec())];
        build(machine, "other", &TableOptions::default(), rows).expect("the disk works");
        let bytes = disk.read_all(Path::new(&format!("other/{}", sst_names(disk, "other")[0]))).expect("it is there");
        replace(disk, &first(disk), &bytes);
    };
    check(
        "a file of another list",
        other,
        &["-0.sst of built files", "its footer is not the one that the list describes"],
    );
    let groups = |machine: &Machine, disk: &SimDisk| {
        sst_names(disk, "b").iter().for_each(|name| disk.remove(&Path::new("b").join(name)).expect("it is there"));
        ["LIST", "LOCK"].iter().for_each(|name| disk.remove(&Path::new("b").join(name)).expect("it is there"));
        build(machine, "b", &options(2), [(b"k".to_vec(), b"v".to_vec())]).expect("the disk works");
    };
    check("other groups", groups, &["files in b are split into left and right, those of table t are not split"]);
}

fn length(disk: &SimDisk, path: &str) -> u64 {
    disk.open(Path::new(path), Access::Read).and_then(|file| file.len()).expect("it is there")
}

fn cut(disk: &SimDisk, path: &str, bytes: u64) {
    disk.open(Path::new(path), Access::Write).and_then(|file| file.set_len(bytes)).expect("it is there");
}

fn replace(disk: &SimDisk, path: &str, bytes: &[u8]) {
    disk.remove(Path::new(path)).expect("it is there");
    disk.open(Path::new(path), Access::Create).and_then(|file| file.append(bytes)).expect("there is room");
}

#[test]
fn a_flipped_bit_in_a_page_is_found_by_a_copy_and_by_a_verification() {
    for (verify, links) in [(true, true), (true, false), (false, false)] {
        let (machine, disk) = Machine::simulated(7);
        let (before, _) = prepare(&machine);
        let path = format!("b/{}", sst_names(&disk, "b")[0]);
        disk.flip_bit(&path, 100, 3);
        if !links {
            disk.fail_links(ErrorKind::CrossesDevices);
        }
        let db = open(&machine).expect("the disk works");
        let table = db.table("t").expect("it is there");
        let error = table.ingest(&["a", "b"], IngestOptions { verify, remove: false }).expect_err("it is damaged");
        assert!(matches!(&error, Error::BadBuiltFiles { file, .. } if file == Path::new(&path)), "{error}");
        assert!(error.is_corruption() && rows(&table) == before);
    }
}

#[test]
fn a_building_that_ends_early_leaves_nothing_and_one_that_crashed_can_begin_again() {
    let rows = || (0..2000u32).map(|i| (i.wrapping_mul(2_654_435_761).to_be_bytes().to_vec(), vec![1; 60]));
    let options = TableOptions::default();
    let mut kept = 0;
    for operation in (0..).step_by(7) {
        println!("operation {operation}");
        let (machine, disk) = Machine::simulated(operation);
        disk.fail_all_after(operation, ErrorKind::Other);
        let outcome = build(&machine, "shard", &options, rows());
        disk.crash();
        match &outcome {
            Ok(()) => {}
            Err(error) => match BuiltFiles::at_on("shard", &machine) {
                Err(Error::NotBuiltFiles(_)) => {
                    build(&machine, "shard", &options, rows()).expect("the disk works");
                }
                // Only the last sync has failed, after the list got its final name. The crash decides whether it
                // keeps that name.
                Ok(_) => {
                    kept += 1;
                    assert!(error.to_string().contains("cannot sync directory"), "{error}");
                }
                Err(other) => panic!("{other}, after {error}"),
            },
        }
        let built = BuiltFiles::at_on("shard", &machine).expect("it was finished");
        assert_eq!((built.rows(), built.files()), (2000, sst_names(&disk, "shard").len() as u64));
        let again = build(&machine, "shard", &options, rows()).expect_err("it is not empty");
        assert!(matches!(again, Error::CopyTarget(_)), "{again}");
        let refused = Database::builder("shard").machine(machine.clone()).open().expect_err("it is no database");
        assert!(matches!(refused, Error::NotADatabase(_)), "{refused}");
        if outcome.is_ok() {
            break;
        }
    }
    assert!(kept <= 1, "one operation is the last sync, {kept} left a list");
    let (machine, disk) = Machine::simulated(1);
    let builder = Database::builder("shard").machine(machine).write_buffer_bytes(16 << 10);
    let mut files = builder.build_files(options).expect("the disk works");
    rows().take(1000).for_each(|(key, value)| files.add(&key, &value).expect("the disk works"));
    assert!(matches!(files.finish(|_| ControlFlow::Break(())), Err(Error::Cancelled("the building of files"))));
    assert!(!disk.exists(Path::new("shard")).expect("the disk works"), "nothing is left");
}

#[test]
fn a_cancelled_ingest_leaves_the_table_as_it_was() {
    let (machine, disk) = Machine::simulated(3);
    let (before, after) = prepare(&machine);
    disk.fail_links(ErrorKind::CrossesDevices);
    let db = open(&machine).expect("the disk works");
    let table = db.table("t").expect("it is there");
    let names = sst_names(&disk, HERE);
    let options = IngestOptions { verify: true, remove: true };
    let mut seen = Vec::new();
    let outcome = table.ingest_with(&["a", "b"], options, |at| {
        seen.push((at.done, at.total));
        if at.done > at.total / 4 * 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(outcome, Err(Error::Cancelled(_))));
    assert!(seen.is_sorted() && seen.len() > 4, "{seen:?}");
    assert!(rows(&table) == before && sst_names(&disk, HERE) == names);
    let report = table.ingest(&["a", "b"], options).expect("the disk works");
    assert_eq!(report.copied_bytes, report.bytes);
    assert!(rows(&table) == after && !disk.exists(Path::new("b")).expect("the disk works"));
}

#[test]
fn writers_and_readers_go_on_while_files_are_taken_in() {
    let directory = tempfile::tempdir().expect("there is room");
    let at = |name: String| directory.path().join(name);
    let db = Database::builder(at("db".to_owned())).write_buffer_bytes(256 << 10).open().expect("the disk works");
    let table = db.table("t").expect("a table");
    let shards: Vec<_> = (0..8u32).map(|shard| at(format!("shard-{shard}"))).collect();
    for (shard, path) in (0..).zip(&shards) {
        let mut files = Database::builder(path).build_files(TableOptions::default()).expect("the disk works");
        for row in 0..2000u32 {
            files.add(format!("built {shard} {row:06}").as_bytes(), &[1; 100]).expect("the disk works");
        }
        files.finish(|_| {}).expect("the disk works");
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0u32;
            while !is_done.load(Ordering::Relaxed) {
                table.insert(format!("written {written:09}"), [2; 200]).expect("the disk works");
                written += 1;
            }
            written
        });
        let reader = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let snapshot = db.snapshot();
                let counts: Vec<usize> = (0..8)
                    .map(|shard| snapshot.range(&table, format!("built {shard} ")..format!("built {shard}!")).count())
                    .collect();
                assert!(counts.iter().all(|count| [0, 2000].contains(count)), "{counts:?}");
                assert!(counts.chunks(2).all(|pair| pair[0] == pair[1]), "pairs of shards come together: {counts:?}");
            }
        });
        for pair in shards.chunks(2) {
            table.ingest(pair, IngestOptions { verify: true, remove: false }).expect("the disk works");
        }
        is_done.store(true, Ordering::Relaxed);
        reader.join().expect("it saw whole shards");
        let written = writer.join().expect("it wrote");
        assert_eq!(table.iter().count(), 16_000 + written as usize);
    });
    is_sound(&db);
}

#[test]
fn a_follower_sees_all_directories_at_once_and_the_commits_after_them() {
    for follow in [Follow::Files, Follow::Commits] {
        let (machine, _) = Machine::simulated(5);
        let (mut before, mut after) = prepare(&machine);
        let db = open(&machine).expect("the disk works");
        let table = db.table("t").expect("it is there");
        let follower = Database::builder(HERE).machine(machine.clone()).follow(follow).open().expect("the disk works");
        insert(&table, b"before", b"1");
        follower.catch_up().expect("the disk works");
        let old = follower.snapshot();
        ingest(&table, &["a", "b"]).expect("the disk works");
        insert(&table, b"later", b"2");
        follower.catch_up().expect("the disk works");
        after.insert(b"before".to_vec(), b"1".to_vec());
        if follow == Follow::Commits {
            before.insert(b"before".to_vec(), b"1".to_vec());
            after.insert(b"later".to_vec(), b"2".to_vec());
        }
        let followed = follower.table("t").expect("it is there");
        assert!(rows(&followed) == after, "{follow:?}");
        let seen = old.range(&followed, ..).map(|row| row.expect("the disk works"));
        let seen: Rows = seen.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        assert!(seen == before, "{follow:?}");
    }
}

#[test]
fn several_databases_share_files_and_none_changes_them() {
    let (machine, disk) = Machine::simulated(5);
    let new = random_rows(&mut StdRng::seed_from_u64(4), 400, 1000, 9);
    build(&machine, "shard", &TableOptions::default(), new.clone()).expect("the disk works");
    let whole = |disk: &SimDisk| -> Vec<Vec<u8>> {
        let names = sst_names(disk, "shard");
        names.iter().map(|name| disk.read_all(&Path::new("shard").join(name)).expect("it is there")).collect()
    };
    let bytes = whole(&disk);
    let expected: Rows = new.into_iter().collect();
    for name in ["one", "two"] {
        let db = Database::builder(name).machine(machine.clone()).open().expect("the disk works");
        let table = db.table("t").expect("a table");
        ingest(&table, &["shard"]).expect("the disk works");
        ingest(&db.table("u").expect("a table"), &["shard", "shard"]).expect("the disk works");
        table.remove_range(.."000500").expect("the disk works");
        db.compact().expect("the disk works");
        db.drop_table("u").expect("the disk works");
        assert_eq!(table.iter().count(), expected.range(b"000500".to_vec()..).count());
        db.backup("kept-".to_owned() + name).expect("the disk works");
        assert!(Backups::at("kept-".to_owned() + name).on(&machine).verify(|_| {}).is_ok());
        is_sound(&db);
    }
    assert!(whole(&disk) == bytes);
}

#[test]
fn a_table_with_an_index_and_a_database_for_an_older_release_refuse() {
    let (machine, _) = Machine::simulated(5);
    let zstd = TableOptions { compression: Compression::ZSTD, ..TableOptions::default() };
    let rows = (0..100u32).map(|i| (i.to_be_bytes().to_vec(), vec![0; 300]));
    build(&machine, "shard", &zstd, rows).expect("the disk works");
    let older = Database::builder("older").machine(machine.clone()).compat("0.1".parse().expect("a release"));
    let db = older.open().expect("the disk works");
    let error = ingest(&db.table("t").expect("a table"), &["shard"]).expect_err("0.1 does not read it");
    assert!(error.to_string().contains("build the files with compat 0.1"), "{error}");
    let refused = Database::builder("x").machine(machine.clone()).compat("0.1".parse().expect("a release"));
    assert!(matches!(refused.build_files(zstd), Err(Error::BadOptions(_))));
    let db = Database::builder("beside").machine(machine.clone()).read_only(true);
    assert!(db.open().is_err());
}

#[test]
fn a_compaction_brings_files_of_another_form_into_that_of_the_table() {
    let (machine, _) = Machine::simulated(5);
    let db = open(&machine).expect("the disk works");
    let table = db.table("t").expect("a table");
    let plain = TableOptions { page_bytes: 1024, compression: Compression::None, ..TableOptions::default() };
    let rows = (0..2000u32).map(|i| (i.to_be_bytes().to_vec(), vec![7; 100]));
    build(&machine, "shard", &plain, rows).expect("the disk works");
    let report = ingest(&table, &["shard"]).expect("the disk works");
    let bytes = || table.stats().expect("it is there").file_bytes;
    assert_eq!(bytes(), report.bytes);
    table.alter(|options| options.compression = Compression::Lz4).expect("the disk works");
    table.compact().expect("the disk works");
    assert!(bytes() < report.bytes / 2, "{} of {}", bytes(), report.bytes);
    is_sound(&db);
}

#[test]
fn a_repair_without_a_manifest_does_not_mix_built_files_with_those_of_tables() {
    let (machine, disk) = Machine::simulated(5);
    // The files do not overlap, so no compaction merges them.
    let db = Database::builder(HERE).machine(machine.clone()).open().expect("the disk works");
    let (first, second) = (db.table("first").expect("a table"), db.table("second").expect("a table"));
    first.insert("mine", "1").expect("the disk works");
    for (directory, mark) in [("a", 2), ("b", 3)] {
        let rows = (0..300u32).map(|i| ((i + 1000 * u32::from(mark)).to_be_bytes().to_vec(), vec![mark; 60]));
        build(&machine, directory, &TableOptions::default(), rows).expect("the disk works");
        ingest(&second, &[directory]).expect("the disk works");
    }
    db.flush().expect("the disk works");
    drop((first, second, db));
    for entry in disk.list(Path::new(HERE)).expect("the disk works") {
        if entry.name.starts_with("MANIFEST-") || entry.name == "CURRENT" {
            disk.remove(&Path::new(HERE).join(entry.name)).expect("it is there");
        }
    }
    let report =
        larch::repair::repair_on(&machine, Path::new(HERE), Path::new("saved"), |_| {}).expect("the disk works");
    assert!(report.guesses.iter().any(|guess| guess.contains("was built elsewhere")), "{:?}", report.guesses);
    let db = Database::builder("saved").machine(machine).open().expect("it is whole");
    let tables = db.tables();
    assert_eq!(tables.len(), 3, "{tables:?}");
    let count = |name: &str| db.table(name).expect("it is there").iter().count();
    assert_eq!(count("first"), 1);
    let built: Vec<&String> = tables.iter().filter(|name| name.starts_with("built-")).collect();
    assert!(built.len() == 2 && built.iter().all(|name| count(name) == 300), "{tables:?}");
}
