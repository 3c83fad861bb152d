//! `larch bench peers`: small rows that fit in memory. Reads, mixed workloads, scans and loads by one and two
//! threads, and synced puts.

use super::herd::{Herd, Peer};
use super::orders::{Fill, Operate, Order, Sample, Task};
use super::rows::{ALL_TASKS, Against, Part, Row};
use super::{Cell, Comparison, absent, keep_settings, measure, million_rows, warm_up, workload};
use crate::args::PeersArgs;
use crate::experiment::About;
use crate::ground::Ground;
use harness::Scheme;

/// The cache of each engine, which holds all rows.
const CACHE: &str = "3GiB";

/// The time limit of a random load, after which it ends with the rows that it has. Engines that update pages in
/// place get slower and slower.
const LONGEST_LOAD_MILLIS: u64 = 60_000;

/// Larch comes first: the goals are those of the first engine.
const ENGINES: [&str; 6] = ["larch", "rocksdb", "fjall", "redb", "lmdb", "sqlite"];
const DISK: &str = "disk";

/// The row that counts, over the whole run, how often an engine stopped writes because level 0 was full.
const STOPS: &str = "writes stopped at level 0";

const SORTED_LOAD: &str = "sorted bulk load";
const RANDOM_LOAD: &str = "random load";

/// What is measured on databases that were filled in key order, and in random order, and in databases of its own.
const SORTED: [&str; 12] = [
    "uniform get",
    "zipfian get (C)",
    "read of 16, uniform",
    "get of an absent key",
    "uniform get, 2 threads",
    "zipfian get, 2 threads",
    "full scan",
    "B (95/5)",
    "A (50/50)",
    "F (read-modify-write)",
    "D (latest)",
    "E (scan 1-100)",
];
const RANDOM: [&str; 4] = ["uniform get, random", "full scan, random", "A, random", "A, random, 2 threads"];
const SYNCED: [&str; 2] = ["synced puts, 1 thread", "synced puts, 16 threads"];
const SYNCED_RECORDS: u64 = 100_000;

/// The operations of a task, and the threads that make them.
fn operations(task: &str) -> (Task, usize) {
    match task {
        "uniform get" | "uniform get, random" => (workload("c", "uniform"), 1),
        "zipfian get (C)" => (workload("c", ""), 1),
        "read of 16, uniform" => (Task::Many(16), 1),
        "get of an absent key" => (Task::Absent, 1),
        "uniform get, 2 threads" => (workload("c", "uniform"), 2),
        "zipfian get, 2 threads" => (workload("c", ""), 2),
        "full scan" | "full scan, random" => (Task::Scan, 1),
        "B (95/5)" => (workload("b", ""), 1),
        "A (50/50)" | "A, random" => (workload("a", ""), 1),
        "A, random, 2 threads" => (workload("a", ""), 2),
        "F (read-modify-write)" => (workload("f", ""), 1),
        "D (latest)" => (workload("d", ""), 1),
        "E (scan 1-100)" => (workload("e", ""), 1),
        "synced puts, 1 thread" => (Task::Puts, 1),
        "synced puts, 16 threads" => (Task::Puts, 16),
        _ => unreachable!("{task} is no task"),
    }
}

/// The comparison, and how large it is.
pub struct Memory {
    engines: Vec<&'static str>,
    absent: Vec<String>,
    records: u64,
    repeats: u64,
    millis: u64,
    herd: Herd,
}

const WARMUP_MILLIS: u64 = 500;

impl Memory {
    /// The comparison of the engines in `schemes`.
    pub fn of(args: &PeersArgs, schemes: &[Scheme]) -> Self {
        let (records, repeats, millis) = if args.quick { (1_000_000, 1, 1000) } else { (10_000_000, 3, 3000) };
        let is_built = |name: &&str| schemes.iter().any(|known| known.name == *name);
        Self {
            engines: ENGINES.into_iter().filter(is_built).collect(),
            absent: absent(&ENGINES, schemes),
            records: args.records.unwrap_or(records),
            repeats,
            millis,
            herd: Herd::default(),
        }
    }

