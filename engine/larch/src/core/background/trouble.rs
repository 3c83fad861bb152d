//! Remembers background work that failed: which work, why, and when it will be retried. This module does not know
//! how the work is done.
//!
//! A flush or compaction that fails is retried after a pause of [`FIRST_RETRY`], which doubles with each failure, up
//! to [`LONGEST_RETRY`]. Only a compaction with a corrupt input is not retried, because it would read the same
//! bytes. A failure is forgotten when the same work succeeds, in the background or in a call that asks for it.
//!
//! This module is thread-safe.

use crate::base::error::Error;
use crate::base::event::Event;
use crate::base::table::TableId;
use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::time::Duration;

/// The pause before the first retry. Long enough that a system that was out of file descriptors often has one again.
const FIRST_RETRY: Duration = Duration::from_millis(100);

/// The longest pause between two tries, and so the time until a database notices that a full disk has room again.
const LONGEST_RETRY: Duration = Duration::from_secs(10);

/// Background work that failed and has not succeeded since then.
/// [`Metrics::troubles`](crate::stats::Metrics::troubles) lists it.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Trouble {
    /// The work that failed.
    pub work: FailedWork,
    /// Why it failed the last time.
    pub cause: Error,
    /// How many tries have failed in a row.
    pub attempts: u32,
    /// The time until the next try, or `None` if the work is not retried because a file is corrupt.
    pub retry_in: Option<Duration>,
}

/// Background work that can fail.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum FailedWork {
    /// Writing rows from memory to files.
    Flush,
    /// Merging files of this table.
    Compaction(String),
    /// Reading what the writer has written, in a [follower](crate::Builder::follow).
    Follow,
}

/// The failed background work of one database.
#[derive(Debug, Default)]
pub struct Troubles {
    flush: Mutex<Option<WorkFailure>>,
    compactions: Mutex<BTreeMap<TableId, WorkFailure>>,
    follow: Mutex<Option<WorkFailure>>,
    failed_flushes: AtomicU64,
    failed_compactions: AtomicU64,
}

#[derive(Clone, Debug)]
struct WorkFailure {
    cause: Error,
    attempts: u32,
    /// The time of the next try, on the machine's clock, or `None` if the work is not retried.
    next: Option<Duration>,
}

impl Trouble {
    /// The event that reports this failure.
    pub(crate) fn event(&self) -> Event {
        let work = match self.work {
            FailedWork::Flush => "a flush",
            FailedWork::Compaction(_) => "a compaction",
            FailedWork::Follow => "following the writer",
        };
        let (error, failures) = (self.cause.to_string(), self.attempts.into());
        match self.retry_in {
            Some(after) => Event::Retrying { work, error, failures, after },
            None => Event::GivenUp { work, error },
        }
    }
}

impl WorkFailure {
    fn after(before: Option<&Self>, cause: &Error, is_final: bool, now: Duration) -> Self {
        let attempts = before.map_or(0, |before| before.attempts).saturating_add(1);
        let next = (!is_final).then(|| now + retry_after(attempts));
        Self { cause: cause.clone(), attempts, next }
    }

    fn must_wait(&self, now: Duration) -> bool {
        self.next.is_none_or(|next| now < next)
    }

    fn trouble(&self, work: FailedWork, now: Duration) -> Trouble {
        let retry_in = self.next.map(|next| next.saturating_sub(now));
        Trouble { work, cause: self.cause.clone(), attempts: self.attempts, retry_in }
    }
}

/// The pause after `attempts` failures in a row.
fn retry_after(attempts: u32) -> Duration {
    FIRST_RETRY.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(LONGEST_RETRY)
}

/// How much longer work with this failure has to wait, or `None` if it need not wait.
fn waits(failure: &Option<WorkFailure>, now: Duration) -> Option<Duration> {
    failure.as_ref()?.next?.checked_sub(now).filter(|wait| !wait.is_zero())
}

impl Troubles {
    /// Notes that a flush failed.
    pub fn flush_failed(&self, cause: &Error, now: Duration) -> Trouble {
        let mut flush = self.flush.lock();
        let failure = WorkFailure::after(flush.as_ref(), cause, false, now);
        let trouble = failure.trouble(FailedWork::Flush, now);
        *flush = Some(failure);
        drop(flush);
        self.failed_flushes.fetch_add(1, Ordering::Release);
        trouble
    }

    /// Notes that a flush succeeded.
    pub fn flush_succeeded(&self) {
        *self.flush.lock() = None;
    }

    /// How much longer flushes have to wait, or `None` if they need not wait.
    pub fn flush_waits(&self, now: Duration) -> Option<Duration> {
        waits(&self.flush.lock(), now)
    }

    /// Lets the next flush begin at once, because a caller has asked for one.
    pub fn retry_flush_now(&self) {
        if let Some(failure) = &mut *self.flush.lock() {
            failure.next = Some(Duration::ZERO);
        }
    }

    /// The error of the last flush if it failed: why rows in memory cannot be written to files.
    pub fn flush_cause(&self) -> Option<Error> {
        self.flush.lock().as_ref().map(|failure| failure.cause.clone())
    }

