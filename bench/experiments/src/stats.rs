//! `larch bench experiment stats`: histograms of rows over keys, computed from the index alone, by the tree and by
//! the flat list, for several resolutions and numbers of files, whose key ranges are disjoint or overlap.
//!
//! YDB builds such statistics of every table (BuildStats). With its flat index, it reads the whole list of each
//! file. Its B-tree has running totals in each node, so it reads only the nodes on the path to each bucket
//! boundary.

use crate::WRONG;
use crate::args::{ExperimentArgs, Scale};
use crate::ground::Ground;
use crate::outcome::{Ending, Goal, Outcome, facts};
use harness::directory::bytes_text;
use harness::report::Meter;
use harness::report::text::bytes;
use harness::{Clock, Failure, Million, StoreUse};
use kit::goals::Bound;
use kit::median;
use larch::options::{FilterKind, Filters, LevelOptions, PageIndexKind};
use larch::stats::{Histogram, Metric, Resolution};
use larch::{Compression, Database, Durability, TableOptions};
use page::{Axis, Block, Chart, Curve, Table, figure};
use serde::{Deserialize, Serialize};
use std::path::Path;
use suite::stop::Stop;

#[cfg(test)]
mod tests;

/// How much is measured.
struct Size {
    /// Groups of rows in each file.
    file_groups: u64,
    files: &'static [u64],
    buckets: &'static [u64],
    /// The most buckets for which the goal for overlapping files applies: up to this number, the rows below one
    /// child of a file's root are few enough.
    over_goal: u64,
    repeats: u64,
}

impl Size {
    fn of(scale: Scale) -> Self {
        let (file_groups, files, buckets, over_goal, repeats) = match scale {
            Scale::Tiny => (8, &[1, 10][..], &[10, 100][..], 0, 1),
            Scale::Small => (100, &[1, 10, 100][..], &[10, 100, 1000][..], 10, 3),
            Scale::Medium => (950, &[1, 10, 100][..], &[10, 100, 1000][..], 100, 5),
            Scale::Full => (950, &[1, 10, 100, 300][..], &[10, 100, 1000, 10_000][..], 100, 7),
        };
        Self { file_groups, files, buckets, over_goal, repeats }
    }

    fn file_rows(&self) -> u64 {
        self.file_groups * GROUP_ROWS
    }

    fn most_bytes(&self) -> u64 {
        // A page takes room for itself, compressed, for its child in a node, and for its entry in a flat list.
        let most = self.files.iter().max().expect("there are sizes");
        most * self.file_rows() / PAGE_ROWS * (256 + 2 * 100) + (128 << 20)
    }
}

/// The keys of a group share a long prefix that differs between groups. So separators are long and have few bytes
/// in common that a node could leave out.
const GROUP_ROWS: u64 = 64;
const GROUP_BYTES: usize = 64;
const KEY_BYTES: usize = GROUP_BYTES + 8;
/// Values compress to a few bytes.
const VALUE_BYTES: usize = 56;
/// Small pages give a long flat list for few rows. They are compressed, because an uncompressed page takes at least
/// 4 KiB of disk.
const PAGE_BYTES: u32 = 256;
/// Rows of a page, about.
const PAGE_ROWS: u64 = 2;
/// The size of a node, and the unit in which both indexes are counted, although a flat list is read as a whole.
const NODE_BYTES: u32 = 16 << 10;
const CACHE_BYTES: u64 = 2 << 30;

/// How the key ranges of the files relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lying {
    /// They are disjoint, as after a compaction.
    Apart,
    /// Each file has keys from the whole range.
    Over,
}

const LYINGS: [Lying; 2] = [Lying::Apart, Lying::Over];

impl Lying {
    fn name(self) -> &'static str {
        match self {
            Self::Apart => "apart",
            Self::Over => "over each other",
        }
    }
}

/// Which index is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Tree,
    Flat,
}

const SIDES: [Side; 2] = [Side::Tree, Side::Flat];

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Flat => "flat list",
        }
    }
}

/// The files of the table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Shape {
    files: u64,
    level0_files: u64,
    rows: u64,
    data_pages: u64,
    file_bytes: u64,
    height: u8,
    tree_bytes: u64,
    flat_bytes: u64,
}

