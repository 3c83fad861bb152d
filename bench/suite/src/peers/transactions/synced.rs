//! Commits that are durable. The first part is a get and a put in a transaction that is durable when its commit
//! returns: by one thread, and by many threads, which share syncs. The disk alone is measured for comparison: a write
//! at the end of a file and a sync. The second part is puts of one thread without a transaction. The thread waits for
//! each put, or only for the oldest when 1,000 are in flight, and for all of them at the end.
//!
//! RocksDB and the disk have no commits in flight: neither has a handle to wait for.

use super::super::herd::Peer;
use super::super::orders::{Deed, Fill, Measure, Order, Task, Way};
use super::super::table::{Against, Goal, Row, Table};
use super::{Ground, in_rounds};

/// Rows, few since commits are slow.
const RECORDS: u64 = 100_000;

const DISK: &str = "disk";
const LARCH: &str = "larch";

const IN_FLIGHT: usize = 1000;

const ONE: &str = "synced transactions, 1 thread";
const MANY: &str = "synced transactions, 16 threads";
const ONE_BY_ONE: &str = "durable puts, one by one";
const MANY_IN_FLIGHT: &str = "durable puts, 1,000 in flight";

/// The rows: what each thread does, and the threads.
const TASKS: [(&str, Deed, usize); 5] = [
    (ONE, Deed::GetAndPut(Way::AllChecked), 1),
    ("synced transactions, 4 threads", Deed::GetAndPut(Way::AllChecked), 4),
    (MANY, Deed::GetAndPut(Way::AllChecked), 16),
    (ONE_BY_ONE, Deed::Put { in_flight: 0 }, 1),
    (MANY_IN_FLIGHT, Deed::Put { in_flight: IN_FLIGHT }, 1),
];

/// Measures them.
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
