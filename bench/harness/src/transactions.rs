//! What a store offers whose users can read and write in transactions, or have many commits in flight. It does not know
//! what is measured of them.
//!
//! Keys and values are bytes as the engine has them. A counter is a key whose value is a number of eight bytes, the
//! lowest first; a key without a value is a counter at 0.

#[cfg(test)]
mod tests;

use crate::failure::Failure;
use std::time::Duration;

/// What the commit of a transaction compares with other commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// What the transaction writes. Others may have changed what it has read.
    Writes,
    /// What it writes and what it has read, so that transactions have the result that they have one after the other.
    ReadsAndWrites,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its writes have taken effect.
    Committed,
    /// Another commit contradicts it, so it has no effect.
    Conflict,
}

/// One thread's way to the transactions of a store. The durability of a commit is that of the store.
pub trait Transactions {
    /// Reads the value of `key`, then sets it to `value`, without a transaction.
    ///
    /// # Errors
    ///
    /// `key` has no value, or the store failed.
    fn apart(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Does the same in one transaction, once.
    ///
    /// # Errors
    ///
    /// As [`Transactions::apart`].
    fn together(&mut self, key: &[u8], value: &[u8]) -> Result<Ended, Failure>;

    /// Adds 1 to the counter `key`. A transaction that conflicts is begun again, as the store's users do it. Returns
    /// how many transactions it took: at least 1.
    ///
    /// # Errors
    ///
    /// The store failed, or gave up. The counter is as it was.
    fn increment(&mut self, key: &[u8]) -> Result<u64, Failure>;

    /// The number of the counter `key`.
    ///
    /// # Errors
    ///
    /// The value is no number, or the store failed.
    fn count(&mut self, key: &[u8]) -> Result<u64, Failure>;
}

/// One thread's commits, of which some are in flight: reads see them, and they become durable later.
pub trait Commits {
    /// Sets `key` to `value`. If as many commits are in flight as may be, it waits first until the oldest is durable.
    ///
    /// # Errors
    ///
    /// The store failed, perhaps with an older commit.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure>;

    /// Waits until all are durable.
    ///
    /// # Errors
    ///
    /// The store failed: some of them may be lost.
    fn finish(&mut self) -> Result<(), Failure>;
}

/// How often a store without a function for it tries a transaction before it gives up: as often as Larch's `transact`
/// does.
pub const MOST_ATTEMPTS: u64 = 100;

/// The bound of the first wait, and the greatest bound.
const FIRST_WAIT: Duration = Duration::from_micros(20);
const LONGEST_WAIT: Duration = Duration::from_millis(10);

/// How long a store waits before it tries a transaction again that has met `conflicts` conflicts, if the store has no
/// function that does so. A `random` number decides. It is what Larch's `transact` waits, so that stores are compared
/// with the same waits: nothing after the first conflict, and then a random time below a bound that doubles.
pub fn wait_after(conflicts: u64, random: u64) -> Duration {
    let Some(doublings) = conflicts.checked_sub(2) else { return Duration::ZERO };
    let bound = FIRST_WAIT.saturating_mul(1 << doublings.min(16)).min(LONGEST_WAIT);
    Duration::from_nanos(random % (bound.as_nanos() as u64 + 1))
}

/// The number of a counter with this value.
///
/// # Errors
///
/// The value is no number.
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
