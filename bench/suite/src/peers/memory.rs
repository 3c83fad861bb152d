//! `larch bench peers`: small rows that fit in memory. Reads, mixed workloads, scans and loads by one and two
//! threads, and synced puts.

#[cfg(test)]
mod tests;

use super::herd::Peer;
use super::orders::{Fill, Measure, Order, Sample, Task};
use super::table::{Against, Goal, Row, Table};
use super::warm_up::warm_up;
use super::{Ending, Tale, absent, check_room, failed, in_turns, million_rows, place, thousands, verdict};
use crate::args::PeersArgs;
use harness::Scheme;
use kit::Scratch;

/// The cache of each engine, which holds all rows.
const CACHE: &str = "3GiB";

/// The time limit of a random load, after which it ends with the rows that it has. Engines that update pages in
/// place get slower and slower.
const LONGEST_LOAD_MILLIS: u64 = 60_000;

/// An engine and its options: commits are not synced, nothing is compressed, and all data fits in the cache. A
/// crash of the machine may lose the last commits. What a crash of the process alone loses depends on the engine,
/// and the report prints it. SQLite's cache dies with its connection, and each row of the table opens a new one, so
/// its file is memory-mapped too.
struct Engine {
    name: &'static str,
    scheme: &'static str,
    options: String,
}

/// Larch comes first: the goals are those of the first engine.
const ENGINES: [&str; 6] = ["larch", "rocksdb", "fjall", "redb", "lmdb", "sqlite"];

fn engines(schemes: &[Scheme]) -> Vec<Engine> {
    let built = |scheme: &&str| schemes.iter().any(|known| known.name == *scheme);
    let engine = |scheme| {
        let map = if scheme == "sqlite" { "&mmap=16GiB" } else { "" };
        Engine { name: scheme, scheme, options: format!("cache={CACHE}&durability=buffered{map}") }
    };
    ENGINES.into_iter().filter(built).map(engine).collect()
}

/// The row that counts, over the whole run, how often an engine stopped writes because level 0 was full.
const STOPS: &str = "writes stopped at level 0";

/// How large a run is.
struct Scale {
    records: u64,
    repeats: usize,
    warmup_millis: u64,
    millis: u64,
}

/// Measures the table on all engines that this binary has.
pub fn run(args: &PeersArgs, schemes: &[Scheme]) -> Result<Ending, String> {
    let scale = match args.quick {
        true => Scale { records: args.records.unwrap_or(1_000_000), repeats: 1, warmup_millis: 500, millis: 1_000 },
        false => Scale { records: args.records.unwrap_or(10_000_000), repeats: 3, warmup_millis: 500, millis: 3_000 },
    };
    let engines = engines(schemes);
    let place = place(args.dir.as_deref(), "bench-peers")?;
    // Room for the rows, and for the second copy that a compaction or an engine with pages may need for a while.
    let needed = engines.len() as u64 * scale.records * 120 * 4;
    check_room(&place, needed)?;
    let tale = Tale::new();
    let mut peers = Vec::new();
    for engine in &engines {
        let directory = place.join(engine.name);
        let target = format!("{}:{}?{}", engine.scheme, directory.display(), engine.options);
        peers.push(Peer::start(engine.name, &target, None)?);
    }
    let names: Vec<String> = engines.iter().map(|engine| engine.name.to_owned()).collect();
    let mut table = Table { engines: names, rows: rows(), failures: Vec::new() };
    for row in &mut table.rows {
        row.figures = vec![Vec::new(); engines.len()];
    }
    let mut settings = Vec::new();
    fill(&mut peers, &scale, Fill::Sorted, &mut table, &tale, &mut settings);
    measure(&mut peers, &scale, (Fill::Sorted, scale.records), &SORTED_TASKS, &mut table, &tale);
    let loaded = fill(&mut peers, &scale, Fill::Random, &mut table, &tale, &mut Vec::new());
    measure(&mut peers, &scale, (Fill::Random, loaded), &RANDOM_TASKS, &mut table, &tale);
    drop(peers);
    synced(&engines, &scale, &place, &mut table, &tale)?;
    let mut ending = verdict(&table);
    ending.text = format!("{}\n{}", head(args, &scale, &settings), ending.text);
    ending.leave_out(&absent(&ENGINES, schemes));
    Ok(ending)
}

fn head(args: &PeersArgs, scale: &Scale, settings: &[String]) -> String {
    let mut text = format!(
        "{} records of 20-byte keys and 100-byte values, {} repeats of {:.1} s after {:.1} s of warm-up{}\n\n",
        scale.records,
        scale.repeats,
        scale.millis as f64 / 1e3,
        scale.warmup_millis as f64 / 1e3,
        if args.quick { " (quick: figures are rough)" } else { "" }
    );
    for line in settings {
        text.push_str(&format!("* {line}\n"));
    }
    text
}

