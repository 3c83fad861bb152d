//! Decides how far a walk through many files reads ahead. This module does not know what is read.
//!
//! The pages that a walk has asked for ahead are its window. On a disk, a window of an eighth of the cache is more
//! than the disk reads at the same time. If an object store is far away, many bytes could arrive in the time that
//! one request takes. To use the full bandwidth, a scan must have asked for all these bytes before they arrive. So
//! windows grow with the latency, see [`widened`].

use os::Reads;
use os::sync::Arc;
use pages::{Admit, PageCache, Reason, Session};
use sst::Readahead;
use std::time::Duration;

/// If reads have no latency, all files of a range together ask ahead for at most this many bytes, and for at most an
/// eighth of the cache. This is enough for a scan to use the full bandwidth of a disk.
const MAX_AHEAD_BYTES: u64 = 128 << 20;

/// A connection to an object store delivers about this number of bytes in a second. If a request asks for as many
/// bytes as arrive in one latency, it takes twice the latency.
const CONNECTION_BYTES: u64 = 64 << 20;

/// With many connections together, a machine receives about this number of bytes in a second.
const MACHINE_BYTES: u64 = 1 << 30;

/// The greatest latency that counts: to the other side of the earth and back, together with the time that the
/// object store itself needs.
const FARTHEST: Duration = Duration::from_millis(500);

/// How far a range reads ahead in `cache`.
pub(crate) fn readahead(cache: &PageCache, reads: &dyn Reads) -> Readahead {
    let latency = reads.latency();
    let high_bytes = ahead_bytes(cache, latency);
    let second_bytes = bytes_in(latency, CONNECTION_BYTES);
    Readahead::growing(high_bytes).then(second_bytes.min(high_bytes / 4))
}

/// A session for a read in `cache`. It may read ahead as far as a range does. This does not depend on `admit`.
pub(crate) fn session(cache: &Arc<PageCache>, reads: &dyn Reads, reason: Reason, admit: Admit) -> Session {
    Session::new(cache, reason, admit).with_ahead_bytes(ahead_bytes(cache, reads.latency()))
}

/// The bytes in `cache` that one reader may use for pages that it asks for ahead. `latency` is the time that a
/// read from the store takes.
fn ahead_bytes(cache: &PageCache, latency: Duration) -> u64 {
    widened(latency, near_bytes(cache), cache.budget_bytes() / 4)
}

/// The same as [`ahead_bytes`], for reads with no latency.
pub(crate) fn near_bytes(cache: &PageCache) -> u64 {
    MAX_AHEAD_BYTES.min(cache.budget_bytes() / 8)
}

/// How many bytes to read ahead. Without latency, this is `near_bytes`. With a latency, it is twice the bytes that
/// a machine receives during one read, so that one half can arrive while the reader uses the other half. But it is
/// at least `near_bytes`, and otherwise at most `most_bytes`.
#[inline]
pub(crate) fn widened(latency: Duration, near_bytes: u64, most_bytes: u64) -> u64 {
    // Each get calls this, and mostly there is no latency, so this case comes first.
    if latency.is_zero() {
        return near_bytes;
    }
    near_bytes.max(bytes_in(latency, 2 * MACHINE_BYTES).min(most_bytes))
}

/// The number of bytes that arrive in `time`. If a store takes longer than [`FARTHEST`], it is not far away but
/// busy, and more requests would make it still busier. So a longer time counts as [`FARTHEST`].
#[inline]
fn bytes_in(time: Duration, bytes_per_second: u64) -> u64 {
    // `FARTHEST` is less than a second, so 64 bits are enough for this product.
    u64::from(time.min(FARTHEST).subsec_nanos()) * bytes_per_second / 1_000_000_000
}

#[cfg(test)]
mod tests;
