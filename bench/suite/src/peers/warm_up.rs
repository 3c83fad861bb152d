//! Fills the peers' caches before a measurement.

use super::herd::Peer;
use super::orders::{Fill, Measure, Order, Task};
use super::table::Table;
use super::{Tale, failed};

/// Reads at random until nearly all pages have been read. With fewer reads, a cache that fills on misses would hold
/// mainly the first rows of the table.
pub fn warm_up(peers: &mut [Peer], filled: Fill, records: u64, table: &mut Table, tale: &Tale) {
    // A page holds some 120 rows. Of n pages, n ln n random draws miss about one (coupon collector).
    let pages = (records / 120).max(2) as f64;
    let reads = (pages * pages.ln()) as u64;
    for peer in peers {
        let measure = Measure {
            task: Task::Workload { name: "c".to_owned(), keys: "uniform".to_owned() },
            records,
            filled,
            threads: 1,
            warmup_millis: 0,
            // Enough time even for an engine whose reads all miss the cache.
            millis: (reads / 5).max(1),
            operations: Some(reads),
            hot_share: None,
            beside: None,
            seed: 1,
        };
        match peer.obey(&Order::Measure(measure)) {
            Ok(_) => tale.tell(&format!("{:24} {:24}", "warmed up", peer.name())),
            Err(why) => failed("warm-up", why, &mut table.failures, tale),
        }
    }
}
