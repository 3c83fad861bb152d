//! Durable commits. First, transactions of a get and a put that are durable when the commit returns, by one thread
//! and by many that share syncs, beside the disk alone (an append and a sync). Then, puts by one thread without a
//! transaction: waited for one by one, or with up to 1,000 in flight, where the thread waits only for the oldest,
//! and for all at the end.
//!
//! RocksDB and the disk have no commits in flight: they offer no handle to wait for a commit.

use super::super::herd::Peer;
use super::super::orders::{Deed, Fill, Measure, Order, Task, Way};
use super::super::table::{Against, Goal, Row, Table};
use super::{Ground, in_rounds};

/// Few rows, because commits are slow.
const RECORDS: u64 = 100_000;

const DISK: &str = "disk";
const LARCH: &str = "larch";

const IN_FLIGHT: usize = 1000;

const ONE: &str = "synced transactions, 1 thread";
const MANY: &str = "synced transactions, 16 threads";
const ONE_BY_ONE: &str = "durable puts, one by one";
const MANY_IN_FLIGHT: &str = "durable puts, 1,000 in flight";

/// The rows of the table: the name, what each thread does, and the number of threads.
const TASKS: [(&str, Deed, usize); 5] = [
    (ONE, Deed::GetAndPut(Way::AllChecked), 1),
    ("synced transactions, 4 threads", Deed::GetAndPut(Way::AllChecked), 4),
    (MANY, Deed::GetAndPut(Way::AllChecked), 16),
    (ONE_BY_ONE, Deed::Put { in_flight: 0 }, 1),
    (MANY_IN_FLIGHT, Deed::Put { in_flight: IN_FLIGHT }, 1),
];

/// Measures the table.
pub fn measure(ground: &mut Ground<'_>) -> Result<Table, String> {
    let mut table = ground.table(Some(DISK));
    rows().into_iter().for_each(|row| table.add(row));
    let mut peers = ground.start("synced", "synced")?;
    let directory = ground.place.join(DISK);
    let mut disk = Peer::start(DISK, &format!("{DISK}:{}?durability=synced", directory.display()), None)?;
    disk.obey(&Order::Open { anew: true })?;
    peers.push(disk);
    for peer in &mut peers {
        peer.obey(&Order::Fill { how: Fill::Sorted, records: RECORDS, limit_millis: 0 })?;
    }
    let order = |(_, what, threads): &(&str, Deed, usize), peer: &str, seed| match (peer, what) {
        (DISK, Deed::GetAndPut(_)) => Some(Order::Measure(Measure {
            task: Task::Puts,
            records: RECORDS,
            filled: Fill::Sorted,
            threads: *threads,
            warmup_millis: (ground.scale.time / super::WARMUP).as_millis() as u64,
            millis: ground.scale.time.as_millis().max(1) as u64,
            operations: None,
            seed,
            hot_share: None,
            beside: None,
        })),
        (DISK, _) => None,
        (name, Deed::Put { in_flight: IN_FLIGHT }) if name != LARCH => None,
        _ => Some(ground.scale.order(*what, RECORDS, *threads, seed)),
    };
    in_rounds(ground, &mut peers, &mut table, &TASKS, |(name, ..)| name, &order, &|_, _, _, _| ());
    Ok(table)
}

/// The rows with their goals.
pub fn rows() -> Vec<Row> {
    let goals = |name| match name {
        ONE => vec![Goal { against: Against::Engine(DISK), ratio: 0.9 }],
        MANY => vec![Goal { against: Against::Engine("rocksdb"), ratio: 1.0 }],
        MANY_IN_FLIGHT => vec![Goal { against: Against::Own(ONE_BY_ONE), ratio: 20.0 }],
        _ => Vec::new(),
    };
    TASKS.iter().map(|(name, ..)| Row::new(name, "K/s", goals(*name))).collect()
}
