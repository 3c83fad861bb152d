//! `larch bench experiment scale`: what more rows cost with the same memory, in pages and bytes read per get,
//! memory outside the cache, height, bytes of index and filters, and time to open. Measurements stand beside the
//! predictions of `plan`, which are also made for tables that no machine here can hold.
//!
//! YDB's document wants to serve much cold data without dozens of nodes. An index that has to be in memory as a
//! whole needs memory that grows with the data; one that is read on demand does not.

use crate::WRONG;
use crate::args::Scale;
use crate::experiment::{About, Experiment, Kept};
use crate::figures::{kib, middle};
use crate::ground::Ground;
use crate::made::{Made, Shape, broken, import};
use crate::outcome::{Goal, chart, facts, table};
use crate::quoted;
use harness::directory::bytes_text;
use harness::report::Meter;
use harness::report::text::bytes;
use harness::{Clock, Failure, Million, StoreUse};
use larch::options::LevelOptions;
use larch::{Database, Durability, TableOptions};
use page::{Axis, Block, figure};
use serde::{Deserialize, Serialize};
use sst::plan::{FilterBits, Plan, Sizes};
use std::fmt;
use std::path::Path;
use suite::stop::Stop;

#[cfg(test)]
mod tests;

/// The experiment, and how much it measures.
pub struct MoreRows {
    rows: &'static [u64],
    value_bytes: u64,
    /// The cache sizes. Each number of rows is measured with each of them.
    caches: &'static [u64],
    /// Bytes of a file of the first level below level 0. An import writes files of the deepest level, which are
    /// four times as large.
    file_bytes: u64,
    gets: u64,
    repeats: u64,
}

impl MoreRows {
    /// The experiment at `scale`.
    pub fn of(scale: Scale) -> Self {
        const M: u64 = 1_000_000;
        const MIB: u64 = 1 << 20;
        let (rows, value_bytes, caches, file_bytes, gets, repeats) = match scale {
            Scale::Tiny => (&[2000, 8000, 32_000][..], 100, &[MIB][..], MIB / 4, 1000, 1),
            Scale::Small => (&[M / 16, M / 4, M, 4 * M][..], 100, &[2 * MIB, 16 * MIB][..], 4 * MIB, 10_000, 3),
            Scale::Medium => (&[M, 4 * M, 16 * M, 64 * M][..], 40, &[2 * MIB, 64 * MIB][..], 64 * MIB, 50_000, 5),
            Scale::Full => (&[M, 4 * M, 16 * M, 64 * M][..], 100, &[4 * MIB, 64 * MIB][..], 64 * MIB, 200_000, 7),
        };
        Self { rows, value_bytes, caches, file_bytes, gets, repeats }
    }

    fn sizes(&self, rows: u64, cache_bytes: u64) -> Sizes {
        Sizes {
            rows,
            row_bytes: KEY_BYTES as u64 + self.value_bytes,
            key_bytes: KEY_BYTES as u64,
            separator_bytes: None,
            page_bytes: PAGE_BYTES.into(),
            node_bytes: PAGE_BYTES.into(),
            file_bytes: self.file_bytes << 2,
            filter: FilterBits::Twelve,
            cache_bytes,
        }
    }
}

const KEY_BYTES: usize = 20;
/// Bytes of a data page or a node.
const PAGE_BYTES: u32 = 16 << 10;
/// Rows of tables that are only predicted.
const PREDICTED: [u64; 3] = [1_000_000_000, 10_000_000_000, 100_000_000_000];
/// A further cache size for them.
const LARGE_CACHE_BYTES: u64 = 1 << 30;
/// The goal for the difference between prediction and measurement, as a fraction of the measurement.
const WITHIN: f64 = 0.1;

/// A number of rows and a cache size.
#[derive(Clone, Copy)]
struct Point {
    rows: u64,
    cache: u64,
}

impl Point {
    fn title(self) -> String {
        format!("{} rows, {} of cache", figure(self.rows as f64), bytes_text(self.cache))
    }
}

/// A point in one repeat.
#[derive(Clone, Copy)]
pub struct Cell(u64, Point);

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(repeat, Point { rows, cache }) = self;
        write!(out, "{repeat}, {rows} rows, {} of cache", bytes_text(*cache))
    }
}

