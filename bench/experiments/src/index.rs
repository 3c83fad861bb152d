//! `larch bench experiment index`: repeats a comparison by YDB's authors of two indexes of a file, a flat list and
//! a B-tree. There are three arms: both indexes are written and the flat lists are read; both are written and the
//! tree is read; only the tree is written.
//!
//! YDB's authors ran TPC-C and YCSB with three sizes of the cache. A flat list is read as a whole, so what decides
//! is whether all of them fit in the cache. Therefore the cache sizes here are multiples and fractions of the bytes
//! of all flat lists.

mod data;
mod instructions;
mod tables;
#[cfg(test)]
mod tests;
mod tpcc;
mod wide;

use crate::args::{Gets, IndexPart, Scale};
use crate::experiment::{About, Experiment, Kept};
use crate::ground::Ground;
use crate::outcome::Goal;
use crate::quoted;
use crate::terminals::{Asked, TpccRun, WAREHOUSE_BYTES};
use crate::ycsb_run::{self, Until};
use data::Loaded;
use harness::{Failure, Opening, Store, Target};
use page::Block;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use suite::stop::Stop;
use wide::{KEY_BYTES, Wide, Widening};
use ycsb::{Run, Settings};

/// The experiment: what part of it is measured, and how much.
pub struct Index {
    extent: Extent,
    only: Option<IndexPart>,
}

/// The table of YCSB.
const TABLE: &str = "usertable";

/// Bytes that all keys of a group share.
const FILLER_BYTES: usize = 176;

/// The numbers of requests in flight with which reads are measured.
const DEPTHS: [usize; 2] = [1, 32];

/// In the order of the document.
const WORKLOADS: [&str; 6] = ["a", "b", "c", "f", "d", "e"];

/// A cache size, as a fraction (numerator, denominator) of the size of the flat lists.
type Cache = (u64, u64);

const CACHES: [Cache; 5] = [(4, 1), (1, 1), (1, 2), (1, 4), (1, 16)];

fn cache_name((times, divisor): Cache) -> String {
    match divisor {
        1 => format!("{times}x"),
        _ => format!("{times}/{divisor}"),
    }
}

/// An arm: which indexes are written, and which one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
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
pub enum Written {
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
struct Extent {
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
    terminals: Asked,
    /// Whether files and lists have the sizes that the goals are for.
    has_goals: bool,
}

impl Extent {
    fn of(scale: Scale) -> Self {
        let until = |warmup, time, operations| Until {
            warmup: Duration::from_millis(warmup),
            time: Duration::from_millis(time),
            operations,
        };
        let terminals = |terminals, warmup, time| Asked {
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
                terminals: Asked { threads: 2, ..terminals(10, 50, 300) },
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
                terminals: Asked { threads: 4, ..terminals(40, 2000, 5000) },
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

    /// The target of a store in `place`.
    fn target(&self, place: &Path, written: Written, more: &str) -> String {
        // A file of the uppermost level has a fourth of the size of one of the deepest level.
        let (page, node, file) = (self.page_bytes, self.node_bytes, self.file_bytes / 4);
        let index = written.option();
        format!("larch:{}?page={page}&node={node}&file={file}&index={index}&{more}", place.display())
    }
}

/// One measurement.
#[derive(Clone, Copy)]
pub enum Cell {
    /// A timed load of few rows.
    Load(u64, Written),
    /// The instructions of a get.
    Instructions(Arm),
    /// Gets of random rows, with a number of requests in flight.
    Reads(u64, Cache, usize, Arm),
    /// A workload of YCSB.
    Ycsb(u64, &'static str, Cache, Arm),
    /// TPC-C. The number decides its seed.
    Tpcc(u64, tpcc::Cache, Arm),
}

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Load(repeat, written) => write!(out, "load, {repeat}, {}", written.name()),
            Self::Instructions(arm) => write!(out, "instructions of a get, cache 4x, {}", arm.name()),
            Self::Reads(repeat, cache, depth, arm) => {
                write!(out, "reads, {repeat}, cache {}, {depth} under way, {}", cache_name(cache), arm.name())
            }
            Self::Ycsb(repeat, workload, cache, arm) => {
                write!(out, "ycsb {workload}, {repeat}, cache {}, {}", cache_name(cache), arm.name())
            }
            Self::Tpcc(_, cache, arm) => write!(out, "tpcc, cache {}, {}", cache.name(), arm.name()),
        }
    }
}

impl Experiment for Index {
    const ABOUT: About = About {
        name: "index",
        title: "The index: B-tree beside flat lists",
        text: &[
            quoted::YDB_INDEX.text,
            "A flat list is read whole before the first row of its file; of a tree only the nodes on the way are read.",
            "Scaled: the document has some terabytes on many machines, this has one process and the sizes below. What decides is how much of the \
             lists fits into the cache, so caches are multiples of the bytes of all flat lists, and keys are wide, so that lists are large.",
            "A list has at most 4 MiB; a file with more gets a tree in any case. So a file of 1 GiB with long separators needs large row pages.",
            "Three arms: both indexes are written and the list is read; both are written and the tree is read; only the tree is written. They take \
             turns, and all of it is repeated. Each run that writes begins with a copy of the same files.",
            "Every row that is read alone is compared with what was written, and a row that is missing or wrong ends the experiment. Reads go around \
             the system's cache.",
            "TPC-C runs with caches in the document's proportion to the data, and with two in which its lists do not fit, because rows of 16 KiB pages \
             with short keys have small lists. Each run begins with a copy of the same files, and the twelve conditions are checked after it.",
        ],
    };

