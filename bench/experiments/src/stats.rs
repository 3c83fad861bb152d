//! `larch bench experiment stats`: histograms of rows over keys, computed from the index alone, by the tree and by
//! the flat list, for several resolutions and numbers of files, whose key ranges are disjoint or overlap.
//!
//! YDB builds such statistics of every table (BuildStats). With its flat index, it reads the whole list of each
//! file. Its B-tree has running totals in each node, so it reads only the nodes on the path to each bucket
//! boundary.

use crate::WRONG;
use crate::args::Scale;
use crate::experiment::{About, Experiment, Kept};
use crate::figures::middle;
use crate::ground::Ground;
use crate::made::{Shape, broken, import};
use crate::outcome::{Goal, chart, facts, table};
use harness::directory::bytes_text;
use harness::report::Meter;
use harness::report::text::bytes;
use harness::{Clock, Failure, Million, StoreUse};
use kit::median;
use larch::options::{FilterKind, Filters, LevelOptions, PageIndexKind};
use larch::stats::{Histogram, Metric, Resolution};
use larch::{Compression, Database, Durability, TableOptions};
use page::{Axis, Block, figure};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use suite::stop::Stop;

#[cfg(test)]
mod tests;

/// The experiment, and how much it measures.
pub struct Stats {
    /// Groups of rows in each file.
    file_groups: u64,
    files: &'static [u64],
    buckets: &'static [u64],
    /// The most buckets for which the goal for overlapping files applies: up to this number, the rows below one
    /// child of a file's root are few enough.
    over_goal: u64,
    repeats: u64,
}

impl Stats {
    /// The experiment at `scale`.
    pub fn of(scale: Scale) -> Self {
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

/// The files of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Files {
    count: u64,
    lying: Lying,
}

impl fmt::Display for Files {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} files {}", self.count, self.lying.name())
    }
}

/// A histogram of some files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    files: Files,
    buckets: u64,
}

impl Case {
    fn title(self) -> String {
        format!("{}, {} buckets", self.files, figure(self.buckets as f64))
    }

    /// The most nodes that it may read by decision 12.
    fn most_nodes(self, shape: &Shape) -> f64 {
        (self.files.count * u64::from(shape.height) * (self.buckets + 2)) as f64
    }
}

/// A case by one index, in one repeat.
#[derive(Clone, Copy)]
pub struct Cell(u64, Case, Side);

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(repeat, Case { files, buckets }, side) = self;
        write!(out, "{repeat}, {files}, {buckets} buckets, {}", side.name())
    }
}

/// What a histogram took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Taken {
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

const PUBLISHED: &str = "YDB's document has no table of this: its two results of BuildStats (flat index, B-tree index) are links to \
     profiles inside the company. What it says is that statistics should no longer load the index whole and use upper nodes alone.";

impl Experiment for Stats {
    const ABOUT: About = About {
        name: "stats",
        title: "Statistics from the index: tree against flat list",
        text: &[
            "A histogram says how many rows lie before each of its cuts. It is made of index pages alone. YDB makes it of every table (BuildStats).",
            "Both indexes were written. The flat list is one page for each file, as large as the file needs; the nodes of the tree have 16 KiB. Both \
             are counted in pages of 16 KiB by their bytes. Where a file is lighter than a bucket, neither index of it is read.",
            "Files lie apart, as a compaction leaves them, or over each other. To know a place to half a bucket, each of n files over it has to be \
             known to an n-th of that. So with many files over each other and fine buckets a tree needs all of its nodes, as a list is read whole; \
             there the figures stand without a goal.",
            "Every bucket is compared with the truth, which lies within its interval. The error is that of the middle of the interval.",
        ],
    };

    type Cell = Cell;

