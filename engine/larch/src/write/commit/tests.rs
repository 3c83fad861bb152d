//! Tests commits on disks that fail.

mod rotation;

use super::*;
use crate::Database;
use crate::core::writer::log_path;
use os::sim::SimDisk;
use os::{Disk, Machine};
use std::io::ErrorKind;
use std::path::Path;

fn open(disk: &Arc<SimDisk>) -> Database {
    let machine = Machine::simulated_on(disk.clone(), 1);
    Database::builder("db").machine(machine).write_buffer_bytes(8 << 10).open().expect("it opens")
}

/// The number of logs in the directory.
fn logs(disk: &SimDisk) -> usize {
    let entries = disk.list(Path::new("db")).expect("the disk works");
    entries.iter().filter(|entry| entry.name.ends_with(".log")).count()
}

/// Makes a database whose next commit will begin a new log. Also returns the number of its rows.
fn before_a_rotation() -> (Arc<SimDisk>, Database, u32) {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    let log = |db: &Database| db.core().views.newest().memory[0].log;
    let first = log(&db);
    let mut rows = 0u32;
    while log(&db) == first {
        table.insert(rows.to_le_bytes(), [7; 100]).expect("the disk works");
        rows += 1;
    }
    // The first database has shown which row begins a new log. Fill a second one with all rows before that row.
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    (0..rows - 1).for_each(|i| table.insert(i.to_le_bytes(), [7; 100]).expect("the disk works"));
    (disk, db, rows - 1)
}

#[test]
fn a_rotation_that_fails_is_the_commits_error_and_is_tried_again() {
    // A new log takes five operations: create the file, sync its name, write the header, sync the header, and write
    // the first record. If the file already exists, only the last of them is left.
    let new =
        [(1, false), (2, false), (3, false), (4, false), (4, true), (5, false)].map(|(n, keeps)| (n, keeps, false));
    for (n, keeps_the_log, has_file) in new.into_iter().chain([(1, false, true)]) {
        let (disk, db, rows) = before_a_rotation();
        let table = db.table("t").expect("it is there");
        assert_eq!(logs(&disk), 2, "the job has created the file of the next log");
        if !has_file {
            let next = db.core().writes.ahead.take_next().expect("its file is there");
            disk.remove(&log_path(Path::new("db"), next.number())).expect("the disk works");
            assert_eq!(logs(&disk), 1);
        }
        disk.fail_operation(n, ErrorKind::Other);
        if keeps_the_log {
            // This case fails later, when the name of the log is already durable, and the log cannot be removed.
            disk.clear_faults();
            disk.fail_sync(2, ErrorKind::Other);
            disk.fail_operation(5, ErrorKind::Other);
        }
        let error = table.insert(rows.to_le_bytes(), [7; 100]).expect_err("a log cannot be created").to_string();
        assert!(error.contains(".log") || error.contains("db: "), "operation {n}: {error}");
        disk.clear_faults();
        assert_eq!(logs(&disk), 1 + usize::from(keeps_the_log), "operation {n}");
        for i in rows..rows + 3 {
            table.insert(i.to_le_bytes(), [8; 100]).unwrap_or_else(|error| panic!("operation {n}: {error}"));
        }
        drop((table, db));
        disk.crash_keeping_nothing();
        let table = open(&disk).table("t").expect("it is there");
        for i in 0..rows + 3 {
            let expected = if i < rows { 7 } else { 8 };
            let value = table.get(i.to_le_bytes()).expect("the disk works").expect("it was acknowledged");
            assert_eq!(value[0], expected, "operation {n}, row {i}");
        }
    }
}

#[test]
fn a_failed_append_is_the_commits_error_and_later_commits_go_on() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("the disk works");
    disk.fail_operation(1, ErrorKind::Other);
    let error = table.insert("b", "2").expect_err("the append fails").to_string();
    assert!(error.contains("cannot write db/"), "{error}");
    assert!(table.get("b").expect("reads go on").is_none());
    table.insert("c", "3").expect("the disk works again");
    drop((table, db));
    disk.crash_keeping_nothing();
    let table = open(&disk).table("t").expect("it is there");
    let keys: Vec<_> = table.iter().map(|row| row.expect("the disk works").0.to_vec()).collect();
    assert_eq!(keys, [b"a", b"c"]);
}

