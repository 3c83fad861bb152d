//! `larch bench experiment batch`: rows per second of one row-access session against the size of a batch, on Larch
//! and on PostgreSQL.
//!
//! ybio's page has such a chart of YugabyteDB: one session reads ranges of 1 to 1 M rows from a table of 1 M rows.
//! The larger the range, the fewer calls pass between the query layer and the store, and the more rows arrive per
//! second.

#![allow(clippy::disallowed_methods, reason = "databases of real files, never simulated")]

use crate::args::{ExperimentArgs, Scale};
use crate::ground::Ground;
use crate::measured::PAIRED;
use crate::outcome::{Ending, Goal, Outcome};
use harness::report::Meter;
use harness::{Failure, Million, Target};
use kit::goals::Bound;
use kit::median;
use kit::median::extremes;
use page::{Axis, Block, Chart, Curve, Table, figure};
use row_access::run::{Accessed, Manner};
use row_access::{Access, Database, Inside, Opening, ReadWay, RowAccessScheme, RunParameters, SetupParameters};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use store_postgres::server::{Server, ServerOptions};
use suite::stop::Stop;

mod cold;
#[cfg(test)]
mod tests;

/// A side of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Larch, through its index.
    Larch,
    /// Larch, by known ids without the index: an upper bound for reads through the index.
    LookUps,
    /// PostgreSQL, by a procedure in the server, as ybio does.
    Procedure,
    /// PostgreSQL, by our client.
    Statements,
}

const SIDES: [Side; 4] = [Side::Larch, Side::LookUps, Side::Procedure, Side::Statements];

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Larch => "larch",
            Self::LookUps => "larch, multi_get of known ids",
            Self::Procedure => "postgresql, in the server (PL/pgSQL)",
            Self::Statements => "postgresql, by our client",
        }
    }
}

/// How much is measured.
struct Size {
    rows: u64,
    batches: &'static [u64],
    time: Duration,
    repeats: u64,
}

impl Size {
    fn of(scale: Scale) -> Self {
        const ALL: &[u64] = &[1, 10, 100, 1000, 10_000, 100_000, 1_000_000];
        let (rows, batches, millis, repeats) = match scale {
            Scale::Tiny => (5000, &[1, 100, 1000][..], 50, 1),
            Scale::Small => (1_000_000, ALL, 1000, 3),
            Scale::Medium => (1_000_000, ALL, 3000, 5),
            Scale::Full => (1_000_000, ALL, 10_000, 7),
        };
        Self { rows, batches, time: Duration::from_millis(millis), repeats }
    }
}

const TABLE: &str = "bench0001";

/// The rate of a side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Rate {
    rows_per_second: f64,
    /// What a million rows cost.
    million: Million,
}

/// Runs the experiment.
pub fn run(args: &ExperimentArgs) -> Result<Ending, Failure> {
    let size = Size::of(args.scale);
    let cold = cold::Size::of(args.scale);
    let mut ground = Ground::open("batch", args, (size.rows * 1000 + cold.most_bytes()).max(256 << 20))?;
    if !measure_all(&mut ground, &size)? || !cold::measure_all(&mut ground, &cold)? {
        return Ok(Ending::Interrupted);
    }
    outcome(&ground, &size, &cold).finish("batch", &ground, args)
}

fn cell_name(repeat: u64, batch: u64, side: Side) -> String {
    format!("{repeat}, batches of {batch}, {}", side.name())
}

