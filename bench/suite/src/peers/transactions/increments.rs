//! Increments of counters by several threads. Each increment is a transaction that is repeated until it commits. A
//! rate counts only increments that were committed. Afterwards the sum of the counters is checked: if an increment
//! was lost, the engine fails.
//!
//! On Larch, an increment calls `Database::transact`. RocksDB has no such function. On RocksDB, an increment is a
//! loop of transactions with `get_for_update`. After a conflict, the loop waits as `transact` does. But only
//! `transact` reserves the key for the transaction after eight conflicts.

use super::super::orders::{Deed, Order, Sample};
use super::super::table::{Against, Goal, Row, Table};
use super::{Ground, in_rounds};

/// The number of counters. There are so few counters that two threads often meet at one counter.
const COUNTERS: u64 = 1000;

/// A measurement with a number of threads and a distribution of counters. The rate of the measurement goes into
/// the row `name`, and its other results go into the rows `more`.
pub struct Task {
    name: &'static str,
    zipfian: bool,
    threads: usize,
    /// The rows for the other results: the median time of an increment, the time that 99 % of increments did not
    /// exceed, the conflicts per commit, the conflicts that 99 % of increments did not exceed, and the most
    /// conflicts of one increment.
    more: Option<[&'static str; 5]>,
}

const UNIFORM_1: &str = "uniform, 1 thread";
const ZIPFIAN_1: &str = "zipfian, 1 thread";

pub const TASKS: [Task; 5] = [
    Task { name: UNIFORM_1, zipfian: false, threads: 1, more: None },
    Task {
        name: "uniform, 8 threads",
        zipfian: false,
        threads: 8,
        more: Some([
            "uniform, 8: 50 % within",
            "uniform, 8: 99 % within",
            "uniform, 8: conflicts a commit",
            "uniform, 8: conflicts, 99 % within",
            "uniform, 8: most conflicts of one",
        ]),
    },
    Task { name: ZIPFIAN_1, zipfian: true, threads: 1, more: None },
    Task { name: "zipfian, 2 threads", zipfian: true, threads: 2, more: None },
    Task {
        name: "zipfian, 8 threads",
        zipfian: true,
        threads: 8,
        more: Some([
            "zipfian, 8: 50 % within",
            "zipfian, 8: 99 % within",
            "zipfian, 8: conflicts a commit",
            "zipfian, 8: conflicts, 99 % within",
            "zipfian, 8: most conflicts of one",
        ]),
    },
];

/// The units of the rows of [`Task::more`].
const UNITS: [&str; 5] = ["us", "us", "conflicts", "conflicts", "conflicts"];

/// Measures all tasks.
pub fn measure(ground: &mut Ground<'_>) -> Result<Table, String> {
    let mut table = ground.table(None);
    rows().into_iter().for_each(|row| table.add(row));
    let mut peers = ground.start("increments", "buffered")?;
    let order = |task: &Task, _: &str, seed| -> Option<Order> {
        Some(ground.scale.order(Deed::Increment { zipfian: task.zipfian }, COUNTERS, task.threads, seed))
    };
    in_rounds(ground, &mut peers, &mut table, &TASKS, |task| task.name, &order, &put);
    Ok(table)
}

pub fn put(table: &mut Table, task: &Task, at: usize, sample: &Sample) {
    let measured = sample.transacted;
    let micros = |nanos| nanos as f64 / 1e3;
    let figures = [
        micros(measured.p50_nanos),
        micros(measured.p99_nanos),
        measured.conflicts as f64 / sample.operations as f64,
        measured.p99_conflicts as f64,
        measured.most_conflicts as f64,
    ];
    for (name, figure) in task.more.into_iter().flatten().zip(figures) {
        table.row(name).figures[at].push(figure);
    }
}

/// The rows with their goals. With more threads, Larch must commit at least half as many increments as with one
/// thread.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for task in &TASKS {
        let one = if task.zipfian { ZIPFIAN_1 } else { UNIFORM_1 };
        let goals = match task.threads {
            1 => Vec::new(),
            _ => vec![Goal { against: Against::Own(one), ratio: 0.5 }],
        };
        rows.push(Row::new(task.name, "K/s", goals));
        for (name, unit) in task.more.into_iter().flatten().zip(UNITS) {
            rows.push(Row::new(name, unit, Vec::new()).less_is_better());
        }
    }
    rows
}