    fn part(&self) -> Part {
        let engines = self.engines.iter().copied().chain([DISK]).collect();
        Part { title: "Rows that fit in memory".to_owned(), engines, repeats: self.repeats, rows: rows() }
    }

    /// The rows of a random load: as many as the engine that took the fewest.
    fn loaded(&self, ground: &Ground) -> u64 {
        let part = self.part();
        let samples = part.repeated(RANDOM_LOAD).filter_map(|cell| ground.known::<Sample>(cell));
        samples.map(|sample| sample.rows).min().unwrap_or(self.records)
    }

    fn fill(&self, how: Fill) -> Order {
        Order::Fill { how, records: self.records, limit_millis: LONGEST_LOAD_MILLIS }
    }
}

/// The rows with their goals.
pub fn rows() -> Vec<Row> {
    let rocksdb = |ratio| (Against::Engine("rocksdb"), ratio);
    let lmdb = |ratio| (Against::Engine("lmdb"), ratio);
    let best = [(Against::Best, 1.5)];
    let own = |row, ratio| [(Against::Own(row), ratio)];
    let scan = |task, goals: &[_]| Row::more(task, "M rows/s", task, |sample| Some(million_rows(sample)), goals);
    let written = |sample: &Sample| sample.disk_reads.map(|_| sample.a_row(sample.disk_written_bytes));
    let files = |sample: &Sample| sample.disk_reads.map(|_| sample.a_row(sample.file_bytes));
    vec![
        Row::rate("uniform get", &[rocksdb(3.5), lmdb(1.6)]),
        Row::rate("zipfian get (C)", &[rocksdb(3.0), lmdb(1.2)]),
        Row { unit: "K rows/s", ..rows_rate("read of 16, uniform", &own("uniform get", 2.5)) },
        Row::rate("get of an absent key", &[rocksdb(1.0)]),
        Row::rate("uniform get, 2 threads", &own("uniform get", 1.9)),
        Row::rate("zipfian get, 2 threads", &own("zipfian get (C)", 1.9)),
        scan("full scan", &[rocksdb(8.0), (Against::Engine("redb"), 1.0)]),
        Row::rate("B (95/5)", &[rocksdb(2.0), lmdb(1.4)]),
        Row::rate("A (50/50)", &best),
        Row::rate("F (read-modify-write)", &best),
        Row::rate("D (latest)", &best),
        Row::rate("E (scan 1-100)", &[rocksdb(3.0), lmdb(1.0)]),
        rows_rate(RANDOM_LOAD, &[rocksdb(1.3)]),
        Row::less("random load, written", "bytes a row", RANDOM_LOAD, written, &[rocksdb(1.0)]),
        Row::less("random load, files", "bytes a row", RANDOM_LOAD, files, &[rocksdb(1.0)]),
        Row::rate("uniform get, random", &[]),
        scan("full scan, random", &[rocksdb(4.0)]),
        Row::rate("A, random", &[]),
        Row::rate("A, random, 2 threads", &own("A, random", 1.3)),
        scan(SORTED_LOAD, &[rocksdb(1.2)]),
        Row::rate(SYNCED[0], &[(Against::Engine(DISK), 0.9)]),
        Row::rate(SYNCED[1], &[rocksdb(1.0)]),
        stops(STOPS),
    ]
}

/// The rate of rows, in thousands a second.
fn rows_rate(task: &'static str, goals: &[(Against, f64)]) -> Row {
    Row::more(task, "K/s", task, |sample| Some(1e3 * million_rows(sample)), goals)
}

/// A row that counts, over all tasks, how often an engine stopped writes because level 0 was full: never is the goal.
pub fn stops(name: &'static str) -> Row {
    let stops = |sample: &Sample| sample.level0_stops.map(|stops| stops as f64);
    Row::less(name, "stops", ALL_TASKS, stops, &[(Against::Figure, 0.0)])
}

impl Comparison for Memory {
    const ABOUT: About = About {
        name: "peers",
        title: "Larch beside other engines: rows that fit in memory",
        text: &[
            "Commits are not synced but in the rows that say so, nothing is compressed, and all data fits in the cache. A crash of the machine may \
             lose the last commits; what a crash of the process alone loses depends on the engine.",
            "Each engine runs in a process of its own, which is stopped while the others are measured.",
        ],
    };

