//! How rows are spread over keys, from the index alone: by the tree and by the flat list, for several resolutions and numbers of files.
//!
//! YDB builds such statistics of every table (BuildStats). With its flat index it reads the list of each file whole. Its B-tree has
//! running totals in each node, so that only the nodes on the way to each cut have to be read.

use crate::args::{ExperimentArgs, Scale};
use crate::ground::Ground;
use crate::outcome::{Ending, Goal, Outcome};
use harness::{Clock, Failure};
use kit::goals::Bound;
use kit::median;
use larch::{Database, Histogram, IndexKind, LevelOptions, Metric, Resolution, TableOptions};
use page::{Axis, Block, Chart, Line, Table, figure};
use serde::{Deserialize, Serialize};
use std::path::Path;
use suite::stop::Stop;

#[cfg(test)]
mod tests;

/// How much is measured.
struct Size {
    rows: u64,
    files: &'static [u64],
    buckets: &'static [u64],
    repeats: usize,
}

impl Size {
    fn of(scale: Scale) -> Self {
        let (rows, files, buckets, repeats) = match scale {
            Scale::Tiny => (20_000, &[1, 10][..], &[10, 100][..], 3),
            Scale::Small => (3_000_000, &[1, 10, 100][..], &[10, 100, 1000][..], 5),
            Scale::Medium => (10_000_000, &[1, 10, 100][..], &[10, 100, 1000][..], 5),
            Scale::Full => (30_000_000, &[1, 10, 100, 1000][..], &[10, 100, 1000, 10_000][..], 5),
        };
        Self { rows, files, buckets, repeats }
    }
}

const KEY_BYTES: usize = 24;
const VALUE_BYTES: usize = 100;

/// One index, one number of files, one resolution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Measured {
    /// Files that there really were.
    files: u64,
    /// The first time after the database was opened.
    cold_micros: f64,
    /// Median of the times after that.
    cached_micros: f64,
    /// Index pages that were asked for.
    pages: u64,
    /// Their bytes, read from the disk the first time.
    bytes: u64,
    buckets: u64,
    /// The worst distance of a bucket's value from the truth, in sizes of a bucket.
    error: f64,
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

/// Makes the experiment.
pub fn run(args: &ExperimentArgs) -> Result<Ending, Failure> {
    let size = Size::of(args.scale);
    let mut ground = Ground::open("stats", args, 2 * size.rows * (KEY_BYTES + VALUE_BYTES + 16) as u64 + (64 << 20))?;
    if !measure_all(&mut ground, &size)? {
        return Ok(Ending::Interrupted);
    }
    outcome(&ground, &size).finish("stats", &ground, args)
}

fn cell_name(files: u64, buckets: u64, side: Side) -> String {
    format!("{files} files, {buckets} buckets, {}", side.name())
}

fn measure_all(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    for &files in size.files {
        let all = || size.buckets.iter().flat_map(|buckets| SIDES.map(|side| (*buckets, side)));
        if all().all(|(buckets, side)| ground.has(&cell_name(files, buckets, side))) {
            continue;
        }
        let place = ground.data(&format!("{files}-files"))?;
        suite::say(&format!("{} rows in {files} files", size.rows));
        if !load(&place, size.rows, files, &ground.stop)? {
            return Ok(false);
        }
        for (buckets, side) in all() {
            let cell = ground.cell(&cell_name(files, buckets, side), |_| measure(&place, size, buckets, side))?;
            if cell.is_none() {
                return Ok(false);
            }
        }
        ground.remove_data()?;
    }
    Ok(true)
}

/// The key of row `number`.
fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [b'k'; KEY_BYTES];
    key[..16].copy_from_slice(format!("{number:016}").as_bytes());
    key
}

/// How many keys are before `at`, which may be a key or a string that separates keys.
fn rank(at: &[u8], rows: u64) -> u64 {
    let (mut low, mut high) = (0, rows);
    while low < high {
        let middle = u64::midpoint(low, high);
        if key(middle).as_slice() < at { low = middle + 1 } else { high = middle }
    }
    low
}

/// Makes a database with both indexes in about so many files. False after ^C.
fn load(place: &Path, rows: u64, files: u64, stop: &Stop) -> Result<bool, Failure> {
    let file_bytes = (rows * (KEY_BYTES + VALUE_BYTES + 4) as u64).div_ceil(files);
    let levels = LevelOptions { file_bytes, ..LevelOptions::default() };
    let db = Database::builder(place).levels(levels).open().map_err(failed)?;
    let options = TableOptions { index: IndexKind::Both, ..TableOptions::default() };
    let table = db.table_with("t", options).map_err(failed)?;
    let mut import = table.import().map_err(failed)?;
    for number in 0..rows {
        if number % 100_000 == 0 && stop.is_pressed() {
            return Ok(false);
        }
        import.add(&key(number), &[b'v'; VALUE_BYTES]).map_err(failed)?;
    }
    import.finish(&mut |_, _| {}).map_err(failed)?;
    drop(table);
    db.close().map_err(failed)?;
    Ok(true)
}