    type Cell = Cell;

    fn most_bytes(&self) -> u64 {
        let extent = &self.extent;
        // A page stores bytes that all its keys share only once.
        let rows = (2 * extent.rows + 4 * extent.load_rows) * 1130 + (64 << 20);
        // A run writes to a copy, which shares files with the original until it is compacted.
        let tpcc = 3 * u64::from(extent.warehouses) * WAREHOUSE_BYTES;
        let parts = [(IndexPart::Rows, rows), (IndexPart::Tpcc, tpcc)];
        parts.into_iter().filter(|(part, _)| self.has(*part)).map(|(_, bytes)| bytes).sum()
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        if self.has(IndexPart::Rows) {
            let loads = |repeat| ALL_WRITTEN.map(|written| Cell::Load(repeat, written));
            cells.extend((0..self.extent.repeats).flat_map(loads));
            if self.extent.counted_gets > 0 {
                cells.extend(ARMS.map(Cell::Instructions));
            }
            for repeat in 0..self.extent.repeats {
                let sizes = CACHES.into_iter().flat_map(|cache| DEPTHS.map(|depth| (cache, depth)));
                cells.extend(sizes.flat_map(|(cache, depth)| ARMS.map(|arm| Cell::Reads(repeat, cache, depth, arm))));
            }
            for repeat in 0..self.extent.mixed_repeats {
                let all = WORKLOADS.into_iter().flat_map(|workload| CACHES.map(|cache| (workload, cache)));
                cells.extend(all.flat_map(|(name, cache)| ARMS.map(|arm| Cell::Ycsb(repeat, name, cache, arm))));
            }
        }
        if self.has(IndexPart::Tpcc) {
            cells.extend(tpcc::cells());
        }
        cells
    }

