//! Writes a result as text, in the format of the document that describes this benchmark.

use crate::figures::{Figures, Kind, NOTICE, QUANTILES};
use crate::input::Transaction;
use crate::summary::{MOST_TPMC, MOST_TPMC_OF_DECK, Summary};
use harness::Times;
use std::fmt::Write as _;

impl Summary<'_> {
    /// The result in that document's format, followed by figures for which it has no format.
    pub fn text(&self) -> String {
        let figures = Figures::of(self);
        let mut text = String::new();
        let mut line = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("a string takes every line");
        line(format_args!("Result: Total"));
        line(format_args!("Time: {:.0} seconds", self.seconds()));
        line(format_args!("Start measure: {}", self.measured.began_unix_millis / 1000));
        line(format_args!("Warehouses: {}", figures.warehouses));
        line(format_args!("New orders: {}", figures.new_orders));
        line(format_args!("tpmC: {:.0}", figures.tpmc));
        match figures.efficiency {
            Some(efficiency) => line(format_args!("Efficiency: {efficiency:.2}")),
            None => line(format_args!("Efficiency: none, since terminals do not wait")),
        }
        line(format_args!("Throughput: {:.0}", figures.throughput_per_second));
        line(format_args!("Goodput: {:.0}", figures.goodput_per_second));
        for Kind { name, ok, failed, rolled_back, .. } in &figures.transactions {
            let share = if ok + failed == 0 { 0.0 } else { 100.0 * *failed as f64 / (ok + failed) as f64 };
            let rolled_back = match rolled_back {
                0 => String::new(),
                count => format!(", of the former {count} rolled back"),
            };
            line(format_args!("{name}: OK: {ok}, FAILED: {failed} ({share:.2}%){rolled_back}"));
        }
        for kind in &figures.transactions {
            line(format_args!("{}:", kind.name));
            for (number, (percent, _)) in QUANTILES.iter().enumerate() {
                match kind.millis {
                    Some(all) => line(format_args!("{percent}%: {} ms", shown_millis(all.all()[number]))),
                    None => line(format_args!("{percent}%: none")),
                }
            }
        }
        if let Some(efficiency) = figures.efficiency.filter(|_| self.mode.has_deck()) {
            let of_deck = efficiency * MOST_TPMC / MOST_TPMC_OF_DECK;
            line(format_args!(
                "Of what the deck allows, {MOST_TPMC_OF_DECK} a warehouse: {of_deck:.2} % (with weights it is {MOST_TPMC})"
            ));
        }
        if self.measured.retries > 0 {
            line(format_args!("New attempts after conflicts: {}", self.measured.retries));
        }
        let waited = Transaction::ALL.into_iter().filter_map(|one| self.of(one)?.waited.as_ref());
        let waited = Times::sum(waited);
        if !waited.is_empty() {
            let (p99, p999) = (millis(&waited, 0.99), millis(&waited, 0.999));
            line(format_args!("Waiting for a connection: 99%: {p99} ms, 99.9%: {p999} ms"));
        }
        for verdict in &figures.limits {
            line(format_args!("{}: {}, {}: {}", verdict.name, verdict.measured(), verdict.bounds(), verdict.said()));
        }
        line(format_args!("{NOTICE} In what this run differs from TPC-C 5.11:"));
        for deviation in &figures.deviations {
            line(format_args!("- {deviation}"));
        }
        text
    }
}

/// A quantile in milliseconds, with three significant digits.
pub fn millis(times: &Times, quantile: f64) -> String {
    shown_millis(times.quantile(quantile) as f64 / 1e6)
}

/// Milliseconds with three significant digits.
pub fn shown_millis(millis: f64) -> String {
    match millis {
        _ if millis < 9.995 => format!("{millis:.2}"),
        _ if millis < 99.95 => format!("{millis:.1}"),
        _ => format!("{millis:.0}"),
    }
}