/// The measurements of one index, number of files and resolution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Measured {
    /// The time of the first histogram after opening the database.
    cold_micros: f64,
    /// The median of the later ones.
    cached_micros: f64,
    /// Index pages asked for. A flat list counts as one.
    pages: u64,
    /// Bytes that the first histogram read from disk.
    bytes: u64,
    buckets: u64,
    /// The largest distance of a bucket's value from the truth, in buckets.
    error: f64,
    /// What a million histograms cost, averaged over the cold and the cached ones.
    million: Million,
}

/// A case to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    files: u64,
    lying: Lying,
    buckets: u64,
}

impl Case {
    fn cell(self, side: Side, repeat: u64) -> String {
        let Self { files, lying, buckets } = self;
        format!("{repeat}, {files} files {}, {buckets} buckets, {}", lying.name(), side.name())
    }

    fn data(self) -> String {
        format!("{} files {}", self.files, self.lying.name())
    }

    fn title(self) -> String {
        format!("{}, {} buckets", self.data(), figure(self.buckets as f64))
    }
}

/// Runs the experiment.
pub fn run(args: &ExperimentArgs) -> Result<Ending, Failure> {
    let size = Size::of(args.scale);
    let mut ground = Ground::open("stats", args, size.most_bytes())?;
    if !measure_all(&mut ground, &size)? {
        return Ok(Ending::Interrupted);
    }
    outcome(&ground, &size).finish("stats", &ground, args)
}

/// The arrangements of files. A single file counts as [`Lying::Apart`].
fn arrangements(size: &Size) -> impl Iterator<Item = (u64, Lying)> {
    let lyings = |&files: &u64| {
        LYINGS.into_iter().filter(move |lying| files > 1 || *lying == Lying::Apart).map(move |l| (files, l))
    };
    size.files.iter().flat_map(lyings)
}

/// Measures the missing cells. Returns false after ^C.
fn measure_all(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    for (files, lying) in arrangements(size) {
        let cases = || size.buckets.iter().map(move |&buckets| Case { files, lying, buckets });
        let all = || (0..size.repeats).flat_map(|repeat| cases().map(move |case| (repeat, case)));
        if all().all(|(repeat, case)| SIDES.iter().all(|side| ground.has(&case.cell(*side, repeat)))) {
            continue;
        }
        let name = all().next().expect("there are resolutions").1.data();
        suite::say(&format!("{name}, {} rows each", size.file_rows()));
        let built = ground.built(&name, |place, stop| load(place, size, (files, lying), stop))?;
        let Some((place, _)) = built else { return Ok(false) };
        for (repeat, case) in all() {
            let order = if repeat % 2 == 0 { SIDES } else { [Side::Flat, Side::Tree] };
            for side in order {
                let cell = ground.cell(&case.cell(side, repeat), |_| measure(&place, size, case, side))?;
                if cell.is_none() {
                    return Ok(false);
                }
            }
        }
        ground.remove_data()?;
    }
    Ok(true)
}

