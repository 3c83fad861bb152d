//! The interface of stores whose users can read and write in transactions, or have many commits in flight. This
//! module does not know what is measured with such stores.
//!
//! Keys and values are bytes, as in the engine. A counter is a key whose value is a number of eight bytes, lowest
//! byte first. A key without a value is a counter at 0.

#[cfg(test)]
mod tests;

use crate::failure::Failure;
use std::time::Duration;

/// What the commit of a transaction compares with other commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The rows that the transaction writes. Other transactions may have changed rows that this transaction has
    /// read.
    Writes,
    /// The commit checks the rows that the transaction writes and the rows that the transaction has read. So
    /// transactions have the same result as if they ran one after the other.
    ReadsAndWrites,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its writes have taken effect.
    Committed,
    /// The transaction conflicts with another commit, so it has no effect.
    Conflict,
}

/// One thread's access to the transactions of a store. A commit is as durable as the store's other commits.
pub trait Transactions {
    /// Reads the value of `key`, then sets the value to `value`, without a transaction.
    ///
    /// # Errors
    ///
    /// Returns an error if `key` has no value or the store failed.
    fn apart(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Does the same as [`Transactions::apart`] in one transaction, which is tried once.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Transactions::apart`].
    fn together(&mut self, key: &[u8], value: &[u8]) -> Result<Ended, Failure>;

    /// Adds 1 to the counter `key`. A transaction that conflicts is begun again. The new attempt is made in the way
    /// that users of this store repeat transactions. Returns how many transactions were needed: at least 1.
    ///
    /// # Errors
    ///
    /// Returns an error if the store failed or gave up. After an error, the counter has not changed.
    fn increment(&mut self, key: &[u8]) -> Result<u64, Failure>;

    /// The value of the counter `key`.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is no number or the store failed.
    fn count(&mut self, key: &[u8]) -> Result<u64, Failure>;
}

/// One thread's commits. Some commits are in flight: reads see them, but they become durable later.
pub trait Commits {
    /// Sets `key` to `value`. If the greatest allowed number of commits is in flight, the call first waits until
    /// the oldest commit is durable.
    ///
    /// # Errors
    ///
    /// Returns an error if the store failed, perhaps in an earlier commit.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Waits until all commits are durable.
    ///
    /// # Errors
    ///
    /// Returns an error if the store failed. Then some of the commits may be lost.
    fn finish(&mut self) -> Result<(), Failure>;
}

/// How often a transaction is tried before the store gives up. Stores whose library does not repeat transactions
/// itself use this number. Larch's `transact` has the same number.
pub const MOST_ATTEMPTS: u64 = 100;

/// The bound of the first random wait, and the highest bound that a later wait can have.
const FIRST_WAIT: Duration = Duration::from_micros(20);
const LONGEST_WAIT: Duration = Duration::from_millis(10);

/// How long a store waits after `conflicts` conflicts before it tries the transaction again. Stores whose library
/// does not wait itself use this wait. `random` decides. Larch's `transact` waits in the same way, so that all
/// stores are compared with the same waits. After the first conflict, the store does not wait. After each later
/// conflict, the store waits for a random time below a bound that doubles each time.
pub fn wait_after(conflicts: u64, random: u64) -> Duration {
    let Some(doublings) = conflicts.checked_sub(2) else { return Duration::ZERO };
    let bound = FIRST_WAIT.saturating_mul(1 << doublings.min(16)).min(LONGEST_WAIT);
    Duration::from_nanos(random % (bound.as_nanos() as u64 + 1))
}

/// The number in a counter's value.
///
/// # Errors
///
/// Returns an error if the value is no number.
pub fn number(value: Option<&[u8]>) -> Result<u64, Failure> {
    let Some(value) = value else { return Ok(0) };
    let bytes = value.try_into().map_err(|_| {
        Failure::request("not_a_number", format!("a counter has a value of {} bytes, not of 8", value.len()))
    })?;
    Ok(u64::from_le_bytes(bytes))
}

/// The failure of a read that should have found a value.
#[cold]
pub fn missing() -> Failure {
    Failure::request("missing", "a key has no value: the table is not what it should be")
}
