//! Measures what a feed of changes costs the writer, how fast feeds read, and what reads of the past cost:
//!
//! ```console
//! $ cargo run --release -p larch-db --example feed_costs [ROWS] [ROUNDS]
//! ```
//!
//! Each round measures everything in turn, in new databases, and the output gives the median of the rounds and all of
//! them. A row has a key of 8 bytes and a value of 100.
//!
//! | what | how | goal |
//! |---|---|---|
//! | writer alone, with a feed that keeps up, and with one of a subscription that acknowledges each commit | ROWS commits of one row by one thread, without waiting for syncs, and a hundredth as many with a sync each | each feed costs at most 3 % |
//! | feed from the log | ROWS commits of one row, none of them flushed | 500 K rows/s |
//! | feed from files | the same after a compaction that has kept them all | 200 K rows/s |
//! | reads at an old version | random gets of ROWS / 10 keys with 10 versions each, at the newest and at the fifth | 1.5 times the newest |
//!
//! A round in which a feed has given less than all rows, or in which nothing was timed, fails.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it measures a real machine")]

use larch::past::{Changes, Limits, Retention};
use larch::{Database, Durability, Readable, Snapshot, Version};
use std::error::Error;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

const VERSIONS: u64 = 10;

fn key(number: u64) -> [u8; 8] {
    // Odd numbers have an inverse, so keys are far apart and no two are equal.
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn open(place: &Path, durability: Durability, buffer_bytes: u64) -> Outcome<Database> {
    let builder = Database::builder(place).durability(durability).cache_bytes(1 << 30);
    Ok(builder.write_buffer_bytes(buffer_bytes).open()?)
}

/// Commits `rows` rows. Returns the rows per second.
fn write(db: &Database, rows: u64) -> Outcome<f64> {
    let table = db.table("t")?;
    let begin = Instant::now();
    for number in 0..rows {
        table.insert(key(number), [number as u8; 100])?;
    }
    rate(rows, begin.elapsed())
}

fn rate(count: u64, time: Duration) -> Outcome<f64> {
    if count == 0 || time.is_zero() {
        return Err("nothing was measured; ask for more rows".into());
    }
    Ok(count as f64 / time.as_secs_f64())
}

/// Reads a feed until it has given `rows` changes. Waits for them if it `may_wait`.
fn read(changes: &mut Changes, rows: u64, may_wait: bool) -> Outcome<()> {
    let mut given = 0;
    while given < rows {
        match changes.next_change()? {
            Some(change) => given += u64::from(!std::hint::black_box(change).key().is_empty()),
            None if may_wait => _ = changes.wait(Duration::from_secs(1))?,
            None => return Err(format!("the feed has given {given} of {rows} changes").into()),
        }
    }
    Ok(())
}

/// Who reads what a writer writes.
#[derive(Clone, Copy, PartialEq)]
enum Reading {
    Nobody,
    Feed,
    /// A feed of a subscription, which acknowledges each commit.
    Subscription,
}

const READINGS: [(Reading, &str); 3] =
    [(Reading::Nobody, "alone"), (Reading::Feed, "with a feed"), (Reading::Subscription, "with a subscription")];

/// Rows per second of a writer, alone or with a feed, and how many commits the feed was behind when the writer was
/// done.
fn writer(rows: u64, durability: Durability, reading: Reading) -> Outcome<(f64, u64)> {
    let place = tempfile::tempdir()?;
    let db = open(place.path(), durability, 64 << 20)?;
    db.table("t")?;
    // The feed may have to read files. Keys come once, so the rule costs a writer nothing.
    db.retain(Retention::Versions(1_000_000))?;
    let begin = db.version();
    if reading == Reading::Nobody {
        return Ok((write(&db, rows)?, 0));
    }
    let mut changes = db.changes(begin)?;
    let subscription = match reading {
        Reading::Subscription => Some(db.subscribe("reader", Limits::NONE)?),
        Reading::Nobody | Reading::Feed => None,
    };
    thread::scope(|scope| {
        let (sender, at) = std::sync::mpsc::channel();
        let reader = scope.spawn(move || {
            let mut given = 0;
            while given < rows {
                read(&mut changes, 1, true).map_err(|error| error.to_string())?;
                given += 1;
                if let Some(subscription) = &subscription {
                    subscription.acknowledge(changes.position()).map_err(|error| error.to_string())?;
                }
                if given % 64 == 0 {
                    sender.send(given).ok();
                }
            }
            Ok::<_, String>(())
        });
        let rate = write(&db, rows)?;
        let behind = rows - at.try_iter().last().unwrap_or(0);
        reader.join().expect("the reader does not panic")?;
        Ok((rate, behind))
    })
}

/// Rows per second of feeds from the log and from files.
fn feeds(rows: u64) -> Outcome<(f64, f64)> {
    let place = tempfile::tempdir()?;
    let db = open(place.path(), Durability::Buffered, (rows * 400).max(64 << 20))?;
    db.retain(Retention::Everything)?;
    db.table("t")?;
    let begin = db.version();
    write(&db, rows)?;
    db.sync()?;
    let measured = || -> Outcome<f64> {
        let mut changes = db.changes(begin)?;
        let start = Instant::now();
        read(&mut changes, rows, false)?;
        rate(rows, start.elapsed())
    };
    let log = measured()?;
    db.compact()?;
    Ok((log, measured()?))
}

/// Gets per second at the newest version, and at an older one.
fn reads(keys: u64) -> Outcome<(f64, f64)> {
    let place = tempfile::tempdir()?;
    let db = open(place.path(), Durability::Buffered, 64 << 20)?;
    db.retain(Retention::Everything)?;
    let table = db.table("t")?;
    let mut versions: Vec<Version> = Vec::new();
    for _ in 0..VERSIONS {
        write(&db, keys)?;
        versions.push(db.version());
    }
    db.compact()?;
    let history = table.stats()?.history_rows;
    if history != keys * (VERSIONS - 1) {
        return Err(format!("{history} older rows are kept, not {}", keys * (VERSIONS - 1)).into());
    }
    let then = db.at(versions[VERSIONS as usize / 2])?;
    let timed = |snapshot: &Snapshot| -> Outcome<f64> {
        let mut random = 7_u64;
        let mut found = 0;
        let mut begin = Instant::now();
        // The first half brings the pages into memory.
        for number in 0..keys * 4 {
            if number == keys * 2 {
                (found, begin) = (0, Instant::now());
            }
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            found += u64::from(snapshot.get(&table, key((random >> 32) % keys))?.is_some());
        }
        if found != keys * 2 {
            return Err(format!("{found} of {} rows were found", keys * 2).into());
        }
        rate(found, begin.elapsed())
    };
    Ok((timed(&db.snapshot())?, timed(&then)?))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn print(what: &str, unit: &str, values: &[f64]) {
    let shown: Vec<String> = values.iter().map(|value| format!("{value:.1}")).collect();
    println!("{what:36} {:10.1} {unit:8} of {}", median(values), shown.join(", "));
}

fn goal(what: &str, value: f64, is_met: bool) {
    println!("{what:36} {value:10.2} {}", if is_met { "met" } else { "MISSED" });
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let mut next = |default| arguments.next().unwrap_or(Ok(default));
    let (rows, rounds) = (next(1_000_000)?, next(5)?);
    if rows < 1_000 || rounds == 0 {
        return Err("a round needs a thousand rows, and there must be one".into());
    }
    println!("{rows} rows, {rounds} rounds in turn, {}", env!("CARGO_PKG_VERSION"));
    let kinds = [("buffered", Durability::Buffered, rows), ("synced", Durability::Synced, rows / 100)];
    // For each durability and each reading, the rates, and how many commits the reader was behind.
    let mut writers: [[[Vec<f64>; 2]; 3]; 2] = Default::default();
    let (mut log, mut files, mut newest, mut older) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        for ((_, durability, rows), measured) in kinds.iter().zip(&mut writers) {
            // Each round begins with another measurement, because a measurement changes the machine for the next one.
            for turn in 0..READINGS.len() {
                let at = (turn + round as usize) % READINGS.len();
                let (rate, left) = writer(*rows, *durability, READINGS[at].0)?;
                measured[at][0].push(rate / 1e3);
                measured[at][1].push(left as f64);
            }
        }
        let (from_log, from_files) = feeds(rows)?;
        log.push(from_log / 1e3);
        files.push(from_files / 1e3);
        let (at_newest, at_older) = reads(rows / VERSIONS)?;
        newest.push(at_newest / 1e3);
        older.push(at_older / 1e3);
    }
    for ((name, ..), measured) in kinds.iter().zip(&writers) {
        for ((reading, how), [rates, behind]) in READINGS.iter().zip(measured) {
            print(&format!("writer {how}, {name}"), "K rows/s", rates);
            if *reading != Reading::Nobody {
                print(&format!("  commits it was behind, {name}"), "", behind);
            }
        }
    }
    print("feed from the log", "K rows/s", &log);
    print("feed from files", "K rows/s", &files);
    print("gets at the newest version", "K gets/s", &newest);
    print("gets at an older version", "K gets/s", &older);
    println!();
    for ((name, ..), [[alone, _], with @ ..]) in kinds.iter().zip(&writers) {
        for ((_, how), [rates, _]) in READINGS[1..].iter().zip(with) {
            let cost = 100.0 * (1.0 - median(rates) / median(alone));
            goal(&format!("cost {how}, {name}: at most 3 %"), cost, cost <= 3.0);
        }
    }
    goal("feed from the log: 500 K rows/s", median(&log), median(&log) >= 500.0);
    goal("feed from files: 200 K rows/s", median(&files), median(&files) >= 200.0);
    let times = median(&newest) / median(&older);
    goal("an older version: at most 1.5 times", times, times <= 1.5);
    Ok(())
}
