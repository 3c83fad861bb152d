//! Runs TPC-C on a database and checks the database afterwards, for the cells of several experiments.

use crate::ycsb_run::{Kind, in_longer_times, kinds};
use harness::{Counter, Failure, Length, Million, Opening, Plan, RunError, Target};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use suite::stop::Stop;
use tpcc::check::{self, After};
use tpcc::import::Progress;
use tpcc::rules::{Mode, Rules};
use tpcc::summary::Summary;
use tpcc::terminal::Terminals;
use tpcc::transactions::now;
use tpcc::{Database, Drawing, Form, Setup, TpccScheme};

/// The seed of every database.
const SEED: u64 = 1;

/// Threads that import and check.
const THREADS: usize = 2;

/// Disk space of a warehouse with its indexes during the import.
pub const WAREHOUSE_BYTES: u64 = 110 << 20;

/// How to run terminals, which never wait between transactions.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Threads of the client, over which the terminals are spread.
    pub threads: usize,
    /// The transactions that each thread may have in flight, over a network its connections. `None`: the database's
    /// default.
    pub connections: Option<usize>,
    pub terminals: usize,
    pub warmup: Duration,
    pub time: Duration,
    pub seed: u64,
}

/// The figures of a run whose database passed the check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TpccRun {
    pub new_orders: u64,
    pub transactions: u64,
    /// Transactions that failed for good.
    pub failed: u64,
    pub tpmc: f64,
    pub kinds: Vec<Kind>,
    pub page_reads: u64,
    /// Index nodes and flat lists among them.
    pub index_page_reads: u64,
    /// Bytes of these pages.
    pub read_bytes: u64,
    /// Bytes of log, flushes and compactions.
    pub written_bytes: u64,
    /// The most bytes in the page cache, sampled once a second.
    pub most_cache_bytes: u64,
    /// The most memory of the database, as it reports it.
    pub most_memory_bytes: u64,
    /// Rows that the check read.
    pub checked_rows: u64,
    /// What a million transactions cost.
    pub million: Million,
}

impl TpccRun {
    /// The 99th percentile of new orders, in microseconds.
    pub fn percentile_99(&self) -> Option<f64> {
        self.kinds.iter().find(|kind| kind.name == "NewOrder")?.percentile_99
    }

    /// `count` per transaction.
    pub fn each(&self, count: u64) -> f64 {
        count as f64 / self.transactions.max(1) as f64
    }
}

fn open(scheme: &TpccScheme, target: &str, setup: &Setup) -> Result<Box<dyn Database>, Failure> {
    (scheme.open)(&Target::parse(target)?, setup)
}

/// Creates a database of `warehouses` warehouses, which is not complete after ^C.
pub fn import(scheme: &TpccScheme, target: &str, warehouses: u32, stop: &Stop) -> Result<(), Failure> {
    let database = open(scheme, target, &Setup { opening: Opening::OrCreate, connections: None })?;
    let form = Form { warehouses, seed: SEED, loaded: now() };
    database.create(&form)?;
    tpcc::import::import(&*database, &form, THREADS, stop.flag(), &Progress::default())?;
    database.make_indexes()?;
    database.settle()?;
    database.close()
}

/// Runs terminals on an imported database, and then checks it.
///
/// # Errors
///
/// Fails if the database failed, if no new order was measured, or if the database is not consistent after the run. After ^C it
/// may fail.
pub fn run(scheme: &TpccScheme, target: &str, asked: &Asked, stop: &Stop) -> Result<TpccRun, Failure> {
    let database = open(scheme, target, &Setup { opening: Opening::Existing, connections: asked.connections })?;
    let none = || Failure::session(crate::WRONG, format!("{target} has no database of TPC-C"));
    let form = database.form()?.ok_or_else(none)?;
    let rules = Rules { mode: Mode::NoWait, drawing: Drawing::of(&form) };
    let plan = |times: u32| Plan {
        clients: asked.terminals,
        workers: asked.threads,
        warmup: asked.warmup,
        length: Length::Time(times * asked.time),
        ..Plan::default()
    };
    let value = |counters: &[Counter], name: &str| counters.iter().find(|it| it.name == name).map_or(0, |it| it.value);
    let (mut most_cache_bytes, mut most_memory_bytes) = (0, 0);
    let (mode, warehouses) = (rules.mode, form.warehouses);
    let ended = in_longer_times(stop, |times| {
        // Another seed for each attempt: the same one would repeat payments with the same keys, which would replace
        // rows of the history.
        let seed = asked.seed ^ u64::from(times - 1) << 32;
        let terminals = Terminals { rules: &rules, warehouses: 1..=form.warehouses, seed };
        let measured = harness::run(&*database, &terminals, &plan(times), stop.flag(), &mut |_| {
            let counters = database.counters();
            most_cache_bytes = most_cache_bytes.max(value(&counters, "cache bytes"));
            most_memory_bytes = most_memory_bytes.max(value(&counters, "memory bytes"));
        })?;
        // Without a new order there is no tpmC.
        let has_new_orders = Summary { mode, warehouses, measured: &measured }.new_orders() > 0;
        if has_new_orders { Ok(measured) } else { Err(RunError::NothingMeasured { partial: Box::new(measured) }) }
    });
    let measured = ended.map_err(|error| match &error {
        RunError::NothingMeasured { partial } if partial.operations > 0 => {
            Failure::session(crate::NOTHING, "no new order was completed in the time")
        }
        RunError::NothingMeasured { .. } => Failure::session(crate::NOTHING, error.to_string()),
        _ => Failure::session("run", error.to_string()),
    })?;
    let summary = Summary { mode, warehouses, measured: &measured };
    let checked = {
        let view = database.view()?;
        check::check(&*view, &form, THREADS, After::Run, stop.flag(), &|_| {})?
    };
    if let Some(finding) = checked.findings.first() {
        return Err(Failure::session(crate::WRONG, format!("{target} is not consistent after the run: {finding}")));
    }
    let counted = |name: &str| {
        let change = measured.counters.iter().find(|change| change.name == name);
        change.and_then(harness::Change::counted).unwrap_or(0)
    };
    let ran = TpccRun {
        new_orders: summary.new_orders(),
        transactions: measured.operations,
        failed: measured.failed,
        tpmc: summary.tpmc(),
        kinds: kinds(&measured),
        page_reads: counted("page reads"),
        index_page_reads: counted("index page reads"),
        read_bytes: counted("bytes read"),
        written_bytes: counted("log bytes") + counted("bytes written"),
        most_cache_bytes,
        most_memory_bytes,
        checked_rows: checked.rows,
        million: Million::of(&measured, None, None),
    };
    database.close()?;
    Ok(ran)
}
