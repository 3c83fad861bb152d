//! The memory that metrics report for the parts of a database must add up to what the process has grown by. This
//! file has only one test, because another one in the same process would allocate memory, too.

#![allow(clippy::disallowed_methods, reason = "a directory of its own on the real disk")]

use kit::Scratch;
use kit::allocations::{Counting, Process};
use larch::options::LevelOptions;
use larch::{Compression, Database, Durability, Table, TableOptions};
use os::{Arena, Buffer};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

#[global_allocator]
static COUNTING: Counting<Process> = Counting::new();

/// The memory of the process: the heap, buffers with mappings of their own, and the arenas of caches and memtables.
fn memory_bytes() -> u64 {
    Process::live_heap_bytes() + (Buffer::mapped_bytes() + Arena::all_backed_bytes()) as u64
}

/// Compares the sum that metrics report with the growth of the process: they may differ by a fiftieth of the sum
/// plus 128 KiB.
fn check(step: &str, db: &Database, before: u64) {
    let metrics = db.metrics();
    let memory = *metrics.memory();
    let (told, taken) = (memory.total_bytes(), memory_bytes().saturating_sub(before));
    println!("{step}: told {told}, taken {taken}: {memory:?}");
    let margin = taken / 50 + (128 << 10);
    assert!(told.abs_diff(taken) <= margin, "{step}: {told} bytes told, {taken} taken; {memory:?}");
}

fn key(i: u64) -> Vec<u8> {
    format!("key {:016}", i).into_bytes()
}

fn insert(db: &Database, table: &Table, random: &mut Xoshiro256PlusPlus, rows: u64) {
    for _ in 0..rows / 100 {
        let mut batch = db.batch().durability(Durability::Buffered);
        for _ in 0..100 {
            batch.insert(table, key(random.random_range(0..1 << 20)), [b'v'; 100]);
        }
        batch.commit().expect("the disk works");
    }
}

#[test]
fn owners_hold_what_the_process_has_grown_by() {
    let seed = 7;
    println!("seed {seed}");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let scratch = Scratch::new("memory");
    let directory = scratch.join("db");
    let before = memory_bytes();
    // Small files, so that the table has many.
    let levels = LevelOptions { file_bytes: 64 << 10, ..LevelOptions::default() };
    let builder = Database::builder(&directory).cache_bytes(8 << 20).write_buffer_bytes(32 << 20).levels(levels);
    let db = builder.open().expect("the disk works");
    check("open", &db, before);

    let table = db.table("t").expect("the disk works");
    insert(&db, &table, &mut random, 50_000);
    let memory = *db.metrics().memory();
    assert!(memory.memtable_bytes > 8 << 20, "{memory:?}");
    check("written", &db, before);

    db.flush().expect("the disk works");
    insert(&db, &table, &mut random, 50_000);
    db.flush().expect("the disk works");
    db.compact().expect("the disk works");
    let metrics = db.metrics();
    assert!(metrics.files > 100 && metrics.memory().manifest_bytes > 100 << 10, "{metrics:?}");
    check("compacted", &db, before);

    for _ in 0..20_000 {
        table.get(key(random.random_range(0..1 << 20))).expect("the disk works");
    }
    let memory = *db.metrics().memory();
    assert!(memory.cached_data_bytes > 6 << 20 && memory.cached_index_bytes > 0, "{memory:?}");
    check("read", &db, before);

    assert_eq!(db.metrics().memory().unpacker_bytes, 0);
    table.alter(|options| options.compression = Compression::ZSTD).expect("the disk works");
    table.compact().expect("the disk works");
    for _ in 0..20_000 {
        table.get(key(random.random_range(0..1 << 20))).expect("the disk works");
    }
    assert!(db.metrics().memory().unpacker_bytes > 64 << 10);
    check("read of pages packed by zstd", &db, before);

    let mut ranges: Vec<_> = (0..100).map(|i| table.range(key(i << 10)..)).collect();
    for range in &mut ranges {
        range.next().expect("there are rows").expect("the disk works");
    }
    assert!(db.metrics().memory().session_bytes > 0);
    check("ranges", &db, before);
    drop(ranges);

    drop(table);
    db.close().expect("the disk works");
    std::fs::remove_dir_all(&directory).expect("the directory is the test's");
    let left = memory_bytes().saturating_sub(before);
    assert!(left < 64 << 10, "{left} bytes are left of a closed database");

    let before = memory_bytes();
    let builder = Database::builder(&directory).cache_bytes(8 << 20).write_buffer_bytes(32 << 20);
    let db = builder.open().expect("the disk works");
    // An import in order has the builder of a large file.
    let options = TableOptions { compression: Compression::ZSTD, ..TableOptions::default() };
    let other = db.table_with("other", options).expect("the disk works");
    let mut import = other.import().expect("the disk works");
    for i in 0..250_000 {
        import.add(&key(i), &[b'v'; 100]).expect("the disk works");
    }
    assert!(db.metrics().memory().builder_bytes > 128 << 10);
    check("import in order", &db, before);
    // Out of order, it also has rows to be sorted.
    for i in (0..100_000).rev() {
        import.add(&key(i), &[b'v'; 100]).expect("the disk works");
    }
    assert!(db.metrics().memory().import_bytes > 10 << 20);
    check("import out of order", &db, before);
    import.finish(|_| {}).expect("the disk works");
    db.compact_due().expect("the disk works");
    let memory = *db.metrics().memory();
    assert_eq!((memory.builder_bytes, memory.import_bytes), (0, 0));
    check("imported", &db, before);
    db.close().expect("the disk works");
    std::fs::remove_dir_all(&directory).expect("the directory is the test's");

    let before = memory_bytes();
    let levels = LevelOptions { level0_files: 1000, slow_files: 1000, ..LevelOptions::default() };
    let builder = Database::builder(&directory).cache_bytes(8 << 20).write_buffer_bytes(32 << 20).levels(levels);
    let db = builder.open().expect("the disk works");
    let [few, many] = [10_000, 100_000].map(|erases| {
        let table = db.table(&format!("{erases} range erases")).expect("the disk works");
        table.insert(key(erases), "a row below them").expect("the disk works");
        table.compact().expect("the disk works");
        // The snapshot still sees the row, so a compaction must keep the range erases that cover it.
        let snapshot = db.snapshot();
        for i in 0..erases / 500 {
            let mut batch = db.batch().durability(Durability::Buffered);
            for i in 500 * i..500 * (i + 1) {
                let i = i * 7919 % erases;
                batch.remove_range(&table, key(i)..[key(i), b"x".to_vec()].concat());
            }
            batch.commit().expect("the disk works");
        }
        db.flush().expect("the disk works");
        let mut most = 0;
        let look = &mut |_| {
            // The compaction fills its memory with pages that it reads ahead, which are counted separately.
            let pages = db.metrics().memory().compaction_bytes;
            most = most.max(memory_bytes().saturating_sub(before + pages));
            check("compacting range erases", &db, before);
        };
        table.compact_with(look).expect("the disk works");
        drop(snapshot);
        assert!(most > 0, "the compaction was not looked at");
        most
    });
    println!("a database that compacts 10,000 range erases takes {few} bytes, with 100,000 {many}");
    assert!(many < few + (512 << 10), "{few} bytes for 10,000 range erases, {many} for 100,000");
    db.close().expect("the disk works");
}
