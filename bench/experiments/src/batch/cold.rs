//! The cold part of `batch`: the cache holds a fiftieth of the rows, so nearly each row costs a disk read. One side
//! reads many index entries and asks for the pages of all their rows at once, the other reads one row after the
//! other. The disk alone shows the limit: how much faster reads are with many in flight than one at a time.

use super::{TABLE, loaded, whole};
use crate::args::Scale;
use crate::disk_alone;
use crate::ground::Ground;
use crate::measured::{self, Cell, PAIRED, Until};
use crate::outcome::Goal;
use harness::directory::bytes_text;
use harness::report::Meter;
use harness::{Failure, Million, Target};
use kit::goals::Bound;
use kit::median;
use page::{Table, figure};
use row_access::run::{Accessed, Manner};
use row_access::{Access, Database, Opening, ReadWay, RunParameters, SetupParameters};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use suite::stop::Stop;

/// A way to read rows that are not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Reads the rows of many index entries at once.
    Together,
    /// Reads one row after the other.
    OneByOne,
}

pub const SIDES: [Side; 2] = [Side::Together, Side::OneByOne];

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Together => "many rows at once",
            Self::OneByOne => "one row after the other",
        }
    }
}

/// How much is measured.
pub struct Size {
    pub rows: u64,
    pub batches: &'static [u64],
    pub time: Duration,
    pub repeats: u64,
}

/// Bytes of the filler of a row.
const FILLER: u32 = 400;

/// Bytes of a row: id, filler and two numbers.
const ROW_BYTES: u64 = FILLER as u64 + 32;

impl Size {
    pub fn of(scale: Scale) -> Self {
        const ALL: &[u64] = &[1, 10, 100, 1000, 10_000];
        let (rows, batches, millis, repeats) = match scale {
            Scale::Tiny => (5000, &[1, 100][..], 20, 1),
            Scale::Small => (500_000, ALL, 1000, 3),
            Scale::Medium => (10_000_000, ALL, 2000, 5),
            Scale::Full => (10_000_000, ALL, 3000, 7),
        };
        Self { rows, batches, time: Duration::from_millis(millis), repeats }
    }

    /// 2 % of the bytes of the rows, and at least what a read needs.
    fn cache_bytes(&self) -> u64 {
        (self.rows * ROW_BYTES / 50).max(1 << 20)
    }

    /// The most disk space: a database during its load and compaction, and the file for the disk alone.
    pub fn most_bytes(&self) -> u64 {
        4 * self.rows * ROW_BYTES
    }

    /// The number of kilobyte rows that give the file for the disk alone the size of the table.
    fn disk_rows(&self) -> u64 {
        self.rows * ROW_BYTES / 1000
    }

    /// The number of cells.
    #[cfg(test)]
    pub fn cells(&self) -> usize {
        self.repeats as usize * (self.batches.len() * SIDES.len() + DEPTHS.len())
    }
}

/// The measurements of a session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    rows_per_second: f64,
    page_reads_per_row: f64,
    /// What a million rows cost.
    million: Million,
}

pub fn cell_name(repeat: u64, batch: u64, side: Side) -> String {
    format!("cold, {repeat}, batches of {batch}, {}", side.name())
}

/// The default size of a data page.
const PAGE_BYTES: u64 = 16 << 10;
/// The numbers of reads in flight for the disk alone.
const DEPTHS: [usize; 3] = [1, 32, 128];

fn disk_name(repeat: u64, depth: usize) -> String {
    format!("cold, {repeat}, the disk alone, {depth} under way")
}

/// Measures the missing cells. Returns false after ^C.
pub fn measure_all(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    let all = || (0..size.repeats).flat_map(|repeat| size.batches.iter().map(move |batch| (repeat, *batch)));
    let disk_is_known = |repeat| DEPTHS.iter().all(|depth| ground.has(&disk_name(repeat, *depth)));
    if all().all(|(repeat, batch)| SIDES.iter().all(|side| ground.has(&cell_name(repeat, batch, *side))))
        && (0..size.repeats).all(disk_is_known)
    {
        return Ok(true);
    }
    let memory = bytes_text(size.cache_bytes());
    suite::say(&format!("{} rows on Larch, with {memory} of memory for pages", size.rows));
    let setup = SetupParameters { tab_rows: size.rows, filler: FILLER, ..SetupParameters::default() };
    let built = ground.built("cold", |place, stop| {
        match loaded(&store_larch::ROW_ACCESS, &target(place, 1 << 30), &setup, stop)? {
            Some(larch) => larch.close(),
            None => Ok(()),
        }
    })?;
    let Some((place, ())) = built else { return Ok(false) };
    let Some(disk) = disk_alone::make(ground, size.disk_rows())? else { return Ok(false) };
    let target = Target::parse(&target(&place, size.cache_bytes()))?;
    let larch = (store_larch::ROW_ACCESS.open)(&target, Opening::Existing)?;
    for (repeat, batch) in all() {
        for side in SIDES {
            let measured = ground.cell(&cell_name(repeat, batch, side), |stop| {
                let measured = measure(&*larch, side, (size, batch), repeat, stop)?;
                let rate = measured.rows_per_second;
                suite::say(&format!("cold, batches of {batch:>8}  {:38} {rate:>12.0} rows/s", side.name()));
                Ok(measured)
            })?;
            if measured.is_none() {
                return Ok(false);
            }
        }
        // The disk has its turn after the last batch size of a repeat.
        for depth in DEPTHS.into_iter().filter(|_| size.batches.last() == Some(&batch)) {
            let until = Until { warmup: Duration::ZERO, time: size.time, operations: 1 << 40 };
            let (rows, seed) = (size.disk_rows(), 1000 * repeat + depth as u64);
            let read = ground.cell(&disk_name(repeat, depth), |stop| {
                let read = disk_alone::read(disk.place(), rows, PAGE_BYTES, depth, seed, until, stop)?;
                suite::say(&format!("cold, the disk alone, {depth:3} under way {:>34.0} reads/s", read.per_second()));
                Ok(read)
            })?;
            if read.is_none() {
                return Ok(false);
            }
        }
    }
    larch.close()?;
    Ok(true)
}

