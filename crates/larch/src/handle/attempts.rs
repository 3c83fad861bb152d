//! Runs a transaction again until it commits. What it conflicts with is decided elsewhere.
//!
//! After a conflict it waits a random time between nothing and a bound that doubles with each conflict (full jitter: M. Brooker,
//! "Exponential Backoff and Jitter", 2015). The first time it does not wait: mostly the other commit is already over. After
//! [`RESERVES_AFTER`] conflicts it reserves the keys that it needs before it begins again, so that others let it commit.

use super::give_way::give_way;
use super::transaction::{Transaction, TransactionOptions};
use crate::core::handle::DatabaseHandle;
use crate::error::{Error, Result};
use crate::transaction::conflict::Conflict;
use crate::transaction::reserved::Reservation;
use os::sync::Arc;
use sst::Version;
use std::time::Duration;

/// After so many conflicts a transaction reserves its keys.
const RESERVES_AFTER: u32 = 8;

/// The bound of the first wait, about the time of a few transactions, and the greatest bound.
const FIRST_WAIT: Duration = Duration::from_micros(20);
const GREATEST_BOUND: Duration = Duration::from_millis(10);

/// Runs `body` in transactions until one commits, with this version.
///
/// # Errors
///
/// As [`Database::transact`](crate::Database::transact).
pub(crate) fn transact<T, E: From<Error>>(
    handle: &Arc<DatabaseHandle>,
    options: &TransactionOptions,
    mut body: impl FnMut(&mut Transaction) -> Result<T, E>,
) -> Result<(T, Version), E> {
    let mut attempts = Attempts::new(handle, options);
    loop {
        let mut tx = attempts.begin()?;
        let done = body(&mut tx)?;
        match tx.try_commit()? {
            Ok(version) => return Ok((done, version)),
            Err(conflict) => attempts.failed(tx, conflict)?,
        }
    }
}

/// The attempts at one piece of work.
pub(crate) struct Attempts<'h> {
    handle: &'h Arc<DatabaseHandle>,
    options: &'h TransactionOptions,
    failed: u32,
    /// What the next attempt has reserved.
    reservation: Reservation,
}

impl<'h> Attempts<'h> {
    pub fn new(handle: &'h Arc<DatabaseHandle>, options: &'h TransactionOptions) -> Self {
        Self { handle, options, failed: 0, reservation: Reservation::default() }
    }

    /// Begins the next attempt.
    ///
    /// # Errors
    ///
    /// As [`Database::begin`](crate::Database::begin).
    pub fn begin(&mut self) -> Result<Transaction> {
        Transaction::begin(self.handle, self.options, std::mem::take(&mut self.reservation))
    }

    /// Prepares the next attempt, after `tx` has conflicted, and waits.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyConflicts`] if there are no more attempts.
    pub fn failed(&mut self, mut tx: Transaction, conflict: Conflict) -> Result<()> {
        let reserves = self.count(conflict)?;
        let core = self.handle.core();
        if reserves {
            tx.reserve_all();
        }
        self.reservation = tx.take_reservation();
        drop(tx);
        let wait = if reserves { Duration::ZERO } else { jitter(self.failed, core.env.machine.random.next_u64()) };
        if !wait.is_zero() {
            core.env.machine.clock.sleep(wait);
        }
        Ok(())
    }

    /// As [`Attempts::failed`], for a task: other tasks run meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Attempts::failed`].
    pub async fn failed_async(&mut self, mut tx: Transaction, conflict: Conflict) -> Result<()> {
        if self.count(conflict)? {
            tx.reserve_all_async().await;
        }
        self.reservation = tx.take_reservation();
        drop(tx);
        give_way().await;
        Ok(())
    }

    /// Counts a conflict. Whether the next attempt reserves its keys.
    fn count(&mut self, conflict: Conflict) -> Result<bool> {
        self.failed += 1;
        if self.failed >= self.options.attempts {
            return Err(Error::TooManyConflicts { attempts: self.failed, conflict });
        }
        Ok(self.failed >= RESERVES_AFTER)
    }
}

impl Drop for Attempts<'_> {
    fn drop(&mut self) {
        self.handle.core().writes.reserved.free(&mut self.reservation);
    }
}

/// The wait after so many conflicts, by a `random` number.
fn jitter(conflicts: u32, random: u64) -> Duration {
    let Some(doublings) = conflicts.checked_sub(2) else { return Duration::ZERO };
    let bound = FIRST_WAIT.saturating_mul(1 << doublings.min(16)).min(GREATEST_BOUND);
    Duration::from_nanos(random % (bound.as_nanos() as u64 + 1))
}