fn data_name(rows: u64) -> String {
    format!("{rows}-rows")
}

/// What gets of a point with one cache size took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Taken {
    open_micros: f64,
    get_micros: f64,
    reads_a_get: f64,
    index_reads_a_get: f64,
    read_bytes_a_get: f64,
    /// The engine's memory outside the cache.
    outside_bytes: u64,
    /// Resident memory of the process.
    resident_bytes: u64,
    /// What a million gets cost.
    million: Million,
}

impl Experiment for MoreRows {
    const ABOUT: About = About {
        name: "scale",
        title: "More rows with the same memory",
        text: &[
            "Tables of more and more rows are read with the same memory. The index is read on demand, so the memory outside of the cache is what is \
             known of each file.",
            "Beside each figure stands what larch plan predicts from the sizes alone. The same arithmetic then says what tables take that no \
             machine here holds.",
            "Every value is compared with what was written. The points are measured in turn, and all of it is repeated.",
        ],
    };

    type Cell = Cell;

    fn most_bytes(&self) -> u64 {
        let rows: u64 = self.rows.iter().sum();
        rows * (KEY_BYTES as u64 + self.value_bytes + 8) + (256 << 20)
    }

    fn cells(&self) -> Vec<Cell> {
        (0..self.repeats).flat_map(|repeat| self.points().map(move |point| Cell(repeat, point))).collect()
    }