fn target(place: &Path, cache_bytes: u64) -> String {
    format!("larch:{}?cache={cache_bytes}", place.display())
}

fn measure(
    larch: &dyn Database,
    side: Side,
    (size, batch): (&Size, u64),
    repeat: u64,
    stop: &Stop,
) -> Result<Measured, Failure> {
    let access = Access { table: TABLE.to_owned(), prepared: true, index_only: false };
    let mut session = match side {
        Side::Together => larch.session(&access)?,
        Side::OneByOne => larch.session_reading(TABLE, ReadWay::OneByOne)?.expect("Larch can read so"),
    };
    let parameters =
        RunParameters { tab_rows: size.rows, batch_size: batch, run_duration: size.time, ..RunParameters::default() };
    // The sides read different rows, or one would find in the cache what the other has read.
    let seed = 2 * repeat + side as u64;
    let manner = Manner { compat: false, seed, session: 0, in_server: false, line_every: Duration::ZERO };
    let page_reads = || larch.page_reads().expect("Larch counts them");
    let (mut accessed, before, meter) = (Accessed::new(), page_reads(), Meter::start(larch.used()));
    accessed.access_for(&mut *session, &parameters, &manner, stop.flag(), &mut |_, _, _, _, _| {})?;
    whole(accessed.rows, accessed.batches * parameters.batch_rows())?;
    Ok(Measured {
        rows_per_second: accessed.rows_per_second(),
        page_reads_per_row: (page_reads() - before) as f64 / accessed.rows as f64,
        million: meter.million(accessed.rows, larch.used(), None),
    })
}

/// The goal: from this batch size on, reads of many rows at once must be this many times as fast as one by one.
const AGAINST_ONE_BY_ONE: (u64, f64) = (100, 4.0);

/// The tables and goals.
pub fn outcome(ground: &Ground, size: &Size) -> ([Table; 2], Vec<Goal>) {
    let of = |batch, side| -> Vec<Measured> {
        let cells = (0..size.repeats).filter_map(|repeat| ground.cells().get(&cell_name(repeat, batch, side)));
        cells.filter_map(|cell| serde_json::from_value(cell.clone()).ok()).collect()
    };
    let middle =
        |batch, side, what: fn(&Measured) -> f64| median(&of(batch, side).iter().map(what).collect::<Vec<_>>());
    let ratio = |batch| {
        let [ours, other] = SIDES.map(|side| of(batch, side));
        let ratios = ours.iter().zip(&other).map(|(ours, other)| ours.rows_per_second / other.rows_per_second);
        let ratios: Vec<f64> = ratios.collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    };
    let row = |batch: &u64| {
        let rates = SIDES.map(|side| figure(middle(*batch, side, |measured| measured.rows_per_second)));
        let reads = SIDES.map(|side| figure(middle(*batch, side, |measured| measured.page_reads_per_row)));
        let ratio = ratio(*batch).map_or(String::new(), figure);
        [vec![figure(*batch as f64)], rates.to_vec(), vec![ratio], reads.to_vec()].concat()
    };
    let columns = [
        "rows of a batch",
        "many rows at once",
        "one row after the other",
        "ratio",
        "page reads a row, at once",
        "page reads a row, one after the other",
    ];
    let table = Table {
        caption: format!(
            "Rows a second that are not in memory: {} rows with fillers of {FILLER} bytes, {} of memory for pages, direct reads, median \
             of {}; {PAIRED}",
            size.rows,
            bytes_text(size.cache_bytes()),
            size.repeats
        ),
        columns: columns.map(str::to_owned).to_vec(),
        rows: size.batches.iter().map(row).collect(),
    };
    let (from, times) = AGAINST_ONE_BY_ONE;
    let goals = size.batches.iter().filter(|batch| **batch >= from).map(|batch| Goal {
        what: format!("cold, batches of {batch}: rows a second against one row after the other"),
        bound: Bound::AtLeast(times),
        measured: ratio(*batch),
    });
    ([table, of_the_disk(ground, size)], goals.collect())
}

/// The table of the disk alone, by reads in flight.
fn of_the_disk(ground: &Ground, size: &Size) -> Table {
    let of = |depth| -> Vec<Cell> {
        (0..size.repeats).filter_map(|repeat| ground.known(&disk_name(repeat, depth))).collect()
    };
    let row = |depth: usize| {
        let rate = measured::middle(&of(depth), Cell::per_second);
        let times = measured::ratio(&of(depth), &of(DEPTHS[0]), Cell::per_second);
        vec![depth.to_string(), measured::shown(rate), measured::shown(times)]
    };
    Table {
        caption: format!(
            "The disk alone: reads a second of {}, median of {}; {PAIRED}",
            bytes_text(PAGE_BYTES),
            size.repeats
        ),
        columns: ["reads under way", "reads a second", "times one under way"].map(str::to_owned).to_vec(),
        rows: DEPTHS.map(row).to_vec(),
    }
}
