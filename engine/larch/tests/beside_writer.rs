//! Tests a database that is opened read-only while another process writes to it: every read either sees the rows of
//! exactly one version, or returns an error that says why it cannot.

#![allow(clippy::disallowed_methods, reason = "a thread of the machine writes beside one that reads")]

use larch::rows::Tried;
use larch::stats::Admit;
use larch::{Database, Durability, Error, Range, Readable, Snapshot, Table, TableOptions, Version};
use os::sim::SimDisk;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use os::{Access, DirectoryEntry, Disk, File, Lock, Machine};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(i: u32) -> Vec<u8> {
    format!("key {i:05}").into_bytes()
}

/// Options with small pages, so that a read needs many pages and the cache holds only a few of them.
fn options() -> TableOptions {
    TableOptions { page_bytes: 1 << 10, node_bytes: 1 << 10, ..TableOptions::default() }
}

fn write_to(machine: &Machine) -> Database {
    Database::builder("db").machine(machine.clone()).open().expect("nobody else writes")
}

/// Opens the database for a reader. Its cache holds only a few pages, and it keeps only one file open.
fn reader_of(machine: &Machine) -> Database {
    let builder = Database::builder("db").machine(machine.clone()).read_only(true);
    builder.cache_bytes(24 << 10).open_files(1).open().expect("there is a database")
}

/// Reads a row of another table of `db`, without keeping its pages. The reader keeps only one file open, so its next
/// read must open a file again.
fn close_files(db: &Database) {
    let other = db.existing_table("other").expect("a name").expect("it is there");
    assert!(other.admitting(Admit::Pass).get("k").expect("a new read takes the newest files").is_some());
}

/// A writer with its current rows. `shown` has the rows that were in files after each step that changed the files.
struct Writer {
    machine: Machine,
    db: Option<Database>,
    now: Model,
    shown: BTreeMap<Version, Model>,
}

impl Writer {
    fn new(disk: &Arc<SimDisk>) -> Self {
        let machine = Machine::simulated_on(disk.clone(), 1);
        let db = write_to(&machine);
        db.table_with("t", options()).expect("the disk works");
        db.table("other").and_then(|other| other.insert("k", "v")).expect("the disk works");
        Self { machine, db: Some(db), now: Model::new(), shown: BTreeMap::new() }
    }

    fn db(&self) -> &Database {
        self.db.as_ref().expect("it is closed for a moment only")
    }

    fn change(&mut self, rng: &mut StdRng) {
        let table = self.db().table("t").expect("it is there");
        for _ in 0..rng.random_range(1..200) {
            let (key, value) = (key(rng.random_range(0..600)), vec![rng.random(); rng.random_range(0..80)]);
            if rng.random_range(0..6) == 0 {
                table.remove(&key).expect("the disk works");
                self.now.remove(&key);
            } else {
                table.insert(&key, &value).expect("the disk works");
                self.now.insert(key, value);
            }
        }
    }

    /// Stores the current rows in `shown`. All rows must be in files.
    fn note(&mut self) {
        self.shown.insert(self.db().version(), self.now.clone());
    }

    fn step(&mut self, rng: &mut StdRng) {
        match rng.random_range(0..8) {
            0..3 => return self.change(rng),
            3..5 => self.db().flush().expect("the disk works"),
            5 => self.db().compact().expect("the disk works"),
            6 => self.db().table("t").expect("it is there").compact().expect("the disk works"),
            _ => {
                self.db.take().expect("it is open").close().expect("the disk works");
                self.db = Some(write_to(&self.machine));
            }
        }
        self.note();
    }
}

/// A range of a reader, and the rows that it still has to return.
struct Open<'m> {
    range: Range,
    at: Version,
    left: Vec<(&'m Vec<u8>, &'m Vec<u8>)>,
}

/// How often reads ended in each way.
#[derive(Debug, Default)]
struct Counts {
    gets: u32,
    renewed: u32,
    outdated: u32,
    went_on: u32,
    whole: u32,
}

