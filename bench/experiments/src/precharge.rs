//! `larch bench experiment precharge`: the rounds of waiting and the time that a precharge saves in a range read
//! with an empty cache, on the local disk and on disks whose reads take longer. A round is one wait for pages that
//! are read together.
//!
//! YDB's document reads the pages of a range in three ways: one after the other, with forward loading in a scan,
//! and with the precharge, which walks the index ahead of the read and asks for all pages of a level at once. Each
//! way is measured over the flat index and over the B-tree.

use crate::WRONG;
use crate::args::Scale;
use crate::experiment::{About, Experiment, Kept};
use crate::figures::{kib, middle, shown};
use crate::ground::Ground;
use crate::made::{Shape, broken};
use crate::outcome::{Goal, chart, facts, grid, table};
use harness::directory::bytes_text;
use harness::report::Meter;
use harness::report::text::bytes;
use harness::{Clock, Failure, Million, StoreUse};
use kit::median;
use larch::options::{LevelOptions, PageIndexKind};
use larch::rows::AtMost;
use larch::{Database, Durability, Parts, Selection, TableOptions};
use page::{Axis, Block, figure};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::Duration;
use suite::stop::Stop;

mod late;
#[cfg(test)]
mod tests;

/// The experiment, and how much it measures.
pub struct Precharge {
    rows: u64,
    /// Rows of a range.
    ranges: &'static [u64],
    /// The times added to each read.
    delays: &'static [Duration],
    /// Ranges in a cell, each read with an empty cache.
    samples: u64,
    repeats: u64,
}

impl Precharge {
    /// The experiment at `scale`.
    pub fn of(scale: Scale) -> Self {
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

/// Ranges of a number of rows on one side, on a disk with a delay, in one repeat.
#[derive(Clone, Copy)]
pub struct Cell {
    repeat: u64,
    delay: Duration,
    rows: u64,
    side: Side,
}

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { repeat, delay, rows, side } = self;
        write!(out, "{repeat}, {} ms added, {rows} rows, {}", millis(*delay), side.name())
    }
}

fn millis(delay: Duration) -> f64 {
    delay.as_micros() as f64 / 1e3
}

fn disk_name(delay: Duration) -> String {
    if delay.is_zero() { "local disk".to_owned() } else { format!("{} ms added to each read", millis(delay)) }
}

/// What the ranges of a cell took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Taken {
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

/// The database.
const DATA: &str = "rows";

/// The steps of YDB's document, which has no figures, and what is here.
const PUBLISHED: [[&str; 2]; 5] = [
    ["Charge main pages within given key range", "precharge of a range of keys"],
    ["Charge groups pages", "two column groups are charged together"],
    ["All needed pages are precharged", "pages missing afterwards"],
    ["Forward-load B-Tree index in Scan", "readahead"],
    ["Benchmark Charge over B-Tree index", "tree beside flat list, rounds and time"],
];

impl Experiment for Precharge {
    const ABOUT: About = About {
        name: "precharge",
        title: "Range reads with and without a precharge",
        text: &[
            "A range is read in three ways, by the tree and by the flat list: one page after the other (a get of each key), as a range that reads \
             ahead, and as a range after a precharge, which walks the index and asks for all pages of a level at once.",
            "The database is opened just before each range, so nothing is in memory. A round is one wait for pages that are read together. Each row \
             is compared with what was written.",
            "A disk that is far away is the local disk with a time added to each read. As many reads are under way as without it.",
            "Two files of level 0 have rows that are newer than those below, so each range merges three sources.",
        ],
    };

    type Cell = Cell;

