//! Long work that a [`Cancel`] gives up: the same functions as those of the database and of its tables.

use super::database::Database;
use super::table::Table;
use crate::bounds::IntoKeyRange;
use crate::cancel::{Cancel, Limit};
use crate::compact;
use crate::error::Result;
use crate::inspect::check::{self, CheckProgress, CheckReport};
use crate::tables::import::Import;
use crate::warm::loader::Warmed;

/// Long work on a database or a table that ends early when a [`Cancel`] says so. Made by [`Database::until`] and
/// [`Table::until`].
#[derive(Clone, Copy, Debug)]
#[must_use = "it does nothing by itself"]
pub struct Until<'h, H> {
    handle: &'h H,
    cancel: &'h Cancel,
}

impl Database {
    /// Work on the database that `cancel` gives up.
    pub fn until<'h>(&'h self, cancel: &'h Cancel) -> Until<'h, Self> {
        Until { handle: self, cancel }
    }
}

impl Table {
    /// Work on the table that `cancel` gives up.
    pub fn until<'h>(&'h self, cancel: &'h Cancel) -> Until<'h, Self> {
        Until { handle: self, cancel }
    }
}

impl Until<'_, Database> {
    fn limit(&self) -> Limit {
        Limit::new(&self.handle.core().env.machine.clock, self.cancel)
    }

    /// As [`Database::compact`]. Tables that were done before it was given up stay compacted.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if it was given up, else as [`Database::compact`].
    pub fn compact(&self) -> Result<()> {
        let core = self.handle.core();
        let limit = self.limit();
        let view = core.views.newest();
        let mut tables = view.files.tables.keys();
        tables.try_for_each(|table| compact::compact_table(core, *table, &limit, &mut |_, _| {}))
    }

    /// As [`Database::check`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if it was given up, else as [`Database::check`].
    pub fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport> {
        let core = self.handle.core();
        check::check(core, None, &self.limit(), progress)
    }
}

impl Until<'_, Table> {
    fn limit(&self) -> Limit {
        Limit::new(&self.handle.core().env.machine.clock, self.cancel)
    }

    /// As [`Table::compact`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if it was given up, else as [`Table::compact`].
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
        compact::compact_table(core, self.handle.id(), &self.limit(), progress)
    }

    /// As [`Table::check`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if it was given up, else as [`Table::check`].
    pub fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport> {
        let core = self.handle.core();
        check::check(core, Some(self.handle.identity()), &self.limit(), progress)
    }

    /// As [`Table::warm`]. What was brought before it was given up stays.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if it was given up, else as [`Table::warm`].
    pub fn warm(&self, range: impl IntoKeyRange) -> Result<Warmed> {
        let core = self.handle.core();
        let limit = self.limit();
        limit.check("bringing pages to memory")?;
        let most_bytes = core.env.cache.budget_bytes() / 2;
        let warmed = self.handle.warm_with(range, most_bytes, |_| !limit.is_over())?;
        // One that had brought everything was not given up.
        if warmed.is_whole { Ok(warmed) } else { limit.check("bringing pages to memory").map(|()| warmed) }
    }

    /// As [`Table::import`]: adding rows and finishing the import fail once it is given up, and dropping it then leaves
    /// neither rows nor files. The time of [`Cancel::after`] begins here.
    ///
    /// # Errors
    ///
    /// As [`Table::import`].
    pub fn import(&self) -> Result<Import> {
        Import::new(self.handle.inner(), self.limit())
    }
}
