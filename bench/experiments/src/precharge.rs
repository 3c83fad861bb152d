//! `larch bench experiment precharge`: the rounds of waiting and the time that a precharge saves in a range read
//! with an empty cache, on the local disk and on disks whose reads take longer. A round is one wait for pages that
//! are read together.
//!
//! YDB's document reads the pages of a range in three ways: one after the other, with forward loading in a scan,
//! and with the precharge, which walks the index ahead of the read and asks for all pages of a level at once. Each
//! way is measured over the flat index and over the B-tree.

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
use larch::options::{LevelOptions, PageIndexKind};
use larch::rows::AtMost;
use larch::{Database, Durability, Parts, Selection, TableOptions};
use page::{Axis, Block, Chart, Curve, Table, figure};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use suite::stop::Stop;

mod late;
#[cfg(test)]
mod tests;

/// How much is measured.
struct Size {
    rows: u64,
    /// Rows of a range.
    ranges: &'static [u64],
    /// The times added to each read.
    delays: &'static [Duration],
    /// Ranges in a cell, each read with an empty cache.
    samples: u64,
    repeats: u64,
}

impl Size {
    fn of(scale: Scale) -> Self {
        const DELAYS: &[Duration] =
            &[Duration::ZERO, Duration::from_micros(100), Duration::from_millis(1), Duration::from_millis(20)];
        let (rows, ranges, delays, samples, repeats) = match scale {
            Scale::Tiny => (6000, &[1, 100, 1000][..], &DELAYS[..2], 2, 1),
            Scale::Small => (200_000, &[1, 100, 1000, 10_000][..], DELAYS, 3, 3),
            Scale::Medium => (2_000_000, &[1, 10, 100, 1000, 10_000][..], DELAYS, 5, 5),
            Scale::Full => (10_000_000, &[1, 10, 100, 1000, 10_000, 100_000][..], DELAYS, 10, 7),
        };
        Self { rows, ranges, delays, samples, repeats }
    }

    fn most_bytes(&self) -> u64 {
        2 * self.rows * ROW_BYTES + (128 << 20)
    }
}

/// The column groups, one for each part of a value.
const GROUPS: [&str; 2] = ["hot", "cold"];
const HOT_BYTES: usize = 20;
const COLD_BYTES: usize = 200;
/// Every 64th row has a large cold part, which is stored outside its page.
const LARGE_EVERY: u64 = 64;
const LARGE_BYTES: usize = 6000;
const KEY_BYTES: usize = 16;
/// Mean bytes of a row.
const ROW_BYTES: u64 = (KEY_BYTES + HOT_BYTES + COLD_BYTES + 16) as u64 + LARGE_BYTES as u64 / LARGE_EVERY;
/// Every 40th row is written again, and then every 70th. This makes two files in level 0, which a read has to merge
/// with the others.
const REWRITTEN: [u64; 2] = [40, 70];
/// Small nodes give the trees as many levels as those of larger files have.
const NODE_BYTES: u32 = 1 << 10;
/// Small files, so that a range may cross from one into the next.
const FILE_BYTES: u64 = 4 << 20;
const CACHE_BYTES: u64 = 256 << 20;

/// A side: which index is read, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Side {
    index: PageIndexKind,
    way: Way,
}

/// A way to read a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A get of each key, which waits for each missing page.
    OneByOne,
    /// A range read with readahead.
    Readahead,
    /// A precharge, then the range read.
    Precharge,
}

const WAYS: [Way; 3] = [Way::OneByOne, Way::Readahead, Way::Precharge];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::OneByOne => "one page after the other",
            Self::Readahead => "readahead",
            Self::Precharge => "precharge",
        }
    }
}

fn sides() -> impl DoubleEndedIterator<Item = Side> {
    [PageIndexKind::Btree, PageIndexKind::Flat].into_iter().flat_map(|index| WAYS.map(|way| Side { index, way }))
}

impl Side {
    fn name(self) -> String {
        let index = if self.index == PageIndexKind::Flat { "flat list" } else { "tree" };
        format!("{index}, {}", self.way.name())
    }
}

/// The files of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Shape {
    files: u64,
    file_bytes: u64,
    height: u8,
    index_bytes: u64,
    levels: Vec<(u64, u64)>,
}

