//! `larch bench experiment engines`: TPC-C on several engines. Embedded engines run with synced and with buffered
//! commits and several numbers of threads each. PostgreSQL runs alone, and again with commits that wait for two
//! replicas. Terminals never wait, and all rows fit in memory.
//!
//! The default build has Larch and PostgreSQL; `--with rocksdb,sqlite` adds RocksDB and SQLite.

use crate::args::Scale;
use crate::experiment::{About, Experiment, Kept};
use crate::figures::{middle, shown, shown_middle};
use crate::ground::Ground;
use crate::made::Made;
use crate::outcome::{Goal, facts, table};
use crate::terminals::{self, Asked, TpccRun, WAREHOUSE_BYTES};
use crate::ycsb_run::Kind;
use harness::Failure;
use page::Block;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use stores::postgres::server::{Server, ServerOptions};
use suite::stop::Stop;
use tpcc::TpccScheme;

#[cfg(test)]
mod tests;

/// The experiment: the engines that this binary has, and how much it measures.
pub struct Engines<'s> {
    extent: Extent,
    schemes: &'s [TpccScheme],
    server: Option<Cluster>,
}

/// A server of PostgreSQL, and its replicas once they are needed.
struct Cluster {
    replicas: Vec<Server>,
    server: Server,
}

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
struct Extent {
    warehouses: u32,
    asked: Asked,
    repeats: u64,
    cache: &'static str,
    shared_buffers: &'static str,
    has_goals: bool,
}

impl Extent {
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

/// A side in one repeat.
#[derive(Clone, Copy)]
pub struct Cell(u64, Side);

impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", self.0, self.1.name())
    }
}