fn measure(place: &Path, size: &Size, buckets: u64, side: Side) -> Result<Measured, Failure> {
    let builder = Database::builder(place).read_only(true).prefer_flat_index(side == Side::Flat);
    let db = builder.cache_bytes(1 << 30).open().map_err(failed)?;
    let table = db.table("t").map_err(failed)?;
    let ask = || -> Result<(f64, Histogram), Failure> {
        let clock = Clock::start();
        let histogram = table.histogram(.., Metric::Rows, Resolution::Buckets(buckets)).map_err(failed)?;
        Ok((clock.nanos() as f64 / 1e3, histogram))
    };
    let before = db.metrics().page_read_bytes;
    let (cold_micros, histogram) = ask()?;
    let metrics = db.metrics();
    let cached = (0..size.repeats).map(|_| ask().map(|(micros, _)| micros)).collect::<Result<Vec<_>, _>>()?;
    Ok(Measured {
        files: metrics.files,
        cold_micros,
        cached_micros: median(&cached),
        pages: histogram.index_pages,
        bytes: metrics.page_read_bytes - before,
        buckets: histogram.buckets.len() as u64,
        error: worst_error(&histogram, size.rows)?,
    })
}

/// The worst distance of a value from the truth, in sizes of a bucket. A truth outside of its interval is a failure.
fn worst_error(histogram: &Histogram, rows: u64) -> Result<f64, Failure> {
    let mut worst: f64 = 0.0;
    for bucket in &histogram.buckets {
        let truth = bucket.end.as_ref().map_or(rows, |end| rank(&end.at, rows));
        if !bucket.through.contains(truth) {
            let text = format!("a bucket ends at row {truth} and says {:?}", bucket.through);
            return Err(Failure::session(crate::WRONG, text));
        }
        worst = worst.max(truth.abs_diff(bucket.value) as f64 / histogram.resolution as f64);
    }
    Ok(worst)
}

fn failed(error: larch::Error) -> Failure {
    Failure::session("larch", error.to_string())
}

fn outcome(ground: &Ground, size: &Size) -> Outcome {
    let cell = |files, buckets, side| -> Option<Measured> {
        serde_json::from_value(ground.cells().get(&cell_name(files, buckets, side))?.clone()).ok()
    };
    let mut rows = Vec::new();
    for &files in size.files {
        for &buckets in size.buckets {
            for side in SIDES {
                let Some(measured) = cell(files, buckets, side) else { continue };
                rows.push(vec![
                    format!("{} files, {buckets} buckets, {}", measured.files, side.name()),
                    figure(measured.cold_micros),
                    figure(measured.cached_micros),
                    figure(measured.pages as f64),
                    figure(measured.bytes as f64 / 1024.0),
                    figure(measured.buckets as f64),
                    format!("{:.3}", measured.error),
                ]);
            }
        }
    }
    let columns = ["", "us, first time", "us, cached", "index pages", "KiB read", "buckets", "worst error, in buckets"];
    let table = Table {
        caption: format!("A histogram of {} rows; the database was opened just before the first time", size.rows),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    };
    let most_files = *size.files.last().expect("there are sizes");
    let line = |side| Line {
        name: side_name(side),
        points: size
            .buckets
            .iter()
            .filter_map(|buckets| Some((*buckets as f64, cell(most_files, *buckets, side)?.bytes as f64 / 1024.0)))
            .collect(),
    };
    let chart = Chart {
        title: format!("KiB of index read for a histogram over {most_files} files"),
        x: Axis::logarithmic("buckets"),
        y: Axis::logarithmic("KiB"),
        lines: SIDES.map(line).to_vec(),
        marks: Vec::new(),
    };
    let goal_files = size.files.iter().copied().find(|files| *files == 100);
    let mut goals = Vec::new();
    for &files in size.files {
        let worst = size.buckets.iter().filter_map(|buckets| cell(files, *buckets, Side::Tree)).map(|cell| cell.error);
        goals.push(Goal {
            what: format!("{files} files: worst error by the tree, in buckets"),
            bound: Bound::AtMost(0.5),
            measured: worst.reduce(f64::max),
        });
    }
    for (files, buckets) in goal_files.into_iter().flat_map(|files| size.buckets.iter().map(move |some| (files, *some)))
    {
        let sides = cell(files, buckets, Side::Tree).zip(cell(files, buckets, Side::Flat));
        goals.push(Goal {
            what: format!("{files} files, {buckets} buckets: bytes of the tree for those of the flat list"),
            bound: Bound::AtMost(0.1),
            measured: sides.map(|(tree, flat)| tree.bytes as f64 / flat.bytes.max(1) as f64),
        });
    }
    Outcome {
        title: "Statistics from the index: tree against flat list".to_owned(),
        about: ABOUT.map(str::to_owned).to_vec(),
        blocks: vec![Block::Chart(chart), Block::Table(table)],
        goals,
    }
}

fn side_name(side: Side) -> String {
    side.name().to_owned()
}

const ABOUT: [&str; 3] = [
    "A histogram says how many rows lie before each of its cuts. It is made of index pages alone. YDB makes it of every table (BuildStats).",
    "Both indexes were written. The flat list is one page for each file, as large as the file needs; the nodes of the tree have 16 KiB. So \
     bytes are compared, and not numbers of pages.",
    "Every bucket is compared with the truth, which lies within its interval. The error is that of the middle of the interval.",
];
