//! Retries a transaction until it commits.
//!
//! After a conflict, the transaction waits a random time between zero and a bound that doubles with each conflict.
//! This is the full jitter of Brooker's "Exponential Backoff and Jitter" (2015). After the first conflict it does
//! not wait, because in most cases the other commit is already done. Later attempts get more and more help, so that
//! the work ends at some point, whatever other writers do and however long it takes:
//!
//! 1. An attempt begins by naming the tables that the last attempt used, so that the keys of commits to these
//!    tables are kept from then on.
//! 2. After [`RESERVES_AFTER`] conflicts, the transaction reserves the keys of its last attempt before it begins
//!    again, and other commits to these keys wait for it.
//! 3. The transaction holds the writer, so that all other commits wait: after [`HOLDS_AFTER`] conflicts,
//!    [`LONGEST_LOST`] after its second attempt began, or after two attempts that were too old to be compared with
//!    newer commits. It holds the writer at most for twice the time that the last attempt took, but see
//!    [`SHORTEST_HOLD`] and [`LONGEST_HOLD`].

use super::attempt::Attempt;
use super::give_way::{give_way, give_way_until};
use super::transaction::{Transaction, TransactionOptions};
use crate::base::conflict::Conflict;
use crate::base::error::{Error, Result};
use crate::conflicts::recent::Tables;
use crate::conflicts::reserved::Reservation;
use crate::core::handle::DatabaseHandle;
use os::sync::Arc;
use sst::Version;
use std::time::Duration;

/// After this many conflicts, a transaction reserves its keys.
const RESERVES_AFTER: u32 = 8;

/// After this many conflicts, a transaction holds the writer.
const HOLDS_AFTER: u32 = 16;

/// A transaction that still conflicts this long after its second attempt began holds the writer, too.
const LONGEST_LOST: Duration = Duration::from_secs(1);

/// The bounds of the time for which a transaction holds the writer.
const SHORTEST_HOLD: Duration = Duration::from_millis(100);
const LONGEST_HOLD: Duration = Duration::from_secs(60);

/// The first and the greatest bound of the random wait before a new attempt. The first is about the time that a few
/// transactions take.
const FIRST_WAIT: Duration = Duration::from_micros(20);
const GREATEST_BOUND: Duration = Duration::from_millis(10);

/// Runs `body` in transactions until one commits. Also returns the version of the commit.
///
/// # Errors
///
/// Fails as [`Database::transact`](crate::Database::transact) does.
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

/// Like [`transact`], but as a future, with an async `body`.
///
/// # Errors
///
/// Fails as [`Database::transact_async`](crate::Database::transact_async) does.
pub(crate) async fn transact_async<T, E: From<Error>, F: Future<Output = Result<T, E>>>(
    handle: &Arc<DatabaseHandle>,
    options: &TransactionOptions,
    mut body: impl FnMut(Attempt) -> F,
) -> Result<(T, Version), E> {
    let mut attempts = Attempts::new(handle, options);
    loop {
        let (attempt, back) = Attempt::lend(attempts.begin()?);
        let done = body(attempt).await?;
        match back.take()?.try_commit_async().await? {
            (_, Ok(version)) => return Ok((done, version)),
            (tx, Err(conflict)) => attempts.failed_async(tx, conflict).await?,
        }
    }
}

/// The attempts at one piece of work.
pub(crate) struct Attempts<'h> {
    handle: &'h Arc<DatabaseHandle>,
    options: &'h TransactionOptions,
    failed: u32,
    /// How many attempts failed because the transaction was too old to be compared with newer commits.
    too_old: u32,
    /// The reservation for the next attempt.
    reservation: Reservation,
    /// The tables that the last attempt used.
    tables: Tables,
    /// When the second attempt began, and when the last one did. `None` before the second attempt.
    begun: Option<(Duration, Duration)>,
}

/// How the next attempt is helped.
enum Help {
    Nothing,
    Reserves,
    /// The next attempt holds the writer, at most for this time.
    Holds(Duration),
}

impl<'h> Attempts<'h> {
    pub fn new(handle: &'h Arc<DatabaseHandle>, options: &'h TransactionOptions) -> Self {
        let (reservation, tables) = (Reservation::default(), Tables::NONE);
        Self { handle, options, failed: 0, too_old: 0, reservation, tables, begun: None }
    }