    fn most_bytes(&self) -> u64 {
        2 * self.rows * ROW_BYTES + (128 << 20)
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (repeat, &delay) in
            (0..self.repeats).flat_map(|repeat| self.delays.iter().map(move |delay| (repeat, delay)))
        {
            for &rows in self.ranges {
                let cell = |side| Cell { repeat, delay, rows, side };
                // The order of the sides alternates, so that the disk's own caches do not always help the same one.
                if repeat % 2 == 0 { cells.extend(sides().map(cell)) } else { cells.extend(sides().rev().map(cell)) }
            }
        }
        cells
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Kept, Failure> {
        let (made, _) = ground.built(DATA, |place, stop| {
            suite::say(&format!("{} rows, in files of {}", self.rows, bytes_text(FILE_BYTES << 2)));
            load(place, self.rows, stop)
        })?;
        let taken = self.read(made.place(), cell, &ground.stop)?;
        Ok(Kept::new(&taken, format!("{:.1} rounds, {:.2} ms", taken.rounds, taken.micros / 1e3)))
    }

    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure> {
        let middle = |delay, rows, side, what: fn(&Taken) -> f64| middle(&self.taken(ground, delay, rows, side), what);
        let axes = |label| (Axis::logarithmic("rows of a range"), Axis::logarithmic(label));
        let lines = |delay, what: fn(&Taken) -> f64| {
            let points = move |side| {
                let point = |&rows: &u64| Some((rows as f64, middle(delay, rows, side, what)?));
                self.ranges.iter().filter_map(point).collect()
            };
            sides().map(move |side| (side.name(), points(side)))
        };
        let (local, slowest) = (self.delays[0], *self.delays.last().expect("there are disks"));
        let ranges = sides().flat_map(|side| self.ranges.iter().map(move |&rows| (rows, side)));
        let counted = |(rows, side): &(u64, Side), what| shown(middle(local, *rows, *side, what));
        let mut blocks = vec![
            chart("Rounds of waiting for a range", axes("rounds"), lines(local, |taken| taken.rounds)),
            chart(
                format!("Milliseconds for a range, {}", disk_name(slowest)),
                axes("ms"),
                lines(slowest, |taken| taken.micros / 1e3),
            ),
            table(
                "A range with nothing in memory, local disk",
                ranges,
                &[
                    ("", &|(rows, side)| format!("{} rows, {}", figure(*rows as f64), side.name())),
                    ("rounds of waiting", &|range| counted(range, |taken| taken.rounds)),
                    ("of the precharge", &|range| counted(range, |taken| taken.precharge_rounds)),
                    ("pages read", &|range| counted(range, |taken| taken.pages)),
                    ("KiB read", &|range| counted(range, |taken| kib(taken.bytes))),
                    ("pages missing afterwards", &|(rows, side)| match side.way {
                        Way::Precharge => {
                            let all = self.taken(ground, local, *rows, *side);
                            all.iter().map(|taken| taken.faults_after).sum::<u64>().to_string()
                        }
                        _ => "-".to_owned(),
                    }),
                ],
            ),
        ];
        blocks.extend(self.delays.iter().map(|&delay| {
            let row = |&rows: &u64| {
                let times = sides().map(|side| shown(middle(delay, rows, side, |taken| taken.micros / 1e3)));
                std::iter::once(figure(rows as f64)).chain(times).collect()
            };
            grid(
                format!("Milliseconds for a range, {}", disk_name(delay)),
                std::iter::once("rows of a range".to_owned()).chain(sides().map(Side::name)),
                self.ranges.iter().map(row).collect(),
            )
        }));
        blocks.extend([
            facts(&self.conditions(ground.told(DATA))),
            grid(
                "In YDB's document (steps 3, 5 and 6), and here",
                ["step", "there", "here"],
                PUBLISHED.map(|[step, here]| [step, "no figure published", here].map(str::to_owned).to_vec()).to_vec(),
            ),
        ]);
        Ok(blocks)
    }

    fn goals(&self, ground: &Ground) -> Vec<Goal> {
        let height = ground.told::<Shape>(DATA).map_or(0, |shape| shape.height);
        let mut goals = Vec::new();
        for &delay in self.delays {
            let precharged = sides().filter(|side| side.way == Way::Precharge);
            let ranges = precharged.flat_map(|side| self.ranges.iter().map(move |&rows| (side, rows)));
            let all: Vec<Taken> = ranges.flat_map(|(side, rows)| self.taken(ground, delay, rows, side)).collect();
            let most = |what: fn(&Taken) -> u64| all.iter().map(what).max().map(|most| most as f64);
            let (missing, rounds) = (most(|taken| taken.faults_after), most(|taken| taken.most_precharge_rounds));
            let disk = disk_name(delay);
            goals.push(Goal::at_most(0.0, format!("{disk}: pages missing after a precharge"), missing));
            goals.push(Goal::at_most(
                rounds_at_most(height),
                format!("{disk}: rounds of a precharge, the most"),
                rounds,
            ));
        }
        goals
    }
}

/// The most rounds of a precharge over main trees of this height (decision 8): twice down the main tree, once down
/// the tree of the tallest group, which may have one more level because its rows are larger, and one for values
/// outside their pages.
fn rounds_at_most(height: u8) -> f64 {
    let way = f64::from(height) + 1.0;
    2.0 * way + (way + 1.0) + 1.0
}

impl Precharge {
    fn taken(&self, ground: &Ground, delay: Duration, rows: u64, side: Side) -> Vec<Taken> {
        ground.all(self.repeats, |repeat| Cell { repeat, delay, rows, side })
    }