impl Experiment for Engines<'_> {
    const ABOUT: About = About {
        name: "engines",
        title: "TPC-C on several engines",
        text: &[
            "The five transactions of TPC-C, serializable, on engines in this process and on PostgreSQL through its wire. Each engine is given \
             several numbers of threads or connections, because its best number is not that of the others.",
            "Synced: a transaction is answered when its commit is on disk, and an engine makes those durable together that wait at the same time. \
             Buffered: the log is with the system.",
        ],
    };

    type Cell = Cell;

    fn most_bytes(&self) -> u64 {
        // Room for each database, a copy of it, and the replicas.
        10 * u64::from(self.extent.warehouses) * WAREHOUSE_BYTES
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        // Engines take turns, so that other load on the machine affects them all. Replicas come last, because
        // PostgreSQL is not alone afterwards.
        for engines in [&Engine::IN_PROCESS[..], &[Engine::Postgres], &[Engine::Replicated]] {
            for repeat in 0..self.extent.repeats {
                let sides = self.sides().into_iter().filter(|side| engines.contains(&side.engine));
                cells.extend(sides.map(|side| Cell(repeat, side)));
            }
        }
        cells
    }

    fn prepare(&mut self, cell: &Cell, ground: &mut Ground) -> Result<(), Failure> {
        match Engine::IN_PROCESS.contains(&cell.1.engine) {
            true => self.made(cell.1.engine, ground).map(drop),
            false => Ok(()),
        }
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Kept, Failure> {
        let Cell(repeat, side) = *cell;
        let scheme = self.scheme(side.engine).expect("cells are of engines that are here");
        let is_server = !Engine::IN_PROCESS.contains(&side.engine);
        let connections = is_server.then(|| side.together.div_ceil(side.threads));
        let asked = Asked { threads: side.threads, connections, seed: 1 + repeat, ..self.extent.asked };
        let ran = if is_server {
            let target = self.server(side.engine, ground)?;
            terminals::run(scheme, &target, &asked, &ground.stop)?
        } else {
            let copy = self.made(side.engine, ground)?.copy()?;
            terminals::run(scheme, &self.target(side.engine, copy.place(), Some(side)), &asked, &ground.stop)?
        };
        Ok(Kept::new(&ran, format!("{:>9.0} tpmC, 99 % of new orders {} ms", ran.tpmc, shown(late(&ran)))))
    }

    fn tables(&self, ground: &Ground) -> Result<Vec<Block>, Failure> {
        type Row = (Side, Vec<TpccRun>);
        let kind = |(_, runs): &Row, of: fn(&Kind) -> Option<f64>| {
            let orders = |ran: &TpccRun| ran.kinds.iter().find(|kind| kind.name == "NewOrder").and_then(of);
            shown_middle(runs, |ran| Some(orders(ran)? / 1e3))
        };
        let tpmc = |(_, runs): &Row, of: fn(f64, f64) -> f64| shown(runs.iter().map(|ran| ran.tpmc).reduce(of));
        let caption = format!(
            "TPC-C without waits, {} warehouses that fit into memory, {} terminals, {} s after {} s; median of {}. A time is that until the \
             commit is durable, where it is synced. The twelve conditions hold after each run",
            self.extent.warehouses,
            self.extent.asked.terminals,
            self.extent.asked.time.as_secs_f64(),
            self.extent.asked.warmup.as_secs_f64(),
            self.extent.repeats
        );
        Ok(vec![
            facts(&[
                ("cache of engines in the process", self.extent.cache.to_owned()),
                ("shared_buffers", self.extent.shared_buffers.to_owned()),
            ]),
            table(
                caption,
                self.sides().into_iter().map(|side| (side, self.runs(ground, side))),
                &[
                    ("engine", &|(side, _)| side.name()),
                    ("tpmC", &|(_, runs)| shown_middle(runs, |ran| ran.tpmc)),
                    ("least", &|row| tpmc(row, f64::min)),
                    ("most", &|row| tpmc(row, f64::max)),
                    ("new order, ms", &|row| kind(row, |kind| Some(kind.average))),
                    ("95 %", &|row| kind(row, |kind| kind.percentile_95)),
                    ("99 %", &|(_, runs)| shown_middle(runs, late)),
                    ("processor s a million transactions", &|(_, runs)| {
                        shown_middle(runs, |ran| ran.million.cpu_seconds)
                    }),
                    ("of the client", &|(_, runs)| shown_middle(runs, |ran| ran.million.client_cpu_seconds)),
                ],
            ),
        ])
    }

    fn goals(&self, ground: &Ground) -> Vec<Goal> {
        if !self.extent.has_goals {
            return Vec::new();
        }
        let one_thread = |durability| {
            let side = Side { engine: Engine::Larch, durability, threads: 1, together: 1 };
            middle(&self.runs(ground, side), |ran| ran.tpmc)
        };
        let what = "tpmC of Larch with one thread, synced";
        let mut goals = vec![Goal::at_least(150_000.0, what, one_thread(Durability::Synced))];
        for (engine, durability, least) in [
            (Engine::Sqlite, Durability::Synced, 2.0),
            (Engine::RocksDb, Durability::Synced, 2.0),
            (Engine::RocksDb, Durability::Buffered, 1.5),
        ] {
            if self.scheme(engine).is_none() {
                continue;
            }
            let word = if durability == Durability::Synced { "synced" } else { "buffered" };
            let ratio = one_thread(durability).zip(self.best(ground, engine, durability));
            let what = format!("tpmC of Larch with one thread, {word}, for the best of {}", engine.name());
            goals.push(Goal::at_least(least, what, ratio.map(|(ours, theirs)| ours / theirs)));
        }
        goals
    }
}

impl<'s> Engines<'s> {
    /// The experiment at `scale` on the engines that `schemes` has.
    pub fn of(scale: Scale, schemes: &'s [TpccScheme]) -> Self {
        Self { extent: Extent::of(scale), schemes, server: None }
    }

