//! `larch bench experiment batch`: rows per second of one row-access session against the size of a batch, on Larch
//! and on PostgreSQL.
//!
//! ybio's page has such a chart of YugabyteDB: one session reads ranges of 1 to 1 M rows from a table of 1 M rows.
//! The larger the range, the fewer calls pass between the query layer and the store, and the more rows arrive per
//! second.
//!
//! In the cold part, the cache holds a fiftieth of the rows, so nearly each row costs a disk read. One side reads many
//! index entries and asks for the pages of all their rows at once, the other reads one row after the other. The disk
//! alone shows the limit: how much faster reads are with many in flight than one at a time.

use crate::args::Scale;
use crate::disk_alone;
use crate::experiment::{About, Experiment, Kept};
use crate::figures::{PAIRED, middle, ratio, shown, shown_middle, spread};
use crate::ground::Ground;
use crate::outcome::{Goal, chart, table};
use crate::quoted;
use crate::ycsb_run::{Until, YcsbRun};
use harness::directory::bytes_text;
use harness::report::Meter;
use harness::report::text::grouped;
use harness::{Failure, Million, Target};
use page::{Axis, Block, figure};
use row_access::run::{Accessed, Manner};
use row_access::{Access, Database, Inside, Opening, ReadWay, RowAccessScheme, RunParameters, SetupParameters};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::Duration;
use stores::postgres::server::{Server, ServerOptions};
use suite::stop::Stop;

#[cfg(test)]
mod tests;

/// The experiment, and how much it measures.
pub struct Batch {
    warm: Extent,
    cold: Extent,
    databases: Option<Databases>,
    cold_larch: Option<Box<dyn Database>>,
}

/// How much is measured of rows that are in memory, or of rows that are not.
struct Extent {
    rows: u64,
    batches: &'static [u64],
    time: Duration,
    repeats: u64,
}

/// The databases whose rows are in memory.
struct Databases {
    larch: Box<dyn Database>,
    postgres: Box<dyn Database>,
    /// The server of `postgres`.
    _server: Server,
}

/// A way to read rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Larch, through its index.
    Larch,
    /// Larch, by known ids without the index: an upper bound for reads through the index.
    LookUps,
    /// PostgreSQL, by a procedure in the server, as ybio does.
    Procedure,
    /// PostgreSQL, by our client.
    Statements,
    /// Cold: reads the rows of many index entries at once.
    Together,
    /// Cold: reads one row after the other.
    OneByOne,
}

const WARM: [Side; 4] = [Side::Larch, Side::LookUps, Side::Procedure, Side::Statements];
const COLD: [Side; 2] = [Side::Together, Side::OneByOne];
/// The numbers of reads in flight for the disk alone.
const DEPTHS: [usize; 3] = [1, 32, 128];

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Larch => "larch",
            Self::LookUps => "larch, multi_get of known ids",
            Self::Procedure => "postgresql, in the server (PL/pgSQL)",
            Self::Statements => "postgresql, by our client",
            Self::Together => "many rows at once",
            Self::OneByOne => "one row after the other",
        }
    }
}

const TABLE: &str = "bench0001";
/// Bytes of the filler of a cold row, and of the row with its id and two numbers.
const FILLER: u32 = 400;
const COLD_ROW_BYTES: u64 = FILLER as u64 + 32;
/// The default size of a data page.
const PAGE_BYTES: u64 = 16 << 10;

impl Batch {
    /// The experiment at `scale`.
    pub fn of(scale: Scale) -> Self {
        const ALL: &[u64] = &[1, 10, 100, 1000, 10_000, 100_000, 1_000_000];
        let extent =
            |rows, batches, millis, repeats| Extent { rows, batches, time: Duration::from_millis(millis), repeats };
        let (warm, cold) = match scale {
            Scale::Tiny => (extent(5000, &[1, 100, 1000], 50, 1), extent(5000, &[1, 100], 20, 1)),
            Scale::Small => (extent(1_000_000, ALL, 1000, 3), extent(500_000, &ALL[..5], 1000, 3)),
            Scale::Medium => (extent(1_000_000, ALL, 3000, 5), extent(10_000_000, &ALL[..5], 2000, 5)),
            Scale::Full => (extent(1_000_000, ALL, 10_000, 7), extent(10_000_000, &ALL[..5], 3000, 7)),
        };
        Self { warm, cold, databases: None, cold_larch: None }
    }