/// The measurements of the ranges of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Measured {
    /// The median time from the beginning of the precharge to the last row.
    micros: f64,
    /// The median rounds of waiting for a range, with those of the precharge.
    rounds: f64,
    /// The median rounds of the precharge alone.
    precharge_rounds: f64,
    /// The most rounds of one precharge.
    most_precharge_rounds: u64,
    /// The median number of pages read from disk for a range.
    pages: f64,
    /// The median of their bytes.
    bytes: f64,
    /// Pages still missing after the precharge, over all ranges; 0 without a precharge.
    faults_after: u64,
    /// What a million rows cost, including opening the database and comparing the rows.
    million: Million,
}

/// Runs the experiment.
pub fn run(args: &ExperimentArgs) -> Result<Ending, Failure> {
    let size = Size::of(args.scale);
    let mut ground = Ground::open("precharge", args, size.most_bytes())?;
    if !measure_all(&mut ground, &size)? {
        return Ok(Ending::Interrupted);
    }
    outcome(&ground, &size).finish("precharge", &ground, args)
}

fn cell_name(repeat: u64, delay: Duration, rows: u64, side: Side) -> String {
    format!("{repeat}, {} ms added, {rows} rows, {}", millis(delay), side.name())
}

fn millis(delay: Duration) -> f64 {
    delay.as_micros() as f64 / 1e3
}

const DATA: &str = "rows";

