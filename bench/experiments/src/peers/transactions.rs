//! `larch bench transactions`: the cost of a transaction beside the same calls without one, of conflicts, of synced
//! commits and commits in flight, and of an index build. Each part has its own databases. RocksDB runs as an
//! `OptimisticTransactionDB`.
//!
//! * A get and a put of the same row, with and without a transaction. All rows are in the cache, and nothing is
//!   synced. Larch's serializable transactions, the default, check what they read; in RocksDB, `get_for_update` does.
//!   Larch's snapshot isolation checks only writes, like RocksDB's plain `get`.
//! * Increments of counters by several threads. Each is a transaction that is retried until it commits, and rates
//!   count commits only. On Larch, an increment calls `Database::transact`. On RocksDB, it is a loop of transactions
//!   with `get_for_update` that backs off after a conflict as `transact` does. Only `transact` reserves the key after
//!   eight conflicts. An engine fails if the sum of the counters shows that an increment was lost.
//! * Durable commits: transactions of a get and a put by one thread and by many that share syncs, beside the disk
//!   alone (an append and a sync); then puts by one thread without a transaction, waited for one by one, or with up
//!   to 1,000 in flight, where the thread waits only for the oldest, and for all at the end. RocksDB and the disk
//!   offer no handle to wait for a commit.
//! * Overwrites at a fixed rate, alternately without a secondary index and while one is built over all rows. The
//!   index is on the value that the overwrites change, so each overwrite also changes the index. RocksDB has no
//!   secondary indexes.

use super::herd::{Herd, Peer};
use super::orders::{Deed, Fill, Operate, Order, Overwrite, Sample, Task, Transact, Way, micros};
use super::rows::{Against, Part, Row};
use super::{Cell, Comparison, absent, keep_settings, measure, thousands, warm_up};
use crate::args::TransactionsArgs;
use crate::experiment::About;
use crate::ground::Ground;
use harness::Scheme;
use std::time::Duration;

/// Larch comes first: the goals are those of the first engine.
const ENGINES: [(&str, &str); 3] =
    [(LARCH, "cache=4GiB"), ("rocksdb", "cache=4GiB&transactions=optimistic"), (DISK, "")];

const LARCH: &str = "larch";
const DISK: &str = "disk";

/// The warm-up is the measured time divided by this.
const WARMUP: u32 = 4;

const MIXED: &str = "A get and a put, cached and buffered";
const INCREMENTS: &str = "Increments of 1,000 counters, buffered";
const SYNCED: &str = "Durable when the call returns, or in flight";
const INDEXED: &str = "10,000 overwrites a second while an index is built";

/// Few counters, so that threads often conflict.
const COUNTERS: u64 = 1000;
/// Few rows, because commits are slow.
const SYNCED_RECORDS: u64 = 100_000;
const IN_FLIGHT: usize = 1000;
/// The rate of overwrites while an index is built, and how many times the rows of the other parts that table has.
const PER_SECOND: f64 = 10_000.0;
const INDEXED_TIMES: u64 = 10;

const APART: &str = "a get and a put, no transaction";
const TOGETHER: &str = "transaction, reads checked";
const ONE_BY_ONE: &str = "durable puts, one by one";
const MANY_IN_FLIGHT: &str = "durable puts, 1,000 in flight";
const QUIET: &str = "overwrites, quiet: 99.9 % within";
const BUILDING: &str = "overwrites, index being built: 99.9 % within";

