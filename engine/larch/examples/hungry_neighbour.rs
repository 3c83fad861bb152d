//! Measures how fast a database with an elastic cache gives memory back to another process, and whether the system has
//! to end one of the two.
//!
//! `cargo run --release -p larch-db --example hungry_neighbour -- 1000000 3 5` writes a million rows of 1 KB, reads
//! until the cache no longer grows, and then starts, five times, a process that takes 3 tenths of the machine's memory
//! as fast as it can, holds it for a second, and ends. To measure in a control group of 1 GiB, start it in a shell like
//! this, as root:
//!
//! ```text
//! # control groups of version 2                         # of version 1
//! mkdir /sys/fs/cgroup/larch                            mkdir /sys/fs/cgroup/memory/larch
//! cd /sys/fs/cgroup/larch                               cd /sys/fs/cgroup/memory/larch
//! echo 1G > memory.max                                  echo 1G > memory.limit_in_bytes
//! echo $$ > cgroup.procs                                echo $$ > cgroup.procs
//! ```
//!
//! A process that the system ends for lack of memory fails the measurement.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it measures a real machine")]

use larch::machine::Machine;
use larch::{Budget, Database, Table};
use os::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::error::Error;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

const MIB: u64 = 1 << 20;
const VALUE_BYTES: usize = 1000;
const READERS: usize = 2;
/// The first argument of a process that takes memory.
const NEIGHBOUR: &str = "neighbour";
/// If the cache has not grown for this time, it is as large as it gets.
const REST: Duration = Duration::from_secs(3);

/// Turns a number into one that looks random. Different numbers give different results.
fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn value(number: u64) -> [u8; VALUE_BYTES] {
    std::array::from_fn(|at| scatter(number).to_le_bytes()[at % 8])
}

fn sleep(time: Duration) {
    Machine::real().clock.sleep(time);
}

/// The tightest scope of the memory: all of it, and what is available.
fn memory() -> Outcome<(u64, u64)> {
    let reading = Machine::real().memory.read().ok_or("this system does not say what is free")?;
    let tightest = reading.scopes.iter().min_by_key(|scope| scope.total_bytes).ok_or("there is no scope")?;
    Ok((tightest.total_bytes, tightest.available_bytes))
}

/// Takes `bytes` of memory as fast as one thread can, holds them for a second, and prints how long that took.
fn be_a_neighbour(bytes: usize) {
    let start = Instant::now();
    let mut taken = vec![0_u8; bytes];
    for at in (0..bytes).step_by(4096) {
        taken[at] = 1;
    }
    println!("{}", start.elapsed().as_micros());
    sleep(Duration::from_secs(1));
    assert!(taken.iter().step_by(4096).all(|byte| *byte == 1));
}

/// Reads random rows until `ends`, and counts them.
fn read(table: &Table, rows: u64, seed: u64, ends: &AtomicBool, count: &AtomicU64) -> larch::Result<()> {
    let mut number = seed;
    while !ends.load(Ordering::Relaxed) {
        number = scatter(number.wrapping_add(1));
        let row = number % rows;
        assert_eq!(table.get(key(row))?.as_deref(), Some(&value(row)[..]));
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Waits until the cache no longer grows.
fn wait_until_full(db: &Database) {
    let (mut most, mut since) = (0, Instant::now());
    while since.elapsed() < REST {
        sleep(Duration::from_millis(100));
        let used = db.cache().used_bytes();
        if used > most + most / 100 {
            (most, since) = (used, Instant::now());
        }
    }
}

/// Starts a neighbour that takes `bytes`, and prints how the cache gave way.
fn measure(db: &Database, bytes: u64) -> Outcome<()> {
    let before = db.cache().used_bytes();
    let mut child = Command::new(std::env::current_exe()?);
    let mut child = child.args([NEIGHBOUR, &bytes.to_string()]).stdout(Stdio::piped()).spawn()?;
    let start = Instant::now();
    let (mut least_available, mut least_used, mut least_at) = (u64::MAX, before, Duration::ZERO);
    while child.try_wait()?.is_none() {
        least_available = least_available.min(memory()?.1);
        let used = db.cache().used_bytes();
        if used < least_used {
            (least_used, least_at) = (used, start.elapsed());
        }
        sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("the neighbour was ended: {}", output.status).into());
    }
    let micros: u64 = String::from_utf8(output.stdout)?.trim().parse()?;
    println!(
        "neighbour took {} MiB in {} ms; cache {} -> {} MiB, smallest after {} ms; at least {} MiB were available",
        bytes / MIB,
        micros / 1000,
        before / MIB,
        least_used / MIB,
        least_at.as_millis(),
        least_available / MIB,
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, bytes] = &arguments[..]
        && first == NEIGHBOUR
    {
        be_a_neighbour(bytes.parse()?);
        return Ok(());
    }
    let number = |at: usize, default: u64| arguments.get(at).map_or(Ok(default), |text| text.parse());
    let (rows, tenths, times) = (number(0, 1_000_000)?, number(1, 3)?, number(2, 5)?);

    let directory = tempfile::tempdir_in(".")?;
    let db = Database::builder(&directory).cache_bytes(Budget::free()).open()?;
    let table = db.table("rows")?;
    let mut import = table.import()?;
    for row in 0..rows {
        import.add(&key(row), &value(row))?;
    }
    import.finish(|_| ())?;
    let (ends, count) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| -> Outcome<()> {
        let readers: Vec<_> = (0..READERS as u64)
            .map(|seed| {
                let (table, ends, count) = (&table, &ends, &count);
                scope.spawn(move || read(table, rows, seed, ends, count))
            })
            .collect();
        let measured = (|| {
            for _ in 0..times {
                wait_until_full(&db);
                measure(&db, memory()?.0 / 10 * tenths)?;
            }
            Ok(())
        })();
        ends.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().map_err(|_| "a reader panicked")??;
        }
        measured
    })?;
    println!("{} gets, all right", count.load(Ordering::Relaxed));
    drop(table);
    db.close()?;
    Ok(())
}