/// Checks the error of a read at the version `at`: it must say that the files were replaced by those of another
/// version.
#[track_caller]
fn check_outdated(error: Error, at: Version, newest: Version) {
    match error {
        Error::Outdated { read, newest: named, .. } => {
            assert_eq!((read, named), (at, newest));
            assert_ne!(read, named);
        }
        error => panic!("{error}"),
    }
}

#[test]
fn reads_beside_a_writer_show_one_version_or_name_two() {
    let mut counts = Counts::default();
    for seed in 0..20 {
        println!("seed {seed}");
        let rng = &mut StdRng::seed_from_u64(seed);
        let disk = SimDisk::new(seed);
        let mut writer = Writer::new(&disk);
        writer.change(rng);
        writer.db().flush().expect("the disk works");
        writer.note();
        let db = reader_of(&Machine::simulated_on(disk.clone(), seed));
        let table = db.existing_table("t").expect("a name").expect("it is there");
        for _ in 0..12 {
            check_steps(rng, &mut writer, (&db, &table), &mut counts);
        }
    }
    println!("{counts:?}");
    let Counts { gets, renewed, outdated, went_on, whole } = counts;
    assert!(gets > 1000 && renewed > 50 && outdated > 50 && went_on > 10 && whole > 10, "{counts:?}");
}

/// Opens a range and a snapshot, and while the writer writes more, reads from both, and the newest rows.
fn check_steps(rng: &mut StdRng, writer: &mut Writer, (db, table): (&Database, &Table), counts: &mut Counts) {
    let at = db.version();
    let model = writer.shown[&at].clone();
    let from = key(rng.random_range(0..600));
    let left: Vec<_> = model.range(from.clone()..).rev().collect();
    let mut open = Some(Open { range: table.range(from..), at, left });
    let snapshot = db.snapshot();
    for _ in 0..rng.random_range(1..40) {
        if rng.random_range(0..4) == 0 {
            writer.step(rng);
        }
        let newest = *writer.shown.keys().last().expect("it has flushed");
        let renewed = |db: &Database, before| u32::from(db.version() != before);
        let before = db.version();
        close_files(db);
        let key = key(rng.random_range(0..600));
        let found = get(rng, table, &key);
        let after = db.version();
        assert_eq!(found.as_deref(), writer.shown[&after].get(&key).map(Vec::as_slice), "of version {}", after.0);
        counts.gets += 1;
        counts.renewed += renewed(db, before);

        close_files(db);
        match snapshot.get(table, &key) {
            Ok(value) => assert_eq!(value.as_deref(), model.get(&key).map(Vec::as_slice)),
            Err(error) => {
                check_outdated(error, at, newest);
                counts.outdated += 1;
            }
        }
        close_files(db);
        check_rows(rng, &mut open, newest, counts);
        check_snapshot_range(rng, (&snapshot, table), &model, newest);
        check_snapshot_cursor(rng, (&snapshot, table), &model, newest);
    }
}

/// A get in any of its forms.
fn get(rng: &mut StdRng, table: &Table, key: &[u8]) -> Option<Vec<u8>> {
    let value = match rng.random_range(0..5) {
        0 => table.get(key),
        1 => futures(table.get_async(key)),
        2 => table.multi_get([key]).map(|mut values| values.remove(0)),
        3 => match table.try_get(key) {
            Ok(Tried::Ready(value)) => Ok(value),
            Ok(Tried::WouldFault) => table.get(key),
            Err(error) => Err(error),
        },
        _ => futures(table.multi_get_async([key])).map(|mut values| values.remove(0)),
    };
    value.expect("a read that begins now takes the newest files").map(|value| value.to_vec())
}

fn futures<T>(future: impl Future<Output = T>) -> T {
    smol::block_on(future)
}