/// What each thread does in a task, and the number of threads.
const DEEDS: [(&str, Deed, usize); 15] = [
    (APART, Deed::GetAndPut(Way::Apart), 1),
    (TOGETHER, Deed::GetAndPut(Way::AllChecked), 1),
    ("transaction, writes checked", Deed::GetAndPut(Way::WritesChecked), 1),
    ("no transaction, 2 threads", Deed::GetAndPut(Way::Apart), 2),
    ("transaction, 2 threads", Deed::GetAndPut(Way::AllChecked), 2),
    ("uniform, 1 thread", Deed::Increment { zipfian: false }, 1),
    ("uniform, 8 threads", Deed::Increment { zipfian: false }, 8),
    ("zipfian, 1 thread", Deed::Increment { zipfian: true }, 1),
    ("zipfian, 2 threads", Deed::Increment { zipfian: true }, 2),
    ("zipfian, 8 threads", Deed::Increment { zipfian: true }, 8),
    ("synced transactions, 1 thread", Deed::GetAndPut(Way::AllChecked), 1),
    ("synced transactions, 4 threads", Deed::GetAndPut(Way::AllChecked), 4),
    ("synced transactions, 16 threads", Deed::GetAndPut(Way::AllChecked), 16),
    (ONE_BY_ONE, Deed::Put { in_flight: 0 }, 1),
    (MANY_IN_FLIGHT, Deed::Put { in_flight: IN_FLIGHT }, 1),
];

/// The comparison, and how large it is.
pub struct Transactions {
    engines: Vec<&'static str>,
    absent: Vec<String>,
    records: u64,
    repeats: u64,
    /// The number of index builds.
    builds: u64,
    time: Duration,
    herd: Herd,
}

impl Transactions {
    /// The comparison of the engines in `schemes`.
    pub fn of(args: &TransactionsArgs, schemes: &[Scheme]) -> Self {
        let (records, repeats, builds, millis) =
            if args.quick { (100_000, 1, 1, 300) } else { (1_000_000, 7, 3, 2000) };
        let engines = ENGINES.map(|(name, _)| name).into_iter().filter(|name| *name != DISK);
        Self {
            absent: absent(&engines.clone().collect::<Vec<_>>(), schemes),
            engines: engines.filter(|name| schemes.iter().any(|known| known.name == *name)).collect(),
            records: args.records.unwrap_or(records),
            repeats,
            builds,
            time: args.time.unwrap_or(Duration::from_millis(millis)),
            herd: Herd::default(),
        }
    }

    /// Whether an engine can do a task.
    fn can(cell: &Cell) -> bool {
        match DEEDS.iter().find(|(task, ..)| *task == cell.task) {
            Some((_, Deed::Put { in_flight: IN_FLIGHT }, _)) => cell.engine == LARCH,
            Some((_, Deed::Put { .. }, _)) => cell.engine != DISK,
            _ => true,
        }
    }

    fn order(&self, cell: &Cell) -> Order {
        let (warmup_millis, millis) = ((self.time / WARMUP).as_millis() as u64, self.time.as_millis().max(1) as u64);
        let Some(at) = DEEDS.iter().position(|(task, ..)| *task == cell.task) else {
            let builds_index = cell.task == BUILDING;
            return Order::Overwrite(Overwrite {
                records: INDEXED_TIMES * self.records,
                filled: Fill::Sorted,
                warmup_millis,
                millis: 5 * millis,
                per_second: Some(PER_SECOND),
                seed: 2 * cell.repeat + u64::from(builds_index),
                builds_index,
            });
        };
        let (_, what, threads) = DEEDS[at];
        // No two tasks draw the same keys.
        let seed = 1000 * (at as u64 + 1) + cell.repeat;
        let records = match &*cell.part {
            MIXED => self.records,
            INCREMENTS => COUNTERS,
            _ => SYNCED_RECORDS,
        };
        match cell.engine {
            DISK => Order::Measure(Operate { threads, warmup_millis, millis, ..measure(Task::Puts, records, seed) }),
            _ => Order::Transact(Transact { what, records, threads, warmup_millis, millis, seed }),
        }
    }
}

fn mixed_rows() -> Vec<Row> {
    let time = |sample: &Sample| Some(1e3 / thousands(sample));
    const APART_TIME: &str = "time of a get and a put";
    vec![
        Row::rate(APART, &[]),
        Row::rate(TOGETHER, &[(Against::Engine("rocksdb"), 2.0)]),
        Row::rate("transaction, writes checked", &[]),
        Row::rate("no transaction, 2 threads", &[]),
        Row::rate("transaction, 2 threads", &[(Against::Own(TOGETHER), 1.3)]),
        Row::less(APART_TIME, "us", APART, time, &[]),
        Row::less("time of a transaction", "us", TOGETHER, time, &[(Against::Own(APART_TIME), 1.3)]),
    ]
}