    fn prepare(&mut self, cell: &Cell, ground: &mut Ground) -> Result<(), Failure> {
        self.made(cell.1.rows, ground).map(drop)
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Kept, Failure> {
        let Cell(repeat, point) = *cell;
        let made = self.made(point.rows, ground)?;
        let taken = gets(made.place(), &self.sizes(point.rows, point.cache), self.gets, repeat, &ground.stop)?;
        Ok(Kept::new(&taken, format!("{:.3} reads a get, {:.1} us", taken.reads_a_get, taken.get_micros)))
    }

    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure> {
        let measured = |cache| {
            let reads = |&rows: &u64| Some((rows as f64, self.taken(ground, Point { rows, cache })?.reads_a_get));
            self.rows.iter().filter_map(reads).collect()
        };
        let predicted = |cache| {
            let reads = |&rows: &u64| (rows as f64, self.sizes(rows, cache).plan().reads_a_get);
            self.rows.iter().chain(&PREDICTED).map(reads).collect()
        };
        let lines = self.caches.iter().flat_map(|&cache| {
            let name = |what: &str| format!("{what}, {}", bytes_text(cache));
            [(name("measured"), measured(cache)), (name("predicted"), predicted(cache))]
        });
        let costs = self.points().filter_map(|point| Some((point, self.taken(ground, point)?, told(ground, point)?)));
        let caches = self.caches.iter().copied().chain([LARGE_CACHE_BYTES]);
        let far = caches.flat_map(|cache| PREDICTED.map(|rows| Point { rows, cache }));
        Ok(vec![
            chart(
                "Pages read a get against rows",
                (Axis::logarithmic("rows"), Axis::linear("pages read a get")),
                lines,
            ),
            table(
                format!("Cost against rows at fixed memory, median of {}", self.repeats),
                costs,
                &[
                    ("", &|(point, ..)| point.title()),
                    ("files", &|(_, _, shape)| bytes(shape.file_bytes)),
                    ("number", &|(_, _, shape)| figure(shape.files as f64)),
                    ("levels of nodes", &|(_, _, shape)| shape.height.to_string()),
                    ("index", &|(_, _, shape)| bytes(shape.index_bytes)),
                    ("filters", &|(_, _, shape)| bytes(shape.filter_bytes)),
                    ("pages read a get", &|(_, taken, _)| figure(taken.reads_a_get)),
                    ("of them nodes", &|(_, taken, _)| figure(taken.index_reads_a_get)),
                    ("KiB read a get", &|(_, taken, _)| figure(kib(taken.read_bytes_a_get))),
                    ("memory outside of the cache", &|(_, taken, _)| bytes(taken.outside_bytes)),
                    ("memory of the process", &|(_, taken, _)| bytes(taken.resident_bytes)),
                    ("ms to open", &|(_, taken, _)| figure(taken.open_micros / 1e3)),
                    ("us a get", &|(_, taken, _)| figure(taken.get_micros)),
                ],
            ),
            table(
                "Predicted by larch plan, and measured",
                self.checks(ground),
                &[
                    ("", &|(name, _)| name.clone()),
                    (CHECKED[0], &|(_, checks)| checks[0].shown()),
                    (CHECKED[1], &|(_, checks)| checks[1].shown()),
                    (CHECKED[2], &|(_, checks)| checks[2].shown()),
                    (CHECKED[3], &|(_, checks)| checks[3].shown()),
                    (CHECKED[4], &|(_, checks)| checks[4].shown()),
                    (CHECKED[5], &|(_, checks)| checks[5].shown()),
                ],
            ),
            table(
                format!("Predicted only: rows of {} bytes", KEY_BYTES as u64 + self.value_bytes),
                far.map(|point| (point, self.sizes(point.rows, point.cache).plan())),
                &[
                    ("", &|(point, _)| point.title()),
                    ("files", &|(_, plan)| bytes(plan.file_bytes)),
                    ("number", &|(_, plan)| figure(plan.files as f64)),
                    ("levels of nodes", &|(_, plan)| plan.height.to_string()),
                    ("index", &|(_, plan)| bytes(plan.index_bytes)),
                    ("filters", &|(_, plan)| bytes(plan.filter_bytes)),
                    ("pages read a get", &|(_, plan)| figure(plan.reads_a_get)),
                    ("memory outside of the cache", &|(_, plan)| bytes(plan.outside_bytes)),
                ],
            ),
            facts(&[
                ("rows", format!("keys of {KEY_BYTES} bytes, spread evenly, and values of {} bytes", self.value_bytes)),
                ("pages, nodes", bytes_text(PAGE_BYTES.into())),
                ("files", format!("imported: {} each, 12 bits of filter a key", bytes_text(self.file_bytes << 2))),
                ("cache", self.caches.iter().map(|cache| bytes_text(*cache)).collect::<Vec<_>>().join(", ")),
                (
                    "gets",
                    format!("{}, any row as often as any other, after the cache was filled", figure(self.gets as f64)),
                ),
                ("durability", "the time to open is that of a writer; gets are read-only".to_owned()),
                ("reads", "direct, where the file system can".to_owned()),
            ]),
            self.published(ground),
        ])
    }

    fn goals(&self, ground: &Ground) -> Vec<Goal> {
        let checks = self.checks(ground);
        let goal = |(at, what): (usize, &&str)| {
            let text = format!("{what}: prediction against measurement, the worst difference beyond {}", NOTHING[at]);
            let worst = checks.iter().map(|(_, checks)| checks[at].difference()).reduce(f64::max);
            Goal::at_most(if *what == "levels of nodes" { 0.0 } else { WITHIN }, text, worst)
        };
        CHECKED.iter().enumerate().map(goal).collect()
    }
}

fn told(ground: &Ground, point: Point) -> Option<Shape> {
    ground.told(&data_name(point.rows))
}

impl MoreRows {
    fn points(&self) -> impl Iterator<Item = Point> {
        self.rows.iter().flat_map(|&rows| self.caches.iter().map(move |&cache| Point { rows, cache }))
    }

    /// The database of `rows` rows.
    fn made(&self, rows: u64, ground: &mut Ground) -> Result<Made, Failure> {
        let build = |place: &Path, stop: &Stop| {
            suite::say(&format!("{rows} rows"));
            self.load(place, rows, stop)
        };
        Ok(ground.built(&data_name(rows), build)?.0)
    }

    /// The medians over the repeats of a point.
    fn taken(&self, ground: &Ground, point: Point) -> Option<Taken> {
        let all: Vec<Taken> = ground.all(self.repeats, |repeat| Cell(repeat, point));
        let middle = |of: fn(&Taken) -> f64| middle(&all, of);
        Some(Taken {
            open_micros: middle(|one| one.open_micros)?,
            get_micros: middle(|one| one.get_micros)?,
            reads_a_get: middle(|one| one.reads_a_get)?,
            index_reads_a_get: middle(|one| one.index_reads_a_get)?,
            read_bytes_a_get: middle(|one| one.read_bytes_a_get)?,
            outside_bytes: middle(|one| one.outside_bytes as f64)? as u64,
            ..*all.last()?
        })
    }