    /// Begins the next attempt.
    ///
    /// # Errors
    ///
    /// Fails as [`Database::begin`](crate::Database::begin) does.
    pub fn begin(&mut self) -> Result<Transaction> {
        Transaction::begin(self.handle, self.options, std::mem::take(&mut self.reservation), self.tables)
    }

    /// Prepares the next attempt after `tx` had a conflict, and waits.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::TooManyConflicts`] if no attempt is left.
    pub fn failed(&mut self, mut tx: Transaction, conflict: Conflict) -> Result<()> {
        let help = self.count(&tx, conflict)?;
        let core = self.handle.core();
        if !matches!(help, Help::Nothing) {
            tx.reserve_all();
        }
        self.reservation = tx.take_reservation();
        drop(tx);
        match (help, core.patient_clock()) {
            (Help::Nothing, _) => {
                let wait = jitter(self.failed, core.env.machine.random.next_u64());
                if !wait.is_zero() {
                    core.env.machine.clock.sleep(wait);
                }
            }
            (Help::Holds(time), Some(clock)) => {
                core.writes.reserved.hold_writer(&mut self.reservation, time, clock);
            }
            // On a machine without threads, no other commit can run during a wait, so do not wait.
            (Help::Holds(_) | Help::Reserves, _) => {}
        }
        self.next_begins();
        Ok(())
    }

    /// Like [`Attempts::failed`], but as a future: other tasks run while it waits. It yields once in place of the
    /// random wait.
    ///
    /// # Errors
    ///
    /// Fails as [`Attempts::failed`] does.
    pub async fn failed_async(&mut self, mut tx: Transaction, conflict: Conflict) -> Result<()> {
        let help = self.count(&tx, conflict)?;
        if !matches!(help, Help::Nothing) {
            tx.reserve_all_async().await;
        }
        self.reservation = tx.take_reservation();
        drop(tx);
        let core = self.handle.core();
        if let (Help::Holds(time), Some(clock)) = (help, core.patient_clock()) {
            let (reserved, reservation) = (&core.writes.reserved, &mut self.reservation);
            give_way_until(core.patient_clock(), || reserved.try_hold_writer(reservation, time, clock).is_none()).await;
        }
        give_way().await;
        self.next_begins();
        Ok(())
    }

    /// Counts a conflict of `tx`, and decides how the next attempt is helped.
    fn count(&mut self, tx: &Transaction, conflict: Conflict) -> Result<Help> {
        self.failed += 1;
        self.too_old += u32::from(matches!(conflict, Conflict::TooOld { .. }));
        if self.failed >= self.options.attempts {
            return Err(Error::TooManyConflicts { attempts: self.failed, conflict });
        }
        self.tables = tx.tables();
        let now = self.handle.core().env.machine.clock.now();
        let (lost, last) = self.begun.map_or_else(Default::default, |(first, last)| (now - first, now - last));
        Ok(match () {
            () if self.failed >= HOLDS_AFTER || self.too_old >= 2 || lost >= LONGEST_LOST => {
                Help::Holds((2 * last).clamp(SHORTEST_HOLD, LONGEST_HOLD))
            }
            () if self.failed >= RESERVES_AFTER => Help::Reserves,
            () => Help::Nothing,
        })
    }

    /// Notes when the next attempt begins.
    fn next_begins(&mut self) {
        let now = self.handle.core().env.machine.clock.now();
        self.begun = Some((self.begun.map_or(now, |(first, _)| first), now));
    }
}

impl Drop for Attempts<'_> {
    fn drop(&mut self) {
        self.handle.core().writes.reserved.free(&mut self.reservation);
    }
}

/// How long to wait after `conflicts` conflicts; `random` chooses the time below the bound.
fn jitter(conflicts: u32, random: u64) -> Duration {
    let Some(doublings) = conflicts.checked_sub(2) else { return Duration::ZERO };
    let bound = FIRST_WAIT.saturating_mul(1 << doublings.min(16)).min(GREATEST_BOUND);
    Duration::from_nanos(random % (bound.as_nanos() as u64 + 1))
}