/// With more threads, Larch must commit at least half as many increments as with one.
fn increment_rows() -> Vec<Row> {
    const UNIFORM: &str = "uniform, 8 threads";
    const ZIPFIAN: &str = "zipfian, 8 threads";
    let half = |one| [(Against::Own(one), 0.5)];
    let p50 = |sample: &Sample| micros(sample.transacted.p50_nanos);
    let p99 = |sample: &Sample| micros(sample.transacted.p99_nanos);
    let conflicts = |sample: &Sample| Some(sample.each(sample.transacted.conflicts));
    let p99_conflicts = |sample: &Sample| sample.transacted.p99_conflicts.map(|conflicts| conflicts as f64);
    let most_conflicts = |sample: &Sample| Some(sample.transacted.most_conflicts as f64);
    vec![
        Row::rate("uniform, 1 thread", &[]),
        Row::rate(UNIFORM, &half("uniform, 1 thread")),
        Row::less("uniform, 8: 50 % within", "us", UNIFORM, p50, &[]),
        Row::less("uniform, 8: 99 % within", "us", UNIFORM, p99, &[]),
        Row::less("uniform, 8: conflicts a commit", "conflicts", UNIFORM, conflicts, &[]),
        Row::less("uniform, 8: conflicts, 99 % within", "conflicts", UNIFORM, p99_conflicts, &[]),
        Row::less("uniform, 8: most conflicts of one", "conflicts", UNIFORM, most_conflicts, &[]),
        Row::rate("zipfian, 1 thread", &[]),
        Row::rate("zipfian, 2 threads", &half("zipfian, 1 thread")),
        Row::rate(ZIPFIAN, &half("zipfian, 1 thread")),
        Row::less("zipfian, 8: 50 % within", "us", ZIPFIAN, p50, &[]),
        Row::less("zipfian, 8: 99 % within", "us", ZIPFIAN, p99, &[]),
        Row::less("zipfian, 8: conflicts a commit", "conflicts", ZIPFIAN, conflicts, &[]),
        Row::less("zipfian, 8: conflicts, 99 % within", "conflicts", ZIPFIAN, p99_conflicts, &[]),
        Row::less("zipfian, 8: most conflicts of one", "conflicts", ZIPFIAN, most_conflicts, &[]),
    ]
}

fn synced_rows() -> Vec<Row> {
    vec![
        Row::rate("synced transactions, 1 thread", &[(Against::Engine(DISK), 0.9)]),
        Row::rate("synced transactions, 4 threads", &[]),
        Row::rate("synced transactions, 16 threads", &[(Against::Engine("rocksdb"), 1.0)]),
        Row::rate(ONE_BY_ONE, &[]),
        Row::rate(MANY_IN_FLIGHT, &[(Against::Own(ONE_BY_ONE), 20.0)]),
    ]
}

fn indexed_rows() -> Vec<Row> {
    let built = |sample: &Sample| Some(sample.beside.rows as f64 / (sample.beside.nanos as f64 / 1e6));
    let p999 = |sample: &Sample| micros(sample.overwritten.p999_nanos);
    let longest = |sample: &Sample| Some(sample.overwritten.longest_nanos as f64 / 1e3);
    vec![
        Row::more("index built: rows", "K/s", BUILDING, built, &[]),
        Row::less(QUIET, "us", QUIET, p999, &[]),
        Row::less(BUILDING, "us", BUILDING, p999, &[(Against::Own(QUIET), 3.0)]),
        Row::less("overwrites, quiet: longest", "us", QUIET, longest, &[]),
        Row::less("overwrites, index being built: longest", "us", BUILDING, longest, &[]),
    ]
}

impl Comparison for Transactions {
    const ABOUT: About = About {
        name: "transactions",
        title: "Transactions of Larch and of RocksDB",
        text: &[
            "A transaction is measured beside the same calls without one, then conflicts, durable commits, and overwrites while a secondary index \
             is built.",
            "Instructions of a get and an insert in a transaction: cargo x instructions. Allocations of a get and an insert, in a transaction and \
             without: cargo test -p larch-bench-stores --test larch_allocations -- --nocapture.",
        ],
    };

