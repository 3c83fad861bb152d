//! Writes rows that expire, in Larch and in RocksDB in turn, and looks at what is there once all have expired:
//!
//! ```console
//! $ cargo run --release -p larch-bench-stores --features rocksdb --example expiry [ROWS] [SECONDS] [PATIENCE]
//! ```
//!
//! Each row has a key of 16 bytes that looks random and a value of 100 bytes, and is there for SECONDS after its write,
//! each write in a commit of its own that the operating system gets but the disk may not have yet. Larch has a table
//! with this option. RocksDB has two ways: a filter of compactions, which finds the time before each value, and a
//! database with a TTL, which puts the time behind each value itself. Both ways also ask RocksDB to compact files that
//! are older than SECONDS. All have a write buffer of 64 MiB, a cache of 512 MiB and two threads for background work.
//!
//! The output gives, for each engine: rows written per second; how many rows a scan and gets still find right after the
//! last row has expired; how many bytes the directory has after the load; and how long the idle engine then takes to
//! give 95 % of them back. If it has not done so after PATIENCE seconds, a compaction of everything is asked for and
//! timed. If Larch finds a row that has expired, the program fails.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it measures the machine and is never simulated"
)]

use larch::options::Expiry;
use larch::{Database, Durability, Table, TableOptions};
use os::Machine;
use rocksdb::compaction_filter::Decision;
use rocksdb::{BlockBasedOptions, Cache, DB, IteratorMode, Options};
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const WRITE_BUFFER: usize = 64 << 20;
const CACHE: usize = 512 << 20;
const VALUE_BYTES: usize = 100;

/// How many gets look for rows that have expired.
const GETS: u64 = 100_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What is asked of an engine.
trait Engine {
    /// Writes a row that is there for the time that the engine was opened with.
    fn put(&self, key: &[u8], value: &[u8]) -> Outcome<()>;

    /// Writes all rows to files.
    fn flush(&self) -> Outcome<()>;

    /// The number of rows that a scan finds.
    fn rows(&self) -> Outcome<u64>;

    /// Whether a get finds a row.
    fn has(&self, key: &[u8]) -> Outcome<bool>;

    /// Compacts everything.
    fn compact(&self) -> Outcome<()>;

    /// Whether no read may find a row that has expired.
    fn hides_expired(&self) -> bool {
        false
    }
}

struct Larch {
    db: Database,
    table: Table,
}

impl Larch {
    fn open(place: &Path, lifetime: Duration) -> Outcome<Box<dyn Engine>> {
        let db = Database::builder(place)
            .durability(Durability::Buffered)
            .write_buffer_bytes(WRITE_BUFFER as u64)
            .cache_bytes(CACHE as u64)
            .open()?;
        let options = TableOptions { expiry: Expiry::After(lifetime), ..TableOptions::default() };
        let table = db.table_with("rows", options)?;
        Ok(Box::new(Self { db, table }))
    }
}

impl Engine for Larch {
    fn put(&self, key: &[u8], value: &[u8]) -> Outcome<()> {
        Ok(self.table.insert(key, value)?)
    }

    fn flush(&self) -> Outcome<()> {
        Ok(self.db.flush()?)
    }

    fn rows(&self) -> Outcome<u64> {
        let mut rows = 0;
        for row in self.table.iter() {
            row?;
            rows += 1;
        }
        Ok(rows)
    }

    fn has(&self, key: &[u8]) -> Outcome<bool> {
        Ok(self.table.get(key)?.is_some())
    }

    fn compact(&self) -> Outcome<()> {
        Ok(self.db.compact()?)
    }

    fn hides_expired(&self) -> bool {
        true
    }
}

/// RocksDB, with the time before each value if its own program has to write it.
struct Rocks {
    db: DB,
    lifetime: Option<Duration>,
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn rocks_options(lifetime: Duration) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.increase_parallelism(2);
    options.set_write_buffer_size(WRITE_BUFFER);
    options.set_ttl(lifetime.as_secs());
    options.set_periodic_compaction_seconds(lifetime.as_secs());
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(CACHE));
    table.set_bloom_filter(10.0, false);
    options.set_block_based_table_factory(&table);
    options
}

impl Rocks {
    fn with_filter(place: &Path, lifetime: Duration) -> Outcome<Box<dyn Engine>> {
        let mut options = rocks_options(lifetime);
        options.set_compaction_filter("expired", |_, _, value: &[u8]| {
            let until = value.first_chunk().map_or(u64::MAX, |head| u64::from_be_bytes(*head));
            if Duration::from_millis(until) <= now() { Decision::Remove } else { Decision::Keep }
        });
        Ok(Box::new(Self { db: DB::open(&options, place)?, lifetime: Some(lifetime) }))
    }