    /// 2 % of the bytes of the cold rows, and at least what a read needs.
    fn cold_cache_bytes(&self) -> u64 {
        (self.cold.rows * COLD_ROW_BYTES / 50).max(1 << 20)
    }

    /// The number of kilobyte rows that give the file for the disk alone the size of the cold table.
    fn disk_rows(&self) -> u64 {
        self.cold.rows * COLD_ROW_BYTES / 1000
    }
}

/// One session on one side, or the disk alone, in one repeat.
#[derive(Clone, Copy)]
pub enum Cell {
    /// Rows that are in memory.
    Warm(u64, u64, Side),
    /// Rows that are not.
    Cold(u64, u64, Side),
    /// Reads in flight.
    Disk(u64, usize),
}

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Warm(repeat, batch, side) => write!(out, "{repeat}, batches of {batch}, {}", side.name()),
            Self::Cold(repeat, batch, side) => write!(out, "cold, {repeat}, batches of {batch}, {}", side.name()),
            Self::Disk(repeat, depth) => write!(out, "cold, {repeat}, the disk alone, {depth} under way"),
        }
    }
}

/// The rate of a session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Rate {
    rows_per_second: f64,
    /// Where the database counts them.
    page_reads_per_row: Option<f64>,
    /// What a million rows cost.
    million: Million,
}

/// Goals against the PostgreSQL procedure: (batch size, least ratio of Larch's rate to the procedure's).
const AGAINST_PROCEDURE: [(u64, f64); 4] = [(1, 10.0), (10, 5.0), (1000, 3.0), (10_000, 2.0)];
/// The goal against look-ups by known ids: from this batch size on, Larch must reach this share of their rate.
const AGAINST_LOOK_UPS: (u64, f64) = (1000, 0.8);
/// The cold goal: from this batch size on, reads of many rows at once must be this many times as fast as one by one.
const AGAINST_ONE_BY_ONE: (u64, f64) = (100, 4.0);

impl Experiment for Batch {
    const ABOUT: About = About {
        name: "batch",
        title: "Row access: the size of a batch",
        text: &[
            "One session reads random ranges of an indexed number, whose rows are scattered over the table: the experiment of ybio, by the SLOB \
             method. The larger a range is, the more rows come back for one call.",
            "All rows are in the caches (1 GiB each), nothing is updated, and every range is checked to have all of its rows. Sides and sizes \
             are measured in turn, and all of it is repeated.",
            "PL/pgSQL runs in the server and does not cross a socket. Our client sends each statement through a Unix socket, and waits.",
            "multi_get looks the same rows up by ids that are known beforehand: what Larch could reach if its index cost nothing.",
            "Rows that are not in memory are read in two ways: by the index, which asks for the pages of many rows at once, and one row after \
             the other.",
        ],
    };

    type Cell = Cell;

