//! The filter of a table: a thread that carries out what it has decided. Compactions ask the filter, see
//! `core/filters.rs`.

use super::attempts::transact;
use super::expected::Expected;
use super::table::Table;
use super::transaction::{Transaction, TransactionOptions};
use crate::base::error::{Error, Result};
use crate::base::filter::{CompactionFilter, FilterCounts};
use crate::base::options::Durability;
use crate::core::filters::{Decision, TableFilter, Taken};
use os::Duty;
use os::sync::atomic::{AtomicBool, Ordering};
use os::sync::{Arc, Condvar, Mutex};
use pages::Admit;
use std::fmt;
use std::thread;

/// The filter of a table, which [`Table::filter`] has begun. It ends when this handle is dropped.
///
/// While the handle exists, it keeps the database open.
#[must_use = "the filter ends when this is dropped"]
pub struct Filtering {
    work: Arc<Work>,
    running: Arc<Running>,
}

/// Whether the thread is running. It is apart from [`Work`], because the thread must have let go of the table before it
/// says that it has ended.
#[derive(Default)]
struct Running {
    runs: Mutex<bool>,
    /// Notified when the thread ends.
    ended: Condvar,
}

/// Notes the end of the thread when it is dropped, also after a panic.
struct Ends(Arc<Running>);

impl Drop for Ends {
    fn drop(&mut self) {
        *self.0.runs.lock() = false;
        self.0.ended.notify_all();
    }
}

/// What the handle and its thread share.
struct Work {
    table: Table,
    filter: Arc<TableFilter>,
    /// The last error of the thread.
    trouble: Mutex<Option<Error>>,
}

impl fmt::Debug for Filtering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filtering").field("table", &self.work.table.name()).finish_non_exhaustive()
    }
}

impl Table {
    /// From now on, compactions of the table ask `filter` about each row that they read and that was not written again.
    /// Soon after that, rows that are to be [removed](crate::filter::Verdict::Remove) are removed, and others replaced,
    /// by commits of a thread. So a filter behaves like a program that reads the whole table from time to time, but costs
    /// no reads: snapshots, versions that are kept, running transactions, indexes and feeds see its commits like those
    /// of anybody else. A row that was written again meanwhile stays.
    ///
    /// When a row is judged is up to the compactions: a row that lies deep may stay unjudged for long. After
    /// [`Table::compact`], all rows of the table were judged.
    ///
    /// The filter ends when the returned handle is dropped. The engine does not store it, so a program passes it after
    /// each open.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let events = db.table("events")?;
    /// use larch::filter::{JudgedRow, Verdict};
    ///
    /// for day in 1..=9 {
    ///     events.insert(format!("2026-06-0{day}"), "rain")?;
    /// }
    /// let filtering = events.filter(|row: &JudgedRow<'_>| match row.key {
    ///     key if key < &b"2026-06-05"[..] => Verdict::Remove,
    ///     _ if row.value() == b"rain" => Verdict::replace("wet"),
    ///     _ => Verdict::Keep,
    /// })?;
    /// events.compact()?;
    /// filtering.carry_out()?;
    /// assert_eq!(events.len()?, 5);
    /// assert_eq!(events.get("2026-06-07")?.as_deref(), Some(&b"wet"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A filter must come to rest: what it has replaced is judged again by a later compaction.
    ///
    /// Compactions with a filter cost more: they read each row, and copy no whole pages. They are not left to
    /// [workers](crate::worker::CompactionWorker). A filter that removes rows of a certain age is better replaced by
    /// [`Table::insert_for`].
    ///
    /// # Errors
    ///
    /// * [`Error::Filtered`] if the table has a filter.
    /// * [`Error::TableDropped`] if the table was dropped; [`Error::ReadOnly`] if the database is read-only.
    /// * [`Error::NoThreads`] if the system refuses a thread.
    pub fn filter(&self, filter: impl CompactionFilter + 'static) -> Result<Filtering> {
        let core = self.core();
        core.check_writable()?;
        if core.env.options.read_only {
            return Err(Error::ReadOnly);
        }
        core.views.newest().files_of(self.identity())?;
        let filter = TableFilter::new(Box::new(filter));
        core.filters.add(self.id(), filter.clone()).ok_or_else(|| Error::Filtered(self.name().to_owned()))?;
        // What the commits read is seldom read again.
        let table = self.admitting(Admit::Pass);
        let work = Arc::new(Work { table, filter, trouble: Mutex::default() });
        let filtering = Filtering { work: work.clone(), running: Arc::default() };
        let threads = &core.env.machine.threads;
        if threads.are_real() {
            *filtering.running.runs.lock() = true;
            let (ends, caller) = (Ends(filtering.running.clone()), thread::current().id());
            let is_refused = Arc::new(AtomicBool::new(false));
            let refused = is_refused.clone();
            threads.in_thread(Box::new(move || {
                let ends = ends;
                let work = work;
                // If the system refuses a thread, the caller runs this, and must not wait here.
                if thread::current().id() == caller {
                    refused.store(true, Ordering::Release);
                } else {
                    work.run();
                }
                drop(work);
                drop(ends);
            }));
            if is_refused.load(Ordering::Acquire) {
                return Err(Error::NoThreads("the thread of the filter was refused".to_owned()));
            }
        }
        Ok(filtering)
    }
}