/// The key of row `number`.
fn key(number: u64) -> [u8; KEY_BYTES] {
    let group = number / GROUP_ROWS;
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&group.to_be_bytes());
    for (at, piece) in key[8..GROUP_BYTES].chunks_exact_mut(8).enumerate() {
        piece.copy_from_slice(&row_access::batch::mixed(group * 8 + at as u64).to_be_bytes());
    }
    key[GROUP_BYTES..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The number of keys before `at`, a key or a separator.
fn rank(at: &[u8], rows: u64) -> u64 {
    let (mut low, mut high) = (0, rows);
    while low < high {
        let middle = u64::midpoint(low, high);
        if key(middle).as_slice() < at { low = middle + 1 } else { high = middle }
    }
    low
}

/// The group at position `at` of file `file`.
fn group_of(size: &Size, (files, lying): (u64, Lying), file: u64, at: u64) -> u64 {
    match lying {
        Lying::Apart => file * size.file_groups + at,
        Lying::Over => at * files + file,
    }
}

/// The rows of a group.
fn rows_of(group: u64) -> std::ops::Range<u64> {
    group * GROUP_ROWS..(group + 1) * GROUP_ROWS
}

/// Creates a database with both indexes. Disjoint files are imported. Overlapping files are flushed: an imported
/// file that finds room below level 0 goes there and is merged with the others.
fn load(place: &Path, size: &Size, (files, lying): (u64, Lying), stop: &Stop) -> Result<Shape, Failure> {
    // Never compacts, so that the files stay as they are.
    let levels = LevelOptions {
        level0_files: 1 << 20,
        slow_files: 1 << 20,
        base_bytes: 1 << 50,
        growth: 10,
        file_bytes: 1 << 40,
    };
    let builder = Database::builder(place).levels(levels).durability(Durability::Buffered);
    let db = builder.write_buffer_bytes(256 << 20).open().map_err(failed)?;
    let options = TableOptions {
        index: PageIndexKind::Both,
        page_bytes: PAGE_BYTES,
        node_bytes: NODE_BYTES,
        compression: Compression::Lz4,
        filters: Filters::all(FilterKind::None),
        ..TableOptions::default()
    };
    let table = db.table_with("t", options).map_err(failed)?;
    let value = [b'v'; VALUE_BYTES];
    for file in 0..files {
        if stop.is_pressed() {
            break;
        }
        let groups = (0..size.file_groups).map(|at| group_of(size, (files, lying), file, at));
        match lying {
            Lying::Apart => {
                let mut import = table.import().map_err(failed)?;
                for number in groups.flat_map(rows_of) {
                    import.add(&key(number), &value).map_err(failed)?;
                }
                import.finish(|_| {}).map_err(failed)?;
            }
            Lying::Over => {
                for group in groups {
                    let mut batch = db.batch();
                    rows_of(group).for_each(|number| batch.insert(&table, key(number), value));
                    batch.commit().map_err(failed)?;
                }
                db.flush().map_err(failed)?;
            }
        }
    }
    let stats = table.stats().map_err(failed)?;
    drop(table);
    db.close().map_err(failed)?;
    if stats.files != files && !stop.is_pressed() {
        return Err(Failure::session("shape", format!("{files} files were wanted, and there are {}", stats.files)));
    }
    Ok(Shape {
        files: stats.files,
        level0_files: stats.levels.first().filter(|level| level.level == 0).map_or(0, |level| level.files),
        rows: stats.rows,
        data_pages: stats.data_pages,
        file_bytes: stats.file_bytes,
        height: stats.index_height,
        tree_bytes: stats.btree_bytes,
        flat_bytes: stats.flat_bytes,
    })
}

/// The number of histograms made from memory after the first one.
const CACHED: usize = 3;

fn measure(place: &Path, size: &Size, case: Case, side: Side) -> Result<Measured, Failure> {
    let builder = Database::builder(place).read_only(true).prefer_flat_index(side == Side::Flat);
    let db = builder.cache_bytes(CACHE_BYTES).open().map_err(failed)?;
    let table = db.table("t").map_err(failed)?;
    let ask = || -> Result<(f64, Histogram), Failure> {
        let clock = Clock::start();
        let histogram = table.histogram(.., Metric::Rows, Resolution::Buckets(case.buckets)).map_err(failed)?;
        Ok((clock.nanos() as f64 / 1e3, histogram))
    };
    let (before, meter) = (db.metrics().page_read_bytes, Meter::start(StoreUse::InProcess));
    let (cold_micros, histogram) = ask()?;
    let bytes = db.metrics().page_read_bytes - before;
    let cached = (0..CACHED).map(|_| ask().map(|(micros, _)| micros)).collect::<Result<Vec<_>, _>>()?;
    let million = meter.million(1 + CACHED as u64, StoreUse::InProcess, None);
    Ok(Measured {
        cold_micros,
        cached_micros: median(&cached),
        pages: histogram.index_pages,
        bytes,
        buckets: histogram.buckets.len() as u64,
        error: worst_error(&histogram, case.files * size.file_rows())?,
        million,
    })
}

/// The largest distance of a value from the truth, in buckets. Fails if the truth is outside the interval that the
/// histogram gives.
fn worst_error(histogram: &Histogram, rows: u64) -> Result<f64, Failure> {
    let mut worst: f64 = 0.0;
    for bucket in &histogram.buckets {
        let truth = bucket.end.as_ref().map_or(rows, |end| rank(&end.at, rows));
        if !bucket.through.contains(truth) {
            let text = format!("a bucket ends at row {truth} and says {:?}", bucket.through);
            return Err(Failure::session(WRONG, text));
        }
        worst = worst.max(truth.abs_diff(bucket.value) as f64 / histogram.resolution as f64);
    }
    Ok(worst)
}

fn failed(error: larch::Error) -> Failure {
    Failure::session("larch", error.to_string())
}

/// `bytes` in units of a node.
fn pages(bytes: u64) -> f64 {
    bytes as f64 / f64::from(NODE_BYTES)
}

/// The most nodes that a histogram may read by decision 12.
fn most_nodes(case: Case, shape: &Shape) -> f64 {
    (case.files * u64::from(shape.height) * (case.buckets + 2)) as f64
}

fn outcome(ground: &Ground, size: &Size) -> Outcome {
    let all = |case: Case, side| -> Vec<Measured> {
        (0..size.repeats).filter_map(|repeat| ground.known(&case.cell(side, repeat))).collect()
    };
    // Counts are the same in every repeat.
    let of = |case: Case, side| -> Option<Measured> {
        let all = all(case, side);
        let middle = |of: fn(&Measured) -> f64| median(&all.iter().map(of).collect::<Vec<_>>());
        let first = *all.first()?;
        let (cold_micros, cached_micros) = (middle(|one| one.cold_micros), middle(|one| one.cached_micros));
        Some(Measured { cold_micros, cached_micros, ..first })
    };
    let shape = |case: Case| -> Option<Shape> { ground.known(&format!("data of {}", case.data())) };
    let cases = || {
        arrangements(size)
            .flat_map(|(files, lying)| size.buckets.iter().map(move |&buckets| Case { files, lying, buckets }))
    };

    let mut rows = Vec::new();
    for (case, side) in cases().flat_map(|case| SIDES.map(|side| (case, side))) {
        let Some((measured, shape)) = of(case, side).zip(shape(case)) else { continue };
        let (all, promise) = match side {
            Side::Tree => (shape.tree_bytes, figure(most_nodes(case, &shape))),
            Side::Flat => (shape.flat_bytes, "-".to_owned()),
        };
        rows.push(vec![
            format!("{}, {}", case.title(), side.name()),
            figure(measured.cold_micros),
            figure(measured.cached_micros),
            figure(measured.pages as f64),
            figure(pages(measured.bytes)),
            figure(pages(all)),
            promise,
            figure(measured.buckets as f64),
            format!("{:.3}", measured.error),
        ]);
    }
    let columns = [
        "",
        "us, nothing in memory",
        "us, cached",
        "nodes or lists asked for",
        "read, in pages of 16 KiB",
        "the whole index, in pages of 16 KiB",
        "most nodes by decision 12",
        "buckets",
        "worst error, in buckets",
    ];
    let table = Table {
        caption: format!("Histograms, median of {}; files of {} rows", size.repeats, figure(size.file_rows() as f64)),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    };
    let most = *size.files.last().expect("there are sizes");
    let line = |(lying, side): (Lying, Side)| Curve {
        name: format!("{}, files {}", side.name(), lying.name()),
        points: cases()
            .filter(|case| case.files == most && case.lying == lying)
            .filter_map(|case| Some((case.buckets as f64, pages(of(case, side)?.bytes))))
            .filter(|point| point.1 > 0.0)
            .collect(),
    };
    let chart = Chart {
        title: format!("Pages of 16 KiB read for a histogram over {most} files"),
        x: Axis::logarithmic("buckets"),
        y: Axis::logarithmic("pages of 16 KiB"),
        lines: LYINGS.into_iter().flat_map(|lying| SIDES.map(|side| line((lying, side)))).collect(),
        marks: Vec::new(),
    };

    let mut goals = Vec::new();
    for (files, lying) in arrangements(size) {
        let tree = || cases().filter(|case| (case.files, case.lying) == (files, lying));
        let most = |what: &dyn Fn(Case, Measured) -> Option<f64>| {
            tree().filter_map(|case| what(case, of(case, Side::Tree)?)).reduce(f64::max)
        };
        let name = Case { files, lying, buckets: 0 }.data();
        goals.push(Goal {
            what: format!("{name}: worst error by the tree, in buckets"),
            bound: Bound::AtMost(0.5),
            measured: most(&|_, measured| Some(measured.error)),
        });
        goals.push(Goal {
            what: format!("{name}: nodes asked for, of those that decision 12 allows"),
            bound: Bound::AtMost(1.0),
            measured: most(&|case, measured| Some(measured.pages as f64 / most_nodes(case, &shape(case)?))),
        });
    }
    let has_goal = |case: &Case| case.files == 100 && (case.lying == Lying::Apart || case.buckets <= size.over_goal);
    for case in cases().filter(has_goal) {
        goals.push(Goal {
            what: format!("{}: pages that the tree reads, of those that the flat lists have", case.title()),
            bound: Bound::AtMost(0.1),
            measured: of(case, Side::Tree)
                .zip(shape(case))
                .map(|(tree, shape)| tree.bytes as f64 / shape.flat_bytes.max(1) as f64),
        });
    }
    let shapes: Vec<(String, Shape)> = arrangements(size)
        .filter_map(|(files, lying)| {
            let case = Case { files, lying, buckets: 0 };
            Some((case.data(), shape(case)?))
        })
        .collect();
    Outcome {
        title: "Statistics from the index: tree against flat list".to_owned(),
        about: ABOUT.map(str::to_owned).to_vec(),
        blocks: vec![
            Block::Chart(chart),
            Block::Table(table),
            Block::Table(shape_table(&shapes)),
            facts(&fact_list(size)),
            Block::Text(PUBLISHED.to_owned()),
        ],
        goals,
    }
}

fn shape_table(shapes: &[(String, Shape)]) -> Table {
    let columns = ["", "files", "in level 0", "rows", "data pages", "bytes", "levels of nodes", "trees", "flat lists"];
    let row = |(name, shape): &(String, Shape)| {
        vec![
            name.clone(),
            figure(shape.files as f64),
            figure(shape.level0_files as f64),
            figure(shape.rows as f64),
            figure(shape.data_pages as f64),
            bytes(shape.file_bytes),
            shape.height.to_string(),
            bytes(shape.tree_bytes),
            bytes(shape.flat_bytes),
        ]
    };
    Table {
        caption: "The files".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: shapes.iter().map(row).collect(),
    }
}

fn fact_list(size: &Size) -> Vec<(&'static str, String)> {
    vec![
        ("rows of a file", figure(size.file_rows() as f64)),
        ("keys", format!("{KEY_BYTES} bytes; {GROUP_ROWS} rows have the first {GROUP_BYTES} in common")),
        ("values", format!("{VALUE_BYTES} bytes")),
        ("pages", format!("{PAGE_BYTES} B, compressed: small, so that few rows have a long list")),
        ("nodes", bytes_text(NODE_BYTES.into())),
        ("cache", format!("{}, empty before the first histogram", bytes_text(CACHE_BYTES))),
        ("durability", "read-only".to_owned()),
        ("reads", "direct, where the file system can".to_owned()),
        ("repeats", format!("{}, tree and flat list in turn; {CACHED} histograms from memory in each", size.repeats)),
    ]
}

const PUBLISHED: &str = "YDB's document has no table of this: its two results of BuildStats (flat index, B-tree index) are links to \
     profiles inside the company. What it says is that statistics should no longer load the index whole and use upper nodes alone.";

const ABOUT: [&str; 4] = [
    "A histogram says how many rows lie before each of its cuts. It is made of index pages alone. YDB makes it of every table (BuildStats).",
    "Both indexes were written. The flat list is one page for each file, as large as the file needs; the nodes of the tree have 16 KiB. Both \
     are counted in pages of 16 KiB by their bytes. Where a file is lighter than a bucket, neither index of it is read.",
    "Files lie apart, as a compaction leaves them, or over each other. To know a place to half a bucket, each of n files over it has to be \
     known to an n-th of that. So with many files over each other and fine buckets a tree needs all of its nodes, as a list is read whole; \
     there the figures stand without a goal.",
    "Every bucket is compared with the truth, which lies within its interval. The error is that of the middle of the interval.",
];
