//! TPC-C with the flat lists and with the tree. YDB's authors ran it with caches of 54, 18 and 2 GB for 12,000
//! warehouses. Three caches here have the same proportion to the data; two more are too small for the flat lists.

use super::{Arm, Size, Written};
use crate::ground::Ground;
use crate::made::Made;
use crate::measured::{kib, shown};
use crate::outcome::Goal;
use crate::terminals::{self, Asked, Ran};
use harness::Failure;
use kit::goals::Bound;
use larch::Database;
use page::{Table, figure};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A cache of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// The store's default.
    Usual,
    /// MiB per hundred warehouses.
    ForHundred(u64),
    /// The size of all flat lists divided by this.
    OfLists(u64),
}

pub const CACHES: [Cache; 6] = [
    Cache::Usual,
    Cache::ForHundred(320),
    Cache::ForHundred(105),
    Cache::ForHundred(12),
    Cache::OfLists(4),
    Cache::OfLists(16),
];

/// The one database, which has both indexes, is read by each of them.
pub const ARMS: [Arm; 2] = [Arm::Flat, Arm::Tree];

/// The least cache size: each thread needs some pages at a time.
const LEAST_CACHE_BYTES: u64 = 512 << 10;

/// The store's default.
const USUAL_CACHE_BYTES: u64 = 256 << 20;

impl Cache {
    fn name(self) -> String {
        match self {
            Self::Usual => "default".to_owned(),
            Self::ForHundred(mib) => format!("{mib} MiB for 100 warehouses"),
            Self::OfLists(divisor) => format!("1/{divisor} of the flat lists"),
        }
    }

    fn bytes(self, size: &Size, shape: &Shape) -> u64 {
        let bytes = match self {
            Self::Usual => USUAL_CACHE_BYTES,
            Self::ForHundred(mib) => (mib << 20) * u64::from(size.warehouses) / 100,
            Self::OfLists(divisor) => shape.flat_bytes / divisor,
        };
        bytes.max(LEAST_CACHE_BYTES)
    }
}

/// The sizes of the database, over all tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    pub rows: u64,
    pub file_bytes: u64,
    pub btree_bytes: u64,
    pub flat_bytes: u64,
}

const SHAPE: &str = "tpcc, data";

fn name(cache: Cache, arm: Arm) -> String {
    format!("tpcc, cache {}, {}", cache.name(), arm.name())
}

/// The names of TPC-C's cells.
pub fn names() -> Vec<String> {
    let runs = CACHES.into_iter().flat_map(|cache| ARMS.map(|arm| name(cache, arm)));
    std::iter::once(SHAPE.to_owned()).chain(runs).collect()
}

