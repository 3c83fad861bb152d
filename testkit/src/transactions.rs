//! Runs random transactions on the engine and checks their isolation, either interleaved on one thread of a
//! simulated machine, whose disk fails, fills up and loses what was not synced, or on threads of the real machine. A
//! run consists of phases. Each phase plays a plan of transactions on the open database and does other work between
//! its steps. At its end, the database stays open or is closed, the process is killed, or the machine loses power.
//! The history of the phase is then checked. If the database was opened again, a reader of all rows is added, and
//! the history is checked a second time, without the commits that a power cut lost.

mod beside;
mod threads;

pub use threads::on_threads;

use crate::faults::{arm, expect_to_go_on, is_final};
use crate::history::DIRECTORY;
use crate::isolation::anomaly::{Anomaly, Kind};
use crate::isolation::engine::{Ends, EngineStore, TABLES};
use crate::isolation::indexes;
use crate::isolation::plan::{Levels, Plan, PlannedTransaction, Step};
use crate::isolation::player::{Player, Tally, play_beside};
use crate::isolation::transaction::{Direction, Isolation, Operation, Outcome, Transaction};
use crate::isolation::{check_as, check_with_unknown, lose_after};
use crate::options::TinyOptions;
use crate::rerun::Rerun;
use beside::Beside;
use larch::{Durability, Result, Version};
use os::Machine;
use os::sim::{SimDisk, SimReads};
use os::sync::Arc;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::{AddAssign, Bound, ControlFlow};

/// Phases of a run.
const PHASES: usize = 16;

/// Transactions of a phase.
const TRANSACTIONS: usize = 80;

/// A phase ends after this many failed commits: once the disk has failed, further commits test nothing new.
const MOST_FAILED: u64 = 6;

/// The size of the smallest write buffer. It has room for the largest transaction that a plan may have.
const LEAST_WRITE_BUFFER_BYTES: u64 = 8 << 10;

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How transactions ended.
    pub ends: Ends,
    /// How many other things happened beside the transactions, such as conditional writes and imports.
    pub beside: u64,
    /// How often the database was opened again after the process was killed or the database was closed.
    pub reopened: u64,
    /// How often it was opened after a power cut.
    pub power_cuts: u64,
    /// How many commits power cuts have lost. None of them had been reported as durable.
    pub lost: u64,
    /// The cases of write skew and of phantoms among transactions under snapshot isolation. Serializable
    /// transactions must have none.
    pub skews: u64,
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        let Self { ends, beside, reopened, power_cuts, lost, skews } = other;
        self.ends += ends;
        self.beside += beside;
        self.reopened += reopened;
        self.power_cuts += power_cuts;
        self.lost += lost;
        self.skews += skews;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ends, beside, reopened, power_cuts, lost, skews } = self;
        let Ends { begun, committed, conflicted, too_old, unknown, failed } = ends;
        write!(out, "  {begun} transactions: {committed} committed, {conflicted} conflicted, {too_old} too old, ")?;
        writeln!(out, "{unknown} unknown, {failed} failed")?;
        write!(
            out,
            "  {beside} other things beside them, {reopened} reopenings, {power_cuts} power cuts that lost {lost} "
        )?;
        write!(out, "commits, {skews} skews under snapshot isolation")
    }
}

/// Runs `seed` on a simulated machine. The seed decides everything.
///
/// # Panics
///
/// Panics if the history has an anomaly, or if a commit is lost that the database had promised to keep.
pub fn simulate(seed: u64) -> Summary {
    let _rerun = Rerun::of_transactions(seed);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (levels, options) = (levels(seed), tiny_options(seed));
    let (disk, tally, summary) = (SimDisk::new(seed), Tally::new(), Summary::default());
    let fails = rng.random_range(0..4) > 0;
    let mut run = Run { rng, disk, options, levels, fails, tally, summary };
    let mut store = run.open();
    if has_indexes(seed) {
        store.create_indexes().expect("the disk works");
    }
    for _ in 0..PHASES {
        store = run.phase(store);
    }
    run.summary.ends += store.ends();
    run.summary
}

/// The isolation levels of the transactions of a seed.
fn levels(seed: u64) -> Levels {
    match seed % 4 {
        0 | 1 => Levels::All(Isolation::Serializable),
        2 => Levels::All(Isolation::Snapshot),
        _ => Levels::Mixed,
    }
}