/// Measures the missing cells. Returns false after ^C.
fn measure_all(ground: &mut Ground, size: &Size) -> Result<bool, Failure> {
    let all = || (0..size.repeats).flat_map(|repeat| size.batches.iter().map(move |batch| (repeat, *batch)));
    let is_left = |ground: &Ground| {
        all().any(|(repeat, batch)| SIDES.iter().any(|side| !ground.has(&cell_name(repeat, batch, *side))))
    };
    if !is_left(ground) {
        return Ok(true);
    }
    let settings = [("shared_buffers", "1GB"), ("synchronous_commit", "off"), ("max_wal_size", "4GB")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let server = Server::start(&ServerOptions { settings, ..ServerOptions::default() });
    let server = server.map_err(|error| Failure::session("postgres", error.to_string()))?;
    let place = ground.data("larch")?;
    suite::say(&format!("{} rows on Larch and on PostgreSQL", size.rows));
    let setup = SetupParameters { tab_rows: size.rows, batch_size: 10_000, ..SetupParameters::default() };
    let Some(larch) = loaded(&store_larch::ROW_ACCESS, &larch_target(&place), &setup, &ground.stop)? else {
        return Ok(false);
    };
    let Some(postgres) = loaded(&store_postgres::ROW_ACCESS, &server.url("postgres"), &setup, &ground.stop)? else {
        return Ok(false);
    };
    // Read all rows once, so that the first measurement finds the same pages in memory as later ones.
    for database in [&larch, &postgres] {
        let warming = Side::Larch;
        measure(&**database, warming, &parameters(size, size.rows, Duration::ZERO), 0, &ground.stop)?;
    }
    for (repeat, batch) in all() {
        for side in SIDES {
            let database = if matches!(side, Side::Larch | Side::LookUps) { &larch } else { &postgres };
            let parameters = parameters(size, batch, size.time);
            let rate = ground.cell(&cell_name(repeat, batch, side), |stop| {
                let rate = measure(&**database, side, &parameters, repeat, stop)?;
                let rows = rate.rows_per_second;
                suite::say(&format!("batches of {batch:>8}  {:38} {rows:>12.0} rows/s", side.name()));
                Ok(rate)
            })?;
            if rate.is_none() {
                return Ok(false);
            }
        }
    }
    larch.close()?;
    postgres.close()?;
    Ok(true)
}

fn larch_target(place: &Path) -> String {
    format!("larch:{}?cache=1GiB", place.display())
}

/// Opens a database and loads its rows. `None` after ^C.
fn loaded(
    scheme: &RowAccessScheme,
    target: &str,
    setup: &SetupParameters,
    stop: &Stop,
) -> Result<Option<Box<dyn Database>>, Failure> {
    let database = (scheme.open)(&Target::parse(target)?, Opening::OrCreate)?;
    let parameters = SetupParameters { batch_size: setup.batch_size.min(setup.tab_rows), ..setup.clone() };
    let ended = row_access::setup::setup(&*database, &parameters, false, 1, stop.flag(), &|_| {})?;
    Ok((ended == row_access::setup::Ended::Loaded).then_some(database))
}

fn parameters(size: &Size, batch_size: u64, run_duration: Duration) -> RunParameters {
    RunParameters { tab_rows: size.rows, batch_size, run_duration, ..RunParameters::default() }
}

/// Measures one session on one side.
fn measure(
    database: &dyn Database,
    side: Side,
    parameters: &RunParameters,
    seed: u64,
    stop: &Stop,
) -> Result<Rate, Failure> {
    let access = Access { table: TABLE.to_owned(), prepared: true, index_only: false };
    let mut session = match side {
        Side::Larch | Side::Statements => database.session(&access)?,
        Side::LookUps => database.session_reading(TABLE, ReadWay::KnownIds)?.expect("Larch has look-ups"),
        Side::Procedure => {
            let inside = Inside {
                access: &access,
                tab_rows: parameters.tab_rows,
                batch_rows: parameters.batch_rows(),
                pct_update: 0,
                time: parameters.run_duration,
                compat: false,
            };
            let (meter, clock) = (Meter::start(database.used()), harness::Clock::start());
            let seen = database.run_inside(&inside)?.expect("PostgreSQL has procedures");
            let nanos = clock.nanos();
            let million = meter.million(seen.seen.rows, database.used(), None);
            whole(seen.seen.rows, seen.batches * inside.batch_rows)?;
            return Ok(Rate { rows_per_second: seen.seen.rows as f64 * 1e9 / nanos as f64, million });
        }
    };
    let manner = Manner { compat: false, seed, session: 0, in_server: false, line_every: Duration::ZERO };
    let (mut accessed, meter) = (Accessed::new(), Meter::start(database.used()));
    accessed.access_for(&mut *session, parameters, &manner, stop.flag(), &mut |_, _, _, _, _| {})?;
    let million = meter.million(accessed.rows, database.used(), None);
    whole(accessed.rows, accessed.batches * parameters.batch_rows())?;
    Ok(Rate { rows_per_second: accessed.rows_per_second(), million })
}

/// Fails unless every range had all of its rows.
fn whole(rows: u64, asked: u64) -> Result<(), Failure> {
    if rows == asked {
        return Ok(());
    }
    Err(Failure::session(crate::WRONG, format!("{rows} rows were found where there are {asked}")))
}

/// The rates of a side at one batch size, one for each repeat.
fn rates(ground: &Ground, size: &Size, batch: u64, side: Side) -> Vec<f64> {
    let cells = (0..size.repeats).filter_map(|repeat| ground.known::<Rate>(&cell_name(repeat, batch, side)));
    cells.map(|rate| rate.rows_per_second).collect()
}

/// Goals against the PostgreSQL procedure: (batch size, least ratio of Larch's rate to the procedure's).
const AGAINST_PROCEDURE: [(u64, f64); 4] = [(1, 10.0), (10, 5.0), (1000, 3.0), (10_000, 2.0)];
/// The goal against look-ups by known ids: from this batch size on, Larch must reach this share of their rate.
const AGAINST_LOOK_UPS: (u64, f64) = (1000, 0.8);

fn outcome(ground: &Ground, size: &Size, cold: &cold::Size) -> Outcome {
    let of = |batch, side| rates(ground, size, batch, side);
    // Ratios are taken within a repeat, where other load on the machine affects both sides.
    let ratio = |batch, other| {
        let ratios: Vec<f64> =
            of(batch, Side::Larch).iter().zip(of(batch, other)).map(|(ours, other)| ours / other).collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    };
    let row = |batch: &u64| {
        let mut cells = vec![figure(*batch as f64)];
        for side in SIDES {
            let rates = of(*batch, side);
            let (least, most) = extremes(&rates);
            cells.push(format!("{} ({}-{})", figure(median(&rates)), figure(least), figure(most)));
        }
        cells.push(ratio(*batch, Side::Procedure).map_or(String::new(), figure));
        cells.push(ratio(*batch, Side::LookUps).map_or(String::new(), figure));
        cells
    };
    let names = SIDES.map(|side| side.name().to_owned());
    let columns = [
        vec!["rows of a batch".to_owned()],
        names.to_vec(),
        vec!["times PL/pgSQL".to_owned(), "times multi_get".to_owned()],
    ];
    let table = Table {
        caption: format!(
            "Rows a second of one session on {} rows, median of {} (least-most); {PAIRED}",
            size.rows, size.repeats
        ),
        columns: columns.concat(),
        rows: size.batches.iter().map(row).collect(),
    };
    let points = |side| size.batches.iter().map(|batch| (*batch as f64, median(&of(*batch, side)))).collect();
    let chart = Chart {
        title: "Rows a second against the rows of a batch".to_owned(),
        x: Axis::logarithmic("rows of a batch"),
        y: Axis::logarithmic("rows a second"),
        lines: SIDES.map(|side| Curve { name: side.name().to_owned(), points: points(side) }).to_vec(),
        marks: Vec::new(),
    };
    let published = Table {
        caption: "Published by ybio of a YugabyteDB, one session, other machines: rows a second".to_owned(),
        columns: ["rows of a batch", "rows a second", "rows updated"].map(str::to_owned).to_vec(),
        rows: PUBLISHED.iter().map(|row| row.map(str::to_owned).to_vec()).collect(),
    };
    let mut goals: Vec<Goal> = AGAINST_PROCEDURE
        .iter()
        .filter(|(batch, _)| size.batches.contains(batch))
        .map(|(batch, times)| Goal {
            what: format!("batches of {batch}: rows a second against PL/pgSQL"),
            bound: Bound::AtLeast(*times),
            measured: ratio(*batch, Side::Procedure),
        })
        .collect();
    let (from, share) = AGAINST_LOOK_UPS;
    goals.extend(size.batches.iter().filter(|batch| **batch >= from).map(|batch| Goal {
        what: format!("batches of {batch}: rows a second against multi_get of known ids"),
        bound: Bound::AtLeast(share),
        measured: ratio(*batch, Side::LookUps),
    }));
    let ([cold_table, disk_table], cold_goals) = cold::outcome(ground, cold);
    goals.extend(cold_goals);
    Outcome {
        title: "Row access: the size of a batch".to_owned(),
        about: ABOUT.map(str::to_owned).to_vec(),
        blocks: vec![
            Block::Chart(chart),
            Block::Table(table),
            Block::Table(cold_table),
            Block::Table(disk_table),
            Block::Table(published),
        ],
        goals,
    }
}

const ABOUT: [&str; 5] = [
    "One session reads random ranges of an indexed number, whose rows are scattered over the table: the experiment of ybio, by the SLOB \
     method. The larger a range is, the more rows come back for one call.",
    "All rows are in the caches (1 GiB each), nothing is updated, and every range is checked to have all of its rows. Sides and sizes \
     are measured in turn, and all of it is repeated.",
    "PL/pgSQL runs in the server and does not cross a socket. Our client sends each statement through a Unix socket, and waits.",
    "multi_get looks the same rows up by ids that are known beforehand: what Larch could reach if its index cost nothing.",
    "Rows that are not in memory are read in two ways: by the index, which asks for the pages of many rows at once, and one row after \
     the other.",
];

/// The results on ybio's page: rows of a batch, rows per second, share of rows updated.
const PUBLISHED: [[&str; 3]; 9] = [
    ["1", "563", "10 %"],
    ["10", "4,962", "10 %"],
    ["25", "9,493", "10 %"],
    ["50", "13,101", "10 %"],
    ["75", "14,300", "10 %"],
    ["250,000", "30,222", "5 %"],
    ["500,000", "34,109", "5 %"],
    ["750,000", "34,499", "5 %"],
    ["1,000,000", "32,053", "5 %"],
];
