//! Checks whether a database is consistent: the twelve conditions of clause 3.3.2. It also checks that the rows
//! that may not change or vanish are still there.
//!
//! Every table of a warehouse is read once, in key order. Several threads read warehouses. All sums are exact
//! integers. A thread keeps a few bytes for each customer and each order of the warehouse that it reads. Some rows
//! of a warehouse also matter for other warehouses: a payment by another warehouse's customer, and an order line
//! that another warehouse supplies. The thread that called `check` adds up these rows from all warehouses and
//! compares the sums.
//!
//! This module does not know how a database stores its rows. It trusts no number that it reads: a row with an
//! impossible number is a finding.

use crate::check::findings::Findings;
use crate::check::ledger::Ledger;
use crate::check::loaded::Loaded;
use crate::check::scope::{Outcome, Scope, Source};
use crate::database::{Form, View};
use crate::population::Population;
use crate::schema::Table;
use harness::Failure;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, SyncSender};

mod accounts;
mod findings;
mod goods;
mod ledger;
mod loaded;
mod orders;
mod scope;
mod tallies;
#[cfg(test)]
mod tests;
mod warehouse;
mod words;

pub use findings::{Finding, MOST_FINDINGS};
pub use loaded::After;
pub use scope::INTERRUPTED;

/// What a check has read and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The number of warehouses that were read.
    pub warehouses: u32,
    /// The number of rows that were read.
    pub rows: u64,
    /// The number of rows that were read from each table, in the order of [`Table::ALL`].
    pub rows_by_table: [u64; Table::ALL.len()],
    /// The first findings, at most [`MOST_FINDINGS`], in the order of warehouses.
    pub findings: Vec<Finding>,
    /// The number of further findings.
    pub more: u64,
}

impl Checked {
    /// Whether nothing is wrong.
    pub fn is_consistent(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Checks the database that was made with `form`, on `threads` threads. Each time a warehouse has been read, the
/// calling thread calls `progress` with the number of warehouses read so far. The items are read as rows of
/// warehouse 0.
///
/// # Errors
///
/// Fails if the database cannot be read. If `stop` was set, the error has the kind [`INTERRUPTED`].
#[allow(clippy::disallowed_methods, reason = "the benchmark has no simulated threads")]
pub fn check(
    view: &dyn View,
    form: &Form,
    threads: usize,
    after: After,
    stop: &AtomicBool,
    progress: &(dyn Fn(u32) + Sync),
) -> Result<Checked, Failure> {
    let population = &Population::new(form.seed, form.loaded);
    let (halt, next) = (AtomicBool::new(false), AtomicU32::new(0));
    let source = Source { view, stop, halt: &halt };
    let work = Work { source: &source, population, form, after, next: &next };
    let threads = threads.clamp(1, form.warehouses.max(1) as usize);
    let mut total = Total::default();
    let mut failure = None;
    std::thread::scope(|scope| {
        // Up to `threads` outcomes wait until the calling thread collects them.
        let (sender, outcomes) = mpsc::sync_channel(threads);
        for _ in 0..threads {
            let sender = sender.clone();
            scope.spawn(|| work.run(sender));
        }
        drop(sender);
        for outcome in outcomes {
            match outcome {
                Ok(outcome) => total.add(outcome, progress),
                Err(first) => {
                    halt.store(true, Ordering::Relaxed);
                    failure.get_or_insert(first);
                }
            }
        }
    });
    match failure {
        Some(failure) => Err(failure),
        None => Ok(total.judged(form.warehouses)),
    }
}

/// The state that the threads share.
struct Work<'c> {
    source: &'c Source<'c>,
    population: &'c Population,
    form: &'c Form,
    after: After,
    /// The next warehouse to read. 0 stands for the items.
    next: &'c AtomicU32,
}

impl Work<'_> {
    /// Reads warehouses until none is left.
    fn run(&self, outcomes: SyncSender<Result<Outcome, Failure>>) {
        let Form { warehouses, .. } = *self.form;
        let next = |next: u32| next.checked_add(1).filter(|_| next <= warehouses);
        while let Ok(warehouse) = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            let loaded = Loaded::new(self.population, self.after, warehouse);
            let scope = Scope::new(self.source, loaded, warehouse, warehouses);
            let outcome = if warehouse == 0 { goods::read_items(scope) } else { warehouse::read(scope) };
            let has_failed = outcome.is_err();
            if outcomes.send(outcome).is_err() || has_failed {
                return;
            }
        }
    }
}

/// The sums over all warehouses that have been read.
#[derive(Default)]
struct Total {
    checked: Checked,
    findings: Findings,
    ledger: Ledger,
}

impl Total {
    fn add(&mut self, outcome: Outcome, progress: &(dyn Fn(u32) + Sync)) {
        for (sum, rows) in self.checked.rows_by_table.iter_mut().zip(outcome.rows) {
            *sum += rows;
        }
        self.findings.extend(outcome.findings);
        self.ledger.extend(outcome.ledger);
        if outcome.warehouse != 0 {
            self.checked.warehouses += 1;
            progress(self.checked.warehouses);
        }
    }

    fn judged(self, warehouses: u32) -> Checked {
        let Self { mut checked, mut findings, ledger } = self;
        findings.extend(ledger.judged(warehouses));
        checked.rows = checked.rows_by_table.iter().sum();
        (checked.findings, checked.more) = findings.into_parts();
        checked
    }
}