/// Whether table 0 has indexes.
fn has_indexes(seed: u64) -> bool {
    seed / 4 % 2 == 1
}

/// The options of a seed, with a write buffer that has room for any transaction of a plan.
fn tiny_options(seed: u64) -> TinyOptions {
    let options = TinyOptions::of(seed);
    TinyOptions { write_buffer_bytes: options.write_buffer_bytes.max(LEAST_WRITE_BUFFER_BYTES), ..options }
}

/// A run on a simulated machine.
struct Run {
    rng: Xoshiro256PlusPlus,
    disk: Arc<SimDisk>,
    options: TinyOptions,
    levels: Levels,
    /// Whether the disk fails now and then.
    fails: bool,
    tally: Tally,
    summary: Summary,
}

/// How a phase ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The database stays open.
    GoesOn,
    /// It is closed.
    Close,
    /// The process ends, the machine goes on.
    Kill,
    /// The machine loses power.
    PowerCut,
}

impl Run {
    fn open(&mut self) -> EngineStore {
        let machine = Machine::simulated_on(self.disk.clone(), self.rng.random());
        let reads = self.rng.random::<bool>().then(|| SimReads::new(self.rng.random()));
        let machine = match &reads {
            Some(reads) => Machine { reads: reads.clone(), ..machine },
            None => machine,
        };
        let db = self
            .options
            .builder(DIRECTORY)
            .machine(machine)
            .extractors(indexes::extractor)
            .open()
            .expect("the disk works again");
        EngineStore::new(db, &self.options, reads, self.rng.random()).expect("the disk works again")
    }

    /// Plays a plan, ends the phase and checks its history. Returns the store for the next phase.
    fn phase(&mut self, store: EngineStore) -> EngineStore {
        let base = store.database().version();
        let mut history = vec![found(&store, &self.tally).expect("the disk works")];
        self.play(&store, &mut history);
        let newest = store.database().version();
        expect_clean(&history, base, newest);
        if self.levels == Levels::All(Isolation::Snapshot) {
            self.summary.skews += skews(&history);
        }
        let end = self.choose_end();
        self.disk.clear_faults();
        self.disk.set_capacity(u64::MAX);
        let end = if end == End::GoesOn && !goes_on(&store) { End::Kill } else { end };
        let store = if end == End::GoesOn { store } else { self.open_again(store, end, &mut history) };
        let there = store.database().version();
        history.extend(Player::play(&store, &reader(), &self.tally));
        expect_clean(&history, base, there);
        indexes::expect_clean(store.database(), store.table(0));
        store
    }

    fn play(&mut self, store: &EngineStore, history: &mut Vec<Transaction>) {
        let Self { rng, disk, tally, levels, fails, summary, .. } = self;
        let plan = Plan::of(rng.random(), TRANSACTIONS, *levels);
        // Half of the phases meet no fault.
        let fault = if *fails { rng.random_range(0..2 * plan.order.len()) } else { usize::MAX };
        let failed = |ends: Ends| ends.failed + ends.unknown;
        let most_failed = failed(store.ends()) + MOST_FAILED;
        let mut beside = Beside::alone(store, tally, rng.random());
        let mut step = 0;
        history.extend(play_beside(store, &plan, tally, &mut |history| {
            if step == fault {
                arm(rng, disk);
            }
            step += 1;
            if rng.random_range(0..8) == 0 {
                beside.happen(history);
                summary.beside += 1;
            }
            if failed(store.ends()) > most_failed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }));
    }

    fn choose_end(&mut self) -> End {
        if self.disk.has_crashed() {
            return End::PowerCut;
        }
        let ends = [End::GoesOn, End::GoesOn, End::Close, End::Kill, End::Kill, End::PowerCut, End::PowerCut];
        *ends.choose(&mut self.rng).expect("there are some")
    }