    fn most_bytes(&self) -> u64 {
        // A page takes room for itself, compressed, for its child in a node, and for its entry in a flat list.
        let most = self.files.iter().max().expect("there are sizes");
        most * self.file_rows() / PAGE_ROWS * (256 + 2 * 100) + (128 << 20)
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (files, repeat) in
            self.arrangements().flat_map(|files| (0..self.repeats).map(move |repeat| (files, repeat)))
        {
            for &buckets in self.buckets {
                let order = if repeat % 2 == 0 { SIDES } else { [Side::Flat, Side::Tree] };
                cells.extend(order.map(|side| Cell(repeat, Case { files, buckets }, side)));
            }
        }
        cells
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Kept, Failure> {
        let Cell(_, case, side) = *cell;
        let (made, _) = ground.built_alone(&case.files.to_string(), |place, stop| {
            suite::say(&format!("{}, {} rows each", case.files, self.file_rows()));
            self.load(place, case.files, stop)
        })?;
        let taken = self.histograms(made.place(), case, side)?;
        Ok(Kept::new(&taken, format!("{:.0} us, {} pages", taken.cold_micros, taken.pages)))
    }

    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure> {
        let most = *self.files.last().expect("there are sizes");
        let points = |lying, side| {
            let cases = self.cases().filter(|case| case.files == Files { count: most, lying });
            let read =
                cases.filter_map(|case| Some((case.buckets as f64, pages(self.taken(ground, case, side)?.bytes))));
            read.filter(|point| point.1 > 0.0).collect()
        };
        let line = |lying: Lying, side: Side| (format!("{}, files {}", side.name(), lying.name()), points(lying, side));
        let rows = self.cases().flat_map(|case| SIDES.map(|side| (case, side))).filter_map(|(case, side)| {
            Some((case, side, self.taken(ground, case, side)?, ground.told::<Shape>(&case.files.to_string())?))
        });
        let shapes = self.arrangements().filter_map(|files| Some((files, ground.told::<Shape>(&files.to_string())?)));
        Ok(vec![
            chart(
                format!("Pages of 16 KiB read for a histogram over {most} files"),
                (Axis::logarithmic("buckets"), Axis::logarithmic("pages of 16 KiB")),
                LYINGS.into_iter().flat_map(|lying| SIDES.map(|side| line(lying, side))),
            ),
            table(
                format!("Histograms, median of {}; files of {} rows", self.repeats, figure(self.file_rows() as f64)),
                rows,
                &[
                    ("", &|(case, side, ..)| format!("{}, {}", case.title(), side.name())),
                    ("us, nothing in memory", &|(_, _, taken, _)| figure(taken.cold_micros)),
                    ("us, cached", &|(_, _, taken, _)| figure(taken.cached_micros)),
                    ("nodes or lists asked for", &|(_, _, taken, _)| figure(taken.pages as f64)),
                    ("read, in pages of 16 KiB", &|(_, _, taken, _)| figure(pages(taken.bytes))),
                    ("the whole index, in pages of 16 KiB", &|(_, side, _, shape)| {
                        figure(pages(if *side == Side::Tree { shape.btree_bytes } else { shape.flat_bytes }))
                    }),
                    ("most nodes by decision 12", &|(case, side, _, shape)| match side {
                        Side::Tree => figure(case.most_nodes(shape)),
                        Side::Flat => "-".to_owned(),
                    }),
                    ("buckets", &|(_, _, taken, _)| figure(taken.buckets as f64)),
                    ("worst error, in buckets", &|(_, _, taken, _)| format!("{:.3}", taken.error)),
                ],
            ),
            table(
                "The files",
                shapes,
                &[
                    ("", &|(files, _)| files.to_string()),
                    ("files", &|(_, shape)| figure(shape.files as f64)),
                    ("in level 0", &|(_, shape)| {
                        let level0 = shape.levels.first().filter(|(level, _)| *level == 0);
                        figure(level0.map_or(0.0, |(_, files)| *files as f64))
                    }),
                    ("rows", &|(_, shape)| figure(shape.rows as f64)),
                    ("data pages", &|(_, shape)| figure(shape.data_pages as f64)),
                    ("bytes", &|(_, shape)| bytes(shape.file_bytes)),
                    ("levels of nodes", &|(_, shape)| shape.height.to_string()),
                    ("trees", &|(_, shape)| bytes(shape.btree_bytes)),
                    ("flat lists", &|(_, shape)| bytes(shape.flat_bytes)),
                ],
            ),
            facts(&[
                ("rows of a file", figure(self.file_rows() as f64)),
                ("keys", format!("{KEY_BYTES} bytes; {GROUP_ROWS} rows have the first {GROUP_BYTES} in common")),
                ("values", format!("{VALUE_BYTES} bytes")),
                ("pages", format!("{PAGE_BYTES} B, compressed: small, so that few rows have a long list")),
                ("nodes", bytes_text(NODE_BYTES.into())),
                ("cache", format!("{}, empty before the first histogram", bytes_text(CACHE_BYTES))),
                ("durability", "read-only".to_owned()),
                ("reads", "direct, where the file system can".to_owned()),
                (
                    "repeats",
                    format!("{}, tree and flat list in turn; {CACHED} histograms from memory in each", self.repeats),
                ),
            ]),
            Block::Text(PUBLISHED.to_owned()),
        ])
    }

    fn goals(&self, ground: &Ground) -> Vec<Goal> {
        let mut goals = Vec::new();
        for files in self.arrangements() {
            let shape: Option<Shape> = ground.told(&files.to_string());
            let most = |what: &dyn Fn(Case, Taken) -> Option<f64>| {
                let cases = self.cases().filter(|case| case.files == files);
                cases.filter_map(|case| what(case, self.taken(ground, case, Side::Tree)?)).reduce(f64::max)
            };
            let (error, nodes) = (
                most(&|_, taken| Some(taken.error)),
                most(&|case, taken| Some(taken.pages as f64 / case.most_nodes(shape.as_ref()?))),
            );
            goals.push(Goal::at_most(0.5, format!("{files}: worst error by the tree, in buckets"), error));
            goals.push(Goal::at_most(
                1.0,
                format!("{files}: nodes asked for, of those that decision 12 allows"),
                nodes,
            ));
        }
        let has_goal = |case: &Case| {
            case.files.count == 100 && (case.files.lying == Lying::Apart || case.buckets <= self.over_goal)
        };
        for case in self.cases().filter(has_goal) {
            let both = self.taken(ground, case, Side::Tree).zip(ground.told::<Shape>(&case.files.to_string()));
            let share = both.map(|(tree, shape)| tree.bytes as f64 / shape.flat_bytes.max(1) as f64);
            let what = format!("{}: pages that the tree reads, of those that the flat lists have", case.title());
            goals.push(Goal::at_most(0.1, what, share));
        }
        goals
    }
}

impl Stats {
    /// The arrangements of files. A single file counts as [`Lying::Apart`].
    fn arrangements(&self) -> impl Iterator<Item = Files> {
        let all = self.files.iter().flat_map(|&count| LYINGS.map(|lying| Files { count, lying }));
        all.filter(|files| files.count > 1 || files.lying == Lying::Apart)
    }

