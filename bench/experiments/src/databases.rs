//! `larch bench experiment databases`: many databases in one process under one cache. Measures their memory,
//! threads, time to open, and gets.
//!
//! YDB splits a table into many tablets, and even those with cold data take memory for their indexes on every node.
//! In Larch, a database takes only the memory of its open handle, and all databases share one page cache.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "memory and threads of a real process")]

use crate::args::{ExperimentArgs, Scale};
use crate::ground::Ground;
use crate::outcome::{Ending, Goal, Outcome};
use harness::report::Meter;
use harness::{Clock, Failure, Million, StoreUse};
use kit::goals::Bound;
use larch::machine::ThreadPool;
use larch::{Cache, Database, Durability};
use page::{Axis, Block, Chart, Curve, Table, figure};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use suite::stop::Stop;

#[cfg(test)]
mod tests;

/// How much is measured.
struct Size {
    databases: &'static [u64],
    rows: u64,
    time: Duration,
}

impl Size {
    fn of(scale: Scale) -> Self {
        let (databases, rows, millis) = match scale {
            Scale::Tiny => (&[1, 5, 20][..], 100, 50),
            Scale::Small => (&[10, 100, 1000][..], 1000, 2000),
            Scale::Medium => (&[10, 100, 1000][..], 10_000, 5000),
            Scale::Full => (&[10, 100, 1000][..], 30_000, 20_000),
        };
        Self { databases, rows, time: Duration::from_millis(millis) }
    }
}

const VALUE_BYTES: usize = 100;
const CACHE_BYTES: u64 = 64 << 20;
/// Threads of the pool that all databases share.
const THREADS: usize = 2;

/// The measurements of a number of databases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Measured {
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

/// Runs the experiment.
pub fn run(args: &ExperimentArgs) -> Result<Ending, Failure> {
    let size = Size::of(args.scale);
    let most = size.databases.iter().max().expect("there are sizes");
    // An empty database takes some hundred kilobytes for its log.
    let mut ground = Ground::open("databases", args, most * (size.rows * 200 + (1 << 20)))?;
    if !measure_all(&mut ground, &size)? {
        return Ok(Ending::Interrupted);
    }
    outcome(&ground, &size).finish("databases", &ground, args)
}

fn cell_name(databases: u64) -> String {
    format!("{databases} databases")
}

