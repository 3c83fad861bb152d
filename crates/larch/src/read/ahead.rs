//! How far a walk through many files reads ahead. It does not know what is read.

use os::sync::Arc;
use pages::{Admit, PageCache, Reason, Session};
use sst::Readahead;

/// The most bytes that the files of a range ask for ahead together, besides the limit of an eighth of the cache. It is
/// enough for a scan to use the full bandwidth of a disk.
const MAX_AHEAD_BYTES: u64 = 128 << 20;

/// How far a range reads ahead in `cache`.
pub(crate) fn readahead(cache: &PageCache) -> Readahead {
    Readahead::growing(ahead_bytes(cache))
}

/// A session for a read in `cache`. It may read as far ahead as a range does, whatever it admits.
pub(crate) fn session(cache: &Arc<PageCache>, reason: Reason, admit: Admit) -> Session {
    Session::new(cache, reason, admit).with_ahead_bytes(ahead_bytes(cache))
}

/// The memory for what one reader asks for ahead in `cache`.
pub(crate) fn ahead_bytes(cache: &PageCache) -> u64 {
    MAX_AHEAD_BYTES.min(cache.budget_bytes() / 8)
}
