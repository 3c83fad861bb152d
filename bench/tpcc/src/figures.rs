//! The figures of a result by the rules of TPC-C. The text, the file and the page of a result all show these
//! figures, so that they agree.

use crate::input::Transaction;
use crate::rules::Mode;
use crate::summary::{Summary, Verdict};
use harness::{Measure, Times};
use serde::Serialize;

/// The notice that every result must show.
pub const NOTICE: &str = "These are no official results of TPC.";

/// The quantiles of response times that a result shows.
pub const QUANTILES: [(&str, f64); 5] = [("50", 0.5), ("90", 0.9), ("95", 0.95), ("99", 0.99), ("99.9", 0.999)];

/// The figures of a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// [`NOTICE`].
    pub notice: &'static str,
    /// The mode in which terminals worked.
    pub mode: &'static str,
    /// The number of warehouses that had terminals.
    pub warehouses: u32,
    /// The number of completed new orders. Orders that were rolled back are included, as the specification
    /// demands.
    pub new_orders: u64,
    /// Completed new orders per minute.
    pub tpmc: f64,
    /// The new orders per minute and warehouse, in percent of [`crate::summary::MOST_TPMC`]; `None` if terminals do
    /// not wait.
    pub efficiency: Option<f64>,
    /// Transactions per second, including transactions that failed for good.
    pub throughput_per_second: f64,
    /// Completed transactions per second.
    pub goodput_per_second: f64,
    /// The figures of each kind of transaction that the result has.
    pub transactions: Vec<Kind>,
    /// The figures that have bounds.
    pub limits: Vec<Verdict>,
    /// The ways in which the run differs from the specification.
    pub deviations: Vec<&'static str>,
}

/// The figures of one of the five transactions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// The number of completed transactions, including transactions that were rolled back.
    pub ok: u64,
    /// The number of transactions in `ok` that were rolled back, as the specification demands.
    pub rolled_back: u64,
    /// The number of transactions that failed for good.
    pub failed: u64,
    /// The number of attempts that failed and were repeated.
    pub made_again: u64,
    /// The share of this kind in the mix, in percent of all completed transactions. `None` if no transaction was
    /// completed.
    pub share: Option<f64>,
    /// Response times; `None` if no transaction of this kind was completed.
    pub millis: Option<Percentiles>,
}

/// Response times, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// 50 of 100 transactions had at most this response time.
    pub p50: f64,
    /// 90 of 100 transactions had at most this response time.
    pub p90: f64,
    /// 95 of 100 transactions had at most this response time.
    pub p95: f64,
    /// 99 of 100 transactions had at most this response time.
    pub p99: f64,
    /// 999 of 1000 transactions had at most this response time.
    pub p99_9: f64,
}

impl Percentiles {
    fn of(times: &Times) -> Self {
        let [p50, p90, p95, p99, p99_9] = QUANTILES.map(|(_, quantile)| times.quantile(quantile) as f64 / 1e6);
        Self { p50, p90, p95, p99, p99_9 }
    }

    /// The values in the order of [`QUANTILES`].
    pub fn all(self) -> [f64; 5] {
        [self.p50, self.p90, self.p95, self.p99, self.p99_9]
    }
}

impl Figures {
    /// The figures of a result.
    pub fn of(summary: &Summary<'_>) -> Self {
        let Summary { mode, warehouses, measured } = *summary;
        let kinds: Vec<&Measure> = Transaction::ALL.into_iter().filter_map(|one| summary.of(one)).collect();
        let done: u64 = kinds.iter().map(|kind| kind.done()).sum();
        let transactions: Vec<Kind> = kinds.iter().map(|kind| Kind::of(summary, kind, done)).collect();
        let failed: u64 = transactions.iter().map(|kind| kind.failed).sum();
        let a_second = |count: u64| if measured.nanos == 0 { 0.0 } else { count as f64 * 1e9 / measured.nanos as f64 };
        Self {
            notice: NOTICE,
            mode: Mode::name(mode),
            warehouses,
            new_orders: summary.new_orders(),
            tpmc: summary.tpmc(),
            efficiency: summary.efficiency(),
            throughput_per_second: a_second(done + failed),
            goodput_per_second: a_second(done),
            transactions,
            limits: summary.verdicts(),
            deviations: mode.deviations(),
        }
    }
}

impl Kind {
    fn of(summary: &Summary<'_>, kind: &Measure, done: u64) -> Self {
        let made_again = summary.made_again(kind);
        Self {
            name: kind.name.clone(),
            ok: kind.done(),
            rolled_back: kind.not_found,
            failed: kind.failures.values().sum::<u64>().saturating_sub(made_again),
            made_again,
            share: (done > 0).then(|| 100.0 * kind.done() as f64 / done as f64),
            millis: (kind.done() > 0).then(|| Percentiles::of(kind.times())),
        }
    }
}