fn measure_all(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    for &databases in size.databases {
        let name = cell_name(databases);
        if ground.has(&name) {
            continue;
        }
        let place = ground.data(&databases.to_string())?;
        suite::say(&format!("{name} of {} rows", size.rows));
        if !load(&place, databases, size, &ground.stop)? {
            return Ok(false);
        }
        if ground.cell(&name, |stop| measure(&place, databases, size, stop))?.is_none() {
            return Ok(false);
        }
        ground.remove_data()?;
    }
    Ok(true)
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn value(database: u64, number: u64) -> [u8; VALUE_BYTES] {
    let mut value = [b'v'; VALUE_BYTES];
    value[..8].copy_from_slice(&(database << 32 | number).to_be_bytes());
    value
}

/// Creates the databases, closing each one once its rows are written. Returns false after ^C.
fn load(place: &Path, databases: u64, size: &Size, stop: &Stop) -> Result<bool, Failure> {
    std::fs::create_dir_all(place).map_err(|error| Failure::session("io", format!("{}: {error}", place.display())))?;
    let pool = ThreadPool::new(THREADS);
    let cache = Cache::new(CACHE_BYTES);
    for database in 0..databases {
        if stop.is_pressed() {
            return Ok(false);
        }
        let builder = Database::builder(place.join(database.to_string())).durability(Durability::Buffered);
        let db = builder.cache(&cache).thread_pool(&pool).open().map_err(failed)?;
        let table = db.table("t").map_err(failed)?;
        let mut import = table.import().map_err(failed)?;
        for number in 0..size.rows {
            import.add(&key(number), &value(database, number)).map_err(failed)?;
        }
        import.finish(|_| {}).map_err(failed)?;
        drop(table);
        db.close().map_err(failed)?;
    }
    Ok(true)
}

fn measure(place: &Path, databases: u64, size: &Size, stop: &Stop) -> Result<Measured, Failure> {
    let before = Process::now();
    let pool = ThreadPool::new(THREADS);
    let cache = Cache::new(CACHE_BYTES);
    let clock = Clock::start();
    let open = |database: u64| {
        let builder =
            Database::builder(place.join(database.to_string())).create(false).durability(Durability::Buffered);
        builder.cache(&cache).thread_pool(&pool).open().map_err(failed)
    };
    let opened = (0..databases).map(open).collect::<Result<Vec<Database>, Failure>>()?;
    let open_micros = clock.nanos() as f64 / 1e3;
    let tables = opened.iter().map(|db| db.table("t").map_err(failed)).collect::<Result<Vec<_>, Failure>>()?;
    let get = |database: u64, number: u64| {
        let found = tables[database as usize].get(key(number)).map_err(failed)?;
        match found.as_deref() == Some(&value(database, number)[..]) {
            true => Ok(()),
            false => Err(Failure::session(
                crate::WRONG,
                format!("row {number} of database {database} is not what was written"),
            )),
        }
    };
    (0..databases).try_for_each(|database| get(database, 0))?;
    let after = Process::now();

    let mut random = 7_u64;
    let (meter, clock, mut gets) = (Meter::start(StoreUse::InProcess), Clock::start(), 0);
    while clock.nanos() < size.time.as_nanos() as u64 && !stop.is_pressed() {
        for _ in 0..64 {
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let drawn = row_access::batch::mixed(random);
            get(drawn % databases, (drawn >> 32) % size.rows)?;
            gets += 1;
        }
    }
    let million = meter.million(gets, StoreUse::InProcess, None);
    let get_nanos = clock.nanos() as f64 / f64::from(gets as u32).max(1.0);
    // The cache is shared, so any database reports it.
    let metrics = opened[0].metrics();
    let (page_reads, cache_bytes) = (metrics.page_reads, metrics.cache.used_bytes);
    drop(tables);
    opened.into_iter().try_for_each(|db| db.close().map_err(failed))?;
    Ok(Measured {
        open_micros,
        memory_bytes: after.resident_bytes - before.resident_bytes,
        threads: after.threads - before.threads,
        gets,
        get_nanos,
        page_reads,
        cache_bytes,
        million,
    })
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

fn failed(error: larch::Error) -> Failure {
    Failure::session("larch", error.to_string())
}

fn outcome(ground: &Ground, size: &Size) -> Outcome {
    let cell = |databases: u64| -> Option<Measured> {
        serde_json::from_value(ground.cells().get(&cell_name(databases))?.clone()).ok()
    };
    let kib = |bytes: f64| figure(bytes / 1024.0);
    let row = |databases: &u64| {
        let Some(measured) = cell(*databases) else { return vec![figure(*databases as f64)] };
        let each = *databases as f64;
        vec![
            figure(each),
            figure(measured.open_micros / each),
            kib(measured.memory_bytes as f64 / each),
            measured.threads.to_string(),
            figure(1e9 / measured.get_nanos),
            format!("{:.3}", measured.page_reads as f64 / measured.gets.max(1) as f64),
            kib(measured.cache_bytes as f64),
        ]
    };
    let columns = [
        "databases",
        "us to open one",
        "KiB of memory for one",
        "more threads",
        "gets/s",
        "page reads a get",
        "KiB of pages in the end",
    ];
    let table = Table {
        caption: format!("Databases of {} rows each in one process, under one cache of 64 MiB", size.rows),
        columns: columns.map(str::to_owned).to_vec(),
        rows: size.databases.iter().map(row).collect(),
    };
    let points = |of: fn(&Measured) -> f64| {
        size.databases.iter().filter_map(|databases| Some((*databases as f64, of(&cell(*databases)?)))).collect()
    };
    let chart = Chart {
        title: "Gets a second over all databases".to_owned(),
        x: Axis::logarithmic("databases"),
        y: Axis::linear("gets a second"),
        lines: vec![Curve { name: "larch".to_owned(), points: points(|measured| 1e9 / measured.get_nanos) }],
        marks: Vec::new(),
    };
    let (fewest, most) = (size.databases[0], *size.databases.last().expect("there are sizes"));
    let more_threads = cell(fewest).zip(cell(most)).map(|(few, many)| (many.threads - few.threads) as f64);
    Outcome {
        title: "Many databases in one process".to_owned(),
        about: ABOUT.map(str::to_owned).to_vec(),
        blocks: vec![Block::Chart(chart), Block::Table(table)],
        goals: vec![Goal {
            what: format!(
                "threads of {most} databases beyond those of {fewest}: the pool starts its own when there is work"
            ),
            bound: Bound::AtMost(THREADS as f64),
            measured: more_threads,
        }],
    }
}

const ABOUT: [&str; 3] = [
    "YDB's document wants much cold data to be served without dozens of nodes. One process opens all databases, which share one cache and \
     one pool of two threads.",
    "Memory is what the process has more after all databases were opened and a row of each was read, the pages of these rows included. The \
     page cache of the system plays no part: reads are direct where the file system can.",
    "Then rows are drawn from all databases, and each value is compared with what was written.",
];
