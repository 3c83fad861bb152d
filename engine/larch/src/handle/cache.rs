//! The handle to a page cache, with which several databases can share one. Admission and eviction are in the crate
//! `pages`.

use crate::base::budget::Budget;
use crate::base::options::Options;
use crate::core::page_cache;
use os::Machine;
use os::sync::Arc;
use pages::{CacheUsage, PageCache};

/// A page cache, which any number of databases in a process may share. A clone is another handle to the same cache.
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
    /// A cache of `budget`, which is a number of bytes or a [`Budget`]. All its databases together have at most 512
    /// files open for reading at a time, the default of [`Builder::open_files`](crate::Builder::open_files).
    pub fn new(budget: impl Into<Budget>) -> Self {
        Self::with_open_files(budget, Options::default().open_files)
    }

    /// A cache of `budget`, which is a number of bytes or a [`Budget`]. All its databases together have at most
    /// `open_files` files open for reading at a time. 0 counts as 1.
    pub fn with_open_files(budget: impl Into<Budget>, open_files: usize) -> Self {
        Self(page_cache::new_cache(budget.into(), open_files, &Machine::real()))
    }

    /// The most bytes that pages may take now.
    pub fn budget_bytes(&self) -> u64 {
        self.0.budget_bytes()
    }

    /// Changes the most bytes that pages may take to `budget`, which is a number of bytes or a [`Budget`]. If they
    /// take more than that now, unpinned pages are evicted at once. Pinned pages are evicted after their release, when
    /// memory is needed.
    pub fn set_budget_bytes(&self, budget: impl Into<Budget>) {
        page_cache::set_budget(&self.0, budget.into(), &Machine::real());
    }

    /// Whether the budget follows the memory that is free; see [`Budget::free`].
    pub fn is_elastic(&self) -> bool {
        self.0.is_elastic()
    }

    /// Sets how many bytes of the cache may hold tables that should [stay in
    /// memory](crate::TableOptions::in_memory): at most half of the budget, and a quarter if this is never called.
    pub fn set_in_memory_bytes(&self, bytes: u64) {
        self.0.set_kept_bytes(bytes);
    }

    /// The bytes that pages take now.
    pub fn used_bytes(&self) -> u64 {
        self.0.used_bytes()
    }

    /// How much memory each owner and each kind of page uses. This is slow, because it looks at every page in
    /// memory: use it for metrics, not for decisions at run time.
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