    fn most_bytes(&self) -> u64 {
        // Four times the rows of each engine plus a gigabyte for logs and the other parts, and four times the rows of
        // the table with an index.
        let engines = self.engines.len() as u64;
        engines * (4 * 120 * self.records + (1 << 30)) + 4 * 120 * INDEXED_TIMES * self.records
    }

    fn parts(&self) -> Vec<Part> {
        let part = |title: &str, more: Option<&'static str>, repeats, rows| {
            let engines = self.engines.iter().copied().chain(more).collect();
            Part { title: title.to_owned(), engines, repeats, rows }
        };
        let larch = self.engines.iter().copied().filter(|name| *name == LARCH).collect();
        vec![
            part(MIXED, None, self.repeats, mixed_rows()),
            part(INCREMENTS, None, self.repeats, increment_rows()),
            part(SYNCED, Some(DISK), self.repeats, synced_rows()),
            Part { engines: larch, ..part(INDEXED, None, self.builds, indexed_rows()) },
        ]
    }

    fn conditions(&self) -> String {
        let Self { records, repeats, time, .. } = self;
        format!(
            "{records} rows of 20-byte keys and 100-byte values, {repeats} repeats of {:.2} s after {:.2} s of warm-up, sides in turns",
            time.as_secs_f64(),
            (*time / WARMUP).as_secs_f64()
        )
    }

    fn absent(&self) -> Vec<String> {
        self.absent.clone()
    }

    fn cells(&self, part: &Part) -> Vec<Cell> {
        // Every task on every engine in each round, so that a machine that gets slower or faster changes all figures
        // alike.
        let tasks = if part.title == INDEXED { vec![QUIET, BUILDING] } else { part.tasks() };
        let round =
            |repeat| tasks.iter().flat_map(move |task| part.engines.iter().map(move |it| part.cell(task, it, repeat)));
        (0..part.repeats).flat_map(round).filter(Self::can).collect()
    }

    fn measure(&mut self, cell: &Cell, ground: &mut Ground) -> Result<Sample, String> {
        let order = self.order(cell);
        let part = self.parts().into_iter().find(|part| part.title == cell.part).expect("cells are of parts");
        let durability = if cell.part == SYNCED { "synced" } else { "buffered" };
        let name = match &*cell.part {
            MIXED => "mixed",
            INCREMENTS => "increments",
            SYNCED => "synced",
            _ => "indexed",
        };
        let place = ground.data(name).map_err(|failure| failure.to_string())?;
        let peer = self.herd.peer(name, cell.engine, || {
            let here = ENGINES.into_iter().filter(|(engine, _)| part.engines.contains(engine));
            let start = |(engine, options): (&'static str, &str)| {
                let directory = place.join(engine);
                let target = format!("{engine}:{}?{options}&durability={durability}", directory.display());
                (engine, Peer::start(engine, &target.replace("?&", "?"), None))
            };
            here.map(start).collect()
        })?;
        // A table that a process has filled is filled for all tasks of its part.
        let (records, is_warm) = match name {
            "mixed" => (self.records, true),
            "synced" => (SYNCED_RECORDS, false),
            "indexed" => (INDEXED_TIMES * self.records, true),
            _ => (0, false),
        };
        let mut told = None;
        peer.bring(name, |peer| {
            told = Some(if records > 0 {
                peer.filled_anew(&Order::Fill { how: Fill::Sorted, records, limit_millis: 0 }, "")?
            } else {
                peer.obey(&Order::Open { anew: true })?
            });
            // With an index, an overwrite reads the old row, so bring all rows into the cache first.
            if is_warm { warm_up(peer, Fill::Sorted, records) } else { Ok(()) }
        })?;
        let sample = peer.obey(&order)?;
        if cell.part == INDEXED {
            peer.obey(&Order::Settle)?;
        }
        if let Some(told) = told {
            keep_settings(ground, &format!("{}, {durability}", cell.engine), &told)?;
        }
        Ok(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::super::orders::{Overwritten, WorkDone};
    use super::super::rows::tests::measured;
    use super::*;

    /// A sample with this rate, in thousands of operations a second.
    fn at(rate: f64) -> Sample {
        Sample { operations: (1e3 * rate) as u64, nanos: 1_000_000_000, ..Sample::default() }
    }

    /// Compares the goals (what, reached) of the samples with `expected`.
    fn check(rows: Vec<Row>, samples: &[(&'static str, &'static str, Sample)], expected: &[(&str, bool)]) {
        let (_, goals) = measured(&["larch", "rocksdb", "disk"], rows, samples);
        let reached: Vec<(&str, bool)> = goals.iter().map(|goal| (&*goal.what, goal.is_reached)).collect();
        assert_eq!(reached, expected);
    }

    #[test]
    fn a_transaction_is_held_against_its_own_calls_and_against_rocksdb() {
        for (together, two_threads, apart, reached) in [(201.0, 262.0, 260.0, true), (199.0, 258.0, 260.0, false)] {
            let samples = [
                (APART, "larch", at(apart)),
                (TOGETHER, "larch", at(together)),
                (TOGETHER, "rocksdb", at(100.0)),
                ("transaction, 2 threads", "larch", at(two_threads)),
            ];
            let names = [
                "transaction, reads checked against rocksdb",
                "transaction, 2 threads against our transaction, reads checked",
                "time of a transaction against our time of a get and a put",
            ];
            check(mixed_rows(), &samples, &names.map(|name| (name, reached)));
        }
    }

    #[test]
    fn more_threads_commit_at_least_half_of_what_one_does() {
        let samples = [
            ("uniform, 1 thread", 300.0),
            ("uniform, 8 threads", 400.0),
            ("zipfian, 1 thread", 300.0),
            ("zipfian, 8 threads", 149.0),
        ];
        let expected = [
            ("uniform, 8 threads against our uniform, 1 thread", true),
            ("zipfian, 8 threads against our zipfian, 1 thread", false),
        ];
        check(increment_rows(), &samples.map(|(task, rate)| (task, "larch", at(rate))), &expected);
    }

    #[test]
    fn synced_commits_are_held_against_the_disk_and_rocksdb_and_those_in_flight_against_one_by_one() {
        let (one, many) = ("synced transactions, 1 thread", "synced transactions, 16 threads");
        let samples = [
            (one, "larch", at(0.92)),
            (one, "disk", at(1.0)),
            (many, "larch", at(4.9)),
            (many, "rocksdb", at(5.0)),
            (ONE_BY_ONE, "larch", at(2.0)),
            (MANY_IN_FLIGHT, "larch", at(40.0)),
        ];
        let expected = [
            ("synced transactions, 1 thread against disk", true),
            ("synced transactions, 16 threads against rocksdb", false),
            ("durable puts, 1,000 in flight against our durable puts, one by one", true),
        ];
        check(synced_rows(), &samples, &expected);
    }

    #[test]
    fn writes_while_an_index_is_built_are_held_against_quiet_ones() {
        let sample = |p999| {
            let overwritten = Overwritten { p999_nanos: Some(p999), longest_nanos: 9_000, ..Overwritten::default() };
            Sample { overwritten, beside: WorkDone { rows: 5_000, nanos: 1_000_000_000 }, ..Sample::default() }
        };
        for (p999, reached) in [(6_000, true), (6_100, false)] {
            let samples = [(QUIET, "larch", sample(2_000)), (BUILDING, "larch", sample(p999))];
            let (shown, goals) = measured(&["larch"], indexed_rows(), &samples);
            assert_eq!(shown[0][2], "5.00");
            assert_eq!(goals.iter().map(|goal| goal.is_reached).collect::<Vec<_>>(), [reached]);
        }
    }

    #[test]
    fn every_row_and_every_task_has_a_name_of_its_own() {
        for rows in [mixed_rows(), increment_rows(), synced_rows(), indexed_rows()] {
            let mut names: Vec<&str> = rows.iter().map(|row| row.name).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        }
        let has_row =
            |task: &str| [mixed_rows(), increment_rows(), synced_rows()].concat().iter().any(|row| row.task == task);
        assert!(DEEDS.iter().all(|(task, ..)| has_row(task)));
    }
}