    fn cases(&self) -> impl Iterator<Item = Case> {
        self.arrangements().flat_map(|files| self.buckets.iter().map(move |&buckets| Case { files, buckets }))
    }

    /// What was measured: the medians of times. Counts are the same in every repeat.
    fn taken(&self, ground: &Ground, case: Case, side: Side) -> Option<Taken> {
        let all: Vec<Taken> = ground.all(self.repeats, |repeat| Cell(repeat, case, side));
        let (cold_micros, cached_micros) =
            (middle(&all, |taken| taken.cold_micros)?, middle(&all, |taken| taken.cached_micros)?);
        Some(Taken { cold_micros, cached_micros, ..all[0] })
    }

    /// The group at position `at` of file `file`.
    fn group_of(&self, files: Files, file: u64, at: u64) -> u64 {
        match files.lying {
            Lying::Apart => file * self.file_groups + at,
            Lying::Over => at * files.count + file,
        }
    }

    /// Creates a database with both indexes. Disjoint files are imported. Overlapping files are flushed: an imported
    /// file that finds room below level 0 goes there and is merged with the others.
    fn load(&self, place: &Path, files: Files, stop: &Stop) -> Result<Shape, Failure> {
        // Never compacts, so that the files stay as they are.
        let levels = LevelOptions {
            level0_files: 1 << 20,
            slow_files: 1 << 20,
            base_bytes: 1 << 50,
            growth: 10,
            file_bytes: 1 << 40,
        };
        let builder = Database::builder(place).levels(levels).durability(Durability::Buffered);
        let db = builder.write_buffer_bytes(256 << 20).open().map_err(broken)?;
        let options = TableOptions {
            index: PageIndexKind::Both,
            page_bytes: PAGE_BYTES,
            node_bytes: NODE_BYTES,
            compression: Compression::Lz4,
            filters: Filters::all(FilterKind::None),
            ..TableOptions::default()
        };
        let table = db.table_with("t", options).map_err(broken)?;
        let value = [b'v'; VALUE_BYTES];
        for file in (0..files.count).take_while(|_| !stop.is_pressed()) {
            let groups = (0..self.file_groups).map(|at| self.group_of(files, file, at));
            match files.lying {
                Lying::Apart => import(&table, groups.flat_map(rows_of), stop, |number| (key(number), value))?,
                Lying::Over => {
                    for group in groups {
                        let mut batch = db.batch();
                        rows_of(group).for_each(|number| batch.insert(&table, key(number), value));
                        batch.commit().map_err(broken)?;
                    }
                    db.flush().map_err(broken)?;
                }
            }
        }
        let shape = Shape::of(&table.stats().map_err(broken)?);
        drop(table);
        db.close().map_err(broken)?;
        if shape.files != files.count {
            let text = format!("{} files were wanted, and there are {}", files.count, shape.files);
            return Err(Failure::session("shape", text));
        }
        Ok(shape)
    }

