//! Decides how far a walk through files reads ahead. This module does not know what is read.
//!
//! The pages that a walk has asked for ahead are its window. An eighth of the cache is more than a disk reads at the
//! same time. But from a distant object store, many bytes can arrive in the time that one request takes, and to use
//! the full bandwidth, a scan must have asked for all of them beforehand. So windows grow with the latency; see
//! [`widened`].

use os::Reads;
use os::sync::Arc;
use pages::{Admit, PageCache, Reason, Session};
use sst::Readahead;
use std::time::Duration;

/// The largest window of all files of a range together if reads have no latency; it is also at most an eighth of the
/// cache. It is enough for a scan to use the full bandwidth of a disk.
const MAX_AHEAD_BYTES: u64 = 128 << 20;

/// About the bytes that one connection to an object store delivers in a second. A request for as many bytes as arrive
/// in one latency takes twice the latency.
const CONNECTION_BYTES: u64 = 64 << 20;

/// About the bytes that a machine receives in a second over many connections together.
const MACHINE_BYTES: u64 = 1 << 30;

/// The greatest latency that counts: to the other side of the earth and back, plus the time that the object store
/// itself needs.
const FARTHEST: Duration = Duration::from_millis(500);

/// How far a range reads ahead in `cache`.
pub(crate) fn readahead(cache: &PageCache, reads: &dyn Reads) -> Readahead {
    let latency = reads.latency();
    let high_bytes = ahead_bytes(cache, latency);
    let second_bytes = bytes_in(latency, CONNECTION_BYTES);
    Readahead::growing(high_bytes).then(second_bytes.min(high_bytes / 4))
}

/// A session for a read in `cache`, which may read ahead as far as a range does, whatever `admit` is.
#[inline]
pub(crate) fn session(cache: &Arc<PageCache>, reads: &dyn Reads, reason: Reason, admit: Admit) -> Session {
    Session::new(cache, reason, admit).with_ahead_bytes(ahead_bytes(cache, reads.latency()))
}

/// The bytes of `cache` that one reader may use for pages ahead, if a read from the store takes `latency`.
fn ahead_bytes(cache: &PageCache, latency: Duration) -> u64 {
    widened(latency, near_bytes(cache), cache.budget_bytes() / 4)
}

/// As [`ahead_bytes`], for reads without latency.
pub(crate) fn near_bytes(cache: &PageCache) -> u64 {
    MAX_AHEAD_BYTES.min(cache.budget_bytes() / 8)
}

/// The bytes to read ahead: `near_bytes` without latency, and otherwise twice the bytes that a machine receives
/// during one read, so that one half can arrive while the reader uses the other. It is at most `most_bytes`, but
/// never less than `near_bytes`.
#[inline]
pub(crate) fn widened(latency: Duration, near_bytes: u64, most_bytes: u64) -> u64 {
    // Each get calls this, and usually there is no latency, so this case comes first.
    if latency.is_zero() {
        return near_bytes;
    }
    near_bytes.max(bytes_in(latency, 2 * MACHINE_BYTES).min(most_bytes))
}

/// The bytes that arrive in `time`. A store that takes longer than [`FARTHEST`] is not distant but busy, and more
/// requests would make it busier. So a longer time counts as [`FARTHEST`].
#[inline]
fn bytes_in(time: Duration, bytes_per_second: u64) -> u64 {
    // `FARTHEST` is less than a second, so 64 bits are enough for this product.
    u64::from(time.min(FARTHEST).subsec_nanos()) * bytes_per_second / 1_000_000_000
}

#[cfg(test)]
mod tests;
