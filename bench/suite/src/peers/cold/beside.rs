//! How much a full scan and a compaction disturb the gets of another thread, and what happens when the cache is
//! halved while threads read. Memory is not limited: only the store's own cache matters here.

use super::MIB;
use super::ground::{ColdEngine, Ground};
use crate::peers::herd::Peer;
use crate::peers::orders::{Beside, Fill, Measure, Order, Sample, Task};
use crate::peers::table::{Against, Goal, Row, Table};
use crate::peers::{failed, million_rows, thousands};

const OURS: &str = "larch 16K";

/// The row names for one distribution of keys. Arrays have the names for gets alone, beside a scan, and beside a
/// compaction. The last two rows have the speed of the scan and the time of the compaction.
struct Names {
    hits: [&'static str; 3],
    p99: [&'static str; 3],
    rate: [&'static str; 3],
    scan: &'static str,
    compaction: &'static str,
}

const ZIPFIAN: Names = Names {
    hits: ["hit rate, zipfian", "hit rate, zipfian, beside a scan", "hit rate, zipfian, beside a compaction"],
    p99: ["p99, zipfian", "p99, zipfian, beside a scan", "p99, zipfian, beside a compaction"],
    rate: ["gets, zipfian", "gets, zipfian, beside a scan", "gets, zipfian, beside a compaction"],
    scan: "the scans beside zipfian gets",
    compaction: "the compaction beside zipfian gets",
};

const HOT: Names = Names {
    hits: ["hit rate, hot set", "hit rate, hot set, beside a scan", "hit rate, hot set, beside a compaction"],
    p99: ["p99, hot set", "p99, hot set, beside a scan", "p99, hot set, beside a compaction"],
    rate: ["gets, hot set", "gets, hot set, beside a scan", "gets, hot set, beside a compaction"],
    scan: "the scans beside gets of a hot set",
    compaction: "the compaction beside gets of a hot set",
};

const IN_TIME: &str = "a halved budget is kept after";
const GIVEN_BACK: &str = "of the bytes it lost, given back by the process in a second";

/// Threads that read while the cache is halved.
const SHRINK_THREADS: usize = 8;

/// The largest cache to halve.
const SHRINK_CACHE_BYTES: u64 = 256 * MIB;

/// Measures all rows of this table.
pub fn measure(ground: &mut Ground) -> Table {
    let mut table = table();
    let Some(ours) = ground.engine(OURS) else { return table };
    for (names, keys) in [(&ZIPFIAN, "zipfian"), (&HOT, "hotspot")] {
        if let Err(why) = disturbed(ground, &ours, &mut table, names, keys) {
            for name in names.hits[1..].iter().chain(&names.p99[2..]) {
                table.row(name).fail(0);
            }
            failed(keys, why, &mut table.failures, &ground.tale);
        }
    }
    if let Err(why) = halved(ground, &ours, &mut table) {
        table.row(IN_TIME).fail(0);
        table.row(GIVEN_BACK).fail(0);
        failed("half the cache", why, &mut table.failures, &ground.tale);
    }
    table
}

/// Measures gets of one thread alone, beside scans, and beside a compaction.
fn disturbed(
    ground: &mut Ground,
    ours: &ColdEngine,
    table: &mut Table,
    names: &Names,
    keys: &str,
) -> Result<(), String> {
    let mut peer = ground.start(ours, "settle=compact", false)?;
    let scale = ground.scale;
    for repeat in 0..scale.repeats.min(2) {
        let seed = 100_000 + 10 * repeat as u64;
        let order = |seed, beside| Measure {
            task: Task::Workload { name: "c".to_owned(), keys: keys.to_owned() },
            records: scale.records,
            filled: Fill::Sorted,
            threads: 1,
            // The cache has to learn the hot rows first, and again after the compaction of the previous repeat has
            // replaced their pages.
            warmup_millis: if beside == Some(Beside::Scan) { scale.warmup_millis } else { 4 * scale.warmup_millis },
            millis: 2 * scale.millis,
            operations: None,
            seed,
            // Hot rows fill half the cache.
            hot_share: (keys == "hotspot")
                .then(|| (ours.cache_bytes as f64 / 2.0 / ground.row_bytes() as f64).min(0.5)),
            beside,
        };
        for (at, beside) in [None, Some(Beside::Scan), Some(Beside::Compaction)].into_iter().enumerate() {
            let sample = peer.obey(&Order::Measure(order(seed + at as u64, beside)))?;
            let asked = sample.point_hits + sample.point_reads;
            if asked == 0 {
                return Err(format!("{}: it does not count what reads of single keys find", peer.name()));
            }
            let mut tell = |name: &'static str, figure: f64| {
                let row = table.row(name);
                row.figures[0].push(figure);
                ground.tale.tell(&format!("{name:42} {figure:12.2} {}", row.unit));
            };
            tell(names.hits[at], sample.point_hits as f64 / asked as f64 * 100.0);
            tell(names.p99[at], sample.p99_nanos as f64 / 1e3);
            tell(names.rate[at], thousands(&sample));
            match beside {
                None | Some(Beside::IndexBuild) => {}
                Some(Beside::Scan) => {
                    let scans = Sample { rows: sample.beside.rows, nanos: sample.beside.nanos, ..Sample::default() };
                    tell(names.scan, million_rows(&scans));
                }
                Some(Beside::Compaction) => tell(names.compaction, sample.beside.nanos as f64 / 1e9),
            }
        }
    }
    Ok(())
}

/// The size of the cache to halve: small enough to fill in the warm-up, and at most half of the rows.
fn cache_to_halve(row_bytes: u64) -> u64 {
    let most = (row_bytes / 2).max(2 * MIB);
    SHRINK_CACHE_BYTES.min(1 << most.ilog2())
}

/// Halves the store's cache while threads read.
fn halved(ground: &mut Ground, ours: &ColdEngine, table: &mut Table) -> Result<(), String> {
    let cache_bytes = cache_to_halve(ground.row_bytes());
    let scale = ground.scale;
    for repeat in 0..scale.repeats {
        let mut peer: Peer = ground.start(ours, &format!("cache={}MiB", cache_bytes / MIB), false)?;
        let load = Measure {
            task: Task::Workload { name: "c".to_owned(), keys: "uniform".to_owned() },
            records: scale.records,
            filled: Fill::Sorted,
            threads: SHRINK_THREADS,
            // Long enough to fill the cache.
            warmup_millis: 3 * scale.warmup_millis,
            // The cache is halved a third into the window, so more than a second is left after it.
            millis: 2 * scale.millis.max(1_000),
            operations: None,
            seed: 200_000 + repeat as u64,
            hot_share: None,
            beside: None,
        };
        let shrunk = peer.obey(&Order::Shrink { load, cache_bytes: cache_bytes / 2 })?.shrunk;
        let nanos = shrunk.nanos.ok_or("a second after it was halved the cache still uses more than its budget")?;
        let lost = (shrunk.used_before - cache_bytes / 2) as f64;
        let given_back = shrunk.resident_before as f64 - shrunk.resident_after as f64;
        let millis = nanos as f64 / 1e6;
        let mib = |bytes: u64| bytes >> 20;
        ground.tale.tell(&format!(
            "budget {} MiB halved: kept after {millis:.1} ms; the cache used {} MiB, the process had {} MiB, then {} MiB",
            mib(cache_bytes),
            mib(shrunk.used_before),
            mib(shrunk.resident_before),
            mib(shrunk.resident_after)
        ));
        table.row(IN_TIME).figures[0].push(millis);
        table.row(GIVEN_BACK).figures[0].push(given_back / lost);
    }
    Ok(())
}

/// The rows with their goals.
pub fn table() -> Table {
    let mut table = Table::new([OURS]);
    for names in [&ZIPFIAN, &HOT] {
        let own = |name, ratio| vec![Goal { against: Against::Own(name), ratio }];
        let [quiet, scan, compaction] = names.hits;
        table.add(Row::new(quiet, "%", Vec::new()));
        table.add(Row::new(scan, "%", own(quiet, 0.95)));
        table.add(Row::new(compaction, "%", own(quiet, 0.95)));
        let [quiet, scan, compaction] = names.p99;
        table.add(Row::new(quiet, "us", Vec::new()).less_is_better());
        table.add(Row::new(scan, "us", Vec::new()).less_is_better());
        table.add(Row::new(compaction, "us", own(quiet, 3.0)).less_is_better());
        for name in names.rate {
            table.add(Row::new(name, "K/s", Vec::new()));
        }
        table.add(Row::new(names.scan, "M rows/s", Vec::new()));
        table.add(Row::new(names.compaction, "s", Vec::new()).less_is_better());
    }
    let figure = |ratio| vec![Goal { against: Against::Figure, ratio }];
    table.add(Row::new(IN_TIME, "ms", figure(1000.0)).less_is_better());
    table.add(Row::new(GIVEN_BACK, "part", figure(0.9)));
    table
}

#[cfg(test)]
mod tests {
    use super::{MIB, cache_to_halve};

    #[test]
    fn the_cache_that_is_halved_is_full_before() {
        assert_eq!(cache_to_halve(3840 * MIB), 256 * MIB);
        assert_eq!(cache_to_halve(115 * MIB), 32 * MIB);
        assert_eq!(cache_to_halve(0), 2 * MIB);
    }
}
