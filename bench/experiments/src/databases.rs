//! `larch bench experiment databases`: many databases in one process under one cache. Measures their memory,
//! threads, time to open, and gets.
//!
//! YDB splits a table into many tablets, and even those with cold data take memory for their indexes on every node.
//! In Larch, a database takes only the memory of its open handle, and all databases share one page cache.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "memory and threads of a real process")]

use crate::args::Scale;
use crate::experiment::{About, Experiment, Kept};
use crate::figures::kib;
use crate::ground::Ground;
use crate::made::{broken, import};
use crate::outcome::{Goal, chart, table};
use harness::directory::failure;
use harness::report::Meter;
use harness::{Clock, Failure, Million, StoreUse};
use larch::machine::ThreadPool;
use larch::{Cache, Database, Durability};
use page::{Axis, Block, figure};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::Duration;
use suite::stop::Stop;

/// The experiment, and how much it measures.
pub struct Databases {
    counts: &'static [u64],
    rows: u64,
    time: Duration,
}

impl Databases {
    /// The experiment at `scale`.
    pub fn of(scale: Scale) -> Self {
        let (counts, rows, millis) = match scale {
            Scale::Tiny => (&[1, 5, 20][..], 100, 50),
            Scale::Small => (&[10, 100, 1000][..], 1000, 2000),
            Scale::Medium => (&[10, 100, 1000][..], 10_000, 5000),
            Scale::Full => (&[10, 100, 1000][..], 30_000, 20_000),
        };
        Self { counts, rows, time: Duration::from_millis(millis) }
    }
}

const VALUE_BYTES: usize = 100;
const CACHE_BYTES: u64 = 64 << 20;
/// Threads of the pool that all databases share.
const THREADS: usize = 2;

/// A number of databases.
#[derive(Clone, Copy)]
pub struct Count(u64);

impl fmt::Display for Count {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} databases", self.0)
    }
}

/// What a number of databases took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Taken {
    /// Time to open all of them.
    open_micros: f64,
    /// Growth of the process's memory after opening all databases and reading a row of each.
    memory_bytes: i64,
    /// Growth of the number of threads.
    threads: i64,
    /// Random gets over all databases.
    gets: u64,
    get_nanos: f64,
    page_reads: u64,
    /// Bytes of the cache in use at the end.
    cache_bytes: u64,
    /// What a million gets cost.
    million: Million,
}

impl Experiment for Databases {
    const ABOUT: About = About {
        name: "databases",
        title: "Many databases in one process",
        text: &[
            "YDB's document wants much cold data to be served without dozens of nodes. One process opens all databases, which share one cache and \
             one pool of two threads.",
            "Memory is what the process has more after all databases were opened and a row of each was read, the pages of these rows included. The \
             page cache of the system plays no part: reads are direct where the file system can.",
            "Then rows are drawn from all databases, and each value is compared with what was written.",
        ],
    };

    type Cell = Count;

    fn most_bytes(&self) -> u64 {
        let most = self.counts.iter().max().expect("there are sizes");
        // An empty database takes some hundred kilobytes for its log.
        most * (self.rows * 200 + (1 << 20))
    }

    fn cells(&self) -> Vec<Count> {
        self.counts.iter().map(|count| Count(*count)).collect()
    }

    fn measure(&mut self, cell: &Count, ground: &mut Ground) -> Result<Kept, Failure> {
        let count = cell.0;
        let (made, ()) = ground.built_alone(&count.to_string(), |place, stop| {
            suite::say(&format!("{cell} of {} rows", self.rows));
            self.load(place, count, stop)
        })?;
        let taken = self.gets(made.place(), count, &ground.stop)?;
        Ok(Kept::new(&taken, format!("{:.0} gets/s", 1e9 / taken.get_nanos)))
    }

    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure> {
        let taken = self.counts.iter().filter_map(|count| Some((*count as f64, ground.known::<Taken>(Count(*count))?)));
        let points = taken.clone().map(|(count, taken)| (count, 1e9 / taken.get_nanos)).collect();
        let axes = (Axis::logarithmic("databases"), Axis::linear("gets a second"));
        Ok(vec![
            chart("Gets a second over all databases", axes, [("larch", points)]),
            table(
                format!("Databases of {} rows each in one process, under one cache of 64 MiB", self.rows),
                taken,
                &[
                    ("databases", &|(count, _)| figure(*count)),
                    ("us to open one", &|(count, taken)| figure(taken.open_micros / count)),
                    ("KiB of memory for one", &|(count, taken)| figure(kib(taken.memory_bytes as f64 / count))),
                    ("more threads", &|(_, taken)| taken.threads.to_string()),
                    ("gets/s", &|(_, taken)| figure(1e9 / taken.get_nanos)),
                    ("page reads a get", &|(_, taken)| {
                        format!("{:.3}", taken.page_reads as f64 / taken.gets.max(1) as f64)
                    }),
                    ("KiB of pages in the end", &|(_, taken)| figure(kib(taken.cache_bytes as f64))),
                ],
            ),
        ])
    }