    /// The predictions of each point beside its measurements.
    fn checks(&self, ground: &Ground) -> Vec<(String, Vec<Check>)> {
        let of = |point: Point| {
            let (taken, shape) = self.taken(ground, point).zip(told(ground, point))?;
            Some((point.title(), checks(&self.sizes(point.rows, point.cache).plan(), &shape, &taken)))
        };
        self.points().filter_map(of).collect()
    }

    /// The comparable figures of YDB's document, where the same load ran with ever smaller caches.
    fn published(&self, ground: &Ground) -> Block {
        let rows = *self.rows.last().expect("there are points");
        let here = |cache: u64| {
            let reads = self.taken(ground, Point { rows, cache }).map(|taken| figure(taken.reads_a_get));
            let of = |reads| format!("{} rows, {}: {reads} pages read a get", figure(rows as f64), bytes_text(cache));
            reads.map_or("-".to_owned(), of)
        };
        let (least, largest) = (here(self.caches[0]), here(*self.caches.last().expect("there are caches")));
        table(
            format!(
                "YDB's document: TPC-C of {} warehouses, other machines, tpmC with less and less cache; here: gets of the largest \
                 table",
                figure(quoted::YDB_TPCC[0].warehouses.value())
            ),
            quoted::YDB_TPCC.into_iter().zip([largest, String::new(), least]),
            &[
                ("cache there", &|(run, _)| run.cache.text()),
                ("flat index", &|(run, _)| figure(run.flat.tpmc.value())),
                ("B-tree index", &|(run, _)| figure(run.tree.tpmc.value())),
                ("here, B-tree", &|(_, here)| here.clone()),
            ],
        )
    }

    fn load(&self, place: &Path, rows: u64, stop: &Stop) -> Result<Shape, Failure> {
        let levels = LevelOptions { file_bytes: self.file_bytes, ..LevelOptions::default() };
        let db = Database::builder(place).levels(levels).durability(Durability::Buffered).open().map_err(broken)?;
        let table = db.table_with("t", TableOptions::default()).map_err(broken)?;
        let value = |number| {
            let mut value = vec![0; self.value_bytes as usize];
            put_value(&mut value, number);
            value
        };
        import(&table, 0..rows, stop, |number| (key(number, rows), value(number)))?;
        let shape = Shape::of(&table.stats().map_err(broken)?);
        drop(table);
        db.close().map_err(broken)?;
        Ok(shape)
    }
}

/// The key of row `number` of `rows`. Keys are spread evenly, and no byte of a key can be predicted from the bytes
/// before it.
fn key(number: u64, rows: u64) -> [u8; KEY_BYTES] {
    let spread = ((u128::from(number) << 64) / u128::from(rows)) as u64;
    let random = row_access::batch::mixed(number);
    // Jitter of up to half the distance to the next evenly spaced key.
    let spread = spread + random % (u64::MAX / rows / 2).max(1);
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&spread.to_be_bytes());
    key[8..16].copy_from_slice(&row_access::batch::mixed(random).to_be_bytes());
    key[16..].copy_from_slice(&(number as u32).to_be_bytes());
    key
}

/// The value of row `number`.
fn put_value(value: &mut [u8], number: u64) {
    value.fill(number as u8);
    value[..8].copy_from_slice(&number.to_le_bytes());
}

/// Warm-up gets per page of the cache, after which it holds the pages that are read often.
const WARM_GETS: u64 = 6;

