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
    /// Only the rows that the transaction writes. Others may have changed rows that it has only read.
    Writes,
    /// The rows that the transaction writes and the rows that it has read, which makes transactions serializable.
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

    /// Adds 1 to the counter `key` in a transaction. After a conflict, retries it in the way that users of this
    /// store would. Returns the number of attempts: at least 1.
    ///
    /// # Errors
    ///
    /// Returns an error if the store failed or gave up. After an error, the counter has not changed.
    fn increment(&mut self, key: &[u8]) -> Result<u64, Failure>;

    /// The value of the counter `key`.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is not a number or the store failed.
    fn count(&mut self, key: &[u8]) -> Result<u64, Failure>;
}

/// One thread's pipelined commits. A commit in flight is visible to reads but not durable yet.
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

/// The number of attempts at a transaction before a store gives up, for stores whose library has no retry loop of
/// its own. Larch's `transact` makes as many.
pub const MOST_ATTEMPTS: u64 = 100;

/// The bound of the first random wait, and the cap on the bounds of later waits.
const FIRST_WAIT: Duration = Duration::from_micros(20);
const LONGEST_WAIT: Duration = Duration::from_millis(10);

/// The backoff before a transaction is retried after `conflicts` conflicts, for stores whose library does not back
/// off itself. There is none after the first conflict. After each later one, it is a random time, picked by
/// `random`, up to a bound that doubles each time. Larch's `transact` backs off in the same way, so all stores are
/// compared with the same waits.
pub fn wait_after(conflicts: u64, random: u64) -> Duration {
    let Some(doublings) = conflicts.checked_sub(2) else { return Duration::ZERO };
    let bound = FIRST_WAIT.saturating_mul(1 << doublings.min(16)).min(LONGEST_WAIT);
    Duration::from_nanos(random % (bound.as_nanos() as u64 + 1))
}

/// The number in a counter's value.
///
/// # Errors
///
/// Returns an error if the value is not 8 bytes long.
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
