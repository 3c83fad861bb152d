//! Maintenance of the database, without pause: flushes, compactions, changes of options, checks and metrics.

use super::{Round, tables};
use larch::check::DumpDetail;
use larch::stats::Resolution;
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// Maintains the database until the round is over.
pub fn keep(round: &Round, mut rng: Xoshiro256PlusPlus) {
    let db = &round.db;
    let stay = [&round.left, &round.right, &round.accounts];
    while round.goes_on() {
        let table = stay[rng.random_range(0..stay.len())];
        match rng.random_range(0..12) {
            0 => {
                round.expect("flush", db.flush());
            }
            1 => {
                round.expect("compact", table.compact());
            }
            2 => {
                round.expect("compact_due", db.compact_due());
            }
            3 | 4 => {
                round.expect("alter", tables::alter(table, &mut rng));
            }
            5 => {
                if let Some(report) = round.expect("check", table.check(|_| {})) {
                    let real =
                        report.problems.iter().find(|problem| !problem.to_string().contains(super::disk::INJECTED));
                    assert!(real.is_none(), "{}", real.expect("just found"));
                }
            }
            6 => {
                round.expect("warm", table.warm(..).map(drop));
            }
            7 => {
                round.expect(
                    "histogram",
                    table.histogram(.., larch::stats::Metric::Rows, Resolution::Buckets(10)).map(drop),
                );
            }
            8 => {
                round.expect("sync", db.sync());
            }
            9 => {
                round.expect("stats", table.stats().map(drop));
                round.expect("dump", table.dump(DumpDetail::Loaded, &mut std::io::sink()));
            }
            10 => {
                round.expect("split points", table.split_points(.., 8).map(drop));
            }
            _ => {
                let metrics = db.metrics();
                assert!(metrics.cache.used_bytes < 64 << 20, "the cache holds {:?}", metrics.cache);
            }
        }
    }
}
