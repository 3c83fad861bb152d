//! The cache of pages as programs use it. With a handle of a cache, several databases can share this cache. This
//! module does not know how pages get into the cache or leave it.

use crate::base::options::Options;
use os::sync::Arc;
use pages::{CacheUsage, PageCache};

/// Memory for pages. Any number of databases in a process may share this memory. A clone is another handle to the
/// same cache.
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
    /// A cache of `budget_bytes`. All databases of the cache together have at most 512 files open for reading at a
    /// time, which is the default of [`Builder::open_files`](crate::Builder::open_files).
    pub fn new(budget_bytes: u64) -> Self {
        Self::with_open_files(budget_bytes, Options::default().open_files)
    }

    /// A cache of `budget_bytes`. All databases of the cache together have at most `open_files` files open for
    /// reading at a time. If `open_files` is 0, the limit is 1.
    pub fn with_open_files(budget_bytes: u64, open_files: usize) -> Self {
        Self(PageCache::new(budget_bytes, open_files, sst::validate))
    }

    /// The greatest number of bytes that the pages may use.
    pub fn budget_bytes(&self) -> u64 {
        self.0.budget_bytes()
    }

    /// Changes the number of bytes that the pages may use. If the pages use more than the new budget, pages that are
    /// not pinned are evicted at once. Pinned pages are evicted later, when memory is needed again.
    pub fn set_budget_bytes(&self, bytes: u64) {
        self.0.set_budget(bytes);
    }

    /// Sets how many bytes of the cache may be used by the tables that should [stay in
    /// memory](crate::TableOptions::in_memory). The limit is half of the budget. If this limit is never set, these
    /// tables may use a quarter of the budget.
    pub fn set_in_memory_bytes(&self, bytes: u64) {
        self.0.set_kept_bytes(bytes);
    }

    /// The number of bytes that the pages use now.
    pub fn used_bytes(&self) -> u64 {
        self.0.used_bytes()
    }

    /// How much memory each owner and each kind of page uses. The call takes long, because it looks at every page
    /// in memory. So use it for metrics, and not for decisions at run time.
    pub fn usage(&self) -> CacheUsage {
        self.0.usage()
    }

    pub(crate) fn of(cache: &Arc<PageCache>) -> Self {
        Self(Arc::clone(cache))
    }

    /// The cache itself, for programs that look inside the engine.
    #[doc(hidden)]
    pub fn inner(&self) -> &Arc<PageCache> {
        &self.0
    }
}
