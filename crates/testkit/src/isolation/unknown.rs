//! Transactions of unknown outcome, and transactions that a crash lost. About a crash, this module knows only which
//! commits were there afterwards.

use super::anomaly::Anomaly;
use super::check;
use super::transaction::{Operation, Outcome, Transaction};
use larch::Version;

/// The most ways to place transactions of unknown outcome that are tried. If the commits of eight transactions were
/// under way at once and four took place, there are 8 · 7 · 6 · 5 ways.
const TRIES: usize = 2000;

/// The same as [`check`], except for transactions of unknown outcome: such a transaction may have taken place at
/// one of the versions `free`, or not at all. At each of the versions `free`, one such transaction took place. A
/// version is free if it exists and belongs to no other commit. The caller knows this from a database that was
/// opened again, or that refuses writes now. Returns the anomalies of the best way to place the transactions. The
/// result is empty if there is a way without anomalies.
pub fn check_with_unknown(history: &[Transaction], free: &[Version]) -> Vec<Anomaly> {
    let mut search = Search { history: history.to_vec(), free, tries: TRIES, best: None };
    search.place(0);
    search.best.unwrap_or_else(|| check(history))
}

struct Search<'a> {
    history: Vec<Transaction>,
    free: &'a [Version],
    tries: usize,
    best: Option<Vec<Anomaly>>,
}

impl Search<'_> {
    /// Tries all ways to assign transactions to the versions, from the version at `next` on.
    fn place(&mut self, next: usize) {
        if self.best.as_ref().is_some_and(Vec::is_empty) || self.tries == 0 {
            return;
        }
        let Some(version) = self.free.get(next).copied() else {
            self.tries -= 1;
            let found = check(&self.history);
            if self.best.as_ref().is_none_or(|best| found.len() < best.len()) {
                self.best = Some(found);
            }
            return;
        };
        for index in 0..self.history.len() {
            let transaction = &self.history[index];
            if transaction.outcome == Outcome::Unknown && transaction.snapshot < version && writes(transaction) {
                self.history[index].outcome = Outcome::Committed(Some(version));
                self.place(next + 1);
                self.history[index].outcome = Outcome::Unknown;
            }
        }
    }
}

fn writes(transaction: &Transaction) -> bool {
    let is_write = |operation: &Operation| {
        matches!(operation, Operation::Put { .. } | Operation::Erase { .. } | Operation::EraseRange { .. })
    };
    transaction.operations.iter().any(is_write)
}

/// Changes a history into the history that goes on after a crash. The crash lost all commits after `version`. The
/// lost transactions did not take place. What they saw is forgotten. What transactions with a newer snapshot than
/// `version` saw is forgotten, too. Check the history before this call, because everything that was seen before the
/// crash had been promised.
pub fn lose_after(history: &mut [Transaction], version: Version) {
    for transaction in history {
        let is_lost = matches!(transaction.outcome, Outcome::Committed(Some(at)) if at > version);
        if is_lost {
            transaction.outcome = Outcome::Aborted;
        }
        if is_lost || transaction.snapshot > version {
            let is_read =
                |operation: &Operation| matches!(operation, Operation::Read { .. } | Operation::ReadRange { .. });
            transaction.operations.retain(|operation| !is_read(operation));
        }
    }
}
