//! Increments of counters by several threads. Each is a transaction that is retried until it commits, and rates
//! count commits only. An engine fails if the sum of the counters shows that an increment was lost.
//!
//! On Larch, an increment calls `Database::transact`. On RocksDB, it is a loop of transactions with
//! `get_for_update` that backs off after a conflict as `transact` does. Only `transact` reserves the key after
//! eight conflicts.

use super::super::orders::{Deed, Order, Sample};
use super::super::table::{Against, Goal, Row, Table};
use super::{Ground, in_rounds};

/// Few counters, so that threads often conflict.
const COUNTERS: u64 = 1000;

/// A measurement. Its rate goes into row `name`, its other results into the rows `more`.
pub struct Task {
    name: &'static str,
    zipfian: bool,
    threads: usize,
    /// The rows for the median and the 99th percentile of an increment's time, the conflicts per commit, and the
    /// 99th percentile and the maximum of an increment's conflicts.
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

/// The rows with their goals: with more threads, Larch must commit at least half as many increments as with one.
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
