//! Adds to counters by merges, in Larch and in RocksDB in turn:
//!
//! ```console
//! $ cargo run --release -p larch-bench-stores --features rocksdb --example counters [COUNTERS] [ADDS] [ROUNDS]
//! ```
//!
//! Each engine adds 1 to random ones of a million counters, each time in a commit of its own that the operating
//! system gets but the disk may not have yet, and then reads all counters in random order. RocksDB has an associative
//! merge operator. Both have a write buffer of 64 MiB and a cache of 512 MiB, and two threads for background work. The sum of all
//! counters must be the number of adds. The output gives operations per second, the median of the rounds and all of
//! them.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it measures the machine and is never simulated"
)]

use larch::{Database, Durability, MergeOp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rocksdb::{BlockBasedOptions, Cache, DB, MergeOperands, Options};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

const WRITE_BUFFER: usize = 64 << 20;
const CACHE: usize = 512 << 20;

/// How many operations per second an engine has done.
#[derive(Clone, Copy)]
struct Rates {
    adds: f64,
    gets: f64,
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Adds up with `add`, reads with `get`, and checks the sum.
fn measure(
    (counters, adds): (u64, u64),
    mut add: impl FnMut(&[u8]) -> Result<(), Box<dyn Error>>,
    get: impl Fn(&[u8]) -> Result<i64, Box<dyn Error>>,
) -> Result<Rates, Box<dyn Error>> {
    let mut random = StdRng::seed_from_u64(7);
    let begin = Instant::now();
    for _ in 0..adds {
        add(&key(random.random_range(0..counters)))?;
    }
    let added = begin.elapsed();
    let begin = Instant::now();
    for _ in 0..counters {
        std::hint::black_box(get(&key(random.random_range(0..counters)))?);
    }
    let read = begin.elapsed();
    let mut sum = 0;
    for number in 0..counters {
        sum += get(&key(number))?;
    }
    if sum != adds as i64 {
        return Err(format!("the counters add up to {sum}, and {adds} were added").into());
    }
    Ok(Rates { adds: adds as f64 / added.as_secs_f64(), gets: counters as f64 / read.as_secs_f64() })
}

fn number(bytes: Option<impl AsRef<[u8]>>) -> Result<i64, Box<dyn Error>> {
    Ok(match bytes {
        Some(bytes) => i64::from_le_bytes(bytes.as_ref().try_into()?),
        None => 0,
    })
}

fn larch(place: &Path, size: (u64, u64)) -> Result<Rates, Box<dyn Error>> {
    let db = Database::builder(place)
        .durability(Durability::Buffered)
        .write_buffer_bytes(WRITE_BUFFER as u64)
        .cache_bytes(CACHE as u64)
        .open()?;
    let table = db.table("counters")?;
    let rates = measure(size, |key| Ok(table.merge(key, MergeOp::Add(1))?), |key| number(table.get(key)?.as_deref()))?;
    db.close()?;
    Ok(rates)
}

fn rocksdb(place: &Path, size: (u64, u64)) -> Result<Rates, Box<dyn Error>> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.increase_parallelism(2);
    options.set_write_buffer_size(WRITE_BUFFER);
    let add = |_: &[u8], before: Option<&[u8]>, operands: &MergeOperands| {
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, i64::from_le_bytes);
        let sum = operands.iter().fold(before.map_or(0, number), |sum, operand| sum.wrapping_add(number(operand)));
        Some(sum.to_le_bytes().to_vec())
    };
    options.set_merge_operator_associative("add", add);
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(CACHE));
    table.set_bloom_filter(10.0, false);
    options.set_block_based_table_factory(&table);
    let db = DB::open(&options, place)?;
    let one = 1i64.to_le_bytes();
    measure(size, |key| Ok(db.merge(key, one)?), |key| number(db.get_pinned(key)?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let mut next = |default| arguments.next().unwrap_or(Ok(default));
    let (counters, adds, rounds) = (next(1_000_000)?, next(5_000_000)?, next(3)?);
    println!("{counters} counters, {adds} adds, {rounds} rounds in turn");
    type Engine = fn(&Path, (u64, u64)) -> Result<Rates, Box<dyn Error>>;
    let engines: [(&str, Engine); 2] = [("larch", larch), ("rocksdb", rocksdb)];
    let mut all: [Vec<Rates>; 2] = Default::default();
    for _ in 0..rounds {
        for ((_, engine), rates) in engines.iter().zip(&mut all) {
            let place = tempfile::tempdir()?;
            rates.push(engine(place.path(), (counters, adds))?);
        }
    }
    for ((name, _), rates) in engines.iter().zip(&all) {
        for (what, rate) in [("adds", (|r| r.adds) as fn(&Rates) -> f64), ("gets", |r| r.gets)] {
            let mut rates: Vec<f64> = rates.iter().map(rate).collect();
            rates.sort_by(f64::total_cmp);
            let shown: Vec<String> = rates.iter().map(|rate| format!("{:.0}", rate / 1e3)).collect();
            println!("{name:8} {what} {:7.0} K/s   of {}", rates[rates.len() / 2] / 1e3, shown.join(", "));
        }
    }
    Ok(())
}
