//! The figures of a result by the rules of TPC-C. The text, the file and the page of a result all show these
//! figures, so that they agree.

use crate::input::Transaction;
use crate::rules::Mode;
use crate::summary::{Limit, MOST_TPMC, MOST_TPMC_OF_DECK, Summary};
use harness::report::figures::{NANOS, PER_SECOND, PERCENT};
use harness::report::{self, Figure};
use harness::{Measure, Times};
use serde::Serialize;

/// The name of the transaction that TPC-C counts, and the only one of which some are rolled back.
pub(crate) const NEW_ORDER: &str = Transaction::NAMES[Transaction::NewOrder as usize];

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
    /// The efficiency in percent of [`crate::summary::MOST_TPMC_OF_DECK`]; `None` if transactions are not drawn from a
    /// deck.
    pub efficiency_of_deck: Option<f64>,
    /// Transactions per second, including transactions that failed for good.
    pub throughput_per_second: f64,
    /// Completed transactions per second.
    pub goodput_per_second: f64,
    /// How many attempts at transactions failed and were repeated.
    pub retries: u64,
    /// How long terminals waited for a connection; `None` if they never do.
    pub waited_millis: Option<Percentiles>,
    /// The figures of each kind of transaction that the result has.
    pub transactions: Vec<Kind>,
    /// The figures that have bounds.
    pub limits: Vec<Limit>,
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
    /// The share of transactions that failed for good, in percent.
    pub failed_share: f64,
    /// The number of attempts that failed and were repeated.
    pub retries: u64,
    /// The share of this kind in the mix, in percent of all completed transactions. `None` if no transaction was
    /// completed.
    pub share: Option<f64>,
    /// Response times.
    pub millis: Percentiles,
}

/// Times in milliseconds. A percentile is `None` if too few transactions were completed for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// 50 of 100 transactions had at most this response time.
    pub p50: Option<f64>,
    /// 90 of 100 transactions had at most this response time.
    pub p90: Option<f64>,
    /// 95 of 100 transactions had at most this response time.
    pub p95: Option<f64>,
    /// 99 of 100 transactions had at most this response time.
    pub p99: Option<f64>,
    /// 999 of 1000 transactions had at most this response time.
    pub p99_9: Option<f64>,
}

impl Percentiles {
    fn of(times: &Times) -> Self {
        let millis = |quantile| Some(times.known_quantile(quantile)? as f64 / 1e6);
        let [p50, p90, p95, p99, p99_9] = QUANTILES.map(|(_, quantile)| millis(quantile));
        Self { p50, p90, p95, p99, p99_9 }
    }

    /// The values in the order of [`QUANTILES`].
    pub fn all(self) -> [Option<f64>; 5] {
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
        let waited = Times::sum(kinds.iter().filter_map(|kind| kind.waited.as_ref()));
        let of_deck = summary.efficiency().filter(|_| mode.has_deck());
        let of_deck = of_deck.map(|efficiency| efficiency * MOST_TPMC / MOST_TPMC_OF_DECK);
        Self {
            notice: NOTICE,
            mode: Mode::name(mode),
            warehouses,
            new_orders: summary.new_orders(),
            tpmc: summary.tpmc(),
            efficiency: summary.efficiency(),
            efficiency_of_deck: of_deck,
            throughput_per_second: a_second(done + failed),
            goodput_per_second: a_second(done),
            retries: measured.retries,
            waited_millis: (!waited.is_empty()).then(|| Percentiles::of(&waited)),
            transactions,
            limits: summary.limits(),
            deviations: mode.deviations(),
        }
    }
}

impl Kind {
    fn of(summary: &Summary<'_>, kind: &Measure, done: u64) -> Self {
        let retries = summary.retries(kind);
        let failed = kind.failures.values().sum::<u64>().saturating_sub(retries);
        Self {
            name: kind.name.clone(),
            ok: kind.done(),
            rolled_back: Summary::rolled_back(kind),
            failed,
            failed_share: 100.0 * failed as f64 / (kind.done() + failed).max(1) as f64,
            retries,
            share: (done > 0).then(|| 100.0 * kind.done() as f64 / done as f64),
            millis: Percentiles::of(kind.times()),
        }
    }
}

impl Figures {
    /// The figures as lines of the list that all results have.
    pub fn list(&self) -> Vec<Figure> {
        let mut all = report::Figures::default();
        let of = "TPC-C";
        all.text(of, "notice", NOTICE);
        all.text(of, "mode", self.mode);
        all.counts(of, [("warehouses", self.warehouses.into()), ("new orders", self.new_orders)]);
        all.add(of, "tpmC", self.tpmc, "1/min");
        all.add(of, "efficiency", self.efficiency, PERCENT);
        all.add(of, "efficiency of what the deck allows", self.efficiency_of_deck, PERCENT);
        all.note(format!("{MOST_TPMC_OF_DECK} a warehouse; with weights it is {MOST_TPMC}"));
        all.add(of, "throughput", self.throughput_per_second, PER_SECOND);
        all.add(of, "goodput", self.goodput_per_second, PER_SECOND);
        all.counts(of, [("retries", self.retries)]);
        let nanos = |millis: Option<f64>| millis.map(|millis| millis * 1e6);
        if let Some(waited) = self.waited_millis {
            for ((percent, _), millis) in QUANTILES.into_iter().zip(waited.all()) {
                all.add(of, format!("waiting for a connection {percent} %"), nanos(millis), NANOS);
            }
        }
        for kind in &self.transactions {
            let of = format!("TPC-C {}", kind.name);
            let counts = [("ok", kind.ok), ("retries", kind.retries), ("rolled back", kind.rolled_back)];
            all.counts(&of, counts.into_iter().chain([("failed", kind.failed)]));
            all.add(&of, "share of failed", kind.failed_share, PERCENT);
            all.add(&of, "share of the mix", kind.share, PERCENT);
            for ((percent, _), millis) in QUANTILES.into_iter().zip(kind.millis.all()) {
                all.add(&of, format!("response {percent} %"), nanos(millis), NANOS);
            }
        }
        for limit in &self.limits {
            let (value, unit) = if limit.unit == "ms" { (nanos(limit.is), NANOS) } else { (limit.is, limit.unit) };
            all.add("TPC-C limits", limit.name.clone(), value, unit);
            all.note(format!("{}: {}", limit.bounds(), limit.said()));
        }
        self.deviations.iter().for_each(|deviation| all.text(of, "deviation from TPC-C 5.11", *deviation));
        all.0
    }
}