/// Reads and checks the next rows of the open range.
fn check_rows(rng: &mut StdRng, open: &mut Option<Open<'_>>, newest: Version, counts: &mut Counts) {
    for _ in 0..rng.random_range(0..40) {
        let Some(Open { range, at, left }) = open else { return };
        match range.next().transpose() {
            Ok(Some((key, value))) => {
                let (expected, row) = left.pop().expect("no row beyond the last");
                assert_eq!((&key[..], &value[..]), (&expected[..], &row[..]));
            }
            Ok(None) => {
                assert!(left.is_empty(), "it ended before {} rows", left.len());
                counts.whole += 1;
                *open = None;
                return;
            }
            Err(error) => {
                check_outdated(error, *at, newest);
                counts.outdated += 1;
                assert!(range.next().is_some_and(|row| row.is_err()), "it stays failed");
                *open = None;
                return;
            }
        }
    }
    counts.went_on += u32::from(open.is_some());
}

/// Reads some rows of the snapshot from the end, and checks them, or the error.
fn check_snapshot_range(rng: &mut StdRng, (snapshot, table): (&Snapshot, &Table), model: &Model, newest: Version) {
    let count = rng.random_range(0..20);
    let mut expected = model.iter().rev();
    for row in snapshot.range(table, ..).rev().take(count) {
        match row {
            Ok((key, value)) => {
                assert_eq!(expected.next().map(|(key, value)| (&key[..], &value[..])), Some((&key[..], &value[..])));
            }
            Err(error) => return check_outdated(error, snapshot.version(), newest),
        }
    }
}

/// Reads some rows around a key with a cursor, and checks them, or the error.
fn check_snapshot_cursor(rng: &mut StdRng, (snapshot, table): (&Snapshot, &Table), model: &Model, newest: Version) {
    let (mut cursor, from) = (snapshot.cursor(table), key(rng.random_range(0..600)));
    let mut expected = model.range(from.clone()..);
    let mut moved = cursor.seek(&from);
    for _ in 0..rng.random_range(0..20) {
        match moved {
            Ok(is_at_row) => {
                let row = expected.next().map(|(key, value)| (&key[..], &value[..]));
                assert_eq!((cursor.key_value(), is_at_row), (row, row.is_some()));
            }
            Err(error) => {
                check_outdated(error, snapshot.version(), newest);
                assert!(cursor.prev().is_err() && cursor.key().is_none(), "it stays failed");
                return;
            }
        }
        moved = cursor.next();
    }
}

/// When the file under a cursor is replaced, the cursor can move on in both directions in the new files.
#[test]
fn a_cursor_goes_on_in_new_files_of_the_same_version() {
    let disk = SimDisk::new(1);
    let mut writer = Writer::new(&disk);
    for seed in 0..4 {
        writer.change(&mut StdRng::seed_from_u64(seed));
        writer.db().flush().expect("the disk works");
    }
    let db = reader_of(&Machine::simulated_on(disk.clone(), 2));
    let table = db.existing_table("t").expect("a name").expect("it is there");
    let rows: Vec<_> = writer.now.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    let middle = rows.len() / 2;
    let mut cursor = table.cursor();
    assert!(cursor.seek(rows[middle].0).expect("the files are there"));
    writer.db().compact().expect("the disk works");
    assert_eq!(cursor.key_value(), Some(rows[middle]));
    for row in &rows[middle + 1..] {
        assert!(cursor.next().expect("the version is the same"));
        assert_eq!(cursor.key_value(), Some(*row));
    }
    assert!(!cursor.next().expect("the version is the same"));
    for row in rows.iter().rev() {
        assert!(cursor.prev().expect("the version is the same"));
        assert_eq!(cursor.key_value(), Some(*row));
    }
}

/// A compaction replaces every file but keeps all versions, so a range that was begun before it still returns all its
/// rows.
#[test]
fn a_range_goes_on_in_new_files_of_the_same_version() {
    let disk = SimDisk::new(1);
    let mut writer = Writer::new(&disk);
    for seed in 0..4 {
        writer.change(&mut StdRng::seed_from_u64(seed));
        writer.db().flush().expect("the disk works");
    }
    let db = reader_of(&Machine::simulated_on(disk.clone(), 2));
    let table = db.existing_table("t").expect("a name").expect("it is there");
    let snapshot = db.snapshot();
    let mut rows = table.iter();
    let mut found = vec![rows.next().expect("there are rows").expect("the files are there")];
    writer.db().compact().expect("the disk works");
    found.extend(rows.map(|row| row.expect("the version is the same")));
    let expected: Vec<_> = writer.now.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    assert_eq!(found.iter().map(|(key, value)| (&key[..], &value[..])).collect::<Vec<_>>(), expected);
    assert_eq!(snapshot.iter(&table).count(), expected.len());
    assert_eq!(table.iter().count(), expected.len());
}