    fn most_bytes(&self) -> u64 {
        // Room for the rows, and for the second copy that a compaction or an engine with pages may need for a while.
        self.engines.len() as u64 * self.records * 120 * 4
    }

    fn parts(&self) -> Vec<Part> {
        vec![self.part()]
    }

    fn conditions(&self) -> String {
        format!(
            "{} records of 20-byte keys and 100-byte values, {} repeats of {:.1} s after {:.1} s of warm-up",
            self.records,
            self.repeats,
            self.millis as f64 / 1e3,
            WARMUP_MILLIS as f64 / 1e3
        )
    }

    fn absent(&self) -> Vec<String> {
        self.absent.clone()
    }

    fn cells(&self, part: &Part) -> Vec<Cell> {
        let of_engines = |task| part.repeated(task).filter(|cell| cell.engine != DISK);
        let loads_and_tasks = [&[SORTED_LOAD][..], &SORTED, &[RANDOM_LOAD], &RANDOM].concat();
        let synced = SYNCED.into_iter().flat_map(|task| part.repeated(task));
        loads_and_tasks.into_iter().flat_map(of_engines).chain(synced).collect()
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Sample, String> {
        let is_synced = SYNCED.contains(&cell.task);
        let how = if RANDOM.contains(&cell.task) || cell.task == RANDOM_LOAD { Fill::Random } else { Fill::Sorted };
        let records = match how {
            _ if is_synced => SYNCED_RECORDS,
            Fill::Sorted => self.records,
            Fill::Random => self.loaded(ground),
        };
        let (fill, warmup_millis, millis) = (self.fill(how), WARMUP_MILLIS, self.millis);
        let stage = if is_synced { "synced" } else { "rows" };
        let place = ground.data(stage).map_err(|failure| failure.to_string())?;
        let engines: Vec<_> = self.engines.iter().copied().chain(is_synced.then_some(DISK)).collect();
        let peer = self.herd.peer(stage, cell.engine, || {
            let target = |engine: &str| {
                // SQLite's cache dies with its connection, and each row of the table opens a new one, so its file is
                // memory-mapped too.
                let map = if engine == "sqlite" { "&mmap=16GiB" } else { "" };
                let options = format!("cache={CACHE}&durability=buffered{map}");
                let options = if is_synced { "durability=synced" } else { &options };
                format!("{engine}:{}?{options}", place.join(engine).display())
            };
            engines.iter().map(|engine| (*engine, Peer::start(engine, &target(engine), None))).collect()
        })?;
        let filled = if how == Fill::Sorted { "sorted" } else { "random" };
        if [SORTED_LOAD, RANDOM_LOAD].contains(&cell.task) {
            let sample = peer.filled_anew(&fill, filled)?;
            keep_settings(ground, cell.engine, &sample)?;
            return Ok(sample);
        }
        if is_synced {
            let few = Order::Fill { how, records, limit_millis: 0 };
            peer.bring(filled, |peer| peer.filled_anew(&few, filled).map(drop))?;
        } else {
            peer.bring(&format!("{filled}, warm"), |peer| {
                peer.bring(filled, |peer| peer.filled_anew(&fill, filled).map(drop))?;
                warm_up(peer, how, records)
            })?;
        }
        // A repeat adds its number to the seed, so no two rows draw the same keys.
        let number = rows().iter().position(|row| row.name == cell.task).unwrap_or(0) as u64;
        let (task, threads) = operations(cell.task);
        let asked = measure(task, records, 100 * (number + 1) + cell.repeat);
        peer.obey(&Order::Measure(Operate { filled: how, threads, warmup_millis, millis, ..asked }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_has_a_row_and_operations() {
        let names: Vec<&str> = rows().iter().map(|row| row.task).collect();
        for task in SORTED.into_iter().chain(RANDOM).chain(SYNCED) {
            assert!(names.contains(&task) && operations(task).1 > 0, "{task}");
        }
    }
}