impl Filtering {
    /// Carries out what the filter has decided so far, and waits for the thread that does the same. Returns how many
    /// rows were removed or replaced by this call. Without a call, the thread does it soon.
    ///
    /// # Errors
    ///
    /// Fails as [`Database::transact`](crate::Database::transact) does, also with the last error that the thread has
    /// met since the last call. Decisions that could not be carried out are left to a later compaction.
    pub fn carry_out(&self) -> Result<u64> {
        let work = &self.work;
        let mut rows = 0;
        loop {
            while let Some(batch) = work.filter.take() {
                rows += work.carry_out(batch)?;
            }
            if !work.filter.wait_for_others() {
                break;
            }
        }
        match work.trouble.lock().take() {
            Some(error) => Err(error),
            None => Ok(rows),
        }
    }

    /// What the filter has done so far.
    pub fn counts(&self) -> FilterCounts {
        self.work.filter.counts()
    }
}

impl Work {
    /// Carries out decisions until the filter ends.
    fn run(&self) {
        while self.filter.wait() {
            while let Some(batch) = self.filter.take() {
                if let Err(error) = self.carry_out(batch) {
                    *self.trouble.lock() = Some(error);
                }
            }
        }
    }

    /// Carries out the decisions of `batch` in one commit, or each in a commit of its own if that fails because of a row.
    /// Returns how many rows were removed or replaced.
    fn carry_out(&self, batch: Taken) -> Result<u64> {
        let decisions = &batch.decisions[..];
        match self.commit(decisions) {
            Err(error) if decisions.len() > 1 && is_of_row(&error) => self.commit_each(decisions),
            outcome => outcome.inspect_err(|_| self.filter.count(|counts| counts.left += decisions.len() as u64)),
        }
    }

    fn commit_each(&self, batch: &[Decision]) -> Result<u64> {
        let mut rows = 0;
        let mut failed = None;
        for decision in batch {
            match self.commit(std::slice::from_ref(decision)) {
                Ok(more) => rows += more,
                Err(error) => {
                    self.filter.count(|counts| counts.left += 1);
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(rows), Err)
    }

    fn commit(&self, batch: &[Decision]) -> Result<u64> {
        // A commit that is lost is made again after a later compaction.
        let options = TransactionOptions::with_durability(Some(Durability::Buffered));
        let handle = &self.table.inner().handle;
        let ((removed, replaced), _) = transact(handle, &options, |tx| self.write(tx, batch))?;
        self.filter.count(|counts| {
            counts.removed += removed;
            counts.replaced += replaced;
            counts.outdated += batch.len() as u64 - removed - replaced;
        });
        Ok(removed + replaced)
    }

    /// Writes the rows of `batch` that have not changed since. Returns how many are removed, and how many replaced.
    fn write(&self, tx: &mut Transaction, batch: &[Decision]) -> Result<(u64, u64)> {
        let (mut removed, mut replaced) = (0, 0);
        for Decision { key, version, until, new } in batch {
            if !tx.has(&self.table, key, &Expected::Version(*version))? {
                continue;
            }
            match (new, until) {
                (None, _) => tx.remove(&self.table, key)?,
                (Some(parts), None) => tx.insert_parts(&self.table, key, parts)?,
                (Some(parts), Some(until)) => tx.insert_parts_until(&self.table, key, parts, *until)?,
            }
            if new.is_none() { removed += 1 } else { replaced += 1 }
        }
        Ok((removed, replaced))
    }
}

/// Whether a commit may have failed because of one of its rows.
fn is_of_row(error: &Error) -> bool {
    matches!(
        error,
        Error::BadRow { .. }
            | Error::Duplicate { .. }
            | Error::IndexKeyTooLong { .. }
            | Error::PartCount { .. }
            | Error::ValueTooLong { .. }
            | Error::TooManyConflicts { .. }
    )
}

impl Drop for Filtering {
    fn drop(&mut self) {
        let core = self.work.table.core();
        // In a forked child, the thread exists only in the parent, which may hold a lock of the filter.
        if core.env.check_origin().is_err() {
            return;
        }
        core.filters.remove(self.work.table.id());
        self.work.filter.end();
        // A thread on duty must not wait for a commit.
        if Duty::is_taken() {
            return;
        }
        let mut runs = self.running.runs.lock();
        while *runs {
            runs = self.running.ended.wait(runs);
        }
    }
}

#[cfg(test)]
mod tests;
