//! The table of what does not fit in memory: uniform gets with a small cache, in a process whose memory is bounded, with
//! what the system caches of its files.

use super::herd::Peer;
use super::memory_limit::MemoryLimit;
use super::orders::{Fill, Measure, Order, Sample, Task};
use super::table::{Against, Goal, Row, Table};
use super::workplace::Workplace;
use super::{Ending, Tale, disk, in_turns, verdict};
use crate::args::PeersArgs;
use harness::Scheme;

/// What a process may have, with what the system caches for it.
const LIMIT_BYTES: u64 = 256 << 20;

/// A store with its settings, and the cache that is no part of its memory outside the cache.
struct Engine {
    name: &'static str,
    scheme: &'static str,
    options: &'static str,
    cache_bytes: u64,
}

const MIB: u64 = 1 << 20;

/// Larch comes first: it is the one whose goals are looked at.
const ENGINES: [Engine; 10] = [
    Engine { name: "larch 16K", scheme: "larch", options: "cache=64MiB&page=16KiB", cache_bytes: 64 * MIB },
    Engine { name: "larch 16K, 16 MiB", scheme: "larch", options: "cache=16MiB&page=16KiB", cache_bytes: 16 * MIB },
    Engine { name: "larch 4K", scheme: "larch", options: "cache=64MiB&page=4KiB", cache_bytes: 64 * MIB },
    Engine {
        name: "rocksdb 16K",
        scheme: "rocksdb",
        options: "cache=64MiB&page=16KiB&index=default&direct=1",
        cache_bytes: 64 * MIB,
    },
    Engine {
        name: "rocksdb parts 16K",
        scheme: "rocksdb",
        options: "cache=64MiB&page=16KiB&index=partitioned&direct=1",
        cache_bytes: 64 * MIB,
    },
    Engine {
        name: "rocksdb parts 4K, 16 MiB",
        scheme: "rocksdb",
        options: "cache=16MiB&page=4KiB&index=partitioned&direct=1",
        cache_bytes: 16 * MIB,
    },
    Engine { name: "fjall", scheme: "fjall", options: "cache=64MiB", cache_bytes: 64 * MIB },
    Engine { name: "redb", scheme: "redb", options: "cache=64MiB", cache_bytes: 64 * MIB },
    Engine { name: "lmdb", scheme: "lmdb", options: "readahead=0", cache_bytes: 0 },
    Engine { name: "disk 16K", scheme: "disk", options: "page=16KiB", cache_bytes: 0 },
];

/// The clients of each column of goals, one thread each.
const THREADS: [(usize, [&str; 3]); 4] = [
    (1, ["K gets/s, 1 thread", "reads a get, 1 thread", "CPU us a get, 1 thread"]),
    (8, ["K gets/s, 8 threads", "reads a get, 8 threads", "CPU us a get, 8 threads"]),
    (32, ["K gets/s, 32 threads", "reads a get, 32 threads", "CPU us a get, 32 threads"]),
    (128, ["K gets/s, 128 threads", "reads a get, 128 threads", "CPU us a get, 128 threads"]),
];

const OUTSIDE: &str = "memory outside the cache";