/// Measures the missing cells. Returns false after ^C.
pub fn measure_all(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    if names().iter().all(|name| ground.has(name)) {
        return Ok(true);
    }
    let scheme = store_larch::TPCC;
    let made = Made::open(ground, "tpcc", |place| {
        suite::say(&format!("TPC-C, {} warehouses, both indexes written", size.warehouses));
        let target = format!("larch:{}?index={}", place.display(), Written::Both.option());
        terminals::import(&scheme, &target, size.warehouses, &ground.stop)
    })?;
    let Some(made) = made else { return Ok(false) };
    let Some(shape) = ground.cell(SHAPE, |_| shape(made.place()))? else { return Ok(false) };
    for (number, cache) in CACHES.into_iter().enumerate() {
        for arm in ARMS {
            let ran = ground.cell(&name(cache, arm), |stop| {
                let copy = made.copy()?;
                let reads = if arm.is_flat() { "flat" } else { "btree" };
                let bytes = cache.bytes(size, &shape);
                let place = copy.place().display();
                let target = format!("larch:{place}?index=both&read_index={reads}&cache={bytes}&durability=buffered");
                let asked = Asked { seed: 1 + number as u64, ..size.terminals };
                let ran = terminals::run(&scheme, &target, &asked, stop)?;
                if !stop.is_pressed() {
                    let (cache, arm, tpmc, read) = (cache.name(), arm.name(), ran.tpmc, ran.each(ran.read_bytes));
                    suite::say(&format!("tpcc   cache {cache:30} {arm:16} {tpmc:>9.0} tpmC {read:>10.0} B read each"));
                }
                Ok(ran)
            })?;
            if ran.is_none() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Sums up all tables.
fn shape(place: &Path) -> Result<Shape, Failure> {
    let broken = |error: larch::Error| Failure::session("larch", error.to_string());
    let db = Database::builder(place).read_only(true).extractors(extractors::of).open().map_err(broken)?;
    let mut shape = Shape { file_bytes: db.metrics().file_bytes, ..Shape::default() };
    for name in db.tables() {
        let stats = db.table(&name).and_then(|table| table.stats()).map_err(broken)?;
        shape.rows += stats.rows;
        shape.btree_bytes += stats.btree_bytes;
        shape.flat_bytes += stats.flat_bytes;
    }
    Ok(shape)
}

pub fn table(ground: &Ground, size: &Size) -> Table {
    let shape: Shape = ground.known(SHAPE).unwrap_or_default();
    let mut rows = Vec::new();
    for cache in CACHES {
        let flat: Option<Ran> = ground.known(&name(cache, Arm::Flat));
        for arm in ARMS {
            let ran: Option<Ran> = ground.known(&name(cache, arm));
            let of = |what: &dyn Fn(&Ran) -> f64| shown(ran.as_ref().map(what));
            let ratio = ran.as_ref().zip(flat.as_ref()).map(|(ran, flat)| ran.tpmc / flat.tpmc);
            rows.push(vec![
                format!("{}, {}", cache.name(), arm.name()),
                figure(kib(cache.bytes(size, &shape) as f64)),
                of(&|ran| ran.tpmc),
                shown(ratio),
                of(&|ran| ran.percentile_99() / 1e3),
                of(&|ran| 100.0 * ran.failed as f64 / ran.transactions.max(1) as f64),
                of(&|ran| ran.each(ran.page_reads)),
                of(&|ran| ran.each(ran.index_page_reads)),
                of(&|ran| kib(ran.each(ran.read_bytes))),
                of(&|ran| kib(ran.each(ran.written_bytes))),
                of(&|ran| kib(ran.most_cache_bytes as f64)),
                of(&|ran| kib(ran.most_memory_bytes as f64)),
            ]);
        }
    }
    let columns = [
        "cache, what is read",
        "KiB of the cache",
        "tpmC",
        "for flat",
        "99 % of new orders, ms",
        "% failed",
        "pages read a transaction",
        "index pages",
        "KiB read",
        "KiB written",
        "most KiB in the cache",
        "most KiB of all memory",
    ];
    let Asked { threads, terminals, warmup, time, .. } = size.terminals;
    Table {
        caption: format!(
            "TPC-C of Larch: {} warehouses ({} rows, {} MiB, flat lists of {} KiB, trees of {} KiB), {terminals} terminals on {threads} \
             threads that wait for nothing, {} s after {} s of warm-up on a copy of the same files, log buffered; all conditions hold after \
             each run",
            size.warehouses,
            figure(shape.rows as f64),
            figure(shape.file_bytes as f64 / f64::from(1 << 20)),
            figure(kib(shape.flat_bytes as f64)),
            figure(kib(shape.btree_bytes as f64)),
            time.as_secs_f64(),
            warmup.as_secs_f64(),
        ),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }
}

/// The document's runs: cache size, tpmC with the flat index, with the tree, and failed new orders in percent.
pub const PUBLISHED: [(&str, f64, f64, &str); 3] = [
    ("54 GB", 151_485.0, 151_435.0, "0.01 / 0.00"),
    ("18 GB", 115_815.0, 117_808.0, "0.75 / 0.64"),
    ("2 GB", 72_032.0, 75_677.0, "22.9 / 20.14"),
];

/// The document's runs as a table.
pub fn published() -> Table {
    let row = |(cache, flat, tree, failed): (&str, f64, f64, &str)| {
        vec![cache.to_owned(), figure(flat), figure(tree), figure(tree / flat), failed.to_owned()]
    };
    Table {
        caption: "YDB, TPC-C with 12,000 warehouses whose terminals wait, by the size of its cache (May 2024)"
            .to_owned(),
        columns: ["cache", "tpmC, flat", "tpmC, tree", "tree for flat", "% of new orders failed, flat / tree"]
            .map(str::to_owned)
            .to_vec(),
        rows: PUBLISHED.map(row).to_vec(),
    }
}

/// The goals for TPC-C: the cache stays within its budget.
pub fn goals(ground: &Ground, size: &Size) -> Vec<Goal> {
    let shape: Shape = ground.known(SHAPE).unwrap_or_default();
    let goal = |(cache, arm): (Cache, Arm)| {
        let ran: Option<Ran> = ground.known(&name(cache, arm));
        Goal {
            what: format!("TPC-C, cache {}, {}: most bytes in the cache for its budget", cache.name(), arm.name()),
            bound: Bound::AtMost(1.0),
            measured: ran.map(|ran| ran.most_cache_bytes as f64 / cache.bytes(size, &shape) as f64),
        }
    };
    CACHES.into_iter().flat_map(|cache| ARMS.map(|arm| (cache, arm))).map(goal).collect()
}