/// Measures the missing cells. Returns false after ^C.
fn measure_all(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    let all = || {
        let ranges = |repeat, delay| size.ranges.iter().map(move |rows| (repeat, delay, *rows));
        (0..size.repeats).flat_map(move |repeat| size.delays.iter().flat_map(move |delay| ranges(repeat, *delay)))
    };
    let is_known = |ground: &Ground| {
        all().all(|(repeat, delay, rows)| sides().all(|side| ground.has(&cell_name(repeat, delay, rows, side))))
    };
    if is_known(ground) {
        return Ok(true);
    }
    suite::say(&format!("{} rows, in files of {}", size.rows, bytes_text(FILE_BYTES << 2)));
    let Some((place, _)) = ground.built(DATA, |place, stop| load(place, size.rows, stop))? else { return Ok(false) };
    for (repeat, delay, rows) in all() {
        // The order of the sides alternates, so that the disk's own caches do not always help the same one.
        let order: Vec<Side> = if repeat % 2 == 0 { sides().collect() } else { sides().rev().collect() };
        for side in order {
            let asked = Asked { rows_in_all: size.rows, rows, samples: size.samples, seed: repeat };
            let name = cell_name(repeat, delay, rows, side);
            if ground.cell(&name, |stop| measure(&place, delay, side, &asked, stop))?.is_none() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key.copy_from_slice(format!("{number:016}").as_bytes());
    key
}

/// The parts of row `number` after all rewrites.
fn parts(number: u64) -> [Vec<u8>; 2] {
    parts_after(number, REWRITTEN.len())
}

/// The parts of row `number` after the first `times` rewrites of [`REWRITTEN`].
fn parts_after(number: u64, times: usize) -> [Vec<u8>; 2] {
    let times = REWRITTEN[..times].iter().filter(|every| number.is_multiple_of(**every)).count() as u64;
    let mark = row_access::batch::mixed(number.wrapping_mul(4) + times).to_be_bytes();
    let part = |bytes: usize| mark.iter().copied().cycle().take(bytes).collect();
    [part(HOT_BYTES), part(if number.is_multiple_of(LARGE_EVERY) { LARGE_BYTES } else { COLD_BYTES })]
}

/// Never compacts, so that the files of level 0 stay there.
const LEVELS: LevelOptions = LevelOptions {
    level0_files: 1 << 20,
    slow_files: 1 << 20,
    base_bytes: 1 << 50,
    growth: 10,
    file_bytes: FILE_BYTES,
};

fn load(place: &Path, rows: u64, stop: &Stop) -> Result<Shape, Failure> {
    let db = Database::builder(place).levels(LEVELS).durability(Durability::Buffered).open().map_err(failed)?;
    let options = TableOptions {
        index: PageIndexKind::Both,
        groups: GROUPS.map(str::to_owned).to_vec(),
        node_bytes: NODE_BYTES,
        ..TableOptions::default()
    };
    let table = db.table_with("t", options).map_err(failed)?;
    let mut import = table.import().map_err(failed)?;
    for number in 0..rows {
        if number % (1 << 16) == 0 && stop.is_pressed() {
            break;
        }
        import.add_parts(&key(number), &parts_after(number, 0)).map_err(failed)?;
    }
    import.finish(|_| {}).map_err(failed)?;
    for (before, every) in REWRITTEN.into_iter().enumerate() {
        for number in (0..rows).step_by(every as usize) {
            if stop.is_pressed() {
                break;
            }
            table.insert_parts(key(number), &parts_after(number, before + 1)).map_err(failed)?;
        }
        db.flush().map_err(failed)?;
    }
    let stats = table.stats().map_err(failed)?;
    drop(table);
    db.close().map_err(failed)?;
    Ok(Shape {
        files: stats.files,
        file_bytes: stats.file_bytes,
        height: stats.index_height,
        index_bytes: stats.btree_bytes,
        levels: stats.levels.iter().map(|level| (level.level as u64, level.files)).collect(),
    })
}

/// Ranges to read.
struct Asked {
    rows_in_all: u64,
    rows: u64,
    samples: u64,
    seed: u64,
}

fn measure(place: &Path, delay: Duration, side: Side, asked: &Asked, stop: &Stop) -> Result<Measured, Failure> {
    let machine = late::machine(delay);
    let mut all: Vec<Sample> = Vec::new();
    // Includes opening the database and comparing the rows.
    let meter = Meter::start(StoreUse::InProcess);
    for sample in 0..asked.samples {
        if stop.is_pressed() {
            break;
        }
        // Reopen the database for an empty cache.
        let builder = Database::builder(place).read_only(true).prefer_flat_index(side.index == PageIndexKind::Flat);
        let db = builder.cache_bytes(CACHE_BYTES).machine(machine.clone()).open().map_err(failed)?;
        let table = db.table("t").map_err(failed)?;
        let rows = table.select(GROUPS).map_err(failed)?;
        let drawn = row_access::batch::mixed(asked.seed << 20 | sample << 10 | asked.rows.ilog10() as u64);
        let from = drawn % (asked.rows_in_all - asked.rows).max(1);
        all.push(Sample::read(&db, &rows, side.way, from, from + asked.rows)?);
    }
    if all.is_empty() {
        return Err(Failure::session("run", "no range was read"));
    }
    let million = meter.million(asked.rows * all.len() as u64, StoreUse::InProcess, None);
    let middle = |of: fn(&Sample) -> f64| median(&all.iter().map(of).collect::<Vec<_>>());
    Ok(Measured {
        micros: middle(|sample| sample.micros),
        rounds: middle(|sample| sample.rounds as f64),
        precharge_rounds: middle(|sample| sample.precharge_rounds as f64),
        most_precharge_rounds: all.iter().map(|sample| sample.precharge_rounds).max().unwrap_or(0),
        pages: middle(|sample| sample.pages as f64),
        bytes: middle(|sample| sample.bytes as f64),
        faults_after: all.iter().map(|sample| sample.faults_after).sum(),
        million,
    })
}

/// The measurements of one range.
struct Sample {
    micros: f64,
    rounds: u64,
    precharge_rounds: u64,
    pages: u64,
    bytes: u64,
    faults_after: u64,
}

impl Sample {
    /// Reads rows `from..to` and compares them with what was written.
    fn read(db: &Database, rows: &Selection, way: Way, from: u64, to: u64) -> Result<Self, Failure> {
        let (low, high) = (key(from), key(to));
        let before = db.metrics().pages;
        let clock = Clock::start();
        let mut precharge_rounds = 0;
        let mut charged = before.clone();
        if way == Way::Precharge {
            precharge_rounds = rows.prefetch(low..high, AtMost::ALL).map_err(failed)?.rounds;
            charged = db.metrics().pages;
        }
        let mut read: Vec<(u64, Parts)> = Vec::with_capacity((to - from) as usize);
        match way {
            Way::OneByOne => {
                for number in from..to {
                    let found = rows.get(key(number)).map_err(failed)?;
                    read.push((number, found.ok_or_else(|| wrong(number))?));
                }
            }
            Way::Readahead | Way::Precharge => {
                for (number, row) in (from..).zip(rows.range(low..high)) {
                    let (found, parts) = row.map_err(failed)?;
                    if found.as_ref() as &[u8] != key(number).as_slice() {
                        return Err(wrong(number));
                    }
                    read.push((number, parts));
                }
            }
        }
        let micros = clock.nanos() as f64 / 1e3;
        if read.len() as u64 != to - from {
            return Err(wrong(from + read.len() as u64));
        }
        for (number, found) in &read {
            if found.iter().zip(parts(*number)).any(|(found, part)| found.as_ref() as &[u8] != part.as_slice()) {
                return Err(wrong(*number));
            }
        }
        let after = db.metrics().pages;
        let all = after.since(&before);
        Ok(Self {
            micros,
            rounds: all.all_rounds(),
            precharge_rounds,
            pages: all.total().faults,
            bytes: all.total().read_bytes,
            faults_after: if way == Way::Precharge { after.since(&charged).total().faults } else { 0 },
        })
    }
}

fn wrong(number: u64) -> Failure {
    Failure::session(WRONG, format!("row {number} is not what was written"))
}

fn failed(error: larch::Error) -> Failure {
    Failure::session("larch", error.to_string())
}

/// The most rounds of a precharge over main trees of this height (decision 8): twice down the main tree, once down
/// the tree of the tallest group, which may have one more level because its rows are larger, and one for values
/// outside their pages.
fn rounds_at_most(height: u8) -> f64 {
    let way = f64::from(height) + 1.0;
    2.0 * way + (way + 1.0) + 1.0
}

fn outcome(ground: &Ground, size: &Size) -> Outcome {
    let of = |delay, rows, side| -> Vec<Measured> {
        (0..size.repeats).filter_map(|repeat| ground.known(&cell_name(repeat, delay, rows, side))).collect()
    };
    let middle = |delay, rows, side, what: fn(&Measured) -> f64| -> Option<f64> {
        let figures: Vec<f64> = of(delay, rows, side).iter().map(what).collect();
        (!figures.is_empty()).then(|| median(&figures))
    };
    let shown = |figure_of: Option<f64>| figure_of.map_or("-".to_owned(), figure);
    let shape: Option<Shape> = ground.known(&format!("data of {DATA}"));

    let local = size.delays[0];
    let counted = |side: Side| {
        size.ranges.iter().map(move |&rows| {
            let cells = [
                middle(local, rows, side, |measured| measured.rounds),
                middle(local, rows, side, |measured| measured.precharge_rounds),
                middle(local, rows, side, |measured| measured.pages),
                middle(local, rows, side, |measured| measured.bytes / 1024.0),
            ];
            let after: u64 = of(local, rows, side).iter().map(|measured| measured.faults_after).sum();
            let after = if side.way == Way::Precharge { after.to_string() } else { "-".to_owned() };
            [vec![format!("{} rows, {}", figure(rows as f64), side.name())], cells.map(shown).to_vec(), vec![after]]
                .concat()
        })
    };
    let columns = ["", "rounds of waiting", "of the precharge", "pages read", "KiB read", "pages missing afterwards"];
    let counts = Table {
        caption: "A range with nothing in memory, local disk".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: sides().flat_map(counted).collect(),
    };

    let times = size.delays.iter().map(|&delay| {
        let row = |&rows: &u64| {
            let cells = sides().map(|side| shown(middle(delay, rows, side, |measured| measured.micros / 1e3)));
            std::iter::once(figure(rows as f64)).chain(cells).collect()
        };
        Block::Table(Table {
            caption: format!("Milliseconds for a range, {}", disk_name(delay)),
            columns: std::iter::once("rows of a range".to_owned()).chain(sides().map(Side::name)).collect(),
            rows: size.ranges.iter().map(row).collect(),
        })
    });

    let chart = |title: String, label: &str, delay, what: fn(&Measured) -> f64| {
        let line = |side: Side| Curve {
            name: side.name(),
            points: size.ranges.iter().filter_map(|&r| Some((r as f64, middle(delay, r, side, what)?))).collect(),
        };
        Block::Chart(Chart {
            title,
            x: Axis::logarithmic("rows of a range"),
            y: Axis::logarithmic(label),
            lines: sides().map(line).collect(),
            marks: Vec::new(),
        })
    };
    let slowest = *size.delays.last().expect("there are disks");
    let mut blocks = vec![
        chart("Rounds of waiting for a range".to_owned(), "rounds", local, |measured| measured.rounds),
        chart(format!("Milliseconds for a range, {}", disk_name(slowest)), "ms", slowest, |m| m.micros / 1e3),
        Block::Table(counts),
    ];
    blocks.extend(times);
    blocks.push(facts(&fact_list(size, shape.as_ref())));
    blocks.push(Block::Table(published()));

    let mut goals = Vec::new();
    for &delay in size.delays {
        let precharged = || sides().filter(|side| side.way == Way::Precharge);
        let all = || precharged().flat_map(|side| size.ranges.iter().flat_map(move |&rows| of(delay, rows, side)));
        let most = |what: fn(&Measured) -> u64| all().map(|measured| what(&measured)).max().map(|most| most as f64);
        goals.push(Goal {
            what: format!("{}: pages missing after a precharge", disk_name(delay)),
            bound: Bound::AtMost(0.0),
            measured: most(|measured| measured.faults_after),
        });
        goals.push(Goal {
            what: format!("{}: rounds of a precharge, the most", disk_name(delay)),
            bound: Bound::AtMost(rounds_at_most(shape.as_ref().map_or(0, |shape| shape.height))),
            measured: most(|measured| measured.most_precharge_rounds),
        });
    }
    Outcome {
        title: "Range reads with and without a precharge".to_owned(),
        about: ABOUT.map(str::to_owned).to_vec(),
        blocks,
        goals,
    }
}

fn disk_name(delay: Duration) -> String {
    if delay.is_zero() { "local disk".to_owned() } else { format!("{} ms added to each read", millis(delay)) }
}

fn fact_list(size: &Size, shape: Option<&Shape>) -> Vec<(&'static str, String)> {
    let mut list = vec![
        ("rows", format!("{} with keys of {KEY_BYTES} bytes", figure(size.rows as f64))),
        (
            "values",
            format!(
                "parts of {HOT_BYTES} and {COLD_BYTES} bytes in two column groups; of one row in {LARGE_EVERY} the second part has \
                 {LARGE_BYTES} bytes and lies outside its page"
            ),
        ),
        ("pages, nodes", format!("{}, {}", bytes_text(16 << 10), bytes_text(NODE_BYTES.into()))),
    ];
    if let Some(shape) = shape {
        let levels = shape.levels.iter().map(|(level, files)| format!("level {level}: {files}"));
        list.extend([
            ("files", format!("{}; {}", shape.files, levels.collect::<Vec<_>>().join(", "))),
            ("file bytes", bytes(shape.file_bytes)),
            ("levels of nodes", shape.height.to_string()),
            ("bytes of the trees", bytes(shape.index_bytes)),
        ]);
    }
    list.extend([
        ("cache", format!("{}, empty before each range", bytes_text(CACHE_BYTES))),
        ("durability", "read-only".to_owned()),
        ("reads", "direct, where the file system can".to_owned()),
        ("ranges", format!("{} in each of {} repeats, at random places", size.samples, size.repeats)),
    ]);
    list
}

/// The steps of YDB's document, which has no figures.
fn published() -> Table {
    let row = |step: &str, here: &str| vec![step.to_owned(), "no figure published".to_owned(), here.to_owned()];
    Table {
        caption: "In YDB's document (steps 3, 5 and 6), and here".to_owned(),
        columns: ["step", "there", "here"].map(str::to_owned).to_vec(),
        rows: vec![
            row("Charge main pages within given key range", "precharge of a range of keys"),
            row("Charge groups pages", "two column groups are charged together"),
            row("All needed pages are precharged", "pages missing afterwards"),
            row("Forward-load B-Tree index in Scan", "readahead"),
            row("Benchmark Charge over B-Tree index", "tree beside flat list, rounds and time"),
        ],
    }
}

const ABOUT: [&str; 4] = [
    "A range is read in three ways, by the tree and by the flat list: one page after the other (a get of each key), as a range that reads \
     ahead, and as a range after a precharge, which walks the index and asks for all pages of a level at once.",
    "The database is opened just before each range, so nothing is in memory. A round is one wait for pages that are read together. Each row \
     is compared with what was written.",
    "A disk that is far away is the local disk with a time added to each read. As many reads are under way as without it.",
    "Two files of level 0 have rows that are newer than those below, so each range merges three sources.",
];