/// Measures the table on all engines that are there.
pub fn run(args: &PeersArgs, schemes: &[Scheme]) -> Result<Ending, String> {
    let records = args.records.unwrap_or(if args.quick { 4_000_000 } else { 32_000_000 });
    let (repeats, warmup_millis, millis) = if args.quick { (1, 1_000, 1_500) } else { (3, 1_000, 2_500) };
    let built = |engine: &&Engine| engine.scheme == "disk" || schemes.iter().any(|known| known.name == engine.scheme);
    let engines: Vec<&Engine> = ENGINES.iter().filter(built).collect();
    let place = Workplace::new(args.dir.as_deref(), "bench-cold")?;
    // redb takes half again as much as its rows; while one is made, a second copy of its rows.
    let needed = (engines.len() as u64 + 2) * records * 150;
    place.check_room(needed)?;
    let tale = Tale::new();
    let seconds = millis as f64 / 1e3;
    let mut head = format!(
        "{records} records of 20-byte keys and 100-byte values, uniform gets, {repeats} repeats of {seconds:.1} s\n\n"
    );
    let mut targets = Vec::new();
    for (number, engine) in engines.iter().enumerate() {
        let directory = place.join(&number.to_string());
        let target = format!("{}:{}?{}", engine.scheme, directory.display(), engine.options);
        let made = make(engine, &target, records)?;
        tale.tell(&format!("{} is filled and settled: {} MiB", engine.name, made.file_bytes >> 20));
        disk::forget(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let list: Vec<String> = made.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        head.push_str(&format!("* {}: {}; {} MiB on disk\n", engine.name, list.join("; "), made.file_bytes >> 20));
        targets.push(target);
    }
    let names = engines.iter().map(|engine| engine.name.to_owned()).collect();
    let mut table = Table { engines: names, rows: rows(engines.len()), failures: Vec::new() };
    for (number, (threads, names)) in THREADS.into_iter().enumerate() {
        let measure = Measure {
            task: Task::Workload { name: "c".to_owned(), keys: "uniform".to_owned() },
            records,
            threads,
            warmup_millis,
            millis,
            operations: None,
            seed: 100 * (number as u64 + 1),
        };
        let mut peers = start(&engines, &targets, &mut head, &tale)?;
        let speed = table.rows.iter_mut().find(|row| row.name == names[0]).expect("every count of threads has rows");
        let samples = in_turns(&mut peers, repeats, &measure, speed, &super::thousands, &tale, &mut table.failures);
        put(&mut table, names, 1, &samples, &|sample| {
            sample.disk_reads.map(|reads| reads as f64 / sample.operations.max(1) as f64)
        });
        put(&mut table, names, 2, &samples, &|sample| {
            Some(sample.cpu_nanos as f64 / 1e3 / sample.operations.max(1) as f64)
        });
        if threads == 128 {
            let failed = table.rows.iter().find(|row| row.name == names[0]).map(|row| row.failed.clone());
            let row = table.rows.iter_mut().find(|row| row.name == OUTSIDE).expect("its row");
            row.failed = failed.unwrap_or_default();
            for (at, samples) in samples.iter().enumerate() {
                let outside = |sample: &Sample| sample.resident_bytes.saturating_sub(engines[at].cache_bytes) as f64;
                row.figures[at] = samples.iter().map(|sample| outside(sample) / MIB as f64).collect();
            }
        }
    }
    let mut ending = verdict(&table);
    ending.text = format!(
        "{head}\n{}not measured: one thread with 128 gets under way: Larch has no such reads yet\n",
        ending.text
    );
    Ok(ending)
}

/// Fills a database in a process of its own, without a limit.
fn make(engine: &Engine, target: &str, records: u64) -> Result<Sample, String> {
    let mut peer = Peer::start(engine.name, target, None)?;
    peer.obey(&Order::Open { anew: true })?;
    let made = peer.obey(&Order::Fill { how: Fill::Sorted, records, limit_millis: 0 })?;
    peer.obey(&Order::Close)?;
    Ok(made)
}

/// Processes that hold the databases open, each with its limit. They are new for each count of threads: what the threads
/// of one left in memory is not counted for the next.
fn start(engines: &[&Engine], targets: &[String], head: &mut String, tale: &Tale) -> Result<Vec<Peer>, String> {
    let mut peers = Vec::new();
    for (number, (engine, target)) in engines.iter().zip(targets).enumerate() {
        let limit = match MemoryLimit::new(&format!("larch-bench-{}-{number}", std::process::id()), LIMIT_BYTES) {
            Ok(limit) => Some(limit),
            Err(why) => {
                let line =
                    format!("* memory of {} was NOT limited, so the system's cache helped: {why}\n", engine.name);
                if !head.contains(&line) {
                    tale.tell(line.trim_end());
                    head.push_str(&line);
                }
                None
            }
        };
        let mut peer = Peer::start(engine.name, target, limit)?;
        peer.obey(&Order::Open { anew: false })?;
        peers.push(peer);
    }
    Ok(peers)
}

/// Puts what `figure` makes of samples into the row `names[at]`; it failed where the first of them did.
fn put(
    table: &mut Table,
    names: [&str; 3],
    at: usize,
    samples: &[Vec<Sample>],
    figure: &dyn Fn(&Sample) -> Option<f64>,
) {
    let failed = table.rows.iter().find(|row| row.name == names[0]).map(|row| row.failed.clone()).unwrap_or_default();
    let row = table.rows.iter_mut().find(|row| row.name == names[at]).expect("every count of threads has rows");
    row.failed = failed;
    for (figures, samples) in row.figures.iter_mut().zip(samples) {
        *figures = samples.iter().filter_map(figure).collect();
    }
}

fn rows(engines: usize) -> Vec<Row> {
    let row = |name, unit, less_is_better, goals| Row {
        name,
        unit,
        less_is_better,
        goals,
        figures: vec![Vec::new(); engines],
        failed: Vec::new(),
    };
    let beside = |name, ratio| Goal { against: Against::Engine(name), ratio };
    let figure = |number| Goal { against: Against::Figure, ratio: number };
    let sixteen = ["rocksdb 16K", "rocksdb parts 16K", "fjall", "redb"];
    let mut rows = Vec::new();
    for (_, names) in THREADS {
        let mut goals: Vec<Goal> = sixteen.iter().map(|name| beside(name, 0.95)).collect();
        goals.push(Goal { against: Against::Between("larch 4K", "lmdb"), ratio: 1.0 });
        rows.push(row(names[0], "K/s", false, goals));
        let goals = vec![figure(1.02), Goal { against: Against::FigureOf("larch 16K, 16 MiB"), ratio: 1.05 }];
        rows.push(row(names[1], "reads", true, goals));
        rows.push(row(names[2], "us", true, vec![Goal { against: Against::Above("disk 16K"), ratio: 4.0 }]));
    }
    rows.push(row(OUTSIDE, "MiB", true, vec![figure(32.0)]));
    rows
}
