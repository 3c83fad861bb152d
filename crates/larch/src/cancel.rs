//! Long work that can be given up: by a call, or when its time is over. What a cancelled piece of work has not finished is
//! as it was before: files that no table saw are removed, those that it was to replace stay.
//!
//! Thread safety: a [`Cancel`] may be used from any thread, also from a signal handler's.

use crate::bounds::IntoKeyRange;
use crate::compact;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::handle::database::Database;
use crate::handle::table::Table;
use crate::inspect::check::{CheckProgress, CheckReport};
use crate::tables::import::Import;
use crate::warm::Warmed;
use os::Clock;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A handle that gives up long work. Clones give up the same work.
///
/// ```
/// # fn main() -> larch::Result<()> {
/// # let db = larch::Database::open(larch::doc::directory("cancel"))?;
/// # let fruit = db.table("fruit")?;
/// let cancel = larch::Cancel::new();
/// fruit.until(&cancel).compact()?;
/// cancel.cancel(); // in another thread, or when a user presses ^C
/// assert!(matches!(fruit.until(&cancel).compact(), Err(larch::Error::Cancelled(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    asked: Arc<AtomicBool>,
    within: Option<Duration>,
}

impl Cancel {
    /// One that is never over by itself.
    pub fn new() -> Self {
        Self::default()
    }

    /// One whose work may take so long, each piece from its own beginning.
    pub fn after(time: Duration) -> Self {
        Self { asked: Arc::default(), within: Some(time) }
    }

    /// Gives up all work that is under way with this handle or a clone of it, and what would begin with one later. The work
    /// ends at its next page or row.
    pub fn cancel(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Whether it was given up by a call.
    pub fn is_cancelled(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}

/// One piece of work that may be given up.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    cancel: Cancel,
    clock: Arc<dyn Clock>,
    end: Option<Duration>,
}

impl Limit {
    /// Work that begins now.
    pub fn new(core: &Core, cancel: &Cancel) -> Self {
        let clock = core.machine.clock.clone();
        let end = cancel.within.map(|within| clock.now().saturating_add(within));
        Self { cancel: cancel.clone(), clock, end }
    }

    /// Work that nobody gives up.
    pub fn none(core: &Core) -> Self {
        Self::new(core, &Cancel::new())
    }

    /// Whether to give up.
    pub fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || self.end.is_some_and(|end| end <= self.clock.now())
    }

    /// An error about `work` if it is to be given up.
    pub fn check(&self, work: &'static str) -> Result<()> {
        if self.is_over() { Err(Error::Cancelled(work)) } else { Ok(()) }
    }
}

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
    /// As [`Database::compact`]. Tables that were done before it was given up stay compacted.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if it was given up, else as [`Database::compact`].
    pub fn compact(&self) -> Result<()> {
        let core = self.handle.core();
        let limit = Limit::new(core, self.cancel);
        let view = core.view();
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
        crate::inspect::check::check(core, None, &Limit::new(core, self.cancel), progress)
    }
}

impl Until<'_, Table> {
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
        core.view().files_of(self.handle.identity())?;
        compact::compact_table(core, self.handle.id(), &Limit::new(core, self.cancel), progress)
    }

    /// As [`Table::check`].
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if it was given up, else as [`Table::check`].
    pub fn check(&self, progress: &mut dyn FnMut(CheckProgress)) -> Result<CheckReport> {
        let core = self.handle.core();
        crate::inspect::check::check(core, Some(self.handle.identity()), &Limit::new(core, self.cancel), progress)
    }

    /// As [`Table::warm`]. What was brought before it was given up stays.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if it was given up, else as [`Table::warm`].
    pub fn warm(&self, range: impl IntoKeyRange) -> Result<Warmed> {
        let core = self.handle.core();
        let limit = Limit::new(core, self.cancel);
        limit.check("bringing pages to memory")?;
        let most_bytes = core.cache.budget_bytes() / 2;
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
        Import::new(self.handle, Limit::new(self.handle.core(), self.cancel))
    }
}