fn against(engine: &'static str, ratio: f64) -> Goal {
    Goal { against: Against::Engine(engine), ratio }
}

fn best(ratio: f64) -> Goal {
    Goal { against: Against::Best, ratio }
}

fn own(row: &'static str, ratio: f64) -> Goal {
    Goal { against: Against::Own(row), ratio }
}

fn row(name: &'static str, unit: &'static str, goals: Vec<Goal>) -> Row {
    Row { name, unit, less_is_better: unit == "bytes a row", goals, figures: Vec::new(), failed: Vec::new() }
}

/// The rows with their goals.
fn rows() -> Vec<Row> {
    vec![
        row("uniform get", "K/s", vec![against("rocksdb", 3.5), against("lmdb", 1.6)]),
        row("zipfian get (C)", "K/s", vec![against("rocksdb", 3.0), against("lmdb", 1.2)]),
        row("read of 16, uniform", "K rows/s", vec![own("uniform get", 2.5)]),
        row("get of an absent key", "K/s", vec![against("rocksdb", 1.0)]),
        row("uniform get, 2 threads", "K/s", vec![own("uniform get", 1.9)]),
        row("zipfian get, 2 threads", "K/s", vec![own("zipfian get (C)", 1.9)]),
        row("full scan", "M rows/s", vec![against("rocksdb", 8.0), against("redb", 1.0)]),
        row("B (95/5)", "K/s", vec![against("rocksdb", 2.0), against("lmdb", 1.4)]),
        row("A (50/50)", "K/s", vec![best(1.5)]),
        row("F (read-modify-write)", "K/s", vec![best(1.5)]),
        row("D (latest)", "K/s", vec![best(1.5)]),
        row("E (scan 1-100)", "K/s", vec![against("rocksdb", 3.0), against("lmdb", 1.0)]),
        row("random load", "K/s", vec![against("rocksdb", 1.3)]),
        row("random load, written", "bytes a row", vec![against("rocksdb", 1.0)]),
        row("random load, files", "bytes a row", vec![against("rocksdb", 1.0)]),
        row("uniform get, random", "K/s", Vec::new()),
        row("full scan, random", "M rows/s", vec![against("rocksdb", 4.0)]),
        row("A, random", "K/s", Vec::new()),
        row("A, random, 2 threads", "K/s", vec![own("A, random", 1.3)]),
        row("sorted bulk load", "M rows/s", vec![against("rocksdb", 1.2)]),
        row("synced puts, 1 thread", "K/s", vec![against("disk", 0.9)]),
        row("synced puts, 16 threads", "K/s", vec![against("rocksdb", 1.0)]),
        Row::new(STOPS, "stops", vec![Goal { against: Against::Figure, ratio: 0.0 }]).less_is_better(),
    ]
}

fn workload(name: &str, keys: &str) -> Task {
    Task::Workload { name: name.to_owned(), keys: keys.to_owned() }
}

/// A function that computes a figure from a sample.
type Figure = fn(&Sample) -> f64;

