//! `larch bench experiment engines`: TPC-C on several engines. Embedded engines run with synced and with buffered
//! commits and several numbers of threads each. PostgreSQL runs alone, and again with commits that wait for two
//! replicas. Terminals never wait, and all rows fit in memory.
//!
//! The default build has Larch and PostgreSQL; `--with rocksdb,sqlite` adds RocksDB and SQLite.

use crate::args::{ExperimentArgs, Scale};
use crate::ground::Ground;
use crate::made::Made;
use crate::measured::shown;
use crate::outcome::{Ending, Goal, Outcome, facts};
use crate::terminals::{self, Asked, Ran, WAREHOUSE_BYTES};
use harness::Failure;
use kit::goals::Bound;
use kit::median;
use page::{Block, Table};
use std::path::Path;
use std::time::Duration;
use store_postgres::server::{Server, ServerOptions};
use suite::stop::Stop;
use tpcc::TpccScheme;

#[cfg(test)]
mod tests;

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    Larch,
    Sqlite,
    RocksDb,
    Postgres,
    /// PostgreSQL with two synchronous replicas.
    Replicated,
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    Synced,
    Buffered,
}

/// An engine and how it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Side {
    engine: Engine,
    durability: Durability,
    threads: usize,
    /// For a server: the connections of all threads together. For SQLite: the transactions that share a commit.
    together: usize,
}

impl Engine {
    const IN_PROCESS: [Self; 3] = [Self::Larch, Self::Sqlite, Self::RocksDb];

    fn name(self) -> &'static str {
        match self {
            Self::Larch => "larch",
            Self::Sqlite => "sqlite",
            Self::RocksDb => "rocksdb",
            Self::Postgres => "postgresql",
            Self::Replicated => "postgresql and two synchronous replicas",
        }
    }

    /// The name of its scheme.
    fn scheme(self) -> &'static str {
        match self {
            Self::Postgres | Self::Replicated => "postgres",
            engine => engine.name(),
        }
    }

    /// The ways to run the engine, as (`Side::threads`, `Side::together`).
    fn ways(self, durability: Durability) -> &'static [(usize, usize)] {
        match (self, durability) {
            (Self::Larch, _) => &[(1, 1), (2, 1)],
            (Self::Sqlite, Durability::Synced) => &[(1, 1), (1, 100), (4, 1)],
            (Self::Sqlite, Durability::Buffered) => &[(1, 1), (1, 100), (2, 1)],
            (Self::RocksDb, Durability::Synced) => &[(1, 1), (16, 1), (64, 1)],
            (Self::RocksDb, Durability::Buffered) => &[(1, 1), (2, 1), (4, 1)],
            (Self::Postgres, _) => &[(1, 1), (1, 8), (1, 16)],
            (Self::Replicated, _) => &[(1, 8), (1, 16), (1, 32)],
        }
    }
}

impl Side {
    fn name(self) -> String {
        let Self { engine, durability, threads, together } = self;
        let durability = match durability {
            Durability::Synced => "synced",
            Durability::Buffered => "buffered",
        };
        let more = match (engine, together) {
            (Engine::Postgres | Engine::Replicated, 1) => ", 1 connection".to_owned(),
            (Engine::Postgres | Engine::Replicated, count) => format!(", {count} connections"),
            (_, 1) => String::new(),
            (_, count) => format!(", {count} transactions a commit"),
        };
        let threads = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        format!("{}, {durability}, {threads}{more}", engine.name())
    }
}

/// How much is measured.
struct Size {
    warehouses: u32,
    asked: Asked,
    repeats: u64,
    cache: &'static str,
    shared_buffers: &'static str,
    has_goals: bool,
}