/// When a reader takes newer files, the pages of files that it already had are still in memory.
#[test]
fn pages_of_files_that_stay_are_not_read_again_for_newer_files() {
    let disk = SimDisk::new(1);
    let machine = Machine::simulated_on(disk.clone(), 1);
    let writer = write_to(&machine);
    let (stays, goes) = (writer.table("stays").expect("a name"), writer.table("goes").expect("a name"));
    for i in 0..500 {
        stays.insert(key(i), "value").expect("the disk works");
        goes.insert(key(i), "value").expect("the disk works");
    }
    writer.flush().expect("the disk works");
    let db = Database::builder("db").machine(Machine::simulated_on(disk.clone(), 2)).read_only(true).open();
    let db = db.expect("there is a database");
    let table = |name| db.existing_table(name).expect("a name").expect("it is there");
    assert_eq!(table("stays").iter().count(), 500);
    goes.insert(key(0), "another").expect("the disk works");
    goes.compact().expect("the disk works");
    assert_eq!(table("goes").get(key(0)).expect("newer files are taken").as_deref(), Some(&b"another"[..]));
    let reads = db.metrics().page_reads;
    assert_eq!(table("stays").iter().count(), 500);
    assert_eq!(db.metrics().page_reads, reads);
}

/// If the writer drops a table, the reader can use it until it takes the newest files.
#[test]
fn a_table_that_a_writer_dropped_is_said_to_be_dropped() {
    let disk = SimDisk::new(1);
    let mut writer = Writer::new(&disk);
    writer.change(&mut StdRng::seed_from_u64(1));
    writer.db().flush().expect("the disk works");
    let db = reader_of(&Machine::simulated_on(disk, 2));
    let table = db.existing_table("t").expect("a name").expect("it is there");
    writer.db().drop_table("t").expect("the disk works");
    assert!(matches!(table.get(key(1)), Err(Error::TableDropped(name)) if name == "t"));
    assert_eq!(db.tables(), ["other"]);
}

/// If a file is missing that the newest manifest names, a read returns an error that names the file.
#[test]
fn a_file_that_is_missing_from_the_newest_set_is_named() {
    let disk = SimDisk::new(1);
    let mut writer = Writer::new(&disk);
    writer.change(&mut StdRng::seed_from_u64(1));
    writer.db().flush().expect("the disk works");
    let db = reader_of(&Machine::simulated_on(disk.clone(), 2));
    let table = db.existing_table("t").expect("a name").expect("it is there");
    let files = disk.list("db".as_ref()).expect("it is there");
    for file in files.iter().filter(|file| file.name.ends_with(".sst")) {
        disk.remove(&Path::new("db").join(&file.name)).expect("it is there");
    }
    let error = table.get(key(1)).expect_err("its file is gone");
    assert!(matches!(&error, Error::Page(_)) && error.to_string().contains(".sst"), "{error}");
}

/// A reader's disk. Before one of the reader's operations, another process writes to the database.
#[derive(Debug)]
struct Interrupted {
    disk: Arc<SimDisk>,
    /// The number of operations until the other process acts.
    left: AtomicU64,
}

impl Interrupted {
    /// Counts an operation. At the chosen one, opens the database as a writer, writes to it, and closes it, which
    /// replaces the manifest and the log.
    fn count(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            let writer = write_to(&Machine::simulated_on(self.disk.clone(), 3));
            let table = writer.table("t").expect("it is there");
            table.insert("k", "newer").expect("the disk works");
            writer.compact().expect("the disk works");
        }
    }
}

