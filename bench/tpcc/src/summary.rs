//! The result of a run: in the lines of the document that asked for this benchmark, computed as the specification wants
//! it.

use crate::figures::{Figures, Kind, NOTICE, QUANTILES};
use crate::input::Transaction;
use crate::rules::{Mode, TIMES};
use crate::terminal::{ATTEMPTS, COUNTS};
use harness::{Measure, Measured, Times};
use serde::Serialize;
use std::fmt::Write as _;

#[cfg(test)]
mod tests;

/// New orders a minute that a warehouse can have at most, with weights and no time for the transactions (clause 4.1):
/// what efficiency is a part of.
pub const MOST_TPMC: f64 = 12.86;

/// The same with the deck: it gives less than 45 % of new orders.
pub const MOST_TPMC_OF_DECK: f64 = 12.61;

/// A result.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'m> {
    /// How terminals worked.
    pub mode: Mode,
    /// Warehouses that had terminals.
    pub warehouses: u32,
    /// What was measured.
    pub measured: &'m Measured,
}

/// Something that the specification wants to be within bounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "Said")]
pub struct Verdict {
    /// What it is.
    pub name: String,
    /// What it was.
    pub is: f64,
    /// The least that it may be.
    pub least: f64,
    /// The most that it may be.
    pub most: f64,
    /// What it is counted in.
    pub unit: &'static str,
    /// Whether so much was measured that chance alone does not carry it over a bound.
    pub is_enough: bool,
}

/// A verdict in a file.
#[derive(Serialize)]
struct Said {
    name: String,
    unit: &'static str,
    is: f64,
    least: f64,
    most: f64,
    /// None: too few to say.
    holds: Option<bool>,
}

impl From<Verdict> for Said {
    fn from(verdict: Verdict) -> Self {
        let holds = (verdict.holds() || verdict.is_enough).then(|| verdict.holds());
        let Verdict { name, is, least, most, unit, .. } = verdict;
        Self { name, unit, is, least, most, holds }
    }
}

impl Verdict {
    /// Whether it is within its bounds.
    pub fn holds(&self) -> bool {
        (self.least..=self.most).contains(&self.is)
    }

    /// The verdict in words.
    pub fn said(&self) -> &'static str {
        match (self.holds(), self.is_enough) {
            (true, _) => "holds",
            (false, true) => "DOES NOT HOLD",
            (false, false) => "too few to say",
        }
    }

    /// What it was, with its unit.
    pub fn measured(&self) -> String {
        format!("{:.2} {}", self.is, self.unit).trim_end().to_owned()
    }

    /// Its bounds, with their unit.
    pub fn bounds(&self) -> String {
        let Self { least, most, unit, .. } = self;
        let bounds = match *least == 0.0 {
            true => format!("at most {most} {unit}"),
            false => format!("{least} to {most} {unit}"),
        };
        bounds.trim_end().to_owned()
    }
}