    fn most_bytes(&self) -> u64 {
        // The cold database takes twice its size while it is loaded and compacted.
        (self.warm.rows * 1000 + 4 * self.cold.rows * COLD_ROW_BYTES).max(256 << 20)
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (repeat, batch) in self.warm.all() {
            cells.extend(WARM.map(|side| Cell::Warm(repeat, batch, side)));
        }
        for (repeat, batch) in self.cold.all() {
            cells.extend(COLD.map(|side| Cell::Cold(repeat, batch, side)));
            // The disk has its turn after the last batch size of a repeat.
            if self.cold.batches.last() == Some(&batch) {
                cells.extend(DEPTHS.map(|depth| Cell::Disk(repeat, depth)));
            }
        }
        cells
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Kept, Failure> {
        let rate = match *cell {
            Cell::Warm(repeat, batch, side) => {
                if self.databases.is_none() {
                    self.databases = Some(self.warm(ground)?);
                }
                let databases = self.databases.as_ref().expect("they were just made");
                let is_larch = matches!(side, Side::Larch | Side::LookUps);
                let database = if is_larch { &databases.larch } else { &databases.postgres };
                session(&**database, side, &self.warm.parameters(batch, self.warm.time), repeat, &ground.stop)?
            }
            Cell::Cold(repeat, batch, side) => {
                if self.cold_larch.is_none() {
                    self.cold_larch = Some(self.cold(ground)?);
                }
                let larch = self.cold_larch.as_ref().expect("it was just opened");
                // The sides read different rows, or one would find in the cache what the other has read.
                let seed = 2 * repeat + u64::from(side == Side::OneByOne);
                session(&**larch, side, &self.cold.parameters(batch, self.cold.time), seed, &ground.stop)?
            }
            Cell::Disk(repeat, depth) => {
                let disk = disk_alone::make(ground, self.disk_rows())?;
                let until = Until { warmup: Duration::ZERO, time: self.cold.time, operations: 1 << 40 };
                let (rows, seed) = (self.disk_rows(), 1000 * repeat + depth as u64);
                let read = disk_alone::read(disk.place(), rows, PAGE_BYTES, depth, seed, until, &ground.stop)?;
                return Ok(Kept::new(&read, format!("{:>12.0} reads/s", read.per_second())));
            }
        };
        Ok(Kept::new(&rate, format!("{:>12.0} rows/s", rate.rows_per_second)))
    }

    fn end(&mut self) -> Result<(), Failure> {
        if let Some(Databases { larch, postgres, _server }) = self.databases.take() {
            larch.close()?;
            postgres.close()?;
        }
        self.cold_larch.take().map_or(Ok(()), |larch| larch.close())
    }

    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure> {
        let (warm, cold) = (&self.warm, &self.cold);
        let rate = |rate: &Rate| rate.rows_per_second;
        let spread = |batch: u64, side| spread(&self.rates(ground, batch, side), rate);
        let middle = |batch: u64, side| shown_middle(&self.rates(ground, batch, side), rate);
        let reads = |batch: u64, side| shown_middle(&self.rates(ground, batch, side), |rate| rate.page_reads_per_row);
        let times = |batch: u64, sides| shown(self.ratio(ground, batch, sides));
        let points = |side| {
            let rate = |batch: &u64| Some((*batch as f64, self::middle(&self.rates(ground, *batch, side), rate)?));
            warm.batches.iter().filter_map(rate).collect()
        };
        let disk = |depth: usize| ground.all::<YcsbRun, _>(cold.repeats, |repeat| Cell::Disk(repeat, depth));
        let axes = (Axis::logarithmic("rows of a batch"), Axis::logarithmic("rows a second"));
        Ok(vec![
            chart("Rows a second against the rows of a batch", axes, WARM.map(|side| (side.name(), points(side)))),
            table(
                format!(
                    "Rows a second of one session on {} rows, median of {} (least-most); {PAIRED}",
                    warm.rows, warm.repeats
                ),
                warm.batches,
                &[
                    ("rows of a batch", &|batch| figure(**batch as f64)),
                    (Side::Larch.name(), &|batch| spread(**batch, Side::Larch)),
                    (Side::LookUps.name(), &|batch| spread(**batch, Side::LookUps)),
                    (Side::Procedure.name(), &|batch| spread(**batch, Side::Procedure)),
                    (Side::Statements.name(), &|batch| spread(**batch, Side::Statements)),
                    ("times PL/pgSQL", &|batch| times(**batch, [Side::Larch, Side::Procedure])),
                    ("times multi_get", &|batch| times(**batch, [Side::Larch, Side::LookUps])),
                ],
            ),
            table(
                format!(
                    "Rows a second that are not in memory: {} rows with fillers of {FILLER} bytes, {} of memory for pages, direct reads, \
                     median of {}; {PAIRED}",
                    cold.rows,
                    bytes_text(self.cold_cache_bytes()),
                    cold.repeats
                ),
                cold.batches,
                &[
                    ("rows of a batch", &|batch| figure(**batch as f64)),
                    (Side::Together.name(), &|batch| middle(**batch, Side::Together)),
                    (Side::OneByOne.name(), &|batch| middle(**batch, Side::OneByOne)),
                    ("ratio", &|batch| times(**batch, COLD)),
                    ("page reads a row, at once", &|batch| reads(**batch, Side::Together)),
                    ("page reads a row, one after the other", &|batch| reads(**batch, Side::OneByOne)),
                ],
            ),
            table(
                format!(
                    "The disk alone: reads a second of {}, median of {}; {PAIRED}",
                    bytes_text(PAGE_BYTES),
                    cold.repeats
                ),
                DEPTHS,
                &[
                    ("reads under way", &|depth| depth.to_string()),
                    ("reads a second", &|depth| shown_middle(&disk(*depth), YcsbRun::per_second)),
                    ("times one under way", &|depth| {
                        shown(ratio(&disk(*depth), &disk(DEPTHS[0]), YcsbRun::per_second))
                    }),
                ],
            ),
            table(
                "Published by ybio of a YugabyteDB, one session, other machines: rows a second",
                quoted::YBIO,
                &[
                    ("rows of a batch", &|run| grouped(run.batch.value() as u64)),
                    ("rows a second", &|run| grouped(run.rate.value() as u64)),
                    ("rows updated", &|run| run.updated.text()),
                ],
            ),
        ])
    }

    fn goals(&self, ground: &Ground) -> Vec<Goal> {
        let mut goals = Vec::new();
        for (batch, times) in AGAINST_PROCEDURE.into_iter().filter(|(batch, _)| self.warm.batches.contains(batch)) {
            let ratio = self.ratio(ground, batch, [Side::Larch, Side::Procedure]);
            goals.push(Goal::at_least(times, format!("batches of {batch}: rows a second against PL/pgSQL"), ratio));
        }
        let (from, share) = AGAINST_LOOK_UPS;
        for batch in self.warm.batches.iter().filter(|batch| **batch >= from) {
            let ratio = self.ratio(ground, *batch, [Side::Larch, Side::LookUps]);
            let what = format!("batches of {batch}: rows a second against multi_get of known ids");
            goals.push(Goal::at_least(share, what, ratio));
        }
        let (from, times) = AGAINST_ONE_BY_ONE;
        for batch in self.cold.batches.iter().filter(|batch| **batch >= from) {
            let what = format!("cold, batches of {batch}: rows a second against one row after the other");
            goals.push(Goal::at_least(times, what, self.ratio(ground, *batch, COLD)));
        }
        goals
    }
}

impl Extent {
    /// Each repeat and size of a batch.
    fn all(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.repeats).flat_map(|repeat| self.batches.iter().map(move |batch| (repeat, *batch)))
    }