    /// How many flushes have failed so far.
    pub fn failed_flushes(&self) -> u64 {
        self.failed_flushes.load(Ordering::Acquire)
    }

    /// Notes that following the writer failed.
    pub fn follow_failed(&self, cause: &Error, now: Duration) -> Trouble {
        let mut follow = self.follow.lock();
        let failure = WorkFailure::after(follow.as_ref(), cause, false, now);
        let trouble = failure.trouble(FailedWork::Follow, now);
        *follow = Some(failure);
        trouble
    }

    /// How much longer the next try to follow the writer has to wait, or `None` if it need not wait.
    pub fn follow_waits(&self, now: Duration) -> Option<Duration> {
        waits(&self.follow.lock(), now)
    }

    /// Notes that following the writer succeeded.
    pub fn follow_succeeded(&self) {
        *self.follow.lock() = None;
    }

    /// Notes that a compaction of `table` failed. `name` is the name of this table.
    pub fn compaction_failed(&self, table: TableId, name: &str, cause: &Error, now: Duration) -> Trouble {
        let mut compactions = self.compactions.lock();
        let failure = WorkFailure::after(compactions.get(&table), cause, cause.is_corruption(), now);
        let trouble = failure.trouble(FailedWork::Compaction(name.to_owned()), now);
        compactions.insert(table, failure);
        drop(compactions);
        self.failed_compactions.fetch_add(1, Ordering::Release);
        trouble
    }

    /// Notes that a compaction of `table` succeeded.
    pub fn compaction_succeeded(&self, table: TableId) {
        self.compactions.lock().remove(&table);
    }

    /// How many compactions have failed so far.
    pub fn failed_compactions(&self) -> u64 {
        self.failed_compactions.load(Ordering::Acquire)
    }

    /// Whether compactions of `table` have to wait for the next try, or are not retried at all.
    pub fn compaction_must_wait(&self, table: TableId, now: Duration) -> bool {
        self.compactions.lock().get(&table).is_some_and(|failure| failure.must_wait(now))
    }

    /// The error of the last compaction of `table`, if it failed.
    pub fn compaction_cause(&self, table: TableId) -> Option<Error> {
        self.compactions.lock().get(&table).map(|failure| failure.cause.clone())
    }

    /// The time until the first failed compaction may be retried, or `None` if none has to wait. Compactions whose
    /// pause is over do not count: they run when their table is picked, which may be much later. Forgets tables that
    /// no longer exist.
    pub fn next_compaction(&self, exists: impl Fn(TableId) -> bool, now: Duration) -> Option<Duration> {
        let mut compactions = self.compactions.lock();
        compactions.retain(|table, _| exists(*table));
        compactions.values().filter_map(|failure| failure.next?.checked_sub(now).filter(|wait| !wait.is_zero())).min()
    }

    /// All failed work. `name` returns the name of a table, or `None` if it was dropped.
    pub fn all(&self, name: impl Fn(TableId) -> Option<String>, now: Duration) -> Vec<Trouble> {
        let mut all: Vec<Trouble> = Vec::new();
        all.extend(self.flush.lock().as_ref().map(|failure| failure.trouble(FailedWork::Flush, now)));
        all.extend(self.follow.lock().as_ref().map(|failure| failure.trouble(FailedWork::Follow, now)));
        for (table, failure) in &*self.compactions.lock() {
            all.extend(name(*table).map(|name| failure.trouble(FailedWork::Compaction(name), now)));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn following_waits_after_each_failure_until_it_succeeds() {
        let (troubles, millis) = (Troubles::default(), Duration::from_millis);
        assert_eq!(troubles.follow_waits(millis(0)), None);
        troubles.follow_failed(&Error::ReadOnly, millis(1000));
        troubles.follow_failed(&Error::ReadOnly, millis(1100));
        let waits = |now| troubles.follow_waits(millis(now));
        assert_eq!((waits(1100), waits(1250), waits(1300)), (Some(millis(200)), Some(millis(50)), None));
        troubles.follow_succeeded();
        assert_eq!(waits(1100), None);
    }

    #[test]
    fn nobody_is_woken_for_a_compaction_that_need_not_wait_any_more() {
        let (troubles, table) = (Troubles::default(), TableId(1));
        let millis = Duration::from_millis;
        troubles.compaction_failed(table, "t", &Error::ReadOnly, millis(1000));
        let next = |now| troubles.next_compaction(|_| true, millis(now));
        assert_eq!((next(1050), next(1100), next(2000)), (Some(millis(50)), None, None));
        assert!(!troubles.compaction_must_wait(table, millis(1100)), "it is tried when the table is picked");
        assert_eq!(troubles.next_compaction(|_| false, millis(1050)), None);
    }

    #[test]
    fn the_time_between_tries_doubles_up_to_a_bound() {
        let millis: Vec<u128> = (1..=9).map(|attempts| retry_after(attempts).as_millis()).collect();
        assert_eq!(millis, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(retry_after(u32::MAX), LONGEST_RETRY);
    }
}
