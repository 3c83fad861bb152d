//! Bulk import: rows go straight into sorted files, past log and memtables, and become visible together at the end. It
//! does not know how rows are sorted. If the import fails or is dropped, its files are removed; after a crash the next
//! open removes them.

pub mod built;
pub mod share;
pub mod sort;
pub mod take_in;

use crate::base::error::{Error, Result};
use crate::base::event::Event;
use crate::base::watch::{GoOn, Progress, Watch};
use crate::core::Core;
use crate::core::handle::TableHandle;
use crate::write::define::check_unindexed;
use os::sync::Arc;
use os::sync::atomic::Ordering;
use sort::{ImportReport, RowSorter};
use take_in::take_in;

/// The name of the work in the error about a cancelled import.
const WORK: &str = "the import";

/// An import of rows into one table, made by [`Table::import`](crate::Table::import). Rows are added in any order;
/// ascending keys are fastest. [`Import::finish`] makes them visible all at once. Dropping the import leaves the table
/// as it was.
///
/// If rows come out of order, it holds rows in memory, at most three quarters of the write buffer. Then it also
/// writes each row at least twice, and needs free disk space for about two copies of the rows. If rows come in
/// order, it holds none in memory.
#[derive(Debug)]
#[must_use = "an import has no effect until it is finished"]
pub struct Import {
    table: TableHandle,
    sorter: RowSorter,
}

impl Import {
    pub(crate) fn new(table: &TableHandle) -> Result<Self> {
        check_table(table, WORK)?;
        table.core().writes.reserve.fill()?;
        Ok(Self { table: table.clone(), sorter: RowSorter::new(table) })
    }

    fn core(&self) -> &Arc<Core> {
        self.table.core()
    }

    /// Adds a row. Rows may come in any order; ascending keys are fastest. A later row replaces an earlier one with the
    /// same key.
    ///
    /// # Errors
    ///
    /// [`Error::Grouped`] if the table splits its values into column groups; [`Error::KeyTooLong`],
    /// [`Error::ValueTooLong`]; a file could not be written. After an error of the disk,
    /// drop the import.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.sorter.add(key, value)
    }

    /// Adds a row with a value in parts: one for each column group of the table, see
    /// [`Table::insert_parts`](crate::Table::insert_parts).
    ///
    /// # Errors
    ///
    /// [`Error::PartCount`] if the parts are not one for each group; otherwise as [`Import::add`].
    pub fn add_parts(&mut self, key: &[u8], parts: &[impl AsRef<[u8]>]) -> Result<()> {
        self.sorter.add_parts(key, parts)
    }

    /// Makes all rows visible at once, and durable. `watch` sees how many bytes of a merge are done, and says
    /// whether to go on; rows that came in order need no merge.
    ///
    /// # Errors
    ///
    /// [`Error::TableDropped`]; [`Error::Cancelled`] if `watch` ends it; why files could not be written or
    /// installed; [`Error::Full`] if level 0 of the table is full and its compactions fail. The table is as it was
    /// before, unless the error is [`Error::OutcomeUnknown`].
    pub fn finish<G: GoOn>(self, mut watch: impl FnMut(Progress) -> G) -> Result<ImportReport> {
        let core = self.core().clone();
        let (run, report) = self.sorter.finish(&Watch::new(WORK, &mut |progress| watch(progress).goes_on()))?;
        take_in(&core, &self.table.info(), vec![run], WORK)?;
        core.env.written.import.fetch_add(report.bytes, Ordering::Relaxed);
        let table = || self.table.identity.name.clone();
        core.env.report(|| Event::Imported { table: table(), files: report.files, bytes: report.bytes });
        Ok(report)
    }
}

/// Refuses a table that cannot take files, before the work for them begins.
///
/// # Errors
///
/// [`Error::ReadOnly`], why writes are refused; [`Error::TableDropped`], [`Error::HasIndexes`].
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
