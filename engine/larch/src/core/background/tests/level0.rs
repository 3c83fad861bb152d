//! Tests that level 0 stays within its limit even if compactions are slow, and that events report stalled commits.

use super::retries::{insert, level0, with_level0};
use crate::base::event::{Event, StallReason};
use crate::options::LevelOptions;
use crate::{Database, Durability, Error};
use os::Machine;
use os::real::ThreadPool;
use os::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Level 0 may never have more files than this.
const MOST_FILES: u64 = 64;

#[test]
fn writers_wait_for_places_in_level_0_and_are_let_go_by_a_compaction() {
    const ROWS: u64 = 20_000;
    let (machine, _) = Machine::simulated(5);
    let machine = Machine { threads: ThreadPool::new(2), ..machine };
    let (send, events) = std::sync::mpsc::channel();
    let builder = Database::builder("db").machine(machine).write_buffer_bytes(64 << 10).cache_bytes(1 << 20);
    let hook = move |event: &Event| send.send(event.clone()).unwrap_or_default();
    let db = builder.durability(Durability::Buffered).on_event(hook).open().expect("a new database");
    let table = db.table("t").expect("a table");
    // No compaction can run while the test holds this lock.
    let turn = table.core().writes.levels.own();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..ROWS).for_each(|i| insert(&table, i * 7919 % ROWS).expect("it waits for room"));
            is_done.store(true, Ordering::Release);
        });
        let next = || events.recv().expect("the database is open");
        let is_level0 = |event: &Event| matches!(event, Event::Stalled { reason: StallReason::Level0 });
        while !is_level0(&next()) {
            assert!(level0(&table) <= MOST_FILES);
        }
        assert_eq!((level0(&table), is_done.load(Ordering::Acquire)), (48, false));
        assert_eq!(db.metrics().level0_stalls, 1);
        for _ in 0..12 {
            db.flush().expect("a flush that is asked for finds a place");
        }
        assert!(level0(&table) <= MOST_FILES, "{} files", level0(&table));
        drop(turn);
        table.core().background.wake_compact();
        while !matches!(next(), Event::Resumed { reason: StallReason::Level0, .. }) {}
    });
    assert!(is_done.load(Ordering::Acquire) && level0(&table) <= MOST_FILES);
    assert_eq!(table.iter().count() as u64, ROWS);
    db.compact_due().expect("the disk works");
    assert!(level0(&table) < 4);
}

#[test]
fn a_table_that_cannot_be_compacted_takes_no_writes_once_its_level_0_is_full_and_others_do() {
    let (machine, disk) = with_level0(&["bad", "good"]);
    let open = || {
        let levels = LevelOptions { level0_files: 2, ..LevelOptions::default() };
        let builder = Database::builder("db").machine(machine.clone()).write_buffer_bytes(64 << 10).levels(levels);
        builder.durability(Durability::Buffered).open().expect("it opens")
    };
    let db = open();
    let (bad, good) = (db.table("bad").expect("a table"), db.table("good").expect("a table"));
    let file = {
        let view = bad.core().views.newest();
        let table = view.files.tables.get(&bad.id()).expect("it is there");
        let files: Vec<_> = table.files().map(|(_, file)| file.path().to_owned()).collect();
        files.into_iter().next().expect("it has rows")
    };
    disk.flip_bit(&file, 100, 3);
    let error = (0..100_000).find_map(|i| insert(&bad, i).err()).expect("level 0 is full at some time");
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(error.to_string().contains("level 0 of a table is full"), "{error}");
    assert!(error.to_string().contains(file.to_str().expect("a name of ours")), "{error}");
    assert!((48..=MOST_FILES).contains(&level0(&bad)), "{} files", level0(&bad));
    (0..20_000).for_each(|i| insert(&good, i).expect("the other table takes writes"));
    db.flush().expect("the disk works");
    assert!(level0(&bad) <= MOST_FILES && level0(&good) < 4);
}

#[test]
fn level_0_is_compacted_beside_readers_whose_pages_fill_a_small_cache() {
    let (machine, _) = Machine::simulated(6);
    let levels = LevelOptions { level0_files: 4, ..LevelOptions::default() };
    let builder = Database::builder("db").machine(machine).write_buffer_bytes(64 << 10).cache_bytes(1 << 20);
    let db = builder.levels(levels).durability(Durability::Buffered).open().expect("a new database");
    let table = db.table("t").expect("a table");
    let mut values = Vec::new();
    for round in 0..60 {
        (0..300).for_each(|i| insert(&table, (round * 300 + i) * 7919 % 20_000).expect("a row"));
        // The test keeps the values that it reads, and each value pins a page in memory.
        let ranges = (0..50).map(|i| table.range(format!("k{:06}", (round * 50 + i) * 397 % 20_000)..));
        values.extend(ranges.filter_map(|mut range| range.next()).map(|row| row.expect("the disk works")));
        db.flush().expect("the disk works");
        assert!(level0(&table) < 8, "{} files", level0(&table));
    }
    assert_eq!(db.metrics().level0_stalls, 0);
    assert_eq!(db.metrics().memory().compaction_bytes, 0, "a compaction that is done holds nothing");
}

#[test]
fn a_table_that_is_left_alone_has_few_files_in_level_0_after_a_second() {
    let (machine, _) = Machine::simulated(7);
    let db = Database::builder("db").machine(machine.clone()).open().expect("a new database");
    let table = db.table("t").expect("a table");
    let drive = || table.core().background.drive();
    for round in 1..=6 {
        (0..100).for_each(|i| insert(&table, i * 7919 % 20_000).expect("a row"));
        db.flush().expect("the disk works");
        drive();
        assert_eq!(level0(&table), round, "more may come");
    }
    machine.clock.sleep(Duration::from_millis(999));
    drive();
    assert_eq!(level0(&table), 6);
    machine.clock.sleep(Duration::from_millis(1));
    drive();
    assert_eq!(level0(&table), 0);
}

#[test]
fn a_table_that_is_read_while_it_is_written_has_few_files_in_level_0() {
    let (machine, _) = Machine::simulated(8);
    let db = Database::builder("db").machine(machine).open().expect("a new database");
    let table = db.table("t").expect("a table");
    let mut most = 0;
    for _ in 0..20 {
        (0..100).for_each(|i| insert(&table, i * 7919 % 20_000).expect("a row"));
        db.flush().expect("the disk works");
        for i in 0..1000 {
            table.get(format!("k{i:06}")).expect("the disk works");
        }
        table.core().background.drive();
        most = most.max(level0(&table));
    }
    assert!(most <= 5, "{most} files");
}