#[test]
fn a_failed_sync_of_the_log_is_final_and_says_that_the_outcome_is_unknown() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("the disk works");
    disk.fail_sync(1, ErrorKind::Other);
    let error = table.insert("b", "2").expect_err("the sync fails");
    assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error}");
    let error = table.insert("c", "3").expect_err("writes are refused");
    assert!(matches!(&error, Error::WritesStopped(why) if why.contains("cannot sync")), "{error}");
    assert_eq!(table.get("a").expect("reads go on").as_deref(), Some(&b"1"[..]));
    assert_eq!(table.iter().count(), 2, "ranges too");
}

/// A database on a disk with `room` bytes more than it needs, filled with rows (and a filler file) until a put
/// fails. The last value is the number of rows.
fn on_a_full_disk(room: u64) -> (Arc<SimDisk>, Database, u32) {
    let disk = SimDisk::new(1);
    let machine = Machine::simulated_on(disk.clone(), 1);
    let db = Database::builder("db").machine(machine).reserve_bytes(64 << 10).open().expect("it opens");
    let table = db.table("t").expect("the disk works");
    disk.set_capacity(disk.used_bytes() + room);
    for rows in 0u32.. {
        if let Err(error) = table.insert(rows.to_le_bytes(), [7; 1000]) {
            assert!(error.is_disk_full() && error.to_string().contains("space"), "{error}");
            while table.insert("filler", "small").is_ok() {}
            return (disk, db, rows);
        }
    }
    unreachable!("the disk is full some day")
}

#[test]
fn on_a_full_disk_puts_fail_and_erases_succeed_until_space_returns() {
    let (disk, db, rows) = on_a_full_disk(40 << 10);
    let table = db.table("t").expect("it is there");
    for i in 0..rows / 2 {
        let key = i.to_le_bytes();
        table.remove(key).unwrap_or_else(|error| panic!("erase {i} of {rows}: {error}"));
        assert!(table.get(key).expect("the disk works").is_none());
        let error = table.insert(key, "small").expect_err("an erase leaves no room to puts");
        assert!(error.is_disk_full(), "{error}");
    }
    let mut both = db.batch();
    both.remove(&table, "x");
    both.insert(&table, "y", "z");
    assert!(both.commit().expect_err("it holds a put").is_disk_full());
    disk.set_capacity(u64::MAX);
    table.insert("later", "a row").expect("space has returned");
    assert!(disk.exists(Path::new("db/RESERVE")).expect("the disk works"), "the reserve is made again");
    drop((table, db));
    disk.crash_keeping_nothing();
    let table = open(&disk).table("t").expect("it is there");
    assert_eq!(table.iter().count() as u32, rows - rows / 2 + 2);
    assert!(table.get("later").expect("the disk works").is_some());
}

#[test]
fn the_reserve_lets_a_range_be_erased_and_its_files_go() {
    let (disk, db, rows) = on_a_full_disk(200 << 10);
    let table = db.table("t").expect("it is there");
    disk.set_capacity(u64::MAX);
    db.flush().expect("the disk has room");
    disk.set_capacity(disk.used_bytes());
    assert!(table.insert("x", "y").expect_err("the disk is full").is_disk_full());
    table.remove_range(..).expect("an erase finds room");
    db.compact().expect("the reserve has room for what drops the files");
    table.insert("x", "y").unwrap_or_else(|error| panic!("{rows} rows have left their room: {error}"));
    assert_eq!(table.iter().count(), 1);
}

#[test]
fn an_empty_batch_is_a_sync_of_everything_before() {
    let disk = SimDisk::new(1);
    let db = open(&disk);
    let table = db.table("t").expect("the disk works");
    let mut batch = db.batch().durability(Durability::Buffered);
    batch.insert(&table, "a", "1");
    let version = batch.commit().expect("the disk works");
    assert_eq!(db.batch().durability(Durability::Buffered).commit().expect("it is no work"), version);
    assert_eq!(db.batch().commit().expect("the disk works"), version);
    drop((table, db));
    disk.crash_keeping_nothing();
    let db = open(&disk);
    assert!(db.table("t").expect("it is there").get("a").expect("the disk works").is_some());

    let read_only = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 1)).read_only(true);
    let read_only = read_only.open().expect("it opens");
    assert!(matches!(read_only.batch().commit(), Err(Error::ReadOnly)));
    disk.fail_sync(1, ErrorKind::Other);
    assert!(db.table("t").expect("it is there").insert("b", "2").is_err());
    for durability in [Durability::Synced, Durability::Buffered] {
        assert!(matches!(db.batch().durability(durability).commit(), Err(Error::WritesStopped(_))));
    }
}

