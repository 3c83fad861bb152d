//! `larch bench experiment index`: repeats a comparison by YDB's authors of two indexes of a file, a flat list and
//! a B-tree. There are three arms: both indexes are written and the flat lists are read; both are written and the
//! tree is read; only the tree is written.
//!
//! YDB's authors ran TPC-C and YCSB with caches of 54, 18 and 2 GB. A flat list is read as a whole, so what decides
//! is whether all of them fit in the cache. Therefore the cache sizes here are multiples and fractions of the bytes
//! of all flat lists.

mod data;
mod instructions;
mod tables;
#[cfg(test)]
mod tests;
mod tpcc;

pub use tpcc::PUBLISHED;
mod wide;

use crate::args::{Gets, IndexArgs, IndexPart, Scale};
use crate::ground::Ground;
use crate::made::Made;
use crate::measured::{self, Cell, Until};
use crate::outcome::Ending;
use crate::terminals::{Asked as AskedTerminals, WAREHOUSE_BYTES};
use data::Shape;
use harness::{Failure, Opening, Store, Target};
use instructions::Counted;
use std::path::Path;
use std::time::Duration;
use suite::stop::Stop;
use wide::{KEY_BYTES, Wide, Widening};
use ycsb::{Run, Settings};

/// The table of YCSB.
const TABLE: &str = "usertable";

/// Bytes that all keys of a group share.
const FILLER_BYTES: usize = 176;

/// The numbers of requests in flight with which reads are measured.
const DEPTHS: [usize; 2] = [1, 32];

/// In the order of the document.
const WORKLOADS: [&str; 6] = ["a", "b", "c", "f", "d", "e"];

/// The cache sizes as fractions (numerator, denominator) of the size of the flat lists.
const CACHES: [(u64, u64); 5] = [(4, 1), (1, 1), (1, 2), (1, 4), (1, 16)];

/// An arm: which indexes are written, and which one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    /// Both indexes are written, and the flat lists are read.
    Flat,
    /// Both indexes are written, and the tree is read.
    Tree,
    /// Only the tree is written.
    TreeAlone,
}

const ARMS: [Arm; 3] = [Arm::Flat, Arm::Tree, Arm::TreeAlone];

impl Arm {
    fn name(self) -> &'static str {
        match self {
            Self::Flat => "both, flat read",
            Self::Tree => "both, tree read",
            Self::TreeAlone => "tree alone",
        }
    }

    fn is_flat(self) -> bool {
        self == Self::Flat
    }

    fn written(self) -> Written {
        match self {
            Self::Flat | Self::Tree => Written::Both,
            Self::TreeAlone => Written::Tree,
        }
    }
}

/// Which indexes a database has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Both,
    Tree,
}

const ALL_WRITTEN: [Written; 2] = [Written::Both, Written::Tree];

impl Written {
    fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Tree => "tree",
        }
    }

    /// The value of the store's option `index`.
    fn option(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Tree => "btree",
        }
    }
}

/// How much is measured.
struct Size {
    /// Rows of the table, chosen so that the last file is nearly as large as the others.
    rows: u64,
    /// Rows of a group, whose keys share a filler.
    group_rows: u64,
    page_bytes: u64,
    node_bytes: u64,
    /// Bytes of a file's pages.
    file_bytes: u64,
    /// Rows of the timed load, which inserts them one by one.
    load_rows: u64,
    repeats: u64,
    /// The longest scan of workload E.
    scan_rows: u64,
    /// Repeats of the six workloads.
    mixed_repeats: u64,
    until: Until,
    /// Gets whose instructions are counted; 0 for none.
    counted_gets: u64,
    /// Warehouses of TPC-C.
    warehouses: u32,
    terminals: AskedTerminals,
    /// Whether files and lists have the sizes that the goals are for.
    has_goals: bool,
}