impl Size {
    fn of(scale: Scale) -> Self {
        let asked = |terminals, warmup, time| Asked {
            threads: 1,
            connections: None,
            terminals,
            warmup: Duration::from_millis(warmup),
            time: Duration::from_millis(time),
            seed: 1,
        };
        let usual = Self {
            warehouses: 10,
            asked: asked(100, 30_000, 20_000),
            repeats: 1,
            cache: "3GiB",
            shared_buffers: "3GB",
            has_goals: true,
        };
        match scale {
            Scale::Tiny => Self {
                warehouses: 1,
                asked: asked(10, 100, 300),
                repeats: 1,
                cache: "64MiB",
                shared_buffers: "64MB",
                has_goals: false,
            },
            Scale::Small => Self { warehouses: 2, asked: asked(20, 2000, 4000), repeats: 1, has_goals: false, ..usual },
            Scale::Medium => usual,
            Scale::Full => Self { asked: asked(100, 120_000, 120_000), repeats: 3, ..usual },
        }
    }
}

/// Runs the experiment on the engines that `schemes` has.
pub fn run(args: &ExperimentArgs, schemes: &[TpccScheme]) -> Result<Ending, Failure> {
    let size = Size::of(args.scale);
    // Room for each database, a copy of it, and the replicas.
    let most_bytes = 10 * u64::from(size.warehouses) * WAREHOUSE_BYTES;
    let mut ground = Ground::open("engines", args, most_bytes)?;
    if !measure_all(&mut ground, &size, schemes)? {
        return Ok(Ending::Interrupted);
    }
    outcome(&ground, &size, schemes).finish("engines", &ground, args)
}

fn scheme(engine: Engine, schemes: &[TpccScheme]) -> Option<&TpccScheme> {
    schemes.iter().find(|scheme| scheme.name == engine.scheme())
}

/// The sides of an engine at one durability.
fn sides(engine: Engine, durability: Durability) -> impl Iterator<Item = Side> {
    let ways = engine.ways(durability).iter();
    ways.map(move |&(threads, together)| Side { engine, durability, threads, together })
}

/// The sides of all engines in this binary, in the order of the table's rows.
fn all_sides(schemes: &[TpccScheme]) -> Vec<Side> {
    let mut all = Vec::new();
    for durability in [Durability::Synced, Durability::Buffered] {
        for engine in Engine::IN_PROCESS {
            all.extend(scheme(engine, schemes).into_iter().flat_map(|_| sides(engine, durability)));
        }
    }
    for engine in [Engine::Postgres, Engine::Replicated] {
        all.extend(scheme(engine, schemes).into_iter().flat_map(|_| sides(engine, Durability::Synced)));
    }
    all
}

fn cell_name(repeat: u64, side: Side) -> String {
    format!("{repeat}, {}", side.name())
}

/// Measures the missing cells. Returns false after ^C.
fn measure_all(ground: &mut Ground, size: &Size, schemes: &[TpccScheme]) -> Result<bool, Failure> {
    let all = all_sides(schemes);
    let is_left = |ground: &Ground, is_server: bool| {
        let of_kind = all.iter().filter(|side| Engine::IN_PROCESS.contains(&side.engine) != is_server);
        (0..size.repeats).any(|repeat| of_kind.clone().any(|side| !ground.has(&cell_name(repeat, *side))))
    };
    if is_left(ground, false) && !measure_in_process(ground, size, schemes)? {
        return Ok(false);
    }
    match scheme(Engine::Postgres, schemes) {
        Some(scheme) if is_left(ground, true) => measure_server(ground, size, scheme),
        _ => Ok(true),
    }
}

/// The target of an embedded engine.
fn target(engine: Engine, place: &Path, size: &Size, side: Option<Side>) -> String {
    let durability = match side {
        Some(Side { durability: Durability::Synced, .. }) => "synced",
        _ => "buffered",
    };
    let (name, place, cache) = (engine.name(), place.display(), size.cache);
    match engine {
        Engine::Sqlite => {
            let group = side.map_or(1, |side| side.together);
            format!("{name}:{place}/tpcc.sqlite?cache={cache}&durability={durability}&group={group}")
        }
        _ => format!("{name}:{place}?cache={cache}&durability={durability}"),
    }
}

