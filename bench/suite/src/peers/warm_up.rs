//! Fills the caches of peers before their rows are measured.

use super::herd::Peer;
use super::orders::{Fill, Measure, Order, Task};
use super::table::Table;
use super::{Tale, failed};

/// Reads at random until nearly all pages were read. If fewer pages were read, a cache that fills only when pages
/// are missed would hold mainly the first rows of the table.
pub fn warm_up(peers: &mut [Peer], filled: Fill, records: u64, table: &mut Table, tale: &Tale) {
    // A page holds some 120 rows. If n ln n pages are drawn at random from n pages, about one page is never drawn.
    let pages = (records / 120).max(2) as f64;
    let reads = (pages * pages.ln()) as u64;
    for peer in peers {
        let measure = Measure {
            task: Task::Workload { name: "c".to_owned(), keys: "uniform".to_owned() },
            records,
            filled,
            threads: 1,
            warmup_millis: 0,
            // The time is enough even for an engine whose reads all miss the cache.
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
