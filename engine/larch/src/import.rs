//! Bulk import: rows are written straight to sorted files, bypassing the log and the memtables, and become visible
//! together at the end. This module does not know how rows are sorted. If an import fails or is dropped, its files
//! are removed; after a crash, the next open removes them.

pub mod built;
pub mod share;
pub mod sort;
pub mod take_in;

use crate::base::error::{Error, Result};
use crate::base::event::Event;
use crate::base::expiry::Expiry;
use crate::base::table::TableInfo;
use crate::base::watch::{GoOn, Progress, Watch};
use crate::core::Core;
use crate::core::expiring::RowTimes;
use crate::core::handle::TableHandle;
use crate::write::define::check_unindexed;
use crate::write::times;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use sort::{ImportReport, RowSorter};
use take_in::take_in;

/// The name of this work in [`Error::Cancelled`].
const WORK: &str = "the import";

/// An import of rows into one table, begun by [`Table::import`](crate::Table::import). Rows can be added in any
/// order, but ascending keys are fastest. [`Import::finish`] makes all rows visible at once. If the import is
/// dropped instead, the table stays as it was.
///
/// If rows come in key order, the import keeps no rows in memory. Otherwise it buffers rows in up to three quarters
/// of the write buffer, writes each row at least twice, and needs free disk space for about two copies of all rows.
#[derive(Debug)]
#[must_use = "an import has no effect until it is finished"]
pub struct Import {
    table: TableHandle,
    sorter: RowSorter,
    /// The option by which the rows get their times.
    expiry: Expiry,
}

impl Import {
    pub(crate) fn new(table: &TableHandle) -> Result<Self> {
        check_table(table, WORK)?;
        table.core().writes.reserve.fill()?;
        let times = table.core().expiring.of(table.id());
        if times.is_some() {
            times::allow(table.core())?;
        }
        let expiry = times.as_ref().map_or(Expiry::Never, RowTimes::expiry);
        Ok(Self { table: table.clone(), sorter: RowSorter::new(table, times), expiry })
    }

    fn core(&self) -> &Arc<Core> {
        self.table.core()
    }

    /// Adds a row. Rows can be added in any order, but ascending keys are fastest. If two rows have the same key, the
    /// later row replaces the earlier one. If the table [gives times](crate::TableOptions::expiry) to its rows, the row
    /// gets one, which counts from this call.
    ///
    /// # Errors
    ///
    /// [`Error::Grouped`] if the table splits its values into column groups; [`Error::KeyTooLong`] or
    /// [`Error::ValueTooLong`] if the key or the value is too long; [`Error::BadRow`] or [`Error::NoExpiryTime`] if the
    /// table gives times and the row can have none; an error if a file cannot be written. After a disk error, drop the
    /// import.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.sorter.add(key, value)
    }

    /// Adds a row with a value in parts. There must be one part for each column group of the table, see
    /// [`Table::insert_parts`](crate::Table::insert_parts).
    ///
    /// # Errors
    ///
    /// [`Error::PartCount`] if the number of parts differs from the number of groups; otherwise the errors of
    /// [`Import::add`].
    pub fn add_parts(&mut self, key: &[u8], parts: &[impl AsRef<[u8]>]) -> Result<()> {
        self.sorter.add_parts(key, parts)
    }

    /// Makes all rows visible at once, and durable. `watch` is told how many bytes of a merge are done, and decides
    /// whether to go on. Rows that came in key order need no merge.
    ///
    /// # Errors
    ///
    /// [`Error::TableDropped`] if the table was dropped; [`Error::BadOptions`] if its option
    /// [`expiry`](crate::TableOptions::expiry) was altered since the import began, because the rows do not have the
    /// times that it gives; [`Error::Cancelled`] if `watch` ends the import; an error if files cannot be written or
    /// installed; [`Error::Full`] if level 0 of the table is full and its compactions fail. After an error the table is
    /// as it was before, except perhaps after [`Error::OutcomeUnknown`].
    pub fn finish<G: GoOn>(self, watch: impl FnMut(Progress) -> G) -> Result<ImportReport> {
        let core = self.core().clone();
        let (run, report) = self.sorter.finish(&Watch::new(WORK, watch))?;
        take_in(&core, &self.table.info(), vec![run], WORK, |now| check_expiry(now, &self.expiry))?;
        core.env.written.import.fetch_add(report.bytes, Ordering::Relaxed);
        let table = || self.table.identity.name.clone();
        core.env.report(|| Event::Imported { table: table(), files: report.files, bytes: report.bytes });
        Ok(report)
    }
}

/// Checks that `table` gives times to its rows as it did when the import began, by the option `expiry`.
fn check_expiry(table: &TableInfo, expiry: &Expiry) -> Result<()> {
    if table.options.expiry == *expiry {
        return Ok(());
    }
    Err(Error::BadOptions(format!(
        "the option expiry of table {} was altered since {WORK} began, from {expiry:?} to {:?}; import the rows again",
        table.name, table.options.expiry
    )))
}

/// Checks that a table can take imported files, before any work on them begins.
///
/// # Errors
///
/// [`Error::ReadOnly`] or another error that says why writes are refused; [`Error::TableDropped`] if the table was
/// dropped; [`Error::HasIndexes`] if it has indexes.
pub fn check_table(table: &TableHandle, work: &'static str) -> Result<()> {
    let core = table.core();
    if core.env.options.read_only {
        return Err(Error::ReadOnly);
    }
    core.check_writable()?;
    let view = core.views.newest();
    view.files_of(&table.identity)?;
    check_unindexed(&view.files, &table.identity, work)
}

#[cfg(test)]
mod tests;
