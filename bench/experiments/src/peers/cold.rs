//! `larch bench cold`: rows that do not fit in memory. Each engine runs with a small cache. Most parts also put the
//! process into a memory cgroup, which limits its memory together with the page cache of its files. Each part has
//! its own table and goals.
//!
//! * Uniform gets by threads that wait for each: rate, disk reads, processor time, and memory outside the cache.
//! * Uniform gets by one thread with many in flight, beside the disk alone with the same number of reads in flight
//!   and the same page size.
//! * A full scan by one thread, beside sequential reads of the disk alone with as many bytes in flight as the scan
//!   reads ahead.
//! * How much a full scan and a compaction disturb the gets of another thread, and what happens when the cache is
//!   halved while threads read. Memory is not limited there: only the store's own cache matters. This part comes last,
//!   because it changes the databases.

use super::herd::{Herd, Peer};
use super::memory_limit::MemoryLimit;
use super::orders::{Beside, Fill, Operate, Order, Sample, Task, micros};
use super::rows::{Against, Part, Row};
use super::{Cell, Comparison, absent, fio, keep_settings, measure, million_rows, workload};
use crate::args::PeersArgs;
use crate::disk;
use crate::experiment::About;
use crate::ground::Ground;
use harness::Scheme;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// The memory limit of a process, with the page cache of its files.
const LIMIT_BYTES: u64 = 256 * MIB;

/// Bytes of a row's key and value.
const ROW_BYTES: u64 = 120;

/// An engine with its options.
#[derive(Clone, Copy, Debug)]
struct Engine {
    /// The name of the engine in tables.
    name: &'static str,
    scheme: &'static str,
    options: &'static str,
    cache_bytes: u64,
    /// The engine whose database this one reads, if it has none of its own.
    of: Option<&'static str>,
}

const fn engine(name: &'static str, scheme: &'static str, options: &'static str, cache_bytes: u64) -> Engine {
    Engine { name, scheme, options, cache_bytes, of: None }
}

/// Larch comes first: the goals are those of the first engine.
const ENGINES: [Engine; 12] = [
    engine(OURS, "larch", "cache=64MiB&page=16KiB", 64 * MIB),
    Engine { of: Some(OURS), ..engine("larch 16K, 16 MiB", "larch", "cache=16MiB&page=16KiB&read_only=1", 16 * MIB) },
    engine("larch 4K", "larch", "cache=64MiB&page=4KiB", 64 * MIB),
    engine("rocksdb 16K", "rocksdb", "cache=64MiB&page=16KiB&index=default&direct=1", 64 * MIB),
    engine("rocksdb parts 16K", "rocksdb", "cache=64MiB&page=16KiB&index=partitioned&direct=1", 64 * MIB),
    engine("rocksdb parts 4K, 16 MiB", "rocksdb", "cache=16MiB&page=4KiB&index=partitioned&direct=1", 16 * MIB),
    engine("fjall", "fjall", "cache=64MiB", 64 * MIB),
    engine("redb", "redb", "cache=64MiB", 64 * MIB),
    engine("lmdb", "lmdb", "readahead=0", 0),
    engine(DISK, "disk", "page=16KiB", 0),
    Engine { of: Some(DISK), ..engine(WHOLE, "disk", "page=16KiB&buffers=whole", 0) },
    Engine { of: Some(DISK), ..engine(FIO, "fio", "page=16KiB", 0) },
];

const OURS: &str = "larch 16K";
const DISK: &str = "disk 16K";
/// The disk alone, read into buffers each of which is one piece of memory, as those in huge pages of Larch's cache are.
const WHOLE: &str = "disk 16K, whole buffers";
const FIO: &str = "fio 16K";

const WAITING: &str = "Gets by threads that wait for each";
const IN_FLIGHT: &str = "Gets by one thread that has many under way";
const SCAN: &str = "A full scan";
const BESIDE: &str = "Gets beside other work, and with half the cache";