    /// Ends the process or the machine as `end` says, and opens the database again. Removes from the history what a
    /// power cut lost.
    fn open_again(&mut self, store: EngineStore, end: End, history: &mut [Transaction]) -> EngineStore {
        self.summary.ends += store.ends();
        let newest = store.database().version();
        let mut promised = store.acknowledged();
        match end {
            End::Close => {
                // If a commit or a flush failed before, closing the database may return an error.
                if let Err(error) = store.into_database().close() {
                    assert!(!error.is_corruption(), "a fault is not corruption: {error}");
                }
            }
            End::PowerCut => {
                let durable = store.durable();
                drop(store);
                match self.rng.random_range(0..6) {
                    0 => self.disk.crash_keeping_nothing(),
                    1 => self.disk.crash_keeping_everything(),
                    _ => self.disk.crash(),
                }
                promised = durable;
            }
            End::Kill | End::GoesOn => drop(store),
        }
        let store = self.open();
        let there = store.database().version();
        assert!(there >= promised, "commits up to {promised:?} were promised after {end:?}, {there:?} is the last");
        match end {
            End::PowerCut => self.summary.power_cuts += 1,
            _ => self.summary.reopened += 1,
        }
        // `there` may be greater than `newest`: an import of unknown outcome, whose version was never returned, may
        // have taken place.
        self.summary.lost += newest.0.saturating_sub(there.0);
        lose_after(history, there);
        store
    }
}

/// Whether the database can still be written once the faults have passed.
fn goes_on(store: &EngineStore) -> bool {
    let newest = store.database().version();
    // Without this call, a failed flush would be tried again only after some time.
    let outcome = store.database().flush();
    match &outcome {
        Ok(()) => store.acknowledge(newest, Durability::Synced),
        Err(error) if is_final(error) => return false,
        Err(_) => {}
    }
    expect_to_go_on(outcome);
    true
}

/// A transaction that wrote all rows that exist now, with which a history begins.
///
/// # Errors
///
/// A read failed.
fn found(store: &EngineStore, tally: &Tally) -> Result<Transaction> {
    let there = store.database().version();
    let rows = store.rows()?.into_iter();
    let operations: Vec<Operation> = rows.map(|(place, mark)| Operation::Put { place, mark }).collect();
    Ok(Transaction {
        id: tally.transaction(),
        isolation: Isolation::Serializable,
        snapshot: Version(there.0.saturating_sub(1)),
        outcome: Outcome::Committed(Some(there).filter(|_| !operations.is_empty())),
        operations,
        began: Some(tally.event()),
        acknowledged: Some(tally.event()),
    })
}

/// Reads all rows, from both ends.
fn reader() -> PlannedTransaction {
    let range = (Bound::Unbounded, Bound::Unbounded);
    let each =
        (0..TABLES).flat_map(|table| [Direction::Forward, Direction::Backward].map(|direction| (table, direction)));
    let mut steps: Vec<Step> =
        each.map(|(table, direction)| Step::Range { table, range: range.clone(), direction, limit: None }).collect();
    steps.push(Step::Commit);
    PlannedTransaction { isolation: Isolation::Serializable, steps }
}

/// Checks a history that begins with the rows at version `base`. The database has all commits up to `there`.
fn expect_clean(history: &[Transaction], base: Version, there: Version) {
    let known: BTreeSet<Version> = history.iter().filter_map(version).collect();
    let free: Vec<Version> = (base.0 + 1..=there.0).map(Version).filter(|version| !known.contains(version)).collect();
    let unknown = history.iter().filter(|transaction| transaction.outcome == Outcome::Unknown).count();
    let shown = || history.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(free.len() <= unknown, "nobody has committed {free:?}, of {unknown} unknown:\n{}", shown());
    let anomalies = check_with_unknown(history, &free);
    let told = || anomalies.iter().map(Anomaly::to_string).collect::<Vec<_>>().join("\n");
    assert!(anomalies.is_empty(), "{}in the history\n{}", told(), shown());
}

fn version(transaction: &Transaction) -> Option<Version> {
    match transaction.outcome {
        Outcome::Committed(version) => version,
        Outcome::Aborted | Outcome::Unknown => None,
    }
}

/// How many cases of write skew and phantoms the history has. They are found by checking it as if all transactions
/// had asked to be serializable.
fn skews(history: &[Transaction]) -> u64 {
    let anomalies = check_as(Isolation::Serializable, history);
    anomalies.iter().filter(|anomaly| matches!(anomaly.kind, Kind::WriteSkew | Kind::Phantom)).count() as u64
}
