//! Writes a result as text, in the format of the document that describes this benchmark.

use crate::figures::{Figures, Kind, NEW_ORDER, NOTICE, Percentiles, QUANTILES};
use crate::summary::{MOST_TPMC, MOST_TPMC_OF_DECK, Summary};
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
        for Kind { name, ok, failed, failed_share: share, rolled_back, retries, .. } in &figures.transactions {
            let rolled_back = match name.as_str() {
                NEW_ORDER => format!(", of the former {rolled_back} rolled back"),
                _ => String::new(),
            };
            line(format_args!("{name}: OK: {ok}, FAILED: {failed} ({share:.2}%), retries: {retries}{rolled_back}"));
        }
        for kind in &figures.transactions {
            line(format_args!("{}:", kind.name));
            for (number, (percent, _)) in QUANTILES.iter().enumerate() {
                match kind.millis.all()[number] {
                    Some(millis) => line(format_args!("{percent}%: {} ms", shown_millis(millis))),
                    None => line(format_args!("{percent}%: too few to say")),
                }
            }
        }
        if let Some(of_deck) = figures.efficiency_of_deck {
            line(format_args!(
                "Of what the deck allows, {MOST_TPMC_OF_DECK} a warehouse: {of_deck:.2} % (with weights it is {MOST_TPMC})"
            ));
        }
        line(format_args!("Retries after conflicts: {}", self.measured.retries));
        if let Some(Percentiles { p99, p99_9, .. }) = figures.waited_millis {
            let shown = |millis: Option<f64>| millis.map_or("too few to say".to_owned(), |it| shown_millis(it) + " ms");
            line(format_args!("Waiting for a connection: 99%: {}, 99.9%: {}", shown(p99), shown(p99_9)));
        }
        for limit in &figures.limits {
            line(format_args!("{}: {}, {}: {}", limit.name, limit.measured(), limit.bounds(), limit.said()));
        }
        line(format_args!("{NOTICE} In what this run differs from TPC-C 5.11:"));
        for deviation in &figures.deviations {
            line(format_args!("- {deviation}"));
        }
        text
    }
}

/// Milliseconds with three significant digits.
pub fn shown_millis(millis: f64) -> String {
    match millis {
        _ if millis < 9.995 => format!("{millis:.2}"),
        _ if millis < 99.95 => format!("{millis:.1}"),
        _ => format!("{millis:.0}"),
    }
}
