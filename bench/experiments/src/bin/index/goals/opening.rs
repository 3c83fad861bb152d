//! Measures how long a database with many files takes to open, and how much memory it keeps for each file.
//!
//! The engine writes 16,000 files to a simulated disk. The manifest and the log are then copied to the real disk,
//! where the SSTs are empty files, so that any read of them would fail.

use crate::rows::{sequential_key, value};
use crate::{Extent, Result};
use experiments::outcome::Goal;
use kit::Scratch;
use kit::allocations::Thread;
use kit::median;
use larch::options::LevelOptions;
use larch::{Database, TableOptions};
use os::sim::SimDisk;
use os::{Access, Machine};
use std::path::{Path, PathBuf};
use std::time::Instant;

const FILES: u64 = 16_000;

/// Makes a database of `files` SSTs without their contents.
fn hollow(scratch: &Scratch, name: &str, files: u64) -> Result<PathBuf> {
    let simulated = SimDisk::new(1);
    let directory = Path::new("db");
    // With these options, a file holds one page, and a page one row.
    let levels = LevelOptions { file_bytes: 1, ..LevelOptions::default() };
    let machine = Machine::simulated_on(simulated.clone(), 1);
    let database = Database::builder(directory).machine(machine).levels(levels).open()?;
    let table = database.table_with("t", TableOptions { page_bytes: 256, ..TableOptions::default() })?;
    let mut import = table.import()?;
    for number in 0..files {
        import.add(&sequential_key(number), &value(number))?;
    }
    let made = import.finish(|_| {})?.files;
    if made != files {
        return Err(format!("{made} files were made, not {files}").into());
    }
    drop(table);
    database.close()?;

    let real = Machine::real().disk;
    let target = scratch.join(name);
    real.create_dir(&target)?;
    let source: &dyn os::Disk = &*simulated;
    for entry in source.list(directory)? {
        let file = real.open(&target.join(&entry.name), Access::Create)?;
        if !entry.name.ends_with(".sst") {
            file.write_at(&source.read_all(&directory.join(&entry.name))?, 0)?;
        }
    }
    Ok(target)
}

/// Measures how long opening takes.
pub fn measure(scratch: &Scratch, extent: Extent) -> Result<Vec<Goal>> {
    let directory = hollow(scratch, "many", FILES)?;
    let manifest_bytes = manifest_bytes(&directory)?;
    let mut times = Vec::new();
    for _ in 0..extent.effort().repeats {
        let start = Instant::now();
        let database = Database::open(&directory)?;
        times.push(start.elapsed().as_secs_f64());
        let files = database.metrics().files;
        if files != FILES {
            return Err(format!("{files} files were found").into());
        }
        database.close()?;
    }
    let time = median(&times);
    let metric = "opening a database, 16,000 files in the manifest";
    let note =
        format!("opened for writing on the real disk: a manifest of {manifest_bytes} bytes is read and written anew");
    Ok(vec![Goal::in_words(metric, "<= 1 s", format!("{time:.3} s"), time <= 1.0).note(note)])
}

fn manifest_bytes(directory: &Path) -> Result<u64> {
    let entries = Machine::real().disk.list(directory)?;
    Ok(entries.iter().filter(|entry| entry.name.starts_with("MANIFEST-")).map(|entry| entry.bytes).max().unwrap_or(0))
}

/// Measures the heap memory that an open database keeps for each file of which no page is in memory.
pub fn resident_memory(scratch: &Scratch, _: Extent) -> Result<Vec<Goal>> {
    let live = |files: u64| -> Result<i64> {
        let directory = hollow(scratch, &format!("files-{files}"), files)?;
        let before = Thread::so_far().live_bytes();
        // A read-only database starts no threads, so this thread allocated everything.
        let database = Database::builder(&directory).read_only(true).open()?;
        let bytes = Thread::so_far().live_bytes() - before;
        if database.metrics().files != files {
            return Err("files are missing".into());
        }
        Ok(bytes)
    };
    // The difference between two databases cancels out the memory that does not depend on the number of files.
    let (few, many) = (1_000, FILES);
    let bytes_per_file = (live(many)? - live(few)?) as f64 / (many - few) as f64;
    let of_levels = LevelOptions::default().file_bytes;
    // Nine tenths of a terabyte table are in files of the deepest level, which are four times as long as those of
    // the uppermost.
    let deep_bytes = of_levels << 2;
    let per_terabyte = |file_bytes: u64| bytes_per_file * 1e12 / file_bytes as f64 / 1e6;
    let mb = per_terabyte(deep_bytes);
    if bytes_per_file <= 0.0 {
        return Err("no memory was counted".into());
    }
    let line = Goal::in_words("memory that cannot be evicted", "<= 4 MB/TB", format!("{mb:.2} MB/TB"), mb <= 4.0)
        .note(format!(
            "{bytes_per_file:.0} bytes of heap a file (keys of 24 bytes at both ends), files of {} MiB as the deepest level has \
             them by default",
            deep_bytes >> 20
        ))
        .note(format!("{:.2} MB/TB if all files had the {} MiB of the first level", per_terabyte(of_levels), of_levels >> 20));
    Ok(vec![line])
}