fn gets(place: &Path, sizes: &Sizes, gets: u64, seed: u64, stop: &Stop) -> Result<Taken, Failure> {
    let clock = Clock::start();
    let builder = Database::builder(place).create(false).cache_bytes(sizes.cache_bytes);
    let db = builder.durability(Durability::Buffered).open().map_err(broken)?;
    let open_micros = clock.nanos() as f64 / 1e3;
    db.close().map_err(broken)?;
    // Reopen it read-only: a writer's open puts rows into memory.
    let db = Database::builder(place).read_only(true).cache_bytes(sizes.cache_bytes).open().map_err(broken)?;
    let table = db.table("t").map_err(broken)?;
    let mut wanted = vec![0; (sizes.row_bytes - sizes.key_bytes) as usize];
    let mut random = seed;
    let mut get = |count: u64| -> Result<(), Failure> {
        for _ in 0..count {
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let number = ((u128::from(row_access::batch::mixed(random)) * u128::from(sizes.rows)) >> 64) as u64;
            let found = table.get(key(number, sizes.rows)).map_err(broken)?;
            put_value(&mut wanted, number);
            if found.as_deref() != Some(&wanted[..]) {
                return Err(Failure::session(WRONG, format!("row {number} is not what was written")));
            }
            if stop.is_pressed() {
                break;
            }
        }
        Ok(())
    };
    get(WARM_GETS * sizes.cache_bytes / sizes.page_bytes)?;
    let before = db.metrics().pages;
    let (meter, clock) = (Meter::start(StoreUse::InProcess), Clock::start());
    get(gets)?;
    let nanos = clock.nanos();
    let million = meter.million(gets, StoreUse::InProcess, None);
    let metrics = db.metrics();
    let pages = metrics.pages.since(&before);
    let a_get = |count: u64| count as f64 / gets as f64;
    let taken = Taken {
        open_micros,
        get_micros: nanos as f64 / 1e3 / gets as f64,
        reads_a_get: a_get(pages.total().faults),
        index_reads_a_get: a_get(pages.index_reads()),
        read_bytes_a_get: a_get(pages.total().read_bytes),
        outside_bytes: outside_bytes(metrics.memory()),
        resident_bytes: os::process::memory().resident_bytes.unwrap_or(0),
        million,
    };
    drop(table);
    db.close().map_err(broken)?;
    Ok(taken)
}

/// The engine's memory without the cache.
fn outside_bytes(memory: &larch::stats::Memory) -> u64 {
    let of_cache = ["cached_index", "cached_data", "cached_history", "cached_filter", "in_flight", "cache_spare"];
    memory.owners().iter().filter(|(owner, _)| !of_cache.contains(owner)).map(|(_, bytes)| bytes).sum()
}

/// The predicted figures of a point, in the order of all lists of them.
const CHECKED: [&str; 6] = [
    "levels of nodes",
    "index bytes",
    "filter bytes",
    "pages read a get",
    "bytes read a get",
    "memory outside of the cache",
];

/// The differences that are too small to matter, in the order of [`CHECKED`].
const NOTHING: [&str; 6] = ["0", "a page of 4 KiB", "a page of 4 KiB", "0.005", "82 bytes", "1 KiB"];

/// A figure that was predicted.
struct Check {
    predicted: f64,
    measured: f64,
    /// The difference up to which they count as equal.
    nothing: f64,
}

impl Check {
    /// The difference as a fraction of the measurement.
    fn difference(&self) -> f64 {
        let difference = (self.predicted - self.measured).abs();
        if difference <= self.nothing { 0.0 } else { difference / self.measured.max(f64::MIN_POSITIVE) }
    }

    fn shown(&self) -> String {
        if self.predicted == self.measured {
            return format!("{}, {}", figure(self.predicted), figure(self.measured));
        }
        let more = (self.predicted / self.measured - 1.0) * 100.0;
        format!("{}, {} ({more:+.1} %)", figure(self.predicted), figure(self.measured))
    }
}

fn checks(plan: &Plan, shape: &Shape, measured: &Taken) -> Vec<Check> {
    let all = [
        (plan.height as f64, f64::from(shape.height), 0.0),
        (plan.index_bytes as f64, shape.index_bytes as f64, 4096.0),
        (plan.filter_bytes as f64, shape.filter_bytes as f64, 4096.0),
        (plan.reads_a_get, measured.reads_a_get, 0.005),
        (plan.read_bytes_a_get, measured.read_bytes_a_get, 0.005 * f64::from(PAGE_BYTES)),
        (plan.outside_bytes as f64, measured.outside_bytes as f64, 1024.0),
    ];
    all.map(|(predicted, measured, nothing)| Check { predicted, measured, nothing }).into()
}
