//! Measures a follower of a writer that runs in another process. Shows how much time passes between a commit and
//! the first read of the follower that sees the commit. Also shows how long the follower's reads take when it
//! switches to new files. These reads are measured twice. In one measurement, the follower loads pages of the new
//! files before each switch, and in the other it does not.
//!
//! `cargo run --release -p larch-db --example followers -- 1000000 20` writes a million rows, and takes 20 seconds
//! for each measurement.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it measures a real machine")]

use larch::event::Event;
use larch::machine::Machine;
use larch::options::LevelOptions;
use larch::{Database, Durability, Follow, Table};
use std::error::Error;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

const VALUE: [u8; 100] = [b'v'; 100];
/// The follower reads only the first rows: all rows divided by this number. These rows form one range of keys, and
/// the follower's cache holds all of them.
const READ_SHARE: u64 = 2;
const CACHE_BYTES: u64 = 128 << 20;
/// If a read begins within this time after a switch, it is counted as a read beside the switch.
const BESIDE: Duration = Duration::from_millis(50);
/// The number of commits in a second, and the number of rows that each commit changes.
const COMMITS: u64 = 500;
const CHANGED_ROWS: u64 = 20;

fn key(row: u64) -> String {
    format!("row {row:012}")
}

fn builder(directory: &Path) -> larch::Builder {
    let levels = LevelOptions { file_bytes: 4 << 20, base_bytes: 16 << 20, ..LevelOptions::default() };
    Database::builder(directory).levels(levels).durability(Durability::Buffered).write_buffer_bytes(4 << 20)
}

/// Numbers that look random.
fn scatter(number: u64) -> u64 {
    (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

fn nanos() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// Runs in the other process: fills a database, and then changes rows all over the table at a steady rate. The row
/// `now` of the table `times` contains the time of the last commit.
fn write(directory: &Path, rows: u64) -> Result<(), Box<dyn Error>> {
    let db = builder(directory).cache_bytes(16 << 20).open()?;
    let (table, times) = (db.table("t")?, db.table("times")?);
    let mut import = table.import()?;
    (0..rows).try_for_each(|row| import.add(key(row).as_bytes(), &VALUE))?;
    import.finish(|_| {})?;
    times.insert("now", nanos().to_le_bytes())?;
    println!("ready");
    let start = Instant::now();
    for commit in 0.. {
        let due = Duration::from_secs(1) * commit / COMMITS as u32;
        Machine::real().clock.sleep(due.saturating_sub(start.elapsed()));
        let mut batch = db.batch();
        for row in 0..CHANGED_ROWS {
            batch.insert(&table, key(scatter(u64::from(commit) * CHANGED_ROWS + row) % rows), VALUE);
        }
        batch.insert(&times, "now", nanos().to_le_bytes());
        batch.commit()?;
    }
    Ok(())
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The time that only one in `part` of the times exceeds: with 100, the 99th percentile.
fn at_top(times: &mut [Duration], part: usize) -> Duration {
    times.sort_unstable();
    times.get(times.len() - 1 - times.len() / part).copied().unwrap_or_default()
}

/// Reads the newest row again and again. Returns, for each read, how old the commit of this row was.
fn lag(times: &Table, seconds: u64) -> larch::Result<Vec<Duration>> {
    let (start, mut lags) = (Instant::now(), Vec::new());
    while start.elapsed() < Duration::from_secs(seconds) {
        let value = times.get("now")?;
        let written = value.and_then(|value| value.as_ref().try_into().ok().map(u64::from_le_bytes));
        // There is a commit only every two milliseconds, so the newest row may be two milliseconds old even on the
        // writer.
        lags.push(Duration::from_nanos(nanos().saturating_sub(written.unwrap_or_default())));
        Machine::real().clock.sleep(Duration::from_micros(200));
    }
    Ok(lags)
}

/// Reads hot rows. Shows how long a read takes beside a switch to new files, and how long at other times.
fn reads(directory: &Path, rows: u64, seconds: u64, preloads: bool) -> Result<(), Box<dyn Error>> {
    let shown: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let seen = shown.clone();
    let builder = builder(directory).cache_bytes(CACHE_BYTES).follow(Follow::Commits).follow_preloads(preloads);
    let follower = builder.on_event(move |event| {
        if let Event::FilesShown { .. } = event {
            seen.lock().expect("no reader panics").push(Instant::now());
        }
    });
    let follower = follower.open()?;
    let table = follower.table("t")?;
    let (start, mut all) = (Instant::now(), Vec::new());
    for read in 0.. {
        let begun = Instant::now();
        table.get(key(scatter(read) % (rows / READ_SHARE)))?;
        all.push((begun, begun.elapsed()));
        if start.elapsed() > Duration::from_secs(seconds) {
            break;
        }
    }
    // Reads before this moment are left out, because the cache was still being filled.
    let warm = start + Duration::from_secs(seconds / 4);
    let shown = shown.lock().expect("no reader panics").clone();
    let is_beside = |at: Instant| {
        let next = shown.partition_point(|shown| *shown <= at);
        next.checked_sub(1).is_some_and(|last| at - shown[last] < BESIDE)
    };
    let (mut beside, mut quiet) = (Vec::new(), Vec::new());
    for (at, time) in all.into_iter().filter(|(at, _)| *at > warm) {
        if is_beside(at) { beside.push(time) } else { quiet.push(time) }
    }
    if beside.is_empty() || quiet.is_empty() {
        return Err(format!(
            "{} switches to new files, {} reads beside one: read for longer",
            shown.len(),
            beside.len()
        )
        .into());
    }
    let (of_beside, of_quiet) = (at_top(&mut beside, 100), at_top(&mut quiet, 100));
    let ratio = of_beside.as_secs_f64() / of_quiet.as_secs_f64();
    let what = if preloads { "with preload" } else { "without preload" };
    println!("{what}: {} switches; p99 {of_quiet:?}, beside a switch {of_beside:?}, {ratio:.2} times", shown.len());
    let (of_beside, of_quiet) = (at_top(&mut beside, 1000), at_top(&mut quiet, 1000));
    println!("  p99.9 {of_quiet:?} and {of_beside:?}; pages read: {}", follower.metrics().page_reads);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse::<u64>());
    if arguments.get(1).is_some_and(|what| what == "write") {
        return write(Path::new(&arguments[2]), number(3, 0)?);
    }
    let (rows, seconds) = (number(1, 20_000)?, number(2, 2)?);
    let scratch = tempfile::tempdir()?;
    let directory = scratch.path().join("db");
    let mut writer = Command::new(std::env::current_exe()?);
    let writer = writer.arg("write").arg(&directory).arg(rows.to_string()).stdout(Stdio::piped());
    let mut writer = Killed(writer.spawn()?);
    std::io::Read::read(&mut writer.0.stdout.take().ok_or("it has an output")?, &mut [0; 8])?;
    let follower = builder(&directory).follow(Follow::Commits).open()?;
    let mut lags = lag(&follower.table("times")?, seconds)?;
    drop(follower);
    let (middle, top) = (at_top(&mut lags, 2), at_top(&mut lags, 100));
    println!("{COMMITS} commits a second are seen after {middle:?}, at p99 after {top:?}, {} samples", lags.len());
    for preloads in [true, false, true, false] {
        reads(&directory, rows, seconds, preloads)?;
    }
    Ok(())
}
