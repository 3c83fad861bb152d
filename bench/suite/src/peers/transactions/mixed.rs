//! A get and a put of the same row, with and without a transaction. All rows are in the cache, and nothing is
//! synced. The difference is the cost of the transaction.
//!
//! Larch's serializable transactions, the default, check what they read; in RocksDB, `get_for_update` does. Larch's
//! snapshot isolation checks only writes, like RocksDB's plain `get`.

use super::super::orders::{Deed, Fill, Order, Sample, Way};
use super::super::table::{Against, Goal, Row, Table};
use super::super::thousands;
use super::super::warm_up::warm_up;
use super::{Ground, in_rounds};

const APART: &str = "a get and a put, no transaction";
const TOGETHER: &str = "transaction, reads checked";
const APART_TIME: &str = "time of a get and a put";
const TOGETHER_TIME: &str = "time of a transaction";

/// A measurement, and the row for its rate.
struct Task {
    name: &'static str,
    way: Way,
    threads: usize,
    /// The row for the time of one operation.
    time: Option<&'static str>,
}

const TASKS: [Task; 5] = [
    Task { name: APART, way: Way::Apart, threads: 1, time: Some(APART_TIME) },
    Task { name: TOGETHER, way: Way::AllChecked, threads: 1, time: Some(TOGETHER_TIME) },
    Task { name: "transaction, writes checked", way: Way::WritesChecked, threads: 1, time: None },
    Task { name: "no transaction, 2 threads", way: Way::Apart, threads: 2, time: None },
    Task { name: "transaction, 2 threads", way: Way::AllChecked, threads: 2, time: None },
];

/// Measures the table.
pub fn measure(ground: &mut Ground<'_>) -> Result<Table, String> {
    let mut table = ground.table(None);
    rows().into_iter().for_each(|row| table.add(row));
    let mut peers = ground.start("mixed", "buffered")?;
    let records = ground.scale.records;
    for peer in &mut peers {
        peer.obey(&Order::Fill { how: Fill::Sorted, records, limit_millis: 0 })?;
    }
    warm_up(&mut peers, Fill::Sorted, records, &mut table, &ground.tale);
    let order =
        |task: &Task, _: &str, seed| Some(ground.scale.order(Deed::GetAndPut(task.way), records, task.threads, seed));
    in_rounds(ground, &mut peers, &mut table, &TASKS, |task| task.name, &order, &put);
    Ok(table)
}

fn put(table: &mut Table, task: &Task, at: usize, sample: &Sample) {
    if let Some(time) = task.time {
        table.row(time).figures[at].push(1e3 / thousands(sample));
    }
}

/// The rows with their goals.
pub fn rows() -> Vec<Row> {
    let own = |row, ratio| Goal { against: Against::Own(row), ratio };
    let rocksdb = |ratio| Goal { against: Against::Engine("rocksdb"), ratio };
    let goals = |name| match name {
        TOGETHER => vec![rocksdb(2.0)],
        "transaction, 2 threads" => vec![own(TOGETHER, 1.3)],
        _ => Vec::new(),
    };
    let mut rows: Vec<Row> = TASKS.iter().map(|task| Row::new(task.name, "K/s", goals(task.name))).collect();
    rows.push(Row::new(APART_TIME, "us", Vec::new()).less_is_better());
    rows.push(Row::new(TOGETHER_TIME, "us", vec![own(APART_TIME, 1.3)]).less_is_better());
    rows
}
