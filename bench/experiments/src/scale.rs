//! `larch bench experiment scale`: what more rows cost with the same memory, in pages and bytes read per get,
//! memory outside the cache, height, bytes of index and filters, and time to open. Measurements stand beside the
//! predictions of `plan`, which are also made for tables that no machine here can hold.
//!
//! YDB's document wants to serve much cold data without dozens of nodes. An index that has to be in memory as a
//! whole needs memory that grows with the data; one that is read on demand does not.

use crate::WRONG;
use crate::args::{ExperimentArgs, Scale};
use crate::ground::Ground;
use crate::index::PUBLISHED;
use crate::outcome::{Ending, Goal, Outcome, facts};
use harness::directory::bytes_text;
use harness::report::Meter;
use harness::report::text::bytes;
use harness::{Clock, Failure, Million, StoreUse};
use kit::goals::Bound;
use kit::median;
use larch::options::LevelOptions;
use larch::{Database, Durability, TableOptions};
use page::{Axis, Block, Chart, Curve, Table, figure};
use serde::{Deserialize, Serialize};
use sst::plan::{FilterBits, Plan, Sizes};
use std::path::Path;
use suite::stop::Stop;

#[cfg(test)]
mod tests;

/// How much is measured.
struct Size {
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

impl Size {
    fn of(scale: Scale) -> Self {
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

    fn most_bytes(&self) -> u64 {
        let rows: u64 = self.rows.iter().sum();
        rows * (KEY_BYTES as u64 + self.value_bytes + 8) + (256 << 20)
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

/// The files of a point: a number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Shape {
    files: u64,
    file_bytes: u64,
    data_pages: u64,
    data_bytes: u64,
    height: u8,
    index_bytes: u64,
    filter_bytes: u64,
}

/// The measurements of a point with one cache size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Measured {
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

/// Runs the experiment.
pub fn run(args: &ExperimentArgs) -> Result<Ending, Failure> {
    let size = Size::of(args.scale);
    let mut ground = Ground::open("scale", args, size.most_bytes())?;
    if !measure_all(&mut ground, &size)? {
        return Ok(Ending::Interrupted);
    }
    outcome(&ground, &size).finish("scale", &ground, args)
}

fn cell_name(repeat: u64, rows: u64, cache_bytes: u64) -> String {
    format!("{repeat}, {rows} rows, {} of cache", bytes_text(cache_bytes))
}

fn data_name(rows: u64) -> String {
    format!("{rows}-rows")
}

/// Measures the missing cells, going through all numbers of rows and caches within a repeat. Returns false after
/// ^C.
fn measure_all(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    let all = || {
        let points =
            |repeat| size.rows.iter().flat_map(move |rows| size.caches.iter().map(move |c| (repeat, *rows, *c)));
        (0..size.repeats).flat_map(points)
    };
    if all().all(|(repeat, rows, cache)| ground.has(&cell_name(repeat, rows, cache))) {
        return Ok(true);
    }
    let mut places = Vec::new();
    for &rows in size.rows {
        suite::say(&format!("{rows} rows"));
        let built = ground.built(&data_name(rows), |place, stop| load(place, rows, size, stop))?;
        let Some((place, _)) = built else { return Ok(false) };
        places.push((rows, place));
    }
    for (repeat, rows, cache) in all() {
        let (_, place) = places.iter().find(|(of, _)| *of == rows).expect("all are built");
        let cell = ground.cell(&cell_name(repeat, rows, cache), |stop| {
            let measured = measure(place, &size.sizes(rows, cache), size.gets, repeat, stop)?;
            let Measured { reads_a_get, get_micros, .. } = measured;
            let cache = bytes_text(cache);
            suite::say(&format!("{rows:>10} rows, {cache}: {reads_a_get:.3} reads a get, {get_micros:.1} us"));
            Ok(measured)
        })?;
        if cell.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
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

fn load(place: &Path, rows: u64, size: &Size, stop: &Stop) -> Result<Shape, Failure> {
    let levels = LevelOptions { file_bytes: size.file_bytes, ..LevelOptions::default() };
    let db = Database::builder(place).levels(levels).durability(Durability::Buffered).open().map_err(failed)?;
    let table = db.table_with("t", TableOptions::default()).map_err(failed)?;
    let mut import = table.import().map_err(failed)?;
    let mut value = vec![0; size.value_bytes as usize];
    for number in 0..rows {
        if number % (1 << 16) == 0 && stop.is_pressed() {
            break;
        }
        put_value(&mut value, number);
        import.add(&key(number, rows), &value).map_err(failed)?;
    }
    import.finish(|_| {}).map_err(failed)?;
    let stats = table.stats().map_err(failed)?;
    drop(table);
    db.close().map_err(failed)?;
    Ok(Shape {
        files: stats.files,
        file_bytes: stats.file_bytes,
        data_pages: stats.data_pages,
        data_bytes: stats.data_bytes,
        height: stats.index_height,
        index_bytes: stats.index_bytes,
        filter_bytes: stats.filter_bytes,
    })
}

/// Warm-up gets per page of the cache, after which it holds the pages that are read often.
const WARM_GETS: u64 = 6;

fn measure(place: &Path, sizes: &Sizes, gets: u64, seed: u64, stop: &Stop) -> Result<Measured, Failure> {
    let clock = Clock::start();
    let builder = Database::builder(place).create(false).cache_bytes(sizes.cache_bytes);
    let db = builder.durability(Durability::Buffered).open().map_err(failed)?;
    let open_micros = clock.nanos() as f64 / 1e3;
    db.close().map_err(failed)?;
    // Reopen it read-only: a writer's open puts rows into memory.
    let db = Database::builder(place).read_only(true).cache_bytes(sizes.cache_bytes).open().map_err(failed)?;
    let table = db.table("t").map_err(failed)?;
    let mut wanted = vec![0; (sizes.row_bytes - sizes.key_bytes) as usize];
    let mut random = seed;
    let mut get = |count: u64| -> Result<(), Failure> {
        for _ in 0..count {
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let number = ((u128::from(row_access::batch::mixed(random)) * u128::from(sizes.rows)) >> 64) as u64;
            let found = table.get(key(number, sizes.rows)).map_err(failed)?;
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
    let measured = Measured {
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
    db.close().map_err(failed)?;
    Ok(measured)
}

/// The engine's memory without the cache.
fn outside_bytes(memory: &larch::stats::Memory) -> u64 {
    let of_cache = ["cached_index", "cached_data", "cached_history", "cached_filter", "in_flight", "cache_spare"];
    memory.owners().iter().filter(|(owner, _)| !of_cache.contains(owner)).map(|(_, bytes)| bytes).sum()
}

fn failed(error: larch::Error) -> Failure {
    Failure::session("larch", error.to_string())
}

/// The medians over the repeats of a point.
fn point(ground: &Ground, size: &Size, rows: u64, cache: u64) -> Option<Measured> {
    let all: Vec<Measured> =
        (0..size.repeats).filter_map(|repeat| ground.known(&cell_name(repeat, rows, cache))).collect();
    let middle = |of: fn(&Measured) -> f64| median(&all.iter().map(of).collect::<Vec<_>>());
    let last = *all.last()?;
    Some(Measured {
        open_micros: middle(|one| one.open_micros),
        get_micros: middle(|one| one.get_micros),
        reads_a_get: middle(|one| one.reads_a_get),
        index_reads_a_get: middle(|one| one.index_reads_a_get),
        read_bytes_a_get: middle(|one| one.read_bytes_a_get),
        outside_bytes: middle(|one| one.outside_bytes as f64) as u64,
        ..last
    })
}

fn outcome(ground: &Ground, size: &Size) -> Outcome {
    let shape = |rows: u64| -> Option<Shape> { ground.known(&format!("data of {}", data_name(rows))) };
    let points = || size.rows.iter().flat_map(|&rows| size.caches.iter().map(move |&cache| (rows, cache)));

    let cost_row = |(rows, cache): (u64, u64)| {
        let (measured, shape) = point(ground, size, rows, cache).zip(shape(rows))?;
        Some(vec![
            format!("{} rows, {} of cache", figure(rows as f64), bytes_text(cache)),
            bytes(shape.file_bytes),
            figure(shape.files as f64),
            shape.height.to_string(),
            bytes(shape.index_bytes),
            bytes(shape.filter_bytes),
            figure(measured.reads_a_get),
            figure(measured.index_reads_a_get),
            figure(measured.read_bytes_a_get / 1024.0),
            bytes(measured.outside_bytes),
            bytes(measured.resident_bytes),
            figure(measured.open_micros / 1e3),
            figure(measured.get_micros),
        ])
    };
    let columns = [
        "",
        "files",
        "number",
        "levels of nodes",
        "index",
        "filters",
        "pages read a get",
        "of them nodes",
        "KiB read a get",
        "memory outside of the cache",
        "memory of the process",
        "ms to open",
        "us a get",
    ];
    let costs = Table {
        caption: format!("Cost against rows at fixed memory, median of {}", size.repeats),
        columns: columns.map(str::to_owned).to_vec(),
        rows: points().filter_map(cost_row).collect(),
    };

    let checks: Vec<(String, Vec<Check>)> = points()
        .filter_map(|(rows, cache)| {
            let (measured, shape) = point(ground, size, rows, cache).zip(shape(rows))?;
            let name = format!("{} rows, {} of cache", figure(rows as f64), bytes_text(cache));
            Some((name, checks(&size.sizes(rows, cache).plan(), &shape, &measured)))
        })
        .collect();
    let predictions = Table {
        caption: "Predicted by larch plan, and measured".to_owned(),
        columns: std::iter::once(String::new()).chain(CHECKED.map(str::to_owned)).collect(),
        rows: checks
            .iter()
            .map(|(name, checks)| std::iter::once(name.clone()).chain(checks.iter().map(Check::shown)).collect())
            .collect(),
    };
    let goals = CHECKED.iter().enumerate().map(|(at, what)| Goal {
        what: format!("{what}: prediction against measurement, the worst difference beyond {}", NOTHING[at]),
        bound: Bound::AtMost(if *what == "levels of nodes" { 0.0 } else { WITHIN }),
        measured: checks.iter().map(|(_, checks)| checks[at].difference()).reduce(f64::max),
    });

    let caches = size.caches.iter().copied().chain([LARGE_CACHE_BYTES]);
    let predicted = caches.flat_map(|cache| PREDICTED.map(|rows| (rows, cache)));
    let far = Table {
        caption: format!("Predicted only: rows of {} bytes", KEY_BYTES as u64 + size.value_bytes),
        columns: [
            "",
            "files",
            "number",
            "levels of nodes",
            "index",
            "filters",
            "pages read a get",
            "memory outside of the cache",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: predicted.map(|(rows, cache)| plan_row(rows, cache, &size.sizes(rows, cache).plan())).collect(),
    };
    let chart = Chart {
        title: "Pages read a get against rows".to_owned(),
        x: Axis::logarithmic("rows"),
        y: Axis::linear("pages read a get"),
        lines: size
            .caches
            .iter()
            .flat_map(|&cache| {
                let measured = |&rows: &u64| Some((rows as f64, point(ground, size, rows, cache)?.reads_a_get));
                let all = size.rows.iter().chain(&PREDICTED);
                let predicted = |&rows: &u64| (rows as f64, size.sizes(rows, cache).plan().reads_a_get);
                [
                    Curve {
                        name: format!("measured, {}", bytes_text(cache)),
                        points: size.rows.iter().filter_map(measured).collect(),
                    },
                    Curve { name: format!("predicted, {}", bytes_text(cache)), points: all.map(predicted).collect() },
                ]
            })
            .collect(),
        marks: Vec::new(),
    };
    Outcome {
        title: "More rows with the same memory".to_owned(),
        about: ABOUT.map(str::to_owned).to_vec(),
        blocks: vec![
            Block::Chart(chart),
            Block::Table(costs),
            Block::Table(predictions),
            Block::Table(far),
            facts(&fact_list(size)),
            Block::Table(published(ground, size)),
        ],
        goals: goals.collect(),
    }
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

fn checks(plan: &Plan, shape: &Shape, measured: &Measured) -> Vec<Check> {
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

fn plan_row(rows: u64, cache: u64, plan: &Plan) -> Vec<String> {
    vec![
        format!("{} rows, {} of cache", figure(rows as f64), bytes_text(cache)),
        bytes(plan.file_bytes),
        figure(plan.files as f64),
        plan.height.to_string(),
        bytes(plan.index_bytes),
        bytes(plan.filter_bytes),
        figure(plan.reads_a_get),
        bytes(plan.outside_bytes),
    ]
}

fn fact_list(size: &Size) -> Vec<(&'static str, String)> {
    vec![
        ("rows", format!("keys of {KEY_BYTES} bytes, spread evenly, and values of {} bytes", size.value_bytes)),
        ("pages, nodes", bytes_text(PAGE_BYTES.into())),
        ("files", format!("imported: {} each, 12 bits of filter a key", bytes_text(size.file_bytes << 2))),
        ("cache", size.caches.iter().map(|cache| bytes_text(*cache)).collect::<Vec<_>>().join(", ")),
        ("gets", format!("{}, any row as often as any other, after the cache was filled", figure(size.gets as f64))),
        ("durability", "the time to open is that of a writer; gets are read-only".to_owned()),
        ("reads", "direct, where the file system can".to_owned()),
    ]
}

/// The comparable figures of YDB's document, where the same load ran with ever smaller caches.
fn published(ground: &Ground, size: &Size) -> Table {
    let most = *size.rows.last().expect("there are points");
    let here = |cache: u64| {
        point(ground, size, most, cache).map_or("-".to_owned(), |measured| {
            format!(
                "{} rows, {}: {} pages read a get",
                figure(most as f64),
                bytes_text(cache),
                figure(measured.reads_a_get)
            )
        })
    };
    let (least, largest) = (here(size.caches[0]), here(*size.caches.last().expect("there are caches")));
    let rows = PUBLISHED.iter().zip([largest, String::new(), least]);
    let row = |((cache, flat, tree, _), here): (&(&str, f64, f64, &str), String)| {
        vec![(*cache).to_owned(), figure(*flat), figure(*tree), here]
    };
    Table {
        caption: "YDB's document: TPC-C of 12,000 warehouses, other machines, tpmC with less and less cache; here: gets of the largest \
                  table"
            .to_owned(),
        columns: ["cache there", "flat index", "B-tree index", "here, B-tree"].map(str::to_owned).to_vec(),
        rows: rows.map(row).collect(),
    }
}

const ABOUT: [&str; 3] = [
    "Tables of more and more rows are read with the same memory. The index is read on demand, so the memory outside of the cache is what is \
     known of each file.",
    "Beside each figure stands what larch plan predicts from the sizes alone. The same arithmetic then says what tables take that no \
     machine here holds.",
    "Every value is compared with what was written. The points are measured in turn, and all of it is repeated.",
];
