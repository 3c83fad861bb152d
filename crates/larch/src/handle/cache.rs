//! The cache of pages as users see it: a handle, for databases that share a cache. This module does not know how
//! pages come and go.

use crate::base::options::Options;
use os::sync::Arc;
use pages::{CacheUsage, PageCache};

/// Memory for pages, which any number of databases of a process may share. A clone is another handle of the same cache.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cache = larch::Cache::new(64 << 20);
/// # let (users, events) = (tempfile::tempdir()?, tempfile::tempdir()?);
/// let users = larch::Database::builder(&users).cache(&cache).open()?;
/// let events = larch::Database::builder(&events).cache(&cache).open()?;
/// assert_eq!(cache.usage().budget_bytes, 64 << 20);
/// # users.close()?;
/// # events.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Cache(Arc<PageCache>);

impl Cache {
    /// A cache of `budget_bytes`. Its databases together have at most 512 files open for reading at a time, which is
    /// the default of [`Builder::open_files`](crate::Builder::open_files).
    pub fn new(budget_bytes: u64) -> Self {
        Self::with_open_files(budget_bytes, Options::default().open_files)
    }

    /// A cache of `budget_bytes`. Its databases together have at most `open_files` files open for reading at a time,
    /// and at least one.
    pub fn with_open_files(budget_bytes: u64, open_files: usize) -> Self {
        Self(PageCache::new(budget_bytes, open_files, sst::validate))
    }

    /// What the pages may use, in bytes.
    pub fn budget_bytes(&self) -> u64 {
        self.0.budget_bytes()
    }

    /// Changes how many bytes the pages may use. Pages beyond the new budget are evicted at once unless they are
    /// pinned. Pinned pages are evicted later, when memory is needed.
    pub fn set_budget_bytes(&self, bytes: u64) {
        self.0.set_budget(bytes);
    }

    /// Sets the share of tables that are [to be in memory](crate::TableOptions::in_memory), in bytes. It is at most
    /// half of the budget. If it is not set, their share is a quarter of the budget.
    pub fn set_in_memory_bytes(&self, bytes: u64) {
        self.0.set_kept_bytes(bytes);
    }

    /// What the pages use, in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.0.used_bytes()
    }

    /// The memory by owner and by kind of page. Looks at every page in memory: for metrics, not for decisions.
    pub fn usage(&self) -> CacheUsage {
        self.0.usage()
    }

    pub(crate) fn of(cache: &Arc<PageCache>) -> Self {
        Self(Arc::clone(cache))
    }

    /// The cache itself, for programs that look into the engine.
    #[doc(hidden)]
    pub fn inner(&self) -> &Arc<PageCache> {
        &self.0
    }
}