/// A row of the table: its name, task, number of threads, and figure.
type RowTask = (&'static str, fn() -> Task, usize, Figure);

fn thousand_rows(sample: &Sample) -> f64 {
    sample.rows as f64 / sample.nanos as f64 * 1e6
}

/// The rows measured on databases that were filled in key order.
const SORTED_TASKS: [RowTask; 12] = [
    ("uniform get", || workload("c", "uniform"), 1, thousands),
    ("zipfian get (C)", || workload("c", ""), 1, thousands),
    ("read of 16, uniform", || Task::Many(16), 1, thousand_rows),
    ("get of an absent key", || Task::Absent, 1, thousands),
    ("uniform get, 2 threads", || workload("c", "uniform"), 2, thousands),
    ("zipfian get, 2 threads", || workload("c", ""), 2, thousands),
    ("full scan", || Task::Scan, 1, million_rows),
    ("B (95/5)", || workload("b", ""), 1, thousands),
    ("A (50/50)", || workload("a", ""), 1, thousands),
    ("F (read-modify-write)", || workload("f", ""), 1, thousands),
    ("D (latest)", || workload("d", ""), 1, thousands),
    ("E (scan 1-100)", || workload("e", ""), 1, thousands),
];

/// The rows measured on databases that were filled in random order.
const RANDOM_TASKS: [RowTask; 4] = [
    ("uniform get, random", || workload("c", "uniform"), 1, thousands),
    ("full scan, random", || Task::Scan, 1, million_rows),
    ("A, random", || workload("a", ""), 1, thousands),
    ("A, random, 2 threads", || workload("a", ""), 2, thousands),
];

/// Measures the tasks on filled databases without pending background work.
fn measure(
    peers: &mut [Peer],
    scale: &Scale,
    (filled, records): (Fill, u64),
    tasks: &[RowTask],
    table: &mut Table,
    tale: &Tale,
) {
    warm_up(peers, filled, records, table, tale);
    for (name, task, threads, figure) in tasks {
        let number = table.rows.iter().position(|row| row.name == *name).expect("every task has a row");
        let measure = Measure {
            task: task(),
            records,
            filled,
            threads: *threads,
            warmup_millis: scale.warmup_millis,
            millis: scale.millis,
            operations: None,
            hot_share: None,
            beside: None,
            // A repeat adds its number to the seed, so no two rows draw the same keys.
            seed: 100 * (number as u64 + 1),
        };
        let row = &mut table.rows[number];
        let samples = in_turns(peers, scale.repeats, &measure, row, figure, tale, &mut table.failures);
        samples.iter().enumerate().for_each(|(at, samples)| count_stops(table, at, samples));
    }
}

/// Measures durable inserts, in databases of their own, and beside them the disk alone.
fn synced(engines: &[Engine], scale: &Scale, place: &Scratch, table: &mut Table, tale: &Tale) -> Result<(), String> {
    const RECORDS: u64 = 100_000;
    let disk = Engine { name: "disk", scheme: "disk", options: String::new() };
    let mut peers = Vec::new();
    for engine in engines.iter().chain([&disk]) {
        let directory = place.join(format!("{} synced", engine.name));
        let target = format!("{}:{}?durability=synced", engine.scheme, directory.display());
        let mut peer = Peer::start(engine.name, &target, None)?;
        peer.obey(&Order::Open { anew: true })?;
        peer.obey(&Order::Fill { how: Fill::Sorted, records: RECORDS, limit_millis: 0 })?;
        peers.push(peer);
    }
    table.engines.push(disk.name.to_owned());
    for row in &mut table.rows {
        row.figures.push(Vec::new());
    }
    for (number, (name, threads)) in
        [("synced puts, 1 thread", 1), ("synced puts, 16 threads", 16)].into_iter().enumerate()
    {
        let row = table.rows.iter_mut().find(|row| row.name == name).expect("both have rows");
        let measure = Measure {
            task: Task::Puts,
            records: RECORDS,
            filled: Fill::Sorted,
            threads,
            warmup_millis: scale.warmup_millis,
            millis: scale.millis,
            operations: None,
            hot_share: None,
            beside: None,
            seed: 10_000 * (number as u64 + 1),
        };
        let samples = in_turns(&mut peers, scale.repeats, &measure, row, &thousands, tale, &mut table.failures);
        samples.iter().enumerate().for_each(|(at, samples)| count_stops(table, at, samples));
    }
    Ok(())
}

/// Adds the write stops in the `samples` of engine `at` to the row [`STOPS`].
fn count_stops(table: &mut Table, at: usize, samples: &[Sample]) {
    let total = &mut table.row(STOPS).figures[at];
    let stops: Vec<u64> = samples.iter().filter_map(|sample| sample.level0_stops).collect();
    if !stops.is_empty() {
        *total = vec![total.first().unwrap_or(&0.0) + stops.iter().sum::<u64>() as f64];
    }
}

/// Refills all databases in turn and records the speed. Returns the least number of rows that a database got.
fn fill(
    peers: &mut [Peer],
    scale: &Scale,
    how: Fill,
    table: &mut Table,
    tale: &Tale,
    settings: &mut Vec<String>,
) -> u64 {
    let mut rows = scale.records;
    let (name, figure): (_, Figure) = match how {
        Fill::Sorted => ("sorted bulk load", million_rows),
        Fill::Random => ("random load", thousand_rows),
    };
    for repeat in 0..scale.repeats {
        for (at, peer) in peers.iter_mut().enumerate() {
            let filled = peer.obey(&Order::Open { anew: true }).and_then(|_| {
                peer.obey(&Order::Fill { how, records: scale.records, limit_millis: LONGEST_LOAD_MILLIS })
            });
            let sample = match filled {
                Ok(sample) => sample,
                Err(why) => {
                    failed(name, why, &mut table.failures, tale);
                    table.row(name).failed.push(at);
                    continue;
                }
            };
            let number = figure(&sample);
            tale.tell(&format!("{name:24} {:24} {number:12.2}", peer.name()));
            rows = rows.min(sample.rows);
            table.row(name).figures[at].push(number);
            count_stops(table, at, std::slice::from_ref(&sample));
            if how == Fill::Random && sample.disk_reads.is_some() {
                let written = sample.disk_written_bytes as f64 / sample.rows.max(1) as f64;
                table.row("random load, written").figures[at].push(written);
                let files = sample.file_bytes as f64 / sample.rows.max(1) as f64;
                table.row("random load, files").figures[at].push(files);
            }
            if repeat == 0 {
                let list: Vec<String> = sample.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
                settings.push(format!("{}: {}", peer.name(), list.join("; ")));
            }
        }
    }
    rows
}