    fn conditions(&self, shape: Option<Shape>) -> Vec<(&'static str, String)> {
        let mut list = vec![
            ("rows", format!("{} with keys of {KEY_BYTES} bytes", figure(self.rows as f64))),
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
                ("bytes of the trees", bytes(shape.btree_bytes)),
            ]);
        }
        list.extend([
            ("cache", format!("{}, empty before each range", bytes_text(CACHE_BYTES))),
            ("durability", "read-only".to_owned()),
            ("reads", "direct, where the file system can".to_owned()),
            ("ranges", format!("{} in each of {} repeats, at random places", self.samples, self.repeats)),
        ]);
        list
    }

    /// Reads the ranges of `cell`.
    fn read(&self, place: &Path, cell: &Cell, stop: &Stop) -> Result<Taken, Failure> {
        let Cell { repeat, delay, rows: range_rows, side } = *cell;
        let machine = late::machine(delay);
        let mut all: Vec<Sample> = Vec::new();
        // Includes opening the database and comparing the rows.
        let meter = Meter::start(StoreUse::InProcess);
        for sample in (0..self.samples).take_while(|_| !stop.is_pressed()) {
            // Reopen the database for an empty cache.
            let builder = Database::builder(place).read_only(true).prefer_flat_index(side.index == PageIndexKind::Flat);
            let db = builder.cache_bytes(CACHE_BYTES).machine(machine.clone()).open().map_err(broken)?;
            let table = db.table("t").map_err(broken)?;
            let rows = table.select(GROUPS).map_err(broken)?;
            let drawn = row_access::batch::mixed(repeat << 20 | sample << 10 | range_rows.ilog10() as u64);
            let from = drawn % (self.rows - range_rows).max(1);
            all.push(Sample::read(&db, &rows, side.way, from, from + range_rows)?);
        }
        if all.is_empty() {
            return Err(Failure::session("run", "no range was read"));
        }
        let million = meter.million(range_rows * all.len() as u64, StoreUse::InProcess, None);
        let middle = |of: fn(&Sample) -> f64| median(&all.iter().map(of).collect::<Vec<_>>());
        Ok(Taken {
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
    let db = Database::builder(place).levels(LEVELS).durability(Durability::Buffered).open().map_err(broken)?;
    let options = TableOptions {
        index: PageIndexKind::Both,
        groups: GROUPS.map(str::to_owned).to_vec(),
        node_bytes: NODE_BYTES,
        ..TableOptions::default()
    };
    let table = db.table_with("t", options).map_err(broken)?;
    let mut import = table.import().map_err(broken)?;
    for number in (0..rows).take_while(|_| !stop.is_pressed()) {
        import.add_parts(&key(number), &parts_after(number, 0)).map_err(broken)?;
    }
    import.finish(|_| {}).map_err(broken)?;
    for (before, every) in REWRITTEN.into_iter().enumerate() {
        for number in (0..rows).step_by(every as usize).take_while(|_| !stop.is_pressed()) {
            table.insert_parts(key(number), &parts_after(number, before + 1)).map_err(broken)?;
        }
        db.flush().map_err(broken)?;
    }
    let shape = Shape::of(&table.stats().map_err(broken)?);
    drop(table);
    db.close().map_err(broken)?;
    Ok(shape)
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
            precharge_rounds = rows.prefetch(low..high, AtMost::ALL).map_err(broken)?.rounds;
            charged = db.metrics().pages;
        }
        let mut read: Vec<(u64, Parts)> = Vec::with_capacity((to - from) as usize);
        match way {
            Way::OneByOne => {
                for number in from..to {
                    let found = rows.get(key(number)).map_err(broken)?;
                    read.push((number, found.ok_or_else(|| wrong(number))?));
                }
            }
            Way::Readahead | Way::Precharge => {
                for (number, row) in (from..).zip(rows.range(low..high)) {
                    let (found, parts) = row.map_err(broken)?;
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