impl Size {
    fn of(scale: Scale) -> Self {
        let until = |warmup, time, operations| Until {
            warmup: Duration::from_millis(warmup),
            time: Duration::from_millis(time),
            operations,
        };
        let terminals = |terminals, warmup, time| AskedTerminals {
            threads: 16,
            connections: None,
            terminals,
            warmup: Duration::from_millis(warmup),
            time: Duration::from_millis(time),
            seed: 1,
        };
        let usual = Self {
            rows: 10_239_000,
            group_rows: 2000,
            page_bytes: 64 << 10,
            node_bytes: 16 << 10,
            file_bytes: 1060 << 20,
            load_rows: 500_000,
            scan_rows: 100,
            repeats: 3,
            mixed_repeats: 2,
            until: until(1000, 2000, 1_000_000),
            counted_gets: 2000,
            warehouses: 100,
            terminals: terminals(1000, 10_000, 30_000),
            has_goals: true,
        };
        match scale {
            Scale::Tiny => Self {
                rows: 3000,
                group_rows: 50,
                page_bytes: 4 << 10,
                node_bytes: 1 << 10,
                file_bytes: 1 << 20,
                load_rows: 1000,
                scan_rows: 5,
                repeats: 1,
                mixed_repeats: 1,
                until: until(5, 300, 50),
                counted_gets: 100,
                warehouses: 1,
                terminals: AskedTerminals { threads: 2, ..terminals(10, 50, 300) },
                has_goals: false,
            },
            Scale::Small => Self {
                rows: 495_500,
                file_bytes: 64 << 20,
                load_rows: 100_000,
                repeats: 3,
                mixed_repeats: 1,
                until: until(300, 700, 200_000),
                warehouses: 4,
                terminals: AskedTerminals { threads: 4, ..terminals(40, 2000, 5000) },
                has_goals: false,
                ..usual
            },
            Scale::Medium => usual,
            Scale::Full => Self {
                rows: 18_447_000,
                load_rows: 2_000_000,
                repeats: 5,
                mixed_repeats: 3,
                until: until(2000, 10_000, 10_000_000),
                terminals: terminals(1000, 60_000, 300_000),
                ..usual
            },
        }
    }

    fn groups(&self) -> u64 {
        self.rows.div_ceil(self.group_rows)
    }

    fn widening(&self) -> Widening {
        Widening::new(self.groups())
    }

    /// The most disk space that the databases take.
    fn most_bytes(&self, only: Option<IndexPart>) -> u64 {
        // A page stores bytes that all its keys share only once.
        let rows = (2 * self.rows + 4 * self.load_rows) * 1130 + (64 << 20);
        // A run writes to a copy, which shares files with the original until it is compacted.
        let tpcc = 3 * u64::from(self.warehouses) * WAREHOUSE_BYTES;
        match only {
            None => rows + tpcc,
            Some(IndexPart::Rows) => rows,
            Some(IndexPart::Tpcc) => tpcc,
        }
    }

    /// The target of a store in `place`.
    fn target(&self, place: &Path, written: Written, more: &str) -> String {
        // A file of the uppermost level has a fourth of the size of one of the deepest level.
        let (page, node, file) = (self.page_bytes, self.node_bytes, self.file_bytes / 4);
        let index = written.option();
        format!("larch:{}?page={page}&node={node}&file={file}&index={index}&{more}", place.display())
    }
}

/// Runs the experiment.
pub fn run(args: &IndexArgs) -> Result<Ending, Failure> {
    let (size, only) = (Size::of(args.common.scale), args.only);
    let mut ground = Ground::open("index", &args.common, size.most_bytes(only))?;
    if !measure_all(&mut ground, &size, only)? {
        return Ok(Ending::Interrupted);
    }
    tables::outcome(&ground, &size, only).finish("index", &ground, &args.common)
}

/// Measures the missing cells. Returns false after ^C.
fn measure_all(ground: &mut Ground, size: &Size, only: Option<IndexPart>) -> Result<bool, Failure> {
    let is_measured = match only {
        None => measure_rows(ground, size)? && tpcc::measure_all(ground, size)?,
        Some(IndexPart::Rows) => measure_rows(ground, size)?,
        Some(IndexPart::Tpcc) => tpcc::measure_all(ground, size)?,
    };
    Ok(is_measured)
}

fn cache_name((times, divisor): (u64, u64)) -> String {
    match divisor {
        1 => format!("{times}x"),
        _ => format!("{times}/{divisor}"),
    }
}

fn reads_name(repeat: u64, cache: (u64, u64), depth: usize, arm: Arm) -> String {
    format!("reads, {repeat}, cache {}, {depth} under way, {}", cache_name(cache), arm.name())
}

fn ycsb_name(repeat: u64, workload: &str, cache: (u64, u64), arm: Arm) -> String {
    format!("ycsb {workload}, {repeat}, cache {}, {}", cache_name(cache), arm.name())
}

fn instructions_name(arm: Arm) -> String {
    format!("instructions of a get, cache 4x, {}", arm.name())
}

/// The cells that need the databases.
fn names(size: &Size) -> Vec<String> {
    let mut names: Vec<String> = ALL_WRITTEN.map(data::shape_name).to_vec();
    if size.counted_gets > 0 {
        names.extend(ARMS.map(instructions_name));
    }
    for (cache, arm) in CACHES.into_iter().flat_map(|cache| ARMS.map(|arm| (cache, arm))) {
        for repeat in 0..size.repeats {
            names.extend(DEPTHS.map(|depth| reads_name(repeat, cache, depth, arm)));
        }
        for repeat in 0..size.mixed_repeats {
            names.extend(WORKLOADS.map(|workload| ycsb_name(repeat, workload, cache, arm)));
        }
    }
    names
}