fn measure_in_process(ground: &mut Ground, size: &Size, schemes: &[TpccScheme]) -> Result<bool, Failure> {
    let mut there = Vec::new();
    for engine in Engine::IN_PROCESS {
        let Some(scheme) = scheme(engine, schemes) else { continue };
        let made = Made::open(ground, engine.name(), |place| {
            suite::say(&format!("{} warehouses on {}", size.warehouses, engine.name()));
            if engine == Engine::Sqlite {
                make_directory(place)?;
            }
            terminals::import(scheme, &target(engine, place, size, None), size.warehouses, &ground.stop)
        })?;
        let Some(made) = made else { return Ok(false) };
        there.push((scheme, made));
    }
    // Engines take turns, so that other load on the machine affects them all.
    for repeat in 0..size.repeats {
        for side in all_sides(schemes) {
            let Some((scheme, made)) = there.iter().find(|(scheme, _)| scheme.name == side.engine.scheme()) else {
                continue;
            };
            let ran = ground.cell(&cell_name(repeat, side), |stop| {
                let copy = made.copy()?;
                measure(scheme, &target(side.engine, copy.place(), size, Some(side)), (size, repeat, side), stop)
            })?;
            if ran.is_none() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

#[allow(clippy::disallowed_methods, reason = "databases of real files, never simulated")]
fn make_directory(place: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(place).map_err(|error| harness::directory::failure(&error, "make", place))
}

fn measure_server(ground: &mut Ground, size: &Size, scheme: &TpccScheme) -> Result<bool, Failure> {
    let broken = |error: &dyn std::fmt::Display| Failure::session("postgres", error.to_string());
    let settings = [("shared_buffers", size.shared_buffers), ("max_wal_size", "8GB"), ("max_connections", "100")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let server = Server::start(&ServerOptions { settings, ..ServerOptions::default() });
    let server = server.map_err(|error| broken(&error))?;
    suite::say(&format!("{} warehouses on PostgreSQL", size.warehouses));
    if !terminals::import(scheme, &server.url("postgres"), size.warehouses, &ground.stop)? {
        return Ok(false);
    }
    let run_all = |ground: &mut Ground, engine: Engine| {
        for repeat in 0..size.repeats {
            for side in sides(engine, Durability::Synced) {
                let target = server.url("postgres");
                let ran = ground
                    .cell(&cell_name(repeat, side), |stop| measure(scheme, &target, (size, repeat, side), stop))?;
                if ran.is_none() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    };
    if !run_all(ground, Engine::Postgres)? {
        return Ok(false);
    }
    let names = ["one", "two"];
    let mut replicas = Vec::new();
    for name in names {
        suite::say(&format!("a replica, {name}"));
        replicas.push(Server::start_replica(&server, name).map_err(|error| broken(&error))?);
    }
    server.wait_for_replicas(&names).map_err(|error| broken(&error))?;
    run_all(ground, Engine::Replicated)
}

fn measure(
    scheme: &TpccScheme,
    target: &str,
    (size, repeat, side): (&Size, u64, Side),
    stop: &Stop,
) -> Result<Ran, Failure> {
    let is_server = !Engine::IN_PROCESS.contains(&side.engine);
    let connections = is_server.then(|| side.together.div_ceil(side.threads));
    let asked = Asked { threads: side.threads, connections, seed: 1 + repeat, ..size.asked };
    let ran = terminals::run(scheme, target, &asked, stop)?;
    if !stop.is_pressed() {
        suite::say(&format!("{:60} {:>9.0} tpmC, 99 % of new orders {:.1} ms", side.name(), ran.tpmc, late(&ran)));
    }
    Ok(ran)
}

/// The 99th percentile of new orders, in milliseconds.
fn late(ran: &Ran) -> f64 {
    ran.percentile_99() / 1e3
}

fn runs(ground: &Ground, size: &Size, side: Side) -> Vec<Ran> {
    (0..size.repeats).filter_map(|repeat| ground.known(&cell_name(repeat, side))).collect()
}

fn middle(runs: &[Ran], what: impl Fn(&Ran) -> f64) -> Option<f64> {
    let figures: Vec<f64> = runs.iter().map(what).collect();
    (!figures.is_empty()).then(|| median(&figures))
}

/// The best tpmC of an engine at this durability, over all ways to run it.
fn best(ground: &Ground, size: &Size, engine: Engine, durability: Durability) -> Option<f64> {
    let of_sides = sides(engine, durability).filter_map(|side| middle(&runs(ground, size, side), |ran| ran.tpmc));
    of_sides.reduce(f64::max)
}

fn outcome(ground: &Ground, size: &Size, schemes: &[TpccScheme]) -> Outcome {
    let row = |side: Side| {
        let runs = runs(ground, size, side);
        let kind = |ran: &Ran, of: fn(&crate::measured::Kind) -> f64| {
            ran.kinds.iter().find(|kind| kind.name == "NewOrder").map_or(f64::NAN, of) / 1e3
        };
        vec![
            side.name(),
            shown(middle(&runs, |ran| ran.tpmc)),
            shown(runs.iter().map(|ran| ran.tpmc).reduce(f64::min)),
            shown(runs.iter().map(|ran| ran.tpmc).reduce(f64::max)),
            shown(middle(&runs, |ran| kind(ran, |kind| kind.average))),
            shown(middle(&runs, |ran| kind(ran, |kind| kind.percentile_95))),
            shown(middle(&runs, late)),
            shown(middle(&runs, |ran| ran.million.cpu_seconds.unwrap_or(f64::NAN))),
            shown(middle(&runs, |ran| ran.million.client_cpu_seconds.unwrap_or(f64::NAN))),
        ]
    };
    let columns = [
        "engine",
        "tpmC",
        "least",
        "most",
        "new order, ms",
        "95 %",
        "99 %",
        "processor s a million transactions",
        "of the client",
    ];
    let table = Table {
        caption: format!(
            "TPC-C without waits, {} warehouses that fit into memory, {} terminals, {} s after {} s; median of {}. A time is that until the \
             commit is durable, where it is synced. The twelve conditions hold after each run",
            size.warehouses,
            size.asked.terminals,
            size.asked.time.as_secs_f64(),
            size.asked.warmup.as_secs_f64(),
            size.repeats
        ),
        columns: columns.map(str::to_owned).to_vec(),
        rows: all_sides(schemes).into_iter().map(row).collect(),
    };
    Outcome {
        title: "TPC-C on several engines".to_owned(),
        about: ABOUT.map(str::to_owned).to_vec(),
        blocks: vec![
            facts(&[
                ("cache of engines in the process", size.cache.to_owned()),
                ("shared_buffers", size.shared_buffers.to_owned()),
            ]),
            Block::Table(table),
        ],
        goals: if size.has_goals { goals(ground, size, schemes) } else { Vec::new() },
    }
}

fn goals(ground: &Ground, size: &Size, schemes: &[TpccScheme]) -> Vec<Goal> {
    let one_thread = |durability| {
        let side = Side { engine: Engine::Larch, durability, threads: 1, together: 1 };
        middle(&runs(ground, size, side), |ran| ran.tpmc)
    };
    let mut goals = vec![Goal {
        what: "tpmC of Larch with one thread, synced".to_owned(),
        bound: Bound::AtLeast(150_000.0),
        measured: one_thread(Durability::Synced),
    }];
    for (engine, durability, least) in [
        (Engine::Sqlite, Durability::Synced, 2.0),
        (Engine::RocksDb, Durability::Synced, 2.0),
        (Engine::RocksDb, Durability::Buffered, 1.5),
    ] {
        if scheme(engine, schemes).is_none() {
            continue;
        }
        let word = if durability == Durability::Synced { "synced" } else { "buffered" };
        let peer = best(ground, size, engine, durability);
        goals.push(Goal {
            what: format!("tpmC of Larch with one thread, {word}, for the best of {}", engine.name()),
            bound: Bound::AtLeast(least),
            measured: one_thread(durability).zip(peer).map(|(ours, theirs)| ours / theirs),
        });
    }
    goals
}

const ABOUT: [&str; 2] = [
    "The five transactions of TPC-C, serializable, on engines in this process and on PostgreSQL through its wire. Each engine is given \
     several numbers of threads or connections, because its best number is not that of the others.",
    "Synced: a transaction is answered when its commit is on disk, and an engine makes those durable together that wait at the same time. \
     Buffered: the log is with the system.",
];