    fn goals(&self, ground: &Ground) -> Vec<Goal> {
        let (fewest, most) = (self.counts[0], *self.counts.last().expect("there are sizes"));
        let threads = |count| Some(ground.known::<Taken>(Count(count))?.threads as f64);
        let what =
            format!("threads of {most} databases beyond those of {fewest}: the pool starts its own when there is work");
        vec![Goal::at_most(THREADS as f64, what, threads(most).zip(threads(fewest)).map(|(many, few)| many - few))]
    }
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn value(database: u64, number: u64) -> [u8; VALUE_BYTES] {
    let mut value = [b'v'; VALUE_BYTES];
    value[..8].copy_from_slice(&(database << 32 | number).to_be_bytes());
    value
}

impl Databases {
    /// Creates the databases, closing each one once its rows are written.
    fn load(&self, place: &Path, count: u64, stop: &Stop) -> Result<(), Failure> {
        std::fs::create_dir_all(place).map_err(|error| failure(&error, "make", place))?;
        let pool = ThreadPool::new(THREADS);
        let cache = Cache::new(CACHE_BYTES);
        for database in (0..count).take_while(|_| !stop.is_pressed()) {
            let builder = Database::builder(place.join(database.to_string())).durability(Durability::Buffered);
            let db = builder.cache(&cache).thread_pool(&pool).open().map_err(broken)?;
            let table = db.table("t").map_err(broken)?;
            import(&table, 0..self.rows, stop, |number| (key(number), value(database, number)))?;
            drop(table);
            db.close().map_err(broken)?;
        }
        Ok(())
    }

    fn gets(&self, place: &Path, count: u64, stop: &Stop) -> Result<Taken, Failure> {
        let before = Process::now();
        let pool = ThreadPool::new(THREADS);
        let cache = Cache::new(CACHE_BYTES);
        let clock = Clock::start();
        let open = |database: u64| {
            let builder =
                Database::builder(place.join(database.to_string())).create(false).durability(Durability::Buffered);
            builder.cache(&cache).thread_pool(&pool).open().map_err(broken)
        };
        let opened = (0..count).map(open).collect::<Result<Vec<Database>, Failure>>()?;
        let open_micros = clock.nanos() as f64 / 1e3;
        let tables = opened.iter().map(|db| db.table("t").map_err(broken)).collect::<Result<Vec<_>, Failure>>()?;
        let get = |database: u64, number: u64| {
            let found = tables[database as usize].get(key(number)).map_err(broken)?;
            match found.as_deref() == Some(&value(database, number)[..]) {
                true => Ok(()),
                false => {
                    let text = format!("row {number} of database {database} is not what was written");
                    Err(Failure::session(crate::WRONG, text))
                }
            }
        };
        (0..count).try_for_each(|database| get(database, 0))?;
        let after = Process::now();

        let mut random = 7_u64;
        let (meter, clock, mut gets) = (Meter::start(StoreUse::InProcess), Clock::start(), 0);
        while clock.nanos() < self.time.as_nanos() as u64 && !stop.is_pressed() {
            for _ in 0..64 {
                random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let drawn = row_access::batch::mixed(random);
                get(drawn % count, (drawn >> 32) % self.rows)?;
                gets += 1;
            }
        }
        let million = meter.million(gets, StoreUse::InProcess, None);
        let get_nanos = clock.nanos() as f64 / f64::from(gets as u32).max(1.0);
        // The cache is shared, so any database reports it.
        let metrics = opened[0].metrics();
        let (page_reads, cache_bytes) = (metrics.page_reads, metrics.cache.used_bytes);
        drop(tables);
        opened.into_iter().try_for_each(|db| db.close().map_err(broken))?;
        let memory_bytes = after.resident_bytes - before.resident_bytes;
        let threads = after.threads - before.threads;
        Ok(Taken { open_micros, memory_bytes, threads, gets, get_nanos, page_reads, cache_bytes, million })
    }
}

/// Memory and threads of this process.
struct Process {
    resident_bytes: i64,
    threads: i64,
}

impl Process {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|number| number.parse::<i64>().ok()).unwrap_or(0)
        };
        Self { resident_bytes: 1024 * number("VmRSS:"), threads: number("Threads:") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::tests::tiny;

    #[test]
    fn a_tiny_experiment_opens_all_databases_at_once() {
        let [once, again] = [0, 1].map(|_| Databases::of(Scale::Tiny));
        let (_, ground, outcome) = tiny(once, again);
        assert!(ground.all::<Taken, _>(3, |at| Count([1, 5, 20][at as usize])).iter().all(|taken| taken.gets > 0));
        assert_eq!(outcome.goals.len(), 1);
    }
}