impl Summary<'_> {
    pub(crate) fn of(&self, transaction: Transaction) -> Option<&Measure> {
        self.measured.kind(Transaction::NAMES[transaction as usize])
    }

    fn seconds(&self) -> f64 {
        self.measured.nanos as f64 / 1e9
    }

    fn count(&self, number: usize) -> u64 {
        let counted = self.measured.counts.iter().find(|count| count.name == COUNTS[number]);
        counted.map_or(0, |count| count.value)
    }

    /// New orders that were completed within the window, with those that were rolled back as the specification wants
    /// it.
    pub fn new_orders(&self) -> u64 {
        self.of(Transaction::NewOrder).map_or(0, Measure::done)
    }

    /// New orders a minute.
    pub fn tpmc(&self) -> f64 {
        if self.measured.nanos == 0 { 0.0 } else { self.new_orders() as f64 * 60.0 / self.seconds() }
    }

    /// Percent of [`MOST_TPMC`]; `None` where terminals do not wait, since they have no such bound then.
    pub fn efficiency(&self) -> Option<f64> {
        self.mode.waits().then(|| 100.0 * self.tpmc() / (f64::from(self.warehouses) * MOST_TPMC))
    }

    /// What clauses 5.5.1.5, 5.2.5.7 and 5.2.3 want: shares of inputs, response times, and the mix. What was not
    /// measured has none.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let mut percent = |name: &str, part: u64, whole: u64, least: f64, most: f64| {
            if whole > 0 {
                let is = 100.0 * part as f64 / whole as f64;
                let is_enough = is_enough(whole, least, most);
                verdicts.push(Verdict { name: name.to_owned(), is, least, most, unit: "%", is_enough });
            }
        };
        let done = |transaction| self.of(transaction).map_or(0, Measure::done);
        let (orders, payments) = (done(Transaction::NewOrder), done(Transaction::Payment));
        let rolled_back = self.of(Transaction::NewOrder).map_or(0, |kind| kind.not_found);
        percent("new orders rolled back", rolled_back, orders, 0.9, 1.1);
        if self.warehouses > 1 {
            percent("order lines of other warehouses", self.count(1), self.count(0), 0.95, 1.05);
            percent("payments of customers of other warehouses", self.count(2), payments, 14.0, 16.0);
        }
        percent("payments by last name", self.count(3), payments, 57.0, 63.0);
        percent("order statuses by last name", self.count(4), done(Transaction::OrderStatus), 57.0, 63.0);
        let all: u64 = Transaction::ALL.into_iter().map(done).sum();
        for (transaction, least) in [
            (Transaction::Payment, 43.0),
            (Transaction::OrderStatus, 4.0),
            (Transaction::Delivery, 4.0),
            (Transaction::StockLevel, 4.0),
        ] {
            let name = format!("share of {}", Transaction::NAMES[transaction as usize]);
            percent(&name, done(transaction), all, least, 100.0);
        }
        percent("districts without an order to deliver", self.count(5), 10 * done(Transaction::Delivery), 0.0, 1.0);
        if orders > 0 {
            let is = self.count(0) as f64 / orders as f64;
            verdicts.push(Verdict {
                name: "lines of an order".to_owned(),
                is,
                least: 9.5,
                most: 10.5,
                unit: "",
                is_enough: orders > 1000,
            });
        }
        for transaction in Transaction::ALL {
            let Some(kind) = self.of(transaction).filter(|kind| kind.done() > 0) else { continue };
            let name = format!("90 % of {} within", Transaction::NAMES[transaction as usize]);
            let is = kind.times().quantile(0.9) as f64 / 1e6;
            let most = TIMES[transaction as usize].2 as f64;
            verdicts.push(Verdict { name, is, least: 0.0, most, unit: "ms", is_enough: true });
        }
        verdicts
    }

    /// The result as the document prints it, and then what it does not have.
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

    /// Attempts of a kind that failed and were made again. Results of older releases have them as a count alone.
    pub(crate) fn made_again(&self, kind: &Measure) -> u64 {
        let number = Transaction::NAMES.iter().position(|name| *name == kind.name);
        kind.again.max(number.map_or(0, |number| self.count(ATTEMPTS + number)))
    }
}

/// Whether a share that is in the middle of its bounds, in percent, stays within them when it is drawn from `whole`:
/// they are three standard deviations away.
fn is_enough(whole: u64, least: f64, most: f64) -> bool {
    // Shares that have only one bound are far from it.
    let (middle, away) = match most < 100.0 && least > 0.0 {
        true => (f64::midpoint(least, most) / 100.0, (most - least) / 200.0),
        false => (0.04, 0.01),
    };
    whole as f64 * away * away >= 9.0 * middle * (1.0 - middle)
}

/// A quantile in milliseconds, with three digits.
pub fn millis(times: &Times, quantile: f64) -> String {
    shown_millis(times.quantile(quantile) as f64 / 1e6)
}

/// Milliseconds with three digits.
pub fn shown_millis(millis: f64) -> String {
    match millis {
        _ if millis < 9.995 => format!("{millis:.2}"),
        _ if millis < 99.95 => format!("{millis:.1}"),
        _ => format!("{millis:.0}"),
    }
}
