//! Makes checkpoints while a thread commits. Shows what a checkpoint costs for each file, and the longest time that
//! a commit took.
//!
//! `cargo run --release -p larch-db --example checkpoints -- 400` makes a database of 400 files.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it measures a real machine")]

use larch::options::LevelOptions;
use larch::{Database, Durability, Table};
use os::sync::atomic::{AtomicBool, Ordering};
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

const FILE_BYTES: u64 = 256 << 10;
const VALUE: [u8; 1000] = [b'v'; 1000];
const CHECKPOINTS: u32 = 20;

/// Commits rows one by one as long as `goes_on` returns true. Returns the number of rows and the longest time of one
/// commit.
fn write(table: &Table, goes_on: impl Fn(u64) -> bool) -> larch::Result<(u64, Duration)> {
    let (mut count, mut longest) = (0, Duration::ZERO);
    while goes_on(count) {
        let start = Instant::now();
        table.insert(format!("new {count:012}"), VALUE)?;
        longest = longest.max(start.elapsed());
        count += 1;
    }
    Ok((count, longest))
}

fn main() -> Result<(), Box<dyn Error>> {
    let files: u64 = std::env::args().nth(1).map_or(Ok(4), |files| files.parse())?;
    let directory = tempfile::tempdir()?;
    let levels = LevelOptions { file_bytes: FILE_BYTES, ..LevelOptions::default() };
    let builder = Database::builder(directory.path().join("db")).durability(Durability::Buffered).levels(levels);
    let db = builder.open()?;
    let table = db.table("t")?;
    let mut import = table.import()?;
    for row in 0..files * FILE_BYTES / VALUE.len() as u64 {
        import.add(format!("row {row:012}").as_bytes(), &VALUE)?;
    }
    import.finish(|_| {})?;

    let (commits, longest) = write(&table, |count| count < files * 1000)?;
    println!("no checkpoints: {commits} commits, the longest took {longest:?}");
    let end = AtomicBool::new(false);
    let (commits, longest) = thread::scope(|scope| -> larch::Result<_> {
        let writer = scope.spawn(|| write(&table, |_| !end.load(Ordering::Relaxed)));
        for n in 0..CHECKPOINTS {
            let start = Instant::now();
            let report = db.checkpoint(directory.path().join(format!("copy {n}")));
            if report.is_err() || n + 1 == CHECKPOINTS {
                end.store(true, Ordering::Relaxed);
            }
            println!("  a checkpoint of {} files in {:?}", report?.files, start.elapsed());
        }
        writer.join().expect("the writer does not panic")
    })?;
    println!("{CHECKPOINTS} checkpoints: {commits} commits, the longest took {longest:?}");

    // If no rows are in memory, a checkpoint writes no rows, and only its files cost time.
    db.flush()?;
    let start = Instant::now();
    let report = db.checkpoint(directory.path().join("last copy"))?;
    let time = start.elapsed();
    println!("nothing in memory: {} files in {time:?}, {:?} a file", report.files, time / report.files.max(1) as u32);
    Ok(())
}
