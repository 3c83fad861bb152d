//! Transactions of unknown outcome, and transactions that a crash lost. A crash is known here only by which commits
//! existed afterwards.

use super::anomaly::Anomaly;
use super::check;
use super::transaction::{Operation, Outcome, Transaction};
use larch::Version;

/// The most ways to assign versions to transactions of unknown outcome that are tried. With eight commits under way
/// of which four took place, 8 · 7 · 6 · 5 ways exist.
const TRIES: usize = 2000;

/// The same as [`check`], but some transactions of unknown outcome took place: one at each of the versions `free`,
/// which exist in the database but belong to no known commit. The caller learns these versions from a database that
/// was opened again, or that refuses writes now. The function tries ways to assign the transactions to the free
/// versions, and returns the anomalies of the best one, so none if some way has none.
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
    /// Tries all ways to assign transactions to the free versions from number `next` on.
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

/// Changes a history so that it can go on after a crash that lost all commits after `version`. Lost transactions now
/// count as aborted, and what they saw is forgotten, as is what transactions with a snapshot newer than `version`
/// saw. Check the history before this call, because up to the crash, everything that was seen had to be right.
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
