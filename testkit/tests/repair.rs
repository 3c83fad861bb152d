//! A repair must save everything that can be read, and report what it could not save. It must not change the
//! damaged database.

use larch::options::{LevelOptions, PageIndexKind, Release};
use larch::repair::{Loss, RepairReport};
use larch::{Database, Error, Table, TableOptions};
use os::sim::SimDisk;
use os::{Access, Disk, Machine};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use testkit::specimen;

const DAMAGED: &str = "damaged";
const NEW: &str = "new";

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn machine(disk: &Arc<SimDisk>) -> Machine {
    Machine::simulated_on(disk.clone(), 1)
}

fn repair(disk: &Arc<SimDisk>, damaged: &str) -> RepairReport {
    let files = |directory: &str| {
        let entries = disk.list(Path::new(directory)).expect("the disk works");
        let names = entries.into_iter().map(|entry| Path::new(directory).join(entry.name));
        names.map(|path| (disk.read_all(&path).expect("the disk works"), path)).collect::<Vec<(Vec<u8>, PathBuf)>>()
    };
    let before = files(damaged);
    let report = larch::repair::repair_on(&machine(disk), Path::new(damaged), Path::new(NEW), |_| {});
    let report = report.expect("the disk works");
    assert!(files(damaged) == before, "what is damaged is only read");
    report
}

fn open_new(disk: &Arc<SimDisk>) -> Database {
    let db = Database::builder(NEW).machine(machine(disk)).create(false).open().expect("a repaired database is whole");
    assert!(db.check(|_| {}).expect("the disk works").problems.is_empty());
    db
}

