//! Long work that a [`Cancel`] can end early: functions of the database and of its tables under the same names. Only
//! the limit is added here; the work is done below.

use super::compaction::flush_and_compact;
use super::database::Database;
use super::table::Table;
use crate::base::bounds::IntoKeyRange;
use crate::base::cancel::{Cancel, Limit};
use crate::base::error::Result;
use crate::copies::checkpoint::{self, CheckpointReport};
use crate::core::background::warmth::Warmed;
use crate::import::Import;
use crate::import::built::ingest::{self, IngestOptions, IngestReport};
use crate::inspect::check::{self, CheckProgress, CheckReport};
use std::path::Path;

/// Long work on a database or a table that ends early when a [`Cancel`] says so. Made by [`Database::until`] and
/// [`Table::until`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// # let fruit = db.table("fruit")?;
/// let cancel = larch::Cancel::after(std::time::Duration::from_secs(60));
/// fruit.insert("apple", "red")?;
/// fruit.until(&cancel).compact()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "it does nothing by itself"]
pub struct Until<'h, H> {
    handle: &'h H,
    cancel: &'h Cancel,
}

impl Database {
    /// Work on the database that `cancel` can end early.
    pub fn until<'h>(&'h self, cancel: &'h Cancel) -> Until<'h, Self> {
        Until { handle: self, cancel }
    }
}

impl Table {
    /// Work on the table that `cancel` can end early.
    pub fn until<'h>(&'h self, cancel: &'h Cancel) -> Until<'h, Self> {
        Until { handle: self, cancel }
    }
}

impl Until<'_, Database> {
    fn limit(&self) -> Limit {
        Limit::new(&self.handle.core().env.machine.clock, self.cancel)
    }

    /// As [`Database::compact`]. Tables that were compacted before the work was cancelled stay compacted.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if it was cancelled, otherwise as [`Database::compact`].
    pub fn compact(&self) -> Result<()> {
        let core = self.handle.core();
        let limit = self.limit();
        let view = core.views.newest();
        let mut tables = view.files.tables.keys();
        tables.try_for_each(|table| flush_and_compact(core, *table, &limit, &mut |_, _| {}))
    }

    /// As [`Database::checkpoint`]. `progress` gets how many bytes are in place, and how many bytes all are; this takes
    /// time only where files have to be copied.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if it was cancelled, otherwise as [`Database::checkpoint`].
    pub fn checkpoint(
        &self,
        directory: impl AsRef<Path>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CheckpointReport> {
        checkpoint::checkpoint(self.handle.core(), directory.as_ref(), &self.limit(), progress)
    }

    /// As [`Database::check`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if it was cancelled, otherwise as [`Database::check`].
    pub fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport> {
        let core = self.handle.core();
        check::check(core, None, &self.limit(), progress)
    }
}

impl Until<'_, Table> {
    pub(super) fn handle(&self) -> &Table {
        self.handle
    }

    pub(super) fn limit(&self) -> Limit {
        Limit::new(&self.handle.core().env.machine.clock, self.cancel)
    }

    /// As [`Table::compact`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if it was cancelled, otherwise as [`Table::compact`].
    pub fn compact(&self) -> Result<()> {
        self.compact_with(&mut |_, _| {})
    }

    /// As [`Table::compact_with`].
    ///
    /// # Errors
    ///
    /// As [`Until::compact`].
    pub fn compact_with(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let core = self.handle.core();
        core.views.newest().files_of(self.handle.identity())?;
        flush_and_compact(core, self.handle.id(), &self.limit(), progress)
    }

    /// As [`Table::check`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if it was cancelled, otherwise as [`Table::check`].
    pub fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport> {
        let core = self.handle.core();
        check::check(core, Some(self.handle.identity()), &self.limit(), progress)
    }

    /// As [`Table::warm`]. Pages that were loaded before the work was cancelled stay.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if it was cancelled, otherwise as [`Table::warm`].
    pub fn warm(&self, range: impl IntoKeyRange) -> Result<Warmed> {
        let core = self.handle.core();
        let limit = self.limit();
        limit.check("loading pages")?;
        let most_bytes = core.env.cache.budget_bytes() / 2;
        let warmed = self.handle.warm_with(range, most_bytes, |_| !limit.is_over())?;
        // Work that had loaded everything was not cancelled.
        if warmed.is_whole { Ok(warmed) } else { limit.check("loading pages").map(|()| warmed) }
    }

    /// As [`Table::import`]. Once the import is cancelled, adding rows and finishing it fail, and dropping it leaves
    /// neither rows nor files. The time of [`Cancel::after`] begins with this call.
    ///
    /// # Errors
    ///
    /// As [`Table::import`].
    pub fn import(&self) -> Result<Import> {
        Import::new(self.handle.inner(), self.limit())
    }

    /// As [`Table::ingest`]. `progress` gets how many bytes are in place, and how many bytes all are; this takes time
    /// only where files have to be copied or verified.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) if it was cancelled, otherwise as [`Table::ingest`].
    pub fn ingest(
        &self,
        directories: &[impl AsRef<Path>],
        options: IngestOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<IngestReport> {
        let directories: Vec<&Path> = directories.iter().map(AsRef::as_ref).collect();
        ingest::ingest(self.handle.inner(), &directories, options, &self.limit(), progress)
    }
}
