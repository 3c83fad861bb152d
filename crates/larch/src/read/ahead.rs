//! How far a walk through many files reads ahead.

use os::sync::Arc;
use pages::{Admit, PageCache, Reason, Session};
use sst::Readahead;

/// Most that the files of a range ask ahead together, which is an eighth of the cache at most: enough that a scan waits for
/// the disk's rate and not for its answers.
const MAX_AHEAD_BYTES: u64 = 128 << 20;

/// How far a range asks ahead in `cache`.
pub(crate) fn readahead(cache: &PageCache) -> Readahead {
    Readahead::growing(ahead_bytes(cache))
}

/// A reader of a table in `cache`, which may ask as far ahead as a range does whatever the cache keeps of it.
pub(crate) fn session(cache: &Arc<PageCache>, reason: Reason, admit: Admit) -> Session {
    Session::new(cache, reason, admit).with_ahead_bytes(ahead_bytes(cache))
}

/// Memory for what one reader asks ahead in `cache`.
pub(crate) fn ahead_bytes(cache: &PageCache) -> u64 {
    MAX_AHEAD_BYTES.min(cache.budget_bytes() / 8)
}