/// Measures the missing cells of the part with one table. Returns false after ^C.
fn measure_rows(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    if !data::loads(ground, size)? {
        return Ok(false);
    }
    if names(size).iter().all(|name| ground.has(name)) {
        return Ok(true);
    }
    let Some([both, tree]) = data::make(ground, size)? else { return Ok(false) };
    let flat_bytes = both.shape.flat_bytes;
    let of = |arm: Arm| if arm.written() == Written::Both { &both.made } else { &tree.made };
    let cache_bytes = |(times, divisor): (u64, u64)| flat_bytes * times / divisor;

    for arm in ARMS.into_iter().filter(|_| size.counted_gets > 0) {
        let gets = |place: &Path| Gets::new(place, cache_bytes(CACHES[0]), size.rows, size.groups(), size.counted_gets);
        let scratch = ground.data("")?;
        let counted: Option<Counted> = ground.cell(&instructions_name(arm), |_| {
            suite::say(&format!("instructions of a get, {}", arm.name()));
            instructions::count(arm, &gets(of(arm).place()), &scratch)
        })?;
        if counted.is_none() {
            return Ok(false);
        }
    }

    for repeat in 0..size.repeats {
        for (cache, depth) in CACHES.into_iter().flat_map(|cache| DEPTHS.map(|depth| (cache, depth))) {
            for arm in ARMS {
                let uniform = measured::settings("c", size.rows, &[("requestdistribution", "uniform")]);
                let asked = Asked { name: "reads", settings: &uniform, arm, cache_bytes: cache_bytes(cache), depth };
                let name = reads_name(repeat, cache, depth, arm);
                let measured = ground.cell(&name, |stop| asked.reads(size, of(arm), repeat, stop))?;
                if measured.is_none() {
                    return Ok(false);
                }
            }
        }
    }
    for repeat in 0..size.mixed_repeats {
        for (workload, cache) in WORKLOADS.into_iter().flat_map(|name| CACHES.map(|cache| (name, cache))) {
            for arm in ARMS {
                let scan_rows = size.scan_rows.to_string();
                let settings = measured::settings(workload, size.rows, &[("maxscanlength", &scan_rows)]);
                let (cache_bytes, depth) = (cache_bytes(cache), DEPTHS[1]);
                let asked = Asked { name: workload, settings: &settings, arm, cache_bytes, depth };
                let name = ycsb_name(repeat, workload, cache, arm);
                let measured = ground.cell(&name, |stop| asked.writes(size, of(arm), repeat, stop))?;
                if measured.is_none() {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// One run.
struct Asked<'a> {
    name: &'a str,
    settings: &'a Settings,
    arm: Arm,
    cache_bytes: u64,
    depth: usize,
}

impl Asked<'_> {
    /// A read-only run on the database itself.
    fn reads(&self, size: &Size, made: &Made, repeat: u64, stop: &Stop) -> Result<Cell, Failure> {
        self.run(size, made.place(), "read_only=1", repeat, stop)
    }

    /// A run that writes, on a copy.
    fn writes(&self, size: &Size, made: &Made, repeat: u64, stop: &Stop) -> Result<Cell, Failure> {
        let copy = made.copy()?;
        self.run(size, copy.place(), "read_only=0", repeat, stop)
    }

    fn run(&self, size: &Size, place: &Path, more: &str, repeat: u64, stop: &Stop) -> Result<Cell, Failure> {
        let reads = if self.arm.is_flat() { "flat" } else { "btree" };
        // At depth 1, calls block. At a greater depth, one thread has that many requests in flight.
        let flights = if self.depth == 1 { 0 } else { self.depth };
        let more = format!("cache={}&read_index={reads}&flights={flights}&{more}", self.cache_bytes);
        let store = open(&size.target(place, self.arm.written(), &more), self.settings, Opening::Existing)?;
        let run = Run::new(self.settings, 1000 * repeat + self.depth as u64);
        let workload = Wide::new(&run, size.widening());
        let cell = measured::run(&*store, &workload, KEY_BYTES as u64, self.depth, Some(size.until), stop)?;
        store.close()?;
        if stop.is_pressed() {
            return Ok(cell);
        }
        suite::say(&format!(
            "{:5}  {:2} under way  cache {:>10} B  {:15}  {:>10.0} /s  {:>10.0} B read each",
            self.name,
            self.depth,
            self.cache_bytes,
            self.arm.name(),
            cell.per_second(),
            cell.each(cell.read_bytes)
        ));
        Ok(cell)
    }
}

/// Opens a store for the rows of `settings`.
fn open(target: &str, settings: &Settings, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    (store_larch::SCHEME.open)(&Target::parse(target)?, &settings.table(), opening)
}

/// A database with its shape.
struct Filled {
    made: Made,
    shape: Shape,
}
