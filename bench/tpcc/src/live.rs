//! Formats the table that gets a new line after every interval while terminals work:
//!
//! ```text
//!     time              tpmC  trans/s  failed retries  NewOrder: 50%    90%    99%  Payment  OrderStatus  Delivery  StockLevel
//!    1.0 s  measured  101460     3761       0      12           3.91   8.12   15.4     7.98         7.31      19.0        11.2
//! ```
//!
//! Times are in milliseconds. The last four columns are the 90th percentiles of the other transactions. A
//! transaction that conflicts is retried, and counts as failed only when its terminal gives up.

use crate::input::Transaction;
use crate::result_text::shown_millis;
use crate::terminal::{ATTEMPTS, COUNTS};
use harness::{Interval, Measure};

#[cfg(test)]
mod tests;

/// The heading of the table.
pub fn head() -> String {
    let columns = ["time", "", "tpmC", "trans/s", "failed", "retries", "NewOrder: 50%", "90%", "99%"];
    let others = &Transaction::NAMES[1..];
    row(columns.map(str::to_owned), &others.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
}

/// The new orders that were completed in an interval. It includes orders that were rolled back, as the specification
/// demands.
pub fn new_orders(interval: &Interval) -> u64 {
    of(interval, Transaction::NewOrder).map_or(0, Measure::done)
}

fn of(interval: &Interval, transaction: Transaction) -> Option<&Measure> {
    interval.kinds.iter().find(|kind| kind.name == Transaction::NAMES[transaction as usize])
}

/// The line of an interval.
pub fn line(interval: &Interval) -> String {
    let seconds = (interval.to_nanos.saturating_sub(interval.from_nanos).max(1)) as f64 / 1e9;
    let again = COUNTS[ATTEMPTS..]
        .iter()
        .map(|name| interval.counts.iter().find(|count| count.name == *name).map_or(0, |count| count.value));
    let again: u64 = again.sum();
    let quantile = |transaction: Transaction, quantile: f64| match of(interval, transaction) {
        Some(kind) => known_millis(kind, quantile),
        None => "-".to_owned(),
    };
    let of_order = |share| quantile(Transaction::NewOrder, share);
    let columns = [
        format!("{:.1} s", interval.to_nanos as f64 / 1e9),
        if interval.warming { "warm-up" } else { "measured" }.to_owned(),
        format!("{:.0}", new_orders(interval) as f64 * 60.0 / seconds),
        format!("{:.0}", interval.per_second()),
        interval.failed.to_string(),
        again.to_string(),
        of_order(0.5),
        of_order(0.9),
        of_order(0.99),
    ];
    let others = Transaction::ALL[1..].iter().map(|transaction| quantile(*transaction, 0.9));
    row(columns, &others.collect::<Vec<_>>())
}

/// A quantile in milliseconds; a dash if there were too few transactions to say.
fn known_millis(kind: &Measure, quantile: f64) -> String {
    kind.times().known_quantile(quantile).map_or("-".to_owned(), |nanos| shown_millis(nanos as f64 / 1e6))
}

fn row([time, phase, tpmc, transactions, failed, again, median, p90, p99]: [String; 9], others: &[String]) -> String {
    let first = format!("{time:>9}  {phase:<8} {tpmc:>8} {transactions:>8}  {failed:>6} {again:>7}");
    let others: String = Transaction::NAMES[1..]
        .iter()
        .zip(others)
        .map(|(name, time)| format!("  {time:>width$}", width = name.len()))
        .collect();
    format!("{first}  {median:>13} {p90:>6} {p99:>6}{others}")
}