    fn with_ttl(place: &Path, lifetime: Duration) -> Outcome<Box<dyn Engine>> {
        let options = rocks_options(lifetime);
        Ok(Box::new(Self { db: DB::open_with_ttl(&options, place, lifetime)?, lifetime: None }))
    }
}

impl Engine for Rocks {
    fn put(&self, key: &[u8], value: &[u8]) -> Outcome<()> {
        let Some(lifetime) = self.lifetime else { return Ok(self.db.put(key, value)?) };
        let until = (now() + lifetime).as_millis() as u64;
        Ok(self.db.put(key, [&until.to_be_bytes()[..], value].concat())?)
    }

    fn flush(&self) -> Outcome<()> {
        Ok(self.db.flush()?)
    }

    fn rows(&self) -> Outcome<u64> {
        let mut rows = 0;
        for row in self.db.iterator(IteratorMode::Start) {
            row?;
            rows += 1;
        }
        Ok(rows)
    }

    fn has(&self, key: &[u8]) -> Outcome<bool> {
        Ok(self.db.get_pinned(key)?.is_some())
    }

    fn compact(&self) -> Outcome<()> {
        self.db.compact_range(None::<&[u8]>, None::<&[u8]>);
        Ok(())
    }
}

/// The key with this number. Keys come in an order that looks random.
fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The bytes of all files in a directory.
fn bytes(place: &Path) -> Outcome<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(place)? {
        let entry = entry?;
        // A file may be removed at any time.
        sum += entry.metadata().map_or(0, |found| if found.is_dir() { 0 } else { found.len() });
    }
    Ok(sum)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// What the user asks for.
#[derive(Clone, Copy)]
struct Size {
    rows: u64,
    lifetime: Duration,
    patience: Duration,
}

fn measure(name: &str, engine: &dyn Engine, place: &Path, size: Size) -> Outcome<()> {
    let (clock, value) = (Machine::real().clock, [7; VALUE_BYTES]);
    let begin = Instant::now();
    for number in 0..size.rows {
        engine.put(&key(number), &value)?;
    }
    let (loaded, written) = (begin.elapsed(), Instant::now());
    engine.flush()?;
    let full = bytes(place)?;
    println!("{name:16} {:9.0} rows/s written, {:.1} MiB", size.rows as f64 / loaded.as_secs_f64(), mib(full));
    if loaded >= size.lifetime {
        println!("{name:16} the load took {loaded:.1?}, so the first rows had expired before its end");
    }

    // A second more, because a TTL counts whole seconds.
    clock.sleep((size.lifetime + Duration::from_secs(1)).saturating_sub(written.elapsed()));
    let before = bytes(place)?;
    let begin = Instant::now();
    let found = engine.rows()?;
    let scanned = begin.elapsed();
    let begin = Instant::now();
    let mut hits = 0;
    for number in 0..GETS {
        hits += u64::from(engine.has(&key(number * size.rows / GETS))?);
    }
    println!(
        "{name:16} once all have expired, a scan finds {found} of {} rows in {scanned:.1?}, {GETS} gets find {hits} in \
         {:.1?}, with {:.1} MiB in files",
        size.rows,
        begin.elapsed(),
        mib(before)
    );
    if engine.hides_expired() && (found > 0 || hits > 0) {
        return Err(format!("{name} returns rows that have expired: {found} in a scan and {hits} by gets").into());
    }

    let (begin, goal) = (Instant::now(), full / 20);
    let mut left = bytes(place)?;
    while left > goal && begin.elapsed() < size.patience {
        clock.sleep(Duration::from_millis(100));
        left = bytes(place)?;
    }
    let waited = begin.elapsed();
    if left <= goal {
        println!("{name:16} the space is back after {waited:.1?}: {:.1} MiB left", mib(left));
        return Ok(());
    }
    let begin = Instant::now();
    engine.compact()?;
    let compacted = begin.elapsed();
    println!(
        "{name:16} after {waited:.1?} there are still {:.1} MiB; a compaction of everything takes {compacted:.1?} \
         and leaves {:.1} MiB",
        mib(left),
        mib(bytes(place)?)
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let mut next = |default| arguments.next().unwrap_or(Ok(default));
    let (rows, lifetime, patience) = (next(2_000_000)?, next(60)?, next(120)?);
    let (lifetime, patience) = (Duration::from_secs(lifetime), Duration::from_secs(patience));
    println!("{rows} rows that are there for {lifetime:?}, {patience:?} to give their space back");
    type Open = fn(&Path, Duration) -> Outcome<Box<dyn Engine>>;
    let engines: [(&str, Open); 3] =
        [("larch", Larch::open), ("rocksdb, filter", Rocks::with_filter), ("rocksdb, TTL", Rocks::with_ttl)];
    for (name, open) in engines {
        let place = tempfile::tempdir()?;
        let engine = open(place.path(), lifetime)?;
        measure(name, &*engine, place.path(), Size { rows, lifetime, patience })?;
    }
    Ok(())
}