fn read(table: &Table) -> Rows {
    let rows = table.iter().map(|row| row.expect("it can be read"));
    rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Makes a table of one file with many pages. Returns the disk, its rows and the path of the file.
fn one_file(index: PageIndexKind) -> (Arc<SimDisk>, Rows, PathBuf) {
    let (machine, disk) = Machine::simulated(3);
    let db = Database::builder(DAMAGED).machine(machine).open().expect("the disk works");
    let options = TableOptions { page_bytes: 512, node_bytes: 512, index, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    let mut rows = Rows::new();
    for row in 0..400 {
        let value = if row % 50 == 7 { vec![b'l'; 1_000] } else { format!("value {row}").into_bytes() };
        table.insert(format!("row{row:04}"), &value).expect("the disk works");
        rows.insert(format!("row{row:04}").into_bytes(), value);
    }
    table.compact().expect("the disk works");
    drop((table, db));
    let entries = disk.list(Path::new(DAMAGED)).expect("the disk works");
    let sst = entries.into_iter().find(|entry| entry.name.ends_with(".sst")).expect("it was compacted");
    (disk, rows, Path::new(DAMAGED).join(sst.name))
}

fn covers(loss: &Loss, key: &[u8]) -> bool {
    loss.keys.as_ref().is_none_or(|(low, high)| low.as_slice() <= key && high.as_deref().is_none_or(|high| key < high))
}

#[test]
fn a_whole_database_is_saved_whole() {
    let (machine, disk) = Machine::simulated(1);
    let folder = Path::new("specimen");
    disk.create_dir(folder).expect("the disk works");
    specimen::write(&machine, folder, Release::NEWEST).expect("the disk works");
    let report = repair(&disk, "specimen/db");
    assert!(report.lost.is_empty() && report.guesses.is_empty(), "{report:?}");
    assert!(report.commits > 0 && report.files > 4, "{report:?}");
    let expected = disk.read_all(&folder.join("rows")).expect("the disk works");
    assert_eq!(specimen::rows(&open_new(&disk)), String::from_utf8_lossy(&expected));
}

#[test]
fn without_a_manifest_files_say_which_table_they_are_of_and_versions_say_what_is_newer() {
    let (machine, disk) = Machine::simulated(2);
    let levels = LevelOptions { level0_files: 100, ..LevelOptions::default() };
    let db = Database::builder(DAMAGED).machine(machine).levels(levels).open().expect("the disk works");
    let groups = vec!["hot".to_owned(), "cold".to_owned()];
    let plain = db.table("plain").expect("the disk works");
    let split = db.table_with("split", TableOptions { groups, ..TableOptions::default() }).expect("the disk works");
    let mut rows = Rows::new();
    for round in 0..4 {
        for row in (round..60).step_by(round + 1) {
            let (key, value) = (format!("row{row:03}"), format!("round {round}"));
            plain.insert(&key, &value).expect("the disk works");
            split.insert_parts(&key, &[value.as_bytes(), b"cold"]).expect("the disk works");
            rows.insert(key.into_bytes(), value.into_bytes());
        }
        if round == 1 {
            let mut import = plain.import().expect("the disk works");
            import.add(b"imported", b"from outside").expect("the disk works");
            import.add(b"row059", b"from outside").expect("the disk works");
            import.finish(|_| {}).expect("the disk works");
            rows.insert(b"imported".to_vec(), b"from outside".to_vec());
            rows.insert(b"row059".to_vec(), b"from outside".to_vec());
        }
        let (low, high) = (format!("row01{round}"), format!("row01{}", round + 2));
        plain.remove_range(low.as_str()..high.as_str()).expect("the disk works");
        split.remove_range(low.as_str()..high.as_str()).expect("the disk works");
        rows.retain(|key, _| !(low.as_bytes()..high.as_bytes()).contains(&key.as_slice()));
        db.flush().expect("the disk works");
    }
    let inherited = read(&plain);
    assert_eq!(inherited, rows);
    drop((plain, split, db));
    for entry in disk.list(Path::new(DAMAGED)).expect("the disk works") {
        if entry.name == "CURRENT" || entry.name.starts_with("MANIFEST-") {
            disk.remove(&Path::new(DAMAGED).join(entry.name)).expect("the disk works");
        }
    }
    let report = repair(&disk, DAMAGED);
    assert!(report.lost.is_empty(), "{report:?}");
    assert!(report.guesses.iter().any(|guess| guess.contains("imported")), "{report:?}");
    let db = open_new(&disk);
    assert_eq!(db.tables(), ["plain", "split"]);
    assert_eq!(read(&db.table("plain").expect("it is there")), rows);
    let split = db.table("split").expect("it is there");
    assert_eq!(split.options().groups, ["hot", "cold"]);
    let hot = split.select(["hot"]).expect("it is there").iter().map(|row| row.expect("it can be read"));
    let hot: Rows = hot.map(|(key, parts)| (key.to_vec(), parts[0].to_vec())).collect();
    rows.remove(&b"imported"[..]);
    rows.remove(&b"row059"[..]);
    assert!(rows.iter().all(|row| hot.get(row.0) == Some(row.1)), "as plain, without the import");
}

#[test]
fn rows_of_damaged_pages_are_listed_and_all_others_are_saved() {
    for index in [PageIndexKind::Btree, PageIndexKind::Flat, PageIndexKind::Both] {
        let (disk, rows, sst) = one_file(index);
        let bytes = disk.read_all(&sst).expect("the disk works").len() as u64;
        let (mut losses, mut whole) = (0, 0);
        // Flips one bit in a copy of the disk: in every other block of the file, and last in its footer. A damaged
        // footer must cost no row, because the manifest has everything that the footer says.
        for block in (0..bytes / 4096).step_by(2).chain([bytes / 4096 - 1]) {
            let disk = disk.image();
            disk.flip_bit(&sst, block * 4096 + 40, 3);
            let report = repair(&disk, DAMAGED);
            let saved = read(&open_new(&disk).table("t").expect("it is there"));
            assert!(saved.iter().all(|(key, value)| rows.get(key) == Some(value)), "block {block}: never a wrong row");
            let missing: Vec<&Vec<u8>> = rows.keys().filter(|key| !saved.contains_key(*key)).collect();
            let unlisted = missing.iter().find(|key| !report.lost.iter().any(|loss| covers(loss, key)));
            assert_eq!(unlisted, None, "block {block}: {report:?}");
            let listed: u64 = report.lost.iter().map(|loss| loss.rows).sum();
            assert_eq!(listed, missing.len() as u64, "block {block}: {report:?}");
            assert_eq!(report.rows, saved.len() as u64);
            assert!(report.lost.iter().all(|loss| loss.file == sst && loss.table.as_deref() == Some("t")));
            losses += u64::from(!missing.is_empty());
            whole += u64::from(missing.is_empty());
        }
        assert!(losses > 5 && whole > 0, "{index:?}: {losses} {whole}");
    }
}

#[test]
fn with_both_indexes_a_damaged_node_loses_nothing() {
    let lost_by = |index: PageIndexKind| {
        let (disk, rows, sst) = one_file(index);
        let bytes = disk.read_all(&sst).expect("the disk works").len() as u64;
        // The root of the main tree is the last page before the footer.
        disk.flip_bit(&sst, bytes - 2 * 4096 + 200, 1);
        let report = repair(&disk, DAMAGED);
        assert_eq!(report.rows + report.lost.iter().map(|loss| loss.rows).sum::<u64>(), rows.len() as u64);
        report.lost.iter().map(|loss| loss.rows).sum::<u64>()
    };
    assert!(lost_by(PageIndexKind::Btree) > 0);
    assert_eq!(lost_by(PageIndexKind::Both), 0);
}

#[test]
fn a_damaged_log_is_replayed_as_far_as_it_holds() {
    let (machine, disk) = Machine::simulated(4);
    let db = Database::builder(DAMAGED).machine(machine).open().expect("the disk works");
    let table = db.table("t").expect("the disk works");
    for row in 0..200 {
        table.insert(format!("row{row:04}"), [b'v'; 100]).expect("the disk works");
    }
    drop((table, db));
    let entries = disk.list(Path::new(DAMAGED)).expect("the disk works");
    let log = entries.iter().find(|entry| entry.name.ends_with(".log")).expect("it is not flushed");
    let log = Path::new(DAMAGED).join(&log.name);
    let bytes = disk.read_all(&log).expect("the disk works").len() as u64;
    disk.flip_bit(&log, bytes / 2, 0);
    let report = repair(&disk, DAMAGED);
    assert_eq!(report.lost.len(), 1, "{report:?}");
    assert!(report.lost[0].why.contains("commits after") && report.lost[0].file == log, "{report:?}");
    let saved = read(&open_new(&disk).table("t").expect("it is there"));
    assert_eq!(saved.len() as u64, report.rows);
    assert!((80..120).contains(&saved.len()), "{}", saved.len());
    assert!(saved.keys().zip(0..).all(|(key, row)| *key == format!("row{row:04}").into_bytes()), "a prefix");
}

#[test]
fn tables_that_only_the_log_knows_are_saved_under_their_numbers() {
    let (machine, disk) = Machine::simulated(5);
    let db = Database::builder(DAMAGED).machine(machine).open().expect("the disk works");
    for name in ["a", "b"] {
        db.table(name).expect("the disk works").insert("key", name).expect("the disk works");
    }
    drop(db);
    for entry in disk.list(Path::new(DAMAGED)).expect("the disk works") {
        if entry.name == "CURRENT" || entry.name.starts_with("MANIFEST-") {
            disk.remove(&Path::new(DAMAGED).join(entry.name)).expect("the disk works");
        }
    }
    let report = repair(&disk, DAMAGED);
    assert!(report.lost.is_empty() && report.rows == 2, "{report:?}");
    assert!(report.guesses.iter().filter(|guess| guess.contains("the log alone")).count() == 2, "{report:?}");
    let db = open_new(&disk);
    let values = db.tables().into_iter().map(|name| {
        let table = db.table(&name).expect("it is there");
        table.get("key").expect("it can be read").expect("it was saved").to_vec()
    });
    assert_eq!(values.collect::<Vec<_>>(), [b"a".to_vec(), b"b".to_vec()]);
}

#[test]
fn a_damaged_manifest_loses_no_row() {
    let (disk, rows, _) = one_file(PageIndexKind::Btree);
    let entries = disk.list(Path::new(DAMAGED)).expect("the disk works");
    let manifest = entries.iter().find(|entry| entry.name.starts_with("MANIFEST-")).expect("there is one");
    let manifest = Path::new(DAMAGED).join(&manifest.name);
    let bytes = disk.read_all(&manifest).expect("the disk works").len() as u64;
    for at in (0..bytes).step_by(37) {
        let disk = disk.image();
        disk.flip_bit(&manifest, at, (at % 8) as u32);
        let report = repair(&disk, DAMAGED);
        assert!(report.lost.is_empty(), "byte {at}: {report:?}");
        assert_eq!(read(&open_new(&disk).table("t").expect("it is there")), rows, "byte {at}");
    }
}

#[test]
fn nothing_is_written_where_something_is() {
    let (disk, _, _) = one_file(PageIndexKind::Btree);
    disk.create_dir(Path::new(NEW)).expect("the disk works");
    disk.open(&Path::new(NEW).join("mine"), Access::Create).expect("the disk works");
    let run = |from: &str| larch::repair::repair_on(&machine(&disk), Path::new(from), Path::new(NEW), |_| {});
    let error = run(DAMAGED).expect_err("it is not empty");
    assert!(matches!(&error, Error::RepairTarget(_)) && error.to_string().contains("not there yet"), "{error}");
    disk.remove(&Path::new(NEW).join("mine")).expect("the disk works");
    assert!(matches!(run("nowhere"), Err(Error::NotADatabase(_))));
    assert!(run(DAMAGED).is_ok(), "an empty directory will do");
}