/// Clients, and the names of the three rows of their gets.
const THREADS: [(usize, [&str; 3]); 4] = [
    (1, ["K gets/s, 1 thread", "reads a get, 1 thread", "CPU us a get, 1 thread"]),
    (8, ["K gets/s, 8 threads", "reads a get, 8 threads", "CPU us a get, 8 threads"]),
    (32, ["K gets/s, 32 threads", "reads a get, 32 threads", "CPU us a get, 32 threads"]),
    (128, ["K gets/s, 128 threads", "reads a get, 128 threads", "CPU us a get, 128 threads"]),
];
const DEPTHS: [(usize, [&str; 3]); 4] = [
    (1, ["K gets/s, 1 under way", "reads a get, 1 under way", "CPU us a get, 1 under way"]),
    (8, ["K gets/s, 8 under way", "reads a get, 8 under way", "CPU us a get, 8 under way"]),
    (32, ["K gets/s, 32 under way", "reads a get, 32 under way", "CPU us a get, 32 under way"]),
    (128, ["K gets/s, 128 under way", "reads a get, 128 under way", "CPU us a get, 128 under way"]),
];

/// The names of gets with one distribution of keys: alone, beside a scan, and beside a compaction.
struct Names {
    keys: &'static str,
    rate: [&'static str; 3],
    hits: [&'static str; 3],
    p99: [&'static str; 3],
    scan: &'static str,
    compaction: &'static str,
}

const DISTRIBUTIONS: [Names; 2] = [
    Names {
        keys: "zipfian",
        rate: ["gets, zipfian", "gets, zipfian, beside a scan", "gets, zipfian, beside a compaction"],
        hits: ["hit rate, zipfian", "hit rate, zipfian, beside a scan", "hit rate, zipfian, beside a compaction"],
        p99: ["p99, zipfian", "p99, zipfian, beside a scan", "p99, zipfian, beside a compaction"],
        scan: "the scans beside zipfian gets",
        compaction: "the compaction beside zipfian gets",
    },
    Names {
        keys: "hotspot",
        rate: ["gets, hot set", "gets, hot set, beside a scan", "gets, hot set, beside a compaction"],
        hits: ["hit rate, hot set", "hit rate, hot set, beside a scan", "hit rate, hot set, beside a compaction"],
        p99: ["p99, hot set", "p99, hot set, beside a scan", "p99, hot set, beside a compaction"],
        scan: "the scans beside gets of a hot set",
        compaction: "the compaction beside gets of a hot set",
    },
];
const WORKS: [Option<Beside>; 3] = [None, Some(Beside::Scan), Some(Beside::Compaction)];

const HALVED: &str = "a halved budget is kept after";
const GIVEN_BACK: &str = "of the bytes it lost, given back by the process in a second";

/// Threads that read while the cache is halved, and the largest cache to halve.
const SHRINK_THREADS: usize = 8;
const SHRINK_CACHE_BYTES: u64 = 256 * MIB;

/// A scan reads ahead at most the cache size divided by this.
const AHEAD_SHARE: u64 = 8;

/// The comparison, and how large it is.
pub struct Cold {
    /// The engines that this binary has, and the stores that measure the disk alone.
    engines: Vec<Engine>,
    absent: Vec<String>,
    /// Whether stores of Larch can have many gets in flight on one thread.
    has_flights: bool,
    fio_version: Option<String>,
    records: u64,
    repeats: u64,
    warmup_millis: u64,
    millis: u64,
    herd: Herd,
}

impl Cold {
    /// The comparison of the engines in `schemes`.
    pub fn of(args: &PeersArgs, schemes: &[Scheme]) -> Self {
        let (records, repeats, warmup_millis, millis) =
            if args.quick { (1_000_000, 1, 500, 1000) } else { (32_000_000, 3, 1000, 2500) };
        let fio_version = fio::version();
        let is_here = |engine: &Engine| match engine.scheme {
            "disk" => true,
            "fio" => fio_version.is_some(),
            scheme => schemes.iter().any(|known| known.name == scheme),
        };
        let mut built: Vec<&str> = ENGINES.iter().map(|engine| engine.scheme).collect();
        built.dedup();
        built.retain(|scheme| !["disk", "fio"].contains(scheme));
        let mut absent = absent(&built, schemes);
        if fio_version.is_none() {
            absent.push("fio, which is not installed: Debian has it in the package fio".to_owned());
        }
        let has_flights = |scheme: &Scheme| scheme.options.iter().any(|(name, _)| *name == "flights");
        Self {
            engines: ENGINES.into_iter().filter(is_here).collect(),
            absent,
            has_flights: schemes.iter().any(|scheme| scheme.name == "larch" && has_flights(scheme)),
            fio_version,
            records: args.records.unwrap_or(records),
            repeats,
            warmup_millis,
            millis,
            herd: Herd::default(),
        }
    }

    /// The measure of the disk alone: fio if it is installed, or else the store `disk`.
    fn disk(&self) -> &'static str {
        if self.fio_version.is_some() { FIO } else { DISK }
    }

    fn row_bytes(&self) -> u64 {
        self.records * ROW_BYTES
    }

    fn engine(&self, name: &str) -> Engine {
        *self.engines.iter().find(|engine| engine.name == name).expect("cells are of engines that are here")
    }

    /// The size of the cache to halve: small enough to fill in the warm-up, and at most half of the rows.
    fn cache_to_halve(row_bytes: u64) -> u64 {
        let most = (row_bytes / 2).max(2 * MIB);
        SHRINK_CACHE_BYTES.min(1 << most.ilog2())
    }

    /// The options that an engine has in a cell besides its own.
    fn more(&self, cell: &Cell, engine: &Engine) -> String {
        match (&*cell.part, engine.scheme) {
            // Without fio, the store `disk` uses a thread for each read.
            (IN_FLIGHT, "disk") => String::new(),
            (IN_FLIGHT, "fio") => "flights=1".to_owned(),
            (IN_FLIGHT, _) => format!("flights={}", clients(cell.task)),
            (SCAN, "fio") => {
                let ours = self.engine(OURS).cache_bytes;
                format!("ahead={}MiB", (ours / AHEAD_SHARE / MIB).max(1))
            }
            (BESIDE, _) if cell.task == HALVED => {
                format!("cache={}MiB", Self::cache_to_halve(self.row_bytes()) / MIB)
            }
            (BESIDE, _) => "settle=compact".to_owned(),
            _ => String::new(),
        }
    }

    /// The processes that measure together. Each number of clients gets new ones, so that memory of earlier
    /// measurements does not count.
    fn stage(cell: &Cell) -> String {
        match &*cell.part {
            BESIDE if cell.task == HALVED => format!("{HALVED}, {}", cell.repeat),
            BESIDE => {
                DISTRIBUTIONS.iter().find(|names| names.rate.contains(&cell.task)).map_or("", |it| it.keys).to_owned()
            }
            SCAN => SCAN.to_owned(),
            _ => cell.task.to_owned(),
        }
    }

    /// Fills the database of `engine`, in its own process and without a memory limit.
    fn fill(&self, engine: &Engine, ground: &mut Ground) -> Result<(), String> {
        let name = engine.of.unwrap_or(engine.name);
        let owner = self.engine(name);
        let records = self.records;
        let filled = ground.built(name, |place, _| {
            let fill = Order::Fill { how: Fill::Sorted, records, limit_millis: 0 };
            let mut peer = Peer::start(name, &target(&owner, place, ""), None).map_err(broken)?;
            let sample = peer.filled_anew(&fill, "").map_err(broken)?;
            peer.obey(&Order::Close).map_err(broken)?;
            disk::forget(place).map_err(|error| broken(format!("{}: {error}", place.display())))?;
            suite::say(&format!("{name} is filled and has no background work left: {} MiB", sample.file_bytes >> 20));
            Ok(sample)
        });
        let (_, sample) = filled.map_err(|failure| failure.to_string())?;
        keep_settings(ground, name, &sample)
    }

    /// The measurement of a cell.
    fn order(&self, cell: &Cell) -> Order {
        let (warmup_millis, millis) = (self.warmup_millis, self.millis);
        let usual = |seed| Operate { warmup_millis, millis, ..measure(workload("c", "uniform"), self.records, seed) };
        let uniform = |rows: &[(usize, [&str; 3])], first: u64| {
            let number = rows.iter().position(|(_, names)| names[0] == cell.task).unwrap_or(0) as u64;
            let seed = 100 * (first + number + 1) + cell.repeat;
            Order::Measure(Operate { threads: clients(cell.task), ..usual(seed) })
        };
        match &*cell.part {
            WAITING => uniform(&THREADS, 0),
            IN_FLIGHT => uniform(&DEPTHS, 10),
            SCAN => Order::Measure(Operate { task: Task::Scan, ..usual(1 + cell.repeat) }),
            _ if cell.task == HALVED => {
                // Long enough to fill the cache. The cache is halved a third into the window, so more than a second
                // is left after it.
                let (warmup_millis, millis) = (3 * warmup_millis, 2 * millis.max(1000));
                let load = usual(200_000 + cell.repeat);
                let load = Operate { threads: SHRINK_THREADS, warmup_millis, millis, ..load };
                Order::Shrink { load, cache_bytes: Self::cache_to_halve(self.row_bytes()) / 2 }
            }
            _ => {
                let of_keys = |names: &&Names| names.rate.contains(&cell.task);
                let names = DISTRIBUTIONS.iter().find(of_keys).expect("these are all tasks");
                let at = names.rate.iter().position(|name| *name == cell.task).unwrap_or(0);
                // The cache has to learn the hot rows first, and again after the compaction of the previous repeat
                // has replaced their pages.
                let warmup_millis = if WORKS[at] == Some(Beside::Scan) { warmup_millis } else { 4 * warmup_millis };
                // Hot rows fill half the cache.
                let hot = (self.engine(OURS).cache_bytes as f64 / 2.0 / self.row_bytes() as f64).min(0.5);
                Order::Measure(Operate {
                    task: workload("c", names.keys),
                    warmup_millis,
                    millis: 2 * millis,
                    hot_share: (names.keys == "hotspot").then_some(hot),
                    beside: WORKS[at],
                    ..usual(100_000 + 10 * cell.repeat + at as u64)
                })
            }
        }
    }
}

fn broken(why: String) -> harness::Failure {
    harness::Failure::session("peers", why)
}

/// The number of clients in the name of a task, which ends with it.
fn clients(task: &str) -> usize {
    let all = THREADS.iter().chain(&DEPTHS);
    all.filter(|(_, names)| names[0] == task).map(|(clients, _)| *clients).next().expect("these are all tasks")
}

/// The target of `engine` with the further options `more` (`flights=8`), which override its own.
fn target(engine: &Engine, place: &Path, more: &str) -> String {
    let mut options: Vec<&str> = Vec::new();
    for option in engine.options.split('&').chain(more.split('&')).filter(|option| !option.is_empty()) {
        let name = option.split('=').next();
        options.retain(|known| known.split('=').next() != name);
        options.push(option);
    }
    format!("{}:{}?{}", engine.scheme, place.display(), options.join("&"))
}

/// Three rows of gets: the rate, and the disk reads and processor time of a get. The time is compared with that of a
/// read by `disk`.
fn gets(names: [&'static str; 3], disk: &'static str, rate: &[(Against, f64)], reads: &[(Against, f64)]) -> [Row; 3] {
    let reads_each = |sample: &Sample| sample.disk_reads.map(|reads| sample.each(reads));
    let micros_each = |sample: &Sample| Some(sample.each(sample.cpu_nanos) / 1e3);
    let task = names[0];
    [
        Row::rate(task, rate),
        Row::less(names[1], "reads", task, reads_each, reads),
        Row::less(names[2], "us", task, micros_each, &[(Against::Above(disk), 4.0)]),
    ]
}

fn waiting_rows(disk: &'static str) -> Vec<Row> {
    let small = |name, ratio| (Against::Between("larch 4K", name), ratio);
    // Engines with 4 KiB pages compare with Larch at 4 KiB.
    let mut rate = ["rocksdb 16K", "rocksdb parts 16K", "fjall"].map(|name| (Against::Engine(name), 0.95)).to_vec();
    rate.extend([small("redb", 0.95), small("lmdb", 1.0)]);
    let reads = [(Against::Figure, 1.02), (Against::FigureOf("larch 16K, 16 MiB"), 1.05)];
    let mut rows: Vec<Row> = THREADS.into_iter().flat_map(|(_, names)| gets(names, disk, &rate, &reads)).collect();
    let outside = |sample: &Sample| sample.outside_bytes.map(|bytes| bytes as f64 / MIB as f64);
    rows.push(Row::less("memory outside the cache", "MiB", THREADS[3].1[0], outside, &[(Against::Figure, 32.0)]));
    rows
}

fn in_flight_rows(disk: &'static str) -> Vec<Row> {
    let (rate, reads) = ([(Against::Engine(disk), 0.9)], [(Against::Figure, 1.02)]);
    DEPTHS.into_iter().flat_map(|(_, names)| gets(names, disk, &rate, &reads)).collect()
}

fn scan_rows() -> Vec<Row> {
    let megabytes = |sample: &Sample| {
        let bytes = if sample.window_read_bytes > 0 { sample.window_read_bytes } else { sample.disk_read_bytes };
        Some(bytes as f64 / sample.nanos.max(1) as f64 * 1e3)
    };
    const RATE: &str = "read from disk";
    vec![
        Row::more(RATE, "MB/s", RATE, megabytes, &[(Against::Engine(FIO), 0.9)]),
        Row::more("rows", "M rows/s", RATE, |sample| Some(million_rows(sample)).filter(|rate| *rate > 0.0), &[]),
    ]
}

fn beside_rows() -> Vec<Row> {
    let hits = |sample: &Sample| {
        let asked = sample.point_hits + sample.point_reads;
        (asked > 0).then(|| sample.point_hits as f64 / asked as f64 * 100.0)
    };
    let p99 = |sample: &Sample| micros(sample.p99_nanos);
    let scans = |sample: &Sample| Some(sample.beside.rows as f64 / sample.beside.nanos as f64 * 1e3);
    let seconds = |sample: &Sample| Some(sample.beside.nanos as f64 / 1e9);
    let mut rows = Vec::new();
    for Names { rate, hits: hit, p99: late, scan, compaction, .. } in DISTRIBUTIONS {
        let as_quiet = [(Against::Own(hit[0]), 0.95)];
        rows.extend([
            Row::more(hit[0], "%", rate[0], hits, &[]),
            Row::more(hit[1], "%", rate[1], hits, &as_quiet),
            Row::more(hit[2], "%", rate[2], hits, &as_quiet),
            Row::less(late[0], "us", rate[0], p99, &[]),
            Row::less(late[1], "us", rate[1], p99, &[]),
            Row::less(late[2], "us", rate[2], p99, &[(Against::Own(late[0]), 3.0)]),
        ]);
        rows.extend(rate.map(|name| Row::rate(name, &[])));
        rows.push(Row::more(scan, "M rows/s", rate[1], scans, &[]));
        rows.push(Row::less(compaction, "s", rate[2], seconds, &[]));
    }
    // A cache that uses more than its budget for longer than a second misses the goal.
    let millis = |sample: &Sample| Some(sample.shrunk.nanos.map_or(f64::INFINITY, |nanos| nanos as f64 / 1e6));
    let given_back = |sample: &Sample| {
        let shrunk = sample.shrunk;
        let lost = (shrunk.used_before - shrunk.cache_bytes) as f64;
        Some((shrunk.resident_before as f64 - shrunk.resident_after as f64) / lost)
    };
    rows.push(Row::less(HALVED, "ms", HALVED, millis, &[(Against::Figure, 1000.0)]));
    rows.push(Row::more(GIVEN_BACK, "part", HALVED, given_back, &[(Against::Figure, 0.9)]));
    rows
}

impl Comparison for Cold {
    const ABOUT: About = About {
        name: "cold",
        title: "Larch beside other engines: rows that do not fit in memory",
        text: &[
            "Each engine has a small cache, and its process, with the page cache of its files, at most 256 MiB, where the system lets us limit it. \
             The databases are dropped from the page cache before processes start.",
            "The disk alone is measured by fio where it is installed, and else by reads of our own by threads that wait.",
        ],
    };

    fn most_bytes(&self) -> u64 {
        // redb takes one and a half times the size of the rows. While a database is filled or rewritten, it holds a
        // second copy of them.
        let databases = self.engines.iter().filter(|engine| engine.of.is_none()).count() as u64;
        (databases + 2) * self.records * 150
    }

    fn parts(&self) -> Vec<Part> {
        let part = |title: &str, engines: Vec<&'static str>, repeats, rows| Part {
            title: title.to_owned(),
            engines,
            repeats,
            rows,
        };
        let disk = self.disk();
        let all = self.engines.iter().map(|engine| engine.name).collect();
        vec![
            part(WAITING, all, self.repeats, waiting_rows(disk)),
            part(IN_FLIGHT, vec![OURS, disk], self.repeats, in_flight_rows(disk)),
            part(SCAN, vec![OURS, FIO], self.repeats, scan_rows()),
            part(BESIDE, vec![OURS], self.repeats, beside_rows()),
        ]
    }

    fn conditions(&self) -> String {
        let fio = match &self.fio_version {
            Some(version) => format!("fio is {version}"),
            None => "fio is not here (Debian has it in the package fio): goals against the disk are looked at with reads of our own by \
                     waiting threads, and the disk's sequential rate is not measured"
                .to_owned(),
        };
        format!(
            "{} records of 20-byte keys and 100-byte values, {} repeats of {:.1} s; {fio}",
            self.records,
            self.repeats,
            self.millis as f64 / 1e3
        )
    }

    fn absent(&self) -> Vec<String> {
        self.absent.clone()
    }

    fn cells(&self, part: &Part) -> Vec<Cell> {
        // Disturbed gets are measured twice at most. All of them on the same processes in one repeat, because a
        // compaction replaces the cached pages.
        if part.title == BESIDE {
            let disturbed = DISTRIBUTIONS.iter().flat_map(|names| {
                (0..self.repeats.min(2)).flat_map(|repeat| names.rate.map(|task| part.cell(task, OURS, repeat)))
            });
            return disturbed.chain(part.repeated(HALVED)).collect();
        }
        let is_here = |cell: &Cell| {
            let is_possible = part.title != IN_FLIGHT || self.has_flights;
            is_possible && self.engines.iter().any(|engine| engine.name == cell.engine)
        };
        part.tasks().into_iter().flat_map(|task| part.repeated(task)).filter(is_here).collect()
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Sample, String> {
        for engine in self.engines.clone() {
            self.fill(&engine, ground)?;
        }
        let is_limited = cell.part != BESIDE;
        let part = self.parts().into_iter().find(|part| part.title == cell.part).expect("cells are of parts");
        let data = ground.data("").map_err(|failure| failure.to_string())?;
        let engines: Vec<(Engine, String)> = self
            .engines
            .iter()
            .filter(|engine| part.engines.contains(&engine.name))
            .map(|engine| {
                let place = data.join(engine.of.unwrap_or(engine.name));
                (*engine, target(engine, &place, &self.more(cell, engine)))
            })
            .collect();
        let order = self.order(cell);
        let peer = self.herd.peer(&Self::stage(cell), cell.engine, || {
            // Pages that an earlier process brought in would not count against the limit.
            if let Err(error) = disk::forget(&data) {
                suite::say(&format!("larch: {} is not dropped from the page cache: {error}", data.display()));
            }
            let start = |(number, (engine, target)): (usize, &(Engine, String))| {
                let limit = is_limited.then(|| limited(engine.name, number)).flatten();
                let started = Peer::start(engine.name, target, limit).and_then(|mut peer| {
                    peer.obey(&Order::Open { anew: false })?;
                    Ok(peer)
                });
                (engine.name, started)
            };
            engines.iter().enumerate().map(start).collect()
        })?;
        let sample = peer.obey(&order)?;
        // fio reports no memory of its own.
        let resident = Some(sample.resident_bytes).filter(|bytes| *bytes > 0);
        let outside_bytes = resident.map(|bytes| bytes.saturating_sub(self.engine(cell.engine).cache_bytes));
        Ok(Sample { outside_bytes, ..sample })
    }
}

/// A memory limit for the process of an engine. Where there can be none, says so.
fn limited(name: &str, number: usize) -> Option<MemoryLimit> {
    let made = MemoryLimit::new(&format!("larch-bench-{}-{number}", std::process::id()), LIMIT_BYTES);
    let why = |why| suite::say(&format!("memory of {name} is NOT limited, so the system's cache helps: {why}"));
    made.map_err(why).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_that_is_halved_is_full_before() {
        assert_eq!(Cold::cache_to_halve(3840 * MIB), 256 * MIB);
        assert_eq!(Cold::cache_to_halve(115 * MIB), 32 * MIB);
        assert_eq!(Cold::cache_to_halve(0), 2 * MIB);
    }

    #[test]
    fn engines_that_share_a_database_come_after_its_owner() {
        for (at, engine) in ENGINES.iter().enumerate() {
            if let Some(owner) = engine.of {
                assert!(ENGINES[..at].iter().any(|known| known.name == owner && known.of.is_none()), "{engine:?}");
            }
        }
    }

    #[test]
    fn every_goal_has_its_other_side_in_its_table() {
        let names = ENGINES.map(|engine| engine.name).to_vec();
        for disk in [DISK, FIO] {
            super::super::rows::tests::check_sides(&names, waiting_rows(disk));
            super::super::rows::tests::check_sides(&[OURS, disk], in_flight_rows(disk));
        }
        super::super::rows::tests::check_sides(&[OURS, FIO], scan_rows());
        super::super::rows::tests::check_sides(&[OURS], beside_rows());
    }
}
