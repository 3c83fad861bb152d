//! What the handles of a database hold: the core, and perhaps one table. The core is closed with the last handle.

use super::Core;
use super::background::BackgroundClose;
use super::snapshots::PinnedVersion;
use crate::base::error::{Error, Result};
use crate::base::table::{TableId, TableInfo};
use crate::view::ahead;
use os::Duty;
use os::sync::Arc;
use pages::{Admit, Reason, Session};

/// Owns the core. Shared by all handles of a database and its tables, and by its batches and snapshots. When the
/// last of them is dropped, the background work ends.
#[derive(Debug)]
pub struct DatabaseHandle(Option<Arc<Core>>);

impl DatabaseHandle {
    /// The first handle of a database that was just opened.
    pub fn new(core: Arc<Core>) -> Arc<Self> {
        Arc::new(Self(Some(core)))
    }

    /// The database.
    #[inline]
    pub fn core(&self) -> &Arc<Core> {
        self.0.as_ref().expect("it is taken when dropped")
    }
}

impl Drop for DatabaseHandle {
    fn drop(&mut self) {
        let Some(core) = self.0.take() else { return };
        if core.env.check_origin().is_err() {
            // In a forked child, threads and log belong to the parent process, so leave everything as it is.
            std::mem::forget(core);
            return;
        }
        core.background.stop();
        let threads = core.env.machine.threads.clone();
        if Duty::is_taken() && threads.are_real() {
            *core.closing.lock() = Some(BackgroundClose::begin());
            // The close must not go on in this thread, even if no background work runs: it may need a lock that this
            // thread holds.
            threads.hand_over(Box::new(move || drop(core)));
        } else {
            core.background.join();
        }
    }
}

/// A table of an open database, as reads and writes use it.
#[derive(Clone, Debug)]
pub struct TableHandle {
    /// The database.
    pub handle: Arc<DatabaseHandle>,
    /// The table when the handle was made. Its id, name and column groups never change; for the rest,
    /// [`TableHandle::info`] returns the current state.
    pub identity: Arc<TableInfo>,
    /// Which of the pages that this handle reads the cache admits.
    pub admit: Admit,
}

impl TableHandle {
    /// A handle of the table `identity`. All pages that it reads are admitted to the cache.
    pub fn new(handle: Arc<DatabaseHandle>, identity: Arc<TableInfo>) -> Self {
        Self { handle, identity, admit: Admit::Keep }
    }

    /// The database.
    #[inline]
    pub fn core(&self) -> &Arc<Core> {
        self.handle.core()
    }

    /// The id of the table.
    pub fn id(&self) -> TableId {
        self.identity.id
    }

    /// The current description of the table, or the one from when the handle was made if the table was dropped.
    pub fn info(&self) -> Arc<TableInfo> {
        self.core().views.table_info(self.identity.id).unwrap_or_else(|| self.identity.clone())
    }

    /// Checks that the table belongs to the database of `handle`.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`] if it belongs to another database.
    pub fn check_handle(&self, handle: &Arc<DatabaseHandle>) -> Result<()> {
        if Arc::ptr_eq(self.core(), handle.core()) {
            Ok(())
        } else {
            Err(Error::ForeignTable(self.identity.name.clone()))
        }
    }

    /// Checks that whole values of the table can be read, that is, that it does not split them into column groups.
    ///
    /// # Errors
    ///
    /// [`Error::Grouped`] if it does.
    #[inline]
    pub fn check_whole(&self) -> Result<()> {
        let groups = &self.identity.options.groups;
        if groups.len() < 2 {
            return Ok(());
        }
        Err(Error::Grouped { table: self.identity.name.clone(), groups: groups.clone() })
    }

    /// A session for reads through this handle.
    #[inline]
    pub fn session(&self, reason: Reason) -> Session {
        let admit = if reason == Reason::Precharge { Admit::Keep } else { self.admit };
        let env = &self.core().env;
        ahead::session(&env.cache, &*env.machine.reads, reason, admit).with_reads_in_poll(env.options.reads_in_poll)
    }

    /// Pins the version that reads see now.
    pub fn pin(&self) -> Arc<PinnedVersion> {
        Arc::new(self.core().views.pin())
    }
}
