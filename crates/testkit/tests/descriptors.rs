//! Open descriptors stay within `open_files`: those that are kept always, and those in use are one more for each read that is
//! under way.

#![allow(clippy::disallowed_methods, reason = "descriptors are the machine's, and so are the threads that use them")]

use larch::os::Machine;
use larch::os::sim::SimDisk;
use larch::os::sync::atomic::{AtomicBool, Ordering};
use larch::{Database, LevelOptions, PageCache, Table, TableOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

const OPEN_FILES: usize = 4;
const FILES: u32 = 60;
const THREADS: u32 = 6;

fn key(i: u32) -> Vec<u8> {
    format!("key {i:06}").into_bytes()
}

/// A database of many files that nobody merges, each with rows of its own.
fn filled(machine: &Machine, directory: &Path, cache: Option<&Arc<PageCache>>) -> (Database, Table) {
    let levels = LevelOptions { level0_files: 1_000, slow_files: 2_000, ..LevelOptions::default() };
    let builder = Database::builder(directory).machine(machine.clone()).levels(levels).open_files(OPEN_FILES);
    let builder = match cache {
        Some(cache) => builder.page_cache(cache),
        // So little that most reads are of the disk.
        None => builder.cache_bytes(1 << 20),
    };
    let db = builder.open().expect("the disk works");
    let options = TableOptions { page_bytes: 4096, node_bytes: 4096, ..TableOptions::default() };
    let table = db.table_with("t", options).expect("the disk works");
    if table.stats().expect("it is there").files == 0 {
        for file in 0..FILES {
            let mut batch = db.batch();
            (0..50).for_each(|row| batch.insert(&table, key(file * 50 + row), [b'v'; 400]));
            batch.commit().expect("the disk works");
            db.flush().expect("the disk works");
        }
    }
    (db, table)
}

#[test]
fn no_more_files_stay_open_than_allowed_whatever_fails() {
    let (machine, disk): (Machine, Arc<SimDisk>) = Machine::simulated(11);
    let cache = PageCache::new(1 << 20, OPEN_FILES, sst::validate);
    let (db, table) = filled(&machine, Path::new("db"), Some(&cache));
    let open = || db.metrics().cache.open_files;
    let mut failed = 0;
    for i in 0..3_000 {
        // Every third read meets an error at one of its first operations: opening, measuring or reading.
        if i % 3 == 0 {
            disk.fail_operation(u64::from(i % 5), ErrorKind::Other);
        }
        failed += u64::from(table.get(key(i * 7 % (FILES * 50))).is_err());
        disk.clear_faults();
        assert!(open() <= OPEN_FILES, "{} open after read {i}", open());
    }
    assert!(failed > 100, "{failed}");
    assert!(db.check(&mut |_| {}).expect("nothing fails any more").problems.is_empty());
    assert!(open() <= OPEN_FILES);
    table.compact().expect("nothing fails any more");
    assert!(open() <= OPEN_FILES);
    drop((table, db));
    assert_eq!(cache.usage().open_files, 0, "nothing stays open");
}

/// Descriptors of SSTs in `directory` that this process has open.
#[cfg(target_os = "linux")]
fn descriptors(directory: &Path) -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").expect("it is there on Linux");
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|path| path.starts_with(directory) && path.extension().is_some_and(|end| end == "sst")).count()
}

#[cfg(target_os = "linux")]
#[test]
fn the_process_has_few_descriptors_while_many_threads_read_many_files() {
    let machine = Machine::real();
    let directory = std::env::temp_dir().join(format!("larch-descriptors-{:016x}", machine.random.next_u64()));
    let (db, table) = filled(&machine, &directory, None);
    let is_done = AtomicBool::new(false);
    let mut most = 0;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (table, is_done) = (&table, &is_done);
            scope.spawn(move || {
                for i in 0..2_000 {
                    table.get(key((i * 31 + thread * 977) % (FILES * 50))).expect("the disk works");
                }
                is_done.store(true, Ordering::Release);
            });
        }
        while !is_done.load(Ordering::Acquire) {
            most = most.max(descriptors(&directory));
        }
    });
    // Every key is in one file, so that each thread uses one descriptor at a time, which may have left the kept ones.
    assert!(most > 0 && most <= OPEN_FILES + THREADS as usize, "{most}");
    assert!(descriptors(&directory) <= OPEN_FILES, "{}", descriptors(&directory));
    assert!(db.metrics().cache.open_files <= OPEN_FILES);
    drop((table, db));
    assert_eq!(descriptors(&directory), 0);
    std::fs::remove_dir_all(&directory).expect("it is the test's");
}