    fn scheme(&self, engine: Engine) -> Option<&'s TpccScheme> {
        self.schemes.iter().find(|scheme| scheme.name == engine.scheme())
    }

    /// The sides of all engines in this binary, in the order of the table's rows.
    fn sides(&self) -> Vec<Side> {
        let in_process =
            [Durability::Synced, Durability::Buffered].map(|durability| Engine::IN_PROCESS.map(|it| (it, durability)));
        let servers = [Engine::Postgres, Engine::Replicated].map(|engine| (engine, Durability::Synced));
        let all = in_process.into_iter().flatten().chain(servers);
        let here = all.filter(|(engine, _)| self.scheme(*engine).is_some());
        here.flat_map(|(engine, durability)| sides(engine, durability)).collect()
    }

    fn runs(&self, ground: &Ground, side: Side) -> Vec<TpccRun> {
        ground.all(self.extent.repeats, |repeat| Cell(repeat, side))
    }

    /// The best tpmC of an engine at this durability, over all ways to run it.
    fn best(&self, ground: &Ground, engine: Engine, durability: Durability) -> Option<f64> {
        let of_side = |side| middle(&self.runs(ground, side), |ran| ran.tpmc);
        sides(engine, durability).filter_map(of_side).reduce(f64::max)
    }

    /// The target of an embedded engine.
    fn target(&self, engine: Engine, place: &Path, side: Option<Side>) -> String {
        let durability = match side {
            Some(Side { durability: Durability::Synced, .. }) => "synced",
            _ => "buffered",
        };
        let (name, place, cache) = (engine.name(), place.display(), self.extent.cache);
        match engine {
            Engine::Sqlite => {
                let group = side.map_or(1, |side| side.together);
                format!("{name}:{place}/tpcc.sqlite?cache={cache}&durability={durability}&group={group}")
            }
            _ => format!("{name}:{place}?cache={cache}&durability={durability}"),
        }
    }

    /// The database of an embedded engine.
    fn made(&self, engine: Engine, ground: &mut Ground) -> Result<Made, Failure> {
        let scheme = self.scheme(engine).expect("cells are of engines that are here");
        let build = |place: &Path, stop: &Stop| {
            suite::say(&format!("{} warehouses on {}", self.extent.warehouses, engine.name()));
            if engine == Engine::Sqlite {
                make_directory(place)?;
            }
            terminals::import(scheme, &self.target(engine, place, None), self.extent.warehouses, stop)
        };
        Ok(ground.built(engine.name(), build)?.0)
    }

    /// The address of the server, which is started with its rows if it does not run yet; so are replicas, if `engine` has
    /// them.
    fn server(&mut self, engine: Engine, ground: &Ground) -> Result<String, Failure> {
        let broken = |error: &dyn fmt::Display| Failure::session("postgres", error.to_string());
        if self.server.is_none() {
            let buffers = ("shared_buffers", self.extent.shared_buffers);
            let settings = [buffers, ("max_wal_size", "8GB"), ("max_connections", "100")];
            let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
            let server = Server::start(&ServerOptions { settings, ..ServerOptions::default() });
            let server = server.map_err(|error| broken(&error))?;
            suite::say(&format!("{} warehouses on PostgreSQL", self.extent.warehouses));
            let scheme = self.scheme(engine).expect("cells are of engines that are here");
            terminals::import(scheme, &server.url("postgres"), self.extent.warehouses, &ground.stop)?;
            ground.check_stop()?;
            self.server = Some(Cluster { replicas: Vec::new(), server });
        }
        let Cluster { server, replicas } = self.server.as_mut().expect("it was just started");
        if engine == Engine::Replicated && replicas.is_empty() {
            let names = ["one", "two"];
            for name in names {
                suite::say(&format!("a replica, {name}"));
                replicas.push(Server::start_replica(server, name).map_err(|error| broken(&error))?);
            }
            server.wait_for_replicas(&names).map_err(|error| broken(&error))?;
        }
        Ok(server.url("postgres"))
    }
}

/// The sides of an engine at one durability.
fn sides(engine: Engine, durability: Durability) -> impl Iterator<Item = Side> {
    let ways = engine.ways(durability).iter();
    ways.map(move |&(threads, together)| Side { engine, durability, threads, together })
}

#[allow(clippy::disallowed_methods, reason = "databases of real files, never simulated")]
fn make_directory(place: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(place).map_err(|error| harness::directory::failure(&error, "make", place))
}

/// The 99th percentile of new orders, in milliseconds.
fn late(ran: &TpccRun) -> Option<f64> {
    Some(ran.percentile_99()? / 1e3)
}
