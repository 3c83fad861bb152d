//! Tests background work that fails for a while, on a simulated disk and clock: the failure is reported, and the
//! work succeeds by itself once the cause is gone.

use crate::core::background::trouble::FailedWork;
use crate::options::LevelOptions;
use crate::{Database, Durability, Error, Result, Table};
use os::sim::SimDisk;
use os::sync::Arc;
use os::{Disk, Machine};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

const LONGER_THAN_ANY_RETRY: Duration = Duration::from_secs(11);

fn open(machine: &Machine, level0_files: usize) -> Database {
    let levels = LevelOptions { level0_files, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(machine.clone()).write_buffer_bytes(64 << 10).levels(levels);
    builder.durability(Durability::Buffered).open().expect("it opens")
}

pub fn insert(table: &Table, i: u64) -> Result<()> {
    table.insert(format!("k{i:06}"), [7; 100]).map(|_| ())
}

/// Writes rows with numbers from `from` on, until a write is refused. Returns the number of the refused row and the
/// error.
fn fill(table: &Table, from: u64) -> (u64, Error) {
    (from..from + 10_000)
        .find_map(|i| insert(table, i).err().map(|error| (i, error)))
        .expect("64 KiB do not hold that many rows")
}

fn ssts(disk: &SimDisk) -> u64 {
    let entries = disk.list(Path::new("db")).expect("the directory is there");
    entries.iter().filter(|entry| entry.name.ends_with(".sst")).count() as u64
}

/// The number of files in level 0 of the table.
pub fn level0(table: &Table) -> u64 {
    let levels = table.stats().expect("the table is there").levels;
    levels.iter().filter(|level| level.level == 0).map(|level| level.files).sum()
}

/// A machine with a database that has these tables, each with five files in level 0. No compaction has run.
pub fn with_level0(tables: &[&str]) -> (Machine, Arc<SimDisk>) {
    let (machine, disk) = Machine::simulated(3);
    let db = open(&machine, 100);
    for file in 0..5 {
        for name in tables {
            let table = db.table(name).expect("a table");
            (0..50).for_each(|i| insert(&table, i * 5 + file).expect("a row"));
        }
        db.flush().expect("the disk works");
    }
    drop(db);
    (machine, disk)
}

#[test]
fn a_flush_that_fails_is_tried_again_and_writes_go_on_when_the_disk_has_room() {
    let (machine, disk) = Machine::simulated(3);
    let db = open(&machine, 4);
    let table = db.table("t").expect("a table");
    disk.fail_opens(".sst", ErrorKind::StorageFull);
    let (next, error) = fill(&table, 0);
    assert!(next > 200, "{next} rows fit the write buffer");
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(error.to_string().contains("the write buffer is full"), "{error}");
    assert!(error.to_string().contains(".sst"), "the file is named: {error}");
    assert_eq!(table.iter().count() as u64, next, "reads go on, and a refused row is not there");
    for round in 0..10 {
        let metrics = db.metrics();
        let [trouble] = &metrics.troubles[..] else { panic!("{:?}", metrics.troubles) };
        assert_eq!((&trouble.work, trouble.attempts), (&FailedWork::Flush, round + 1));
        assert_eq!(metrics.failed_flushes, u64::from(round) + 1);
        let wait = trouble.retry_in.expect("it is tried again");
        assert!(wait <= Duration::from_secs(10), "{wait:?}");
        // The flush is not retried before `wait` has passed.
        machine.clock.sleep(wait - Duration::from_nanos(1));
        table.core().background.drive();
        assert_eq!(db.metrics().failed_flushes, u64::from(round) + 1);
        machine.clock.sleep(Duration::from_nanos(1));
        table.core().background.drive();
        assert!(matches!(insert(&table, next), Err(Error::Full { .. })));
    }
    assert!(db.flush().is_err_and(|error| error.to_string().contains(".sst")), "a flush that was asked for says why");
    disk.clear_faults();
    machine.clock.sleep(LONGER_THAN_ANY_RETRY);
    table.core().background.drive();
    assert!(db.metrics().troubles.is_empty());
    (next..next + 1000).for_each(|i| insert(&table, i).expect("there is room"));
    db.flush().expect("the disk works");
    assert_eq!(table.iter().count() as u64, next + 1000);
    assert_eq!(ssts(&disk), db.metrics().files, "failed tries left nothing behind");
}

#[test]
fn a_flush_that_is_asked_for_does_not_wait_for_the_next_retry() {
    let (machine, disk) = Machine::simulated(3);
    let db = open(&machine, 4);
    let table = db.table("t").expect("a table");
    disk.fail_opens(".sst", ErrorKind::Other);
    let (next, _) = fill(&table, 0);
    disk.clear_faults();
    let before = machine.clock.now();
    db.flush().expect("the disk works");
    assert_eq!(machine.clock.now(), before);
    assert!(db.metrics().troubles.is_empty());
    insert(&table, next).expect("there is room");
}

#[test]
fn a_compaction_that_fails_is_tried_again_while_writes_go_on() {
    let (machine, disk) = with_level0(&["t"]);
    disk.fail_opens(".sst", ErrorKind::QuotaExceeded);
    let db = open(&machine, 2);
    let table = db.table("t").expect("a table");
    for attempts in 1..=5 {
        insert(&table, 1000 + u64::from(attempts)).expect("a compaction that fails stops no write");
        let metrics = db.metrics();
        let [trouble] = &metrics.troubles[..] else { panic!("{:?}", metrics.troubles) };
        assert_eq!((&trouble.work, trouble.attempts), (&FailedWork::Compaction("t".to_owned()), attempts));
        assert!(trouble.cause.to_string().contains(".sst"), "{}", trouble.cause);
        machine.clock.sleep(trouble.retry_in.expect("it is tried again"));
    }
    disk.clear_faults();
    machine.clock.sleep(LONGER_THAN_ANY_RETRY);
    insert(&table, 2000).expect("a row");
    let metrics = db.metrics();
    assert!(metrics.troubles.is_empty() && metrics.failed_compactions == 5, "{:?}", metrics.troubles);
    assert_eq!(level0(&table), 0);
    assert_eq!(table.iter().count(), 256);
    assert_eq!(ssts(&disk), metrics.files, "failed tries left nothing behind");
}

#[test]
fn a_corrupt_input_stops_the_compaction_of_its_table_alone_and_says_so() {
    let (machine, disk) = with_level0(&["bad", "good"]);
    let flip = |db: &Database| {
        let view = db.table("bad").expect("a table").core().views.newest();
        let bad = view.files.tables.values().find(|table| table.info.name == "bad").expect("it is there");
        let file = bad.levels[0][0].path().to_owned();
        disk.flip_bit(&file, 100, 3);
        file
    };
    let file = flip(&open(&machine, 100));
    let db = open(&machine, 2);
    let (bad, good) = (db.table("bad").expect("a table"), db.table("good").expect("a table"));
    for _ in 0..5 {
        insert(&good, 1).expect("a row");
        machine.clock.sleep(Duration::from_secs(3600));
    }
    let metrics = db.metrics();
    let [trouble] = &metrics.troubles[..] else { panic!("{:?}", metrics.troubles) };
    assert_eq!((&trouble.work, trouble.attempts), (&FailedWork::Compaction("bad".to_owned()), 1));
    assert!(trouble.cause.is_corruption() && trouble.retry_in.is_none(), "{trouble:?}");
    assert!(trouble.cause.to_string().contains(file.to_str().expect("a name of ours")), "{}", trouble.cause);
    assert_eq!((level0(&bad), level0(&good)), (5, 0), "the other table is compacted");
    insert(&bad, 1).expect("the table takes writes");
    assert!(db.drop_table("bad").expect("the disk works"));
    insert(&good, 2).expect("a row");
    db.flush().expect("the disk works");
    assert!(db.metrics().troubles.is_empty(), "a table that is gone is no trouble");
}

#[test]
fn an_import_that_waits_for_a_flush_does_not_wait_for_the_job_that_tidies_up_an_idle_database() {
    let (machine, disk) = Machine::simulated(3);
    let db = open(&machine, 4);
    let table = db.table("t").expect("a table");
    insert(&table, 0).expect("a row");
    // The import and the idle job both lock the writer while they wait for a flush. On this machine, the waiting
    // thread does the flush itself, along with all other jobs that are due.
    for _ in 0..3 {
        disk.fail_opens(".sst", ErrorKind::StorageFull);
        let mut import = table.import().expect("an import");
        disk.clear_faults();
        import.add(b"k", b"v").expect("it is in memory");
        disk.fail_opens(".sst", ErrorKind::StorageFull);
        import.finish(|_| {}).expect_err("no file can be made");
        machine.clock.sleep(LONGER_THAN_ANY_RETRY);
    }
    disk.clear_faults();
    assert_eq!(table.iter().count(), 1);
}