    fn histograms(&self, place: &Path, case: Case, side: Side) -> Result<Taken, Failure> {
        let builder = Database::builder(place).read_only(true).prefer_flat_index(side == Side::Flat);
        let db = builder.cache_bytes(CACHE_BYTES).open().map_err(broken)?;
        let table = db.table("t").map_err(broken)?;
        let ask = || -> Result<(f64, Histogram), Failure> {
            let clock = Clock::start();
            let histogram = table.histogram(.., Metric::Rows, Resolution::Buckets(case.buckets)).map_err(broken)?;
            Ok((clock.nanos() as f64 / 1e3, histogram))
        };
        let (before, meter) = (db.metrics().page_read_bytes, Meter::start(StoreUse::InProcess));
        let (cold_micros, histogram) = ask()?;
        let bytes = db.metrics().page_read_bytes - before;
        let cached = (0..CACHED).map(|_| ask().map(|(micros, _)| micros)).collect::<Result<Vec<_>, _>>()?;
        let million = meter.million(1 + CACHED as u64, StoreUse::InProcess, None);
        Ok(Taken {
            cold_micros,
            cached_micros: median(&cached),
            pages: histogram.index_pages,
            bytes,
            buckets: histogram.buckets.len() as u64,
            error: worst_error(&histogram, case.files.count * self.file_rows())?,
            million,
        })
    }
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

/// The rows of a group.
fn rows_of(group: u64) -> std::ops::Range<u64> {
    group * GROUP_ROWS..(group + 1) * GROUP_ROWS
}

/// The number of histograms made from memory after the first one.
const CACHED: usize = 3;

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

/// `bytes` in units of a node.
fn pages(bytes: u64) -> f64 {
    bytes as f64 / f64::from(NODE_BYTES)
}
