//! What the handles of a database hold: the core, which is closed with the last handle, and perhaps one of its
//! tables.

use super::Core;
use super::background::BackgroundClose;
use super::snapshots::PinnedVersion;
use crate::base::error::{Error, Result};
use crate::base::table::{TableId, TableInfo};
use crate::view::ahead;
use os::Duty;
use os::sync::Arc;
use pages::{Admit, Reason, Session};

/// The handles of a database and of its tables, batches and snapshots share this value. It has the core, whose
/// background work ends with the last handle.
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
            // Threads and log belong to the parent process, so everything is left as it is.
            std::mem::forget(core);
            return;
        }
        core.background.stop();
        let threads = core.env.machine.threads.clone();
        if Duty::is_taken() && threads.are_real() {
            *core.closing.lock() = Some(BackgroundClose::begin());
            // The rest of the close may need a lock that this thread holds, even if no background work runs.
            threads.hand_over(Box::new(move || drop(core)));
        } else {
            core.background.join();
        }
    }
}

/// A table of an open database, as reads and writes hold it.
#[derive(Clone, Debug)]
pub struct TableHandle {
    /// The database.
    pub handle: Arc<DatabaseHandle>,
    /// As the table was when the handle was made. Identity, name and groups stay; for the rest see
    /// [`TableHandle::info`].
    pub identity: Arc<TableInfo>,
    /// Which pages that are read through this handle are admitted to the cache.
    pub admit: Admit,
}

impl TableHandle {
    /// The table `identity`, all of whose pages are admitted when they are read.
    pub fn new(handle: Arc<DatabaseHandle>, identity: Arc<TableInfo>) -> Self {
        Self { handle, identity, admit: Admit::Keep }
    }

    /// The database.
    #[inline]
    pub fn core(&self) -> &Arc<Core> {
        self.handle.core()
    }

    /// Its number.
    pub fn id(&self) -> TableId {
        self.identity.id
    }

    /// The table as it is now. If it was dropped since the handle was made, the table as it was then.
    pub fn info(&self) -> Arc<TableInfo> {
        self.core().views.table_info(self.identity.id).unwrap_or_else(|| self.identity.clone())
    }

    /// Refuses a table of another database.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`].
    pub fn check_handle(&self, handle: &Arc<DatabaseHandle>) -> Result<()> {
        if Arc::ptr_eq(self.core(), handle.core()) {
            Ok(())
        } else {
            Err(Error::ForeignTable(self.identity.name.clone()))
        }
    }

    /// Refuses to read whole values of a table that splits them into several groups.
    ///
    /// # Errors
    ///
    /// [`Error::Grouped`].
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

    /// Keeps the version that reads see now.
    pub fn pin(&self) -> Arc<PinnedVersion> {
        Arc::new(self.core().views.pin())
    }
}