    fn prepare(&mut self, cell: &Cell, ground: &mut Ground) -> Result<(), Failure> {
        match cell {
            Cell::Load(..) => Ok(()),
            Cell::Instructions(..) | Cell::Reads(..) | Cell::Ycsb(..) => {
                // The sizes of the lists are those of the database with both.
                ALL_WRITTEN.into_iter().try_for_each(|written| self.extent.filled(written, ground).map(drop))
            }
            Cell::Tpcc(..) => self.extent.tpcc_made(ground).map(drop),
        }
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Kept, Failure> {
        let extent = &self.extent;
        let flat_bytes = |ground: &mut Ground| Ok::<_, Failure>(extent.filled(Written::Both, ground)?.shape.flat_bytes);
        let of_lists = |bytes: u64, (times, divisor): Cache| bytes * times / divisor;
        Ok(match *cell {
            Cell::Load(repeat, written) => {
                let loaded: Loaded = extent.timed_load(repeat, written, ground)?;
                let [load, compaction, index] =
                    [loaded.load.nanos, loaded.load.settle_nanos, loaded.index_nanos].map(|nanos| nanos as f64 / 1e9);
                Kept::new(&loaded, format!("{load:.1} s, compaction {compaction:.1} s, index {index:.1} s"))
            }
            Cell::Instructions(arm) => {
                let (cache, made) =
                    (of_lists(flat_bytes(ground)?, CACHES[0]), extent.filled(arm.written(), ground)?.made);
                let gets = Gets::new(made.place(), cache, extent.rows, extent.groups(), extent.counted_gets);
                let counted = instructions::count(arm, &gets, &ground.data("")?)?;
                Kept::new(&counted, counted.each.map_or("not counted".to_owned(), |each| format!("{each:.0}")))
            }
            Cell::Reads(repeat, cache, depth, arm) => {
                let settings = ycsb_run::settings("c", extent.rows, &[("requestdistribution", "uniform")]);
                let (cache_bytes, made) =
                    (of_lists(flat_bytes(ground)?, cache), extent.filled(arm.written(), ground)?.made);
                let asked = Requests { settings, arm, cache_bytes, depth, is_read_only: true };
                asked.run(extent, made.place(), repeat, &ground.stop)?
            }
            Cell::Ycsb(repeat, workload, cache, arm) => {
                let scan_rows = extent.scan_rows.to_string();
                let settings = ycsb_run::settings(workload, extent.rows, &[("maxscanlength", &scan_rows)]);
                let (cache_bytes, made) =
                    (of_lists(flat_bytes(ground)?, cache), extent.filled(arm.written(), ground)?.made);
                let asked = Requests { settings, arm, cache_bytes, depth: DEPTHS[1], is_read_only: false };
                asked.run(extent, made.copy()?.place(), repeat, &ground.stop)?
            }
            Cell::Tpcc(number, cache, arm) => {
                let ran: TpccRun = extent.tpcc(number, cache, arm, ground)?;
                Kept::new(&ran, format!("{:>9.0} tpmC {:>10.0} B read each", ran.tpmc, ran.each(ran.read_bytes)))
            }
        })
    }

    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure> {
        let seen = tables::Seen { ground, extent: &self.extent };
        let mut blocks = Vec::new();
        if self.has(IndexPart::Rows) {
            blocks.extend(seen.blocks());
        }
        if self.has(IndexPart::Tpcc) {
            blocks.extend(self.extent.tpcc_blocks(ground));
        }
        Ok(blocks)
    }

    fn goals(&self, ground: &Ground) -> Vec<Goal> {
        if !self.extent.has_goals {
            return Vec::new();
        }
        let mut goals = Vec::new();
        if self.has(IndexPart::Rows) {
            goals.extend(tables::Seen { ground, extent: &self.extent }.goals());
        }
        if self.has(IndexPart::Tpcc) {
            goals.extend(self.extent.tpcc_goals(ground));
        }
        goals
    }
}

impl Index {
    /// The experiment at `scale`, or a part of it alone.
    pub fn of(scale: Scale, only: Option<IndexPart>) -> Self {
        Self { extent: Extent::of(scale), only }
    }

    fn has(&self, part: IndexPart) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// The requests of a run.
struct Requests {
    settings: Settings,
    arm: Arm,
    cache_bytes: u64,
    depth: usize,
    is_read_only: bool,
}

impl Requests {
    fn run(&self, extent: &Extent, place: &Path, repeat: u64, stop: &Stop) -> Result<Kept, Failure> {
        let Self { settings, arm, cache_bytes, depth, is_read_only } = self;
        let reads = if arm.is_flat() { "flat" } else { "btree" };
        // At depth 1, calls block. At a greater depth, one thread has that many requests in flight.
        let flights = if *depth == 1 { 0 } else { *depth };
        let read_only = u8::from(*is_read_only);
        let more = format!("cache={cache_bytes}&read_index={reads}&flights={flights}&read_only={read_only}");
        let store = open(&extent.target(place, arm.written(), &more), settings, Opening::Existing)?;
        let run = Run::new(settings, 1000 * repeat + *depth as u64);
        let workload = Wide::new(&run, extent.widening());
        let run = ycsb_run::run(&*store, &workload, KEY_BYTES as u64, *depth, Some(extent.until), stop)?;
        store.close()?;
        let (rate, bytes) = (run.per_second(), run.each(run.read_bytes));
        Ok(Kept::new(&run, format!("{rate:>10.0} /s  {bytes:>10.0} B read each")))
    }
}

/// Opens a store for the rows of `settings`.
fn open(target: &str, settings: &Settings, opening: Opening) -> Result<Box<dyn Store>, Failure> {
    (stores::larch::SCHEME.open)(&Target::parse(target)?, &settings.table(), opening)
}