/// A disk with a switch. While the switch is on, each write to a log panics.
#[derive(Debug)]
struct Panicking(Arc<SimDisk>, Arc<os::sync::atomic::AtomicBool>);

#[derive(Debug)]
struct PanickingFile(Arc<dyn os::File>, Arc<os::sync::atomic::AtomicBool>);

impl Disk for Panicking {
    fn open(&self, path: &Path, access: os::Access) -> std::io::Result<Arc<dyn os::File>> {
        let file = self.0.open(path, access)?;
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        Ok(if is_log { Arc::new(PanickingFile(file, self.1.clone())) } else { file })
    }
    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        self.0.rename(from, to)
    }
    fn link(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        self.0.link(from, to)
    }
    fn remove(&self, path: &Path) -> std::io::Result<()> {
        self.0.remove(path)
    }
    fn list(&self, directory: &Path) -> std::io::Result<Vec<os::DirectoryEntry>> {
        self.0.list(directory)
    }
    fn exists(&self, path: &Path) -> std::io::Result<bool> {
        self.0.exists(path)
    }
    fn create_dir(&self, directory: &Path) -> std::io::Result<()> {
        self.0.create_dir(directory)
    }
    fn remove_dir(&self, directory: &Path) -> std::io::Result<()> {
        self.0.remove_dir(directory)
    }
    fn sync_dir(&self, directory: &Path) -> std::io::Result<()> {
        self.0.sync_dir(directory)
    }
    fn lock(&self, path: &Path) -> std::io::Result<Box<dyn os::Lock>> {
        self.0.lock(path)
    }
}

impl os::File for PanickingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> std::io::Result<()> {
        self.0.write_at(bytes, offset)?;
        assert!(!self.1.load(Ordering::Relaxed), "a panic asked for by the test");
        Ok(())
    }
    fn append(&self, bytes: &[u8]) -> std::io::Result<u64> {
        self.0.append(bytes)
    }
    fn sync(&self) -> std::io::Result<()> {
        self.0.sync()
    }
    fn len(&self) -> std::io::Result<u64> {
        self.0.len()
    }
    fn set_len(&self, bytes: u64) -> std::io::Result<()> {
        self.0.set_len(bytes)
    }
    fn is_direct(&self) -> bool {
        self.0.is_direct()
    }
}

#[test]
fn after_a_panic_within_a_commit_writes_get_an_error_and_reads_go_on() {
    let disk = SimDisk::new(1);
    let panics = Arc::new(os::sync::atomic::AtomicBool::new(false));
    let failing = Arc::new(Panicking(disk.clone(), panics.clone()));
    let machine = Machine { disk: failing, ..Machine::simulated_on(disk.clone(), 1) };
    let db = Database::builder("db").machine(machine).open().expect("it opens");
    let table = db.table("t").expect("the disk works");
    table.insert("a", "1").expect("the disk works");
    panics.store(true, Ordering::Relaxed);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| table.insert("b", "2")));
    assert!(caught.is_err(), "the disk panics");
    panics.store(false, Ordering::Relaxed);
    let error = table.insert("c", "3").expect_err("writes are refused");
    assert!(matches!(&error, Error::WritesStopped(why) if why.contains("panicked")), "{error}");
    assert!(matches!(db.drop_table("t"), Err(Error::WritesStopped(_))), "no lock is held or poisoned");
    assert!(matches!(db.flush(), Err(Error::WritesStopped(_))));
    let keys: Vec<_> = table.iter().map(|row| row.expect("reads go on").0.to_vec()).collect();
    assert_eq!(keys, [b"a"]);
    drop((table, db));
    // The record was written before the panic, so this commit may or may not exist, but all earlier ones do.
    let table = open(&disk).table("t").expect("it is there");
    assert!(table.get("a").expect("the disk works").is_some());
    table.insert("c", "3").expect("a new process writes");
}
