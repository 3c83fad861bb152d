//! Computes the result of a run as the specification demands. This module does not know how a result is displayed.

use crate::input::Transaction;
use crate::rules::{Mode, TIMES};
use crate::terminal::{ATTEMPTS, COUNTS};
use harness::{Measure, Measured};
use serde::Serialize;

#[cfg(test)]
mod tests;

/// The most new orders per minute that a warehouse can have if transactions are drawn by weights and take no time
/// (clause 4.1). The efficiency of a run is its new orders per minute and warehouse, in percent of this number.
pub const MOST_TPMC: f64 = 12.86;

/// The most new orders per minute that a warehouse can have if transactions are drawn from a deck. This number is
/// lower than [`MOST_TPMC`], because new orders are less than 45 % of the cards.
pub const MOST_TPMC_OF_DECK: f64 = 12.61;

/// A result.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'m> {
    /// The mode in which terminals worked.
    pub mode: Mode,
    /// The number of warehouses that had terminals.
    pub warehouses: u32,
    /// What was measured.
    pub measured: &'m Measured,
}

/// A figure that must be within bounds according to the specification.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "Said")]
pub struct Limit {
    /// The name of the figure.
    pub name: String,
    /// The measured value; `None` if too few transactions were measured for it.
    pub is: Option<f64>,
    /// The least allowed value.
    pub least: f64,
    /// The greatest allowed value.
    pub most: f64,
    /// The unit of the values.
    pub unit: &'static str,
    /// Whether enough transactions were measured that chance alone would not bring the value out of its bounds.
    pub is_enough: bool,
}

/// A limit in the format of a file.
#[derive(Serialize)]
struct Said {
    name: String,
    unit: &'static str,
    is: Option<f64>,
    least: f64,
    most: f64,
    /// `None` if there were too few transactions to decide.
    holds: Option<bool>,
}

impl From<Limit> for Said {
    fn from(limit: Limit) -> Self {
        let holds = (limit.holds() || limit.is_enough).then(|| limit.holds());
        let Limit { name, is, least, most, unit, .. } = limit;
        Self { name, unit, is, least, most, holds }
    }
}

impl Limit {
    /// Whether the value is within the bounds.
    pub fn holds(&self) -> bool {
        self.is.is_some_and(|is| (self.least..=self.most).contains(&is))
    }

    /// The verdict in words.
    pub fn said(&self) -> &'static str {
        match (self.holds(), self.is_enough) {
            (true, _) => "holds",
            (false, true) => "DOES NOT HOLD",
            (false, false) => "too few to say",
        }
    }

    /// The measured value, with its unit; a dash if it is not known.
    pub fn measured(&self) -> String {
        let Some(is) = self.is else { return "-".to_owned() };
        format!("{is:.2} {}", self.unit).trim_end().to_owned()
    }

    /// The bounds, with their unit.
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

    pub(crate) fn seconds(&self) -> f64 {
        self.measured.nanos as f64 / 1e9
    }

    fn count(&self, number: usize) -> u64 {
        let counted = self.measured.counts.iter().find(|count| count.name == COUNTS[number]);
        counted.map_or(0, |count| count.value)
    }

    /// The number of new orders that were completed in the measured window. It includes orders that were rolled
    /// back, as the specification demands.
    pub fn new_orders(&self) -> u64 {
        self.of(Transaction::NewOrder).map_or(0, Measure::done)
    }

    /// Completed new orders per minute.
    pub fn tpmc(&self) -> f64 {
        if self.measured.nanos == 0 { 0.0 } else { self.new_orders() as f64 * 60.0 / self.seconds() }
    }

    /// The new orders per minute and warehouse, in percent of [`MOST_TPMC`]. `None` if terminals do not wait,
    /// because then there is no such limit.
    pub fn efficiency(&self) -> Option<f64> {
        self.mode.waits().then(|| 100.0 * self.tpmc() / (f64::from(self.warehouses) * MOST_TPMC))
    }

    /// The limits of clauses 5.5.1.5, 5.2.5.7 and 5.2.3: shares of inputs, response times, and the mix. A figure that
    /// was not measured is left out.
    pub fn limits(&self) -> Vec<Limit> {
        let mut limits = Vec::new();
        let mut percent = |name: &str, part: u64, whole: u64, least: f64, most: f64| {
            if whole > 0 {
                let is = Some(100.0 * part as f64 / whole as f64);
                let is_enough = is_enough(whole, least, most);
                limits.push(Limit { name: name.to_owned(), is, least, most, unit: "%", is_enough });
            }
        };
        let done = |transaction| self.of(transaction).map_or(0, Measure::done);
        let (orders, payments) = (done(Transaction::NewOrder), done(Transaction::Payment));
        let rolled_back = self.of(Transaction::NewOrder).map_or(0, Self::rolled_back);
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
            let is = Some(self.count(0) as f64 / orders as f64);
            limits.push(Limit {
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
            // Fewer than 100 transactions have no 90th percentile, and so are not judged.
            let is = kind.times().known_quantile(0.9).map(|nanos| nanos as f64 / 1e6);
            let most = TIMES[transaction as usize].2 as f64;
            let is_enough = is.is_some();
            limits.push(Limit { name, is, least: 0.0, most, unit: "ms", is_enough });
        }
        limits
    }

    /// How many attempts at transactions of a kind failed and were repeated. Older results have this number only
    /// among the counts of the clients.
    pub(crate) fn retries(&self, kind: &Measure) -> u64 {
        let number = Transaction::NAMES.iter().position(|name| *name == kind.name);
        kind.retries.max(number.map_or(0, |number| self.count(ATTEMPTS + number)))
    }

    /// How many transactions of a kind were rolled back because their input demands it. Older results count them as
    /// requests that met no row.
    pub(crate) fn rolled_back(kind: &Measure) -> u64 {
        kind.rolled_back.max(kind.not_found)
    }
}

/// Whether a share in percent can be judged after `whole` draws. If the true share is in the middle between its
/// bounds, each bound must be at least three standard deviations away from it.
fn is_enough(whole: u64, least: f64, most: f64) -> bool {
    // If the share has only one bound, the true share is assumed to be 4 %, and the bound to be one percentage
    // point away.
    let (middle, away) = match most < 100.0 && least > 0.0 {
        true => (f64::midpoint(least, most) / 100.0, (most - least) / 200.0),
        false => (0.04, 0.01),
    };
    whole as f64 * away * away >= 9.0 * middle * (1.0 - middle)
}
