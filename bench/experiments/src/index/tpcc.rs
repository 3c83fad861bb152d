//! TPC-C with the flat lists and with the tree, as YDB's authors ran it with three sizes of the cache. Three caches here
//! have the same proportion to the data; two more are too small for the flat lists.

use super::{Arm, Cell, Extent, Written};
use crate::figures::{kib, mib, shown};
use crate::ground::Ground;
use crate::made::{Made, Shape, broken};
use crate::outcome::{Goal, table};
use crate::quoted::YDB_TPCC;
use crate::terminals::{self, Asked, TpccRun};
use harness::Failure;
use larch::Database;
use page::{Block, figure};
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
    pub fn name(self) -> String {
        match self {
            Self::Usual => "default".to_owned(),
            Self::ForHundred(mib) => format!("{mib} MiB for 100 warehouses"),
            Self::OfLists(divisor) => format!("1/{divisor} of the flat lists"),
        }
    }

    fn bytes(self, extent: &Extent, shape: &Shape) -> u64 {
        let bytes = match self {
            Self::Usual => USUAL_CACHE_BYTES,
            Self::ForHundred(mib) => (mib << 20) * u64::from(extent.warehouses) / 100,
            Self::OfLists(divisor) => shape.flat_bytes / divisor,
        };
        bytes.max(LEAST_CACHE_BYTES)
    }
}

/// The one database.
const DATA: &str = "tpcc";

/// All runs.
pub fn cells() -> impl Iterator<Item = Cell> {
    (1..).zip(CACHES).flat_map(|(number, cache)| ARMS.map(|arm| Cell::Tpcc(number, cache, arm)))
}

impl Extent {
    /// The database, with the sizes of all its tables together.
    pub fn tpcc_made(&self, ground: &mut Ground) -> Result<(Made, Shape), Failure> {
        ground.built(DATA, |place, stop| {
            suite::say(&format!("TPC-C, {} warehouses, both indexes written", self.warehouses));
            let target = format!("larch:{}?index={}", place.display(), Written::Both.option());
            terminals::import(&stores::larch::TPCC, &target, self.warehouses, stop)?;
            shape(place)
        })
    }

    /// Runs terminals on a copy of the database.
    pub fn tpcc(&self, number: u64, cache: Cache, arm: Arm, ground: &mut Ground) -> Result<TpccRun, Failure> {
        let (made, shape) = self.tpcc_made(ground)?;
        let copy = made.copy()?;
        let reads = if arm.is_flat() { "flat" } else { "btree" };
        let (place, bytes) = (copy.place().display(), cache.bytes(self, &shape));
        let target = format!("larch:{place}?index=both&read_index={reads}&cache={bytes}&durability=buffered");
        terminals::run(&stores::larch::TPCC, &target, &Asked { seed: number, ..self.terminals }, &ground.stop)
    }

    /// The tables of TPC-C.
    pub fn tpcc_blocks(&self, ground: &Ground) -> Vec<Block> {
        let shape: Shape = ground.told(DATA).unwrap_or_default();
        // A cache, what is read, the run, and the run by flat lists.
        type Row = (Cache, Arm, Option<TpccRun>, Option<TpccRun>);
        let runs = CACHES.into_iter().flat_map(|cache| {
            let ran = |arm| ground.known::<TpccRun>(Cell::Tpcc(0, cache, arm));
            ARMS.map(|arm| (cache, arm, ran(arm), ran(Arm::Flat)))
        });
        let of = |(_, _, ran, _): &Row, what: fn(&TpccRun) -> f64| shown(ran.as_ref().map(what));
        let late = |(_, _, ran, _): &Row| shown(ran.as_ref().and_then(|ran| Some(ran.percentile_99()? / 1e3)));
        let Asked { threads, terminals, warmup, time, .. } = self.terminals;
        let caption = format!(
            "TPC-C of Larch: {} warehouses ({} rows, {} MiB, flat lists of {} KiB, trees of {} KiB), {terminals} terminals on {threads} \
             threads that wait for nothing, {} s after {} s of warm-up on a copy of the same files, log buffered; all conditions hold after \
             each run",
            self.warehouses,
            figure(shape.rows as f64),
            figure(mib(shape.file_bytes as f64)),
            figure(kib(shape.flat_bytes as f64)),
            figure(kib(shape.btree_bytes as f64)),
            time.as_secs_f64(),
            warmup.as_secs_f64(),
        );
        let ours = table(
            caption,
            runs,
            &[
                ("cache, what is read", &|(cache, arm, ..)| format!("{}, {}", cache.name(), arm.name())),
                ("KiB of the cache", &|(cache, ..)| figure(kib(cache.bytes(self, &shape) as f64))),
                ("tpmC", &|row| of(row, |ran| ran.tpmc)),
                ("for flat", &|(_, _, ran, flat)| {
                    shown(ran.as_ref().zip(flat.as_ref()).map(|(ran, flat)| ran.tpmc / flat.tpmc))
                }),
                ("99 % of new orders, ms", &late),
                ("% failed", &|row| of(row, |ran| 100.0 * ran.failed as f64 / ran.transactions.max(1) as f64)),
                ("pages read a transaction", &|row| of(row, |ran| ran.each(ran.page_reads))),
                ("index pages", &|row| of(row, |ran| ran.each(ran.index_page_reads))),
                ("KiB read", &|row| of(row, |ran| kib(ran.each(ran.read_bytes)))),
                ("KiB written", &|row| of(row, |ran| kib(ran.each(ran.written_bytes)))),
                ("most KiB in the cache", &|row| of(row, |ran| kib(ran.most_cache_bytes as f64))),
                ("most KiB of all memory", &|row| of(row, |ran| kib(ran.most_memory_bytes as f64))),
            ],
        );
        let published = table(
            format!(
                "YDB, TPC-C with {} warehouses whose terminals wait, by the size of its cache (May 2024)",
                figure(YDB_TPCC[0].warehouses.value())
            ),
            YDB_TPCC,
            &[
                ("cache", &|run| run.cache.text()),
                ("tpmC, flat", &|run| figure(run.flat.tpmc.value())),
                ("tpmC, tree", &|run| figure(run.tree.tpmc.value())),
                ("tree for flat", &|run| figure(run.tree.tpmc.value() / run.flat.tpmc.value())),
                ("% of new orders failed, flat / tree", &|run| {
                    format!("{} / {}", run.flat.failed.written, run.tree.failed.written)
                }),
            ],
        );
        vec![Block::Heading("TPC-C".to_owned()), ours, published]
    }

    /// The goals for TPC-C: the cache stays within its budget.
    pub fn tpcc_goals(&self, ground: &Ground) -> Vec<Goal> {
        let shape: Shape = ground.told(DATA).unwrap_or_default();
        let goal = |cache: Cache, arm: Arm| {
            let ran: Option<TpccRun> = ground.known(Cell::Tpcc(0, cache, arm));
            let share = ran.map(|ran| ran.most_cache_bytes as f64 / cache.bytes(self, &shape) as f64);
            let what = format!("TPC-C, cache {}, {}: most bytes in the cache for its budget", cache.name(), arm.name());
            Goal::at_most(1.0, what, share)
        };
        CACHES.into_iter().flat_map(|cache| ARMS.map(|arm| goal(cache, arm))).collect()
    }
}

/// The sizes of all tables together.
fn shape(place: &Path) -> Result<Shape, Failure> {
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