impl Disk for Interrupted {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        self.count();
        self.disk.open(path, access)
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        unreachable!("a reader writes nothing")
    }
    fn link(&self, _: &Path, _: &Path) -> io::Result<()> {
        unreachable!("a reader writes nothing")
    }
    fn remove(&self, _: &Path) -> io::Result<()> {
        unreachable!("a reader writes nothing")
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        self.count();
        self.disk.list(directory)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.count();
        self.disk.exists(path)
    }
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        unreachable!("a reader writes nothing")
    }
    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        unreachable!("a reader writes nothing")
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        unreachable!("a reader writes nothing")
    }
    fn lock(&self, _: &Path) -> io::Result<Box<dyn Lock>> {
        unreachable!("a reader takes no lock")
    }
}

#[test]
fn a_manifest_that_is_replaced_between_any_two_steps_of_opening_and_reading_is_read_again() {
    let mut interrupted = 0;
    for step in 0.. {
        let disk = SimDisk::new(1);
        let writer = write_to(&Machine::simulated_on(disk.clone(), 1));
        writer.table_with("t", options()).expect("a name").insert("k", "older").expect("the disk works");
        writer.close().expect("the disk works");
        let between = Arc::new(Interrupted { disk: disk.clone(), left: AtomicU64::new(step) });
        let machine = Machine { disk: between.clone(), ..Machine::simulated_on(disk, 2) };
        let db = Database::builder("db").machine(machine).read_only(true).open().expect("it is read again");
        let table = db.existing_table("t").expect("a name").expect("it is there");
        let value = table.get("k").expect("it is read again").expect("it has a value");
        if between.left.load(Ordering::Relaxed) <= step {
            // The open and the read needed no more than `step` operations, so the other process has not acted.
            assert_eq!(value[..], *b"older");
            break;
        }
        assert!(value[..] == *b"older" || value[..] == *b"newer");
        interrupted += 1;
    }
    assert!(interrupted >= 4, "{interrupted} steps");
}

/// The writer writes all rows of a round in one commit, so a read that sees rows of two rounds has mixed two
/// versions.
#[test]
fn reads_beside_a_compacting_writer_on_the_machines_disk_see_one_round_each() {
    const ROUNDS: u32 = 60;
    const ROWS: u32 = 300;
    let directory = tempfile::tempdir().expect("the system has room");
    let writer = Database::open(&directory).expect("the directory is ours");
    let table = writer.table_with("t", options()).expect("a name");
    let write = |round: u32| {
        let mut batch = writer.batch().durability(Durability::Buffered);
        (0..ROWS).for_each(|i| batch.insert(&table, key(i), format!("{round:08} {i:100}")));
        batch.commit().expect("the disk works");
        writer.flush().expect("the disk works");
        if round.is_multiple_of(2) {
            writer.compact().expect("the disk works");
        }
    };
    write(0);
    let is_over = AtomicBool::new(false);
    let mut ends = (0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (1..ROUNDS).for_each(write);
            is_over.store(true, Ordering::Release);
        });
        let open = || Database::builder(&directory).read_only(true).cache_bytes(24 << 10).open_files(1).open();
        let mut db = open().expect("it is read again while it is replaced");
        while !is_over.load(Ordering::Acquire) {
            if ends.0 % 10 == 9 {
                db = open().expect("it is read again while it is replaced");
            }
            ends.0 += 1;
            let table = db.existing_table("t").expect("a name").expect("it is there");
            assert!(table.get(key(ends.0 % ROWS)).expect("a new read takes the newest files").is_some());
            let mut rounds: Vec<Vec<u8>> = Vec::new();
            for row in table.iter() {
                match row {
                    Ok((_, value)) => rounds.push(value[..8].to_vec()),
                    Err(Error::Outdated { read, newest, .. }) => {
                        assert!(read < newest);
                        ends.1 += 1;
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(rounds.windows(2).all(|pair| pair[0] == pair[1]), "rows of several rounds");
            ends.2 += u32::from(rounds.len() == ROWS as usize);
        }
    });
    println!("{} scans, {} were outdated, {} whole", ends.0, ends.1, ends.2);
    writer.close().expect("the disk works");
}