    fn parameters(&self, batch_size: u64, run_duration: Duration) -> RunParameters {
        RunParameters { tab_rows: self.rows, batch_size, run_duration, ..RunParameters::default() }
    }
}

impl Batch {
    /// What was measured of a side at one size.
    fn rates(&self, ground: &Ground, batch: u64, side: Side) -> Vec<Rate> {
        match COLD.contains(&side) {
            true => ground.all(self.cold.repeats, |repeat| Cell::Cold(repeat, batch, side)),
            false => ground.all(self.warm.repeats, |repeat| Cell::Warm(repeat, batch, side)),
        }
    }

    /// The rate of the first side for that of the second.
    fn ratio(&self, ground: &Ground, batch: u64, sides: [Side; 2]) -> Option<f64> {
        let [ours, other] = sides.map(|side| self.rates(ground, batch, side));
        ratio(&ours, &other, |rate| rate.rows_per_second)
    }

    /// Makes the databases whose rows are in memory.
    fn warm(&self, ground: &mut Ground) -> Result<Databases, Failure> {
        let settings = [("shared_buffers", "1GB"), ("synchronous_commit", "off"), ("max_wal_size", "4GB")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let server = Server::start(&ServerOptions { settings, ..ServerOptions::default() });
        let server = server.map_err(|error| Failure::session("postgres", error.to_string()))?;
        suite::say(&format!("{} rows on Larch and on PostgreSQL", self.warm.rows));
        let setup = SetupParameters { tab_rows: self.warm.rows, batch_size: 10_000, ..SetupParameters::default() };
        let (made, ()) = ground.built("larch", |place, stop| {
            loaded(&stores::larch::ROW_ACCESS, &larch(place, 1 << 30), &setup, stop)?.close()
        })?;
        let target = Target::parse(&larch(made.place(), 1 << 30))?;
        let larch = (stores::larch::ROW_ACCESS.open)(&target, Opening::Existing)?;
        let postgres = loaded(&stores::postgres::ROW_ACCESS, &server.url("postgres"), &setup, &ground.stop)?;
        ground.check_stop()?;
        // Read all rows once, so that the first measurement finds the same pages in memory as later ones.
        for database in [&larch, &postgres] {
            let all = self.warm.parameters(self.warm.rows, Duration::ZERO);
            session(&**database, Side::Larch, &all, 0, &ground.stop)?;
        }
        Ok(Databases { larch, postgres, _server: server })
    }

    /// Makes the database whose rows are not in memory, and opens it with a small cache.
    fn cold(&self, ground: &mut Ground) -> Result<Box<dyn Database>, Failure> {
        let memory = bytes_text(self.cold_cache_bytes());
        suite::say(&format!("{} rows on Larch, with {memory} of memory for pages", self.cold.rows));
        let setup = SetupParameters { tab_rows: self.cold.rows, filler: FILLER, ..SetupParameters::default() };
        let (made, ()) = ground.built("cold", |place, stop| {
            loaded(&stores::larch::ROW_ACCESS, &larch(place, 1 << 30), &setup, stop)?.close()
        })?;
        let target = Target::parse(&larch(made.place(), self.cold_cache_bytes()))?;
        (stores::larch::ROW_ACCESS.open)(&target, Opening::Existing)
    }
}

fn larch(place: &Path, cache_bytes: u64) -> String {
    format!("larch:{}?cache={cache_bytes}", place.display())
}

/// Opens a database and loads its rows, not all of them after ^C.
fn loaded(
    scheme: &RowAccessScheme,
    target: &str,
    setup: &SetupParameters,
    stop: &Stop,
) -> Result<Box<dyn Database>, Failure> {
    let database = (scheme.open)(&Target::parse(target)?, Opening::OrCreate)?;
    let parameters = SetupParameters { batch_size: setup.batch_size.min(setup.tab_rows), ..setup.clone() };
    row_access::setup::setup(&*database, &parameters, false, 1, stop.flag(), &|_| {})?;
    Ok(database)
}

/// Measures one session on one side.
fn session(
    database: &dyn Database,
    side: Side,
    parameters: &RunParameters,
    seed: u64,
    stop: &Stop,
) -> Result<Rate, Failure> {
    let access = Access { table: TABLE.to_owned(), prepared: true, index_only: false };
    let reading = |way| Ok::<_, Failure>(database.session_reading(TABLE, way)?.expect("Larch can read so"));
    let mut session = match side {
        Side::Larch | Side::Statements | Side::Together => database.session(&access)?,
        Side::LookUps => reading(ReadWay::KnownIds)?,
        Side::OneByOne => reading(ReadWay::OneByOne)?,
        Side::Procedure => return procedure(database, &access, parameters),
    };
    let manner = Manner { compat: false, seed, session: 0, in_server: false, line_every: Duration::ZERO };
    let (mut accessed, before, meter) = (Accessed::new(), database.page_reads(), Meter::start(database.used()));
    accessed.access_for(&mut *session, parameters, &manner, stop.flag(), &mut |_, _, _, _, _| {})?;
    let million = meter.million(accessed.rows, database.used(), None);
    check_whole(accessed.rows, accessed.batches * parameters.batch_rows())?;
    let page_reads = before.zip(database.page_reads()).map(|(before, after)| after - before);
    Ok(Rate {
        rows_per_second: accessed.rows_per_second(),
        page_reads_per_row: page_reads.map(|count| count as f64 / accessed.rows as f64),
        million,
    })
}

/// Measures the procedure in the server.
fn procedure(database: &dyn Database, access: &Access, parameters: &RunParameters) -> Result<Rate, Failure> {
    let inside = Inside {
        access,
        tab_rows: parameters.tab_rows,
        batch_rows: parameters.batch_rows(),
        pct_update: 0,
        time: parameters.run_duration,
        compat: false,
    };
    let (meter, clock) = (Meter::start(database.used()), harness::Clock::start());
    let seen = database.run_inside(&inside)?.expect("PostgreSQL has procedures");
    let (nanos, rows) = (clock.nanos(), seen.seen.rows);
    let million = meter.million(rows, database.used(), None);
    check_whole(rows, seen.batches * inside.batch_rows)?;
    Ok(Rate { rows_per_second: rows as f64 * 1e9 / nanos as f64, page_reads_per_row: None, million })
}

/// Fails unless every range had all of its rows.
fn check_whole(rows: u64, asked: u64) -> Result<(), Failure> {
    if rows == asked {
        return Ok(());
    }
    Err(Failure::session(crate::WRONG, format!("{rows} rows were found where there are {asked}")))
}
