//! Decides how far a walk through many files reads ahead. This module does not know what is read.
//!
//! On a disk, a window of an eighth of the cache is larger than what the disk reads at the same time. A far store
//! can deliver many bytes in the time that one request takes. A scan must have all these bytes under way, or it
//! does not use the full bandwidth. So the windows grow with the latency, see [`widened`].

use os::Reads;
use os::sync::Arc;
use pages::{Admit, PageCache, Reason, Session};
use sst::Readahead;
use std::time::Duration;

/// The most bytes that all files of a range together ask for ahead. The limit of an eighth of the cache applies,
/// too. This is enough for a scan to use the full bandwidth of a disk.
const MAX_AHEAD_BYTES: u64 = 128 << 20;

/// A connection to a store delivers about this number of bytes in a second. If a request is for the bytes that come
/// in one latency, it takes twice the latency.
const CONNECTION_BYTES: u64 = 64 << 20;

/// Over many connections together, a machine receives about this number of bytes in a second.
const MACHINE_BYTES: u64 = 1 << 30;

/// The latency to the other side of the earth, together with the time that the store itself needs.
const FARTHEST: Duration = Duration::from_millis(500);

/// How far a range reads ahead in `cache`.
pub(crate) fn readahead(cache: &PageCache, reads: &dyn Reads) -> Readahead {
    let latency = reads.latency();
    let high_bytes = ahead_bytes(cache, latency);
    let second_bytes = bytes_in(latency, CONNECTION_BYTES);
    Readahead::growing(high_bytes).then(second_bytes.min(high_bytes / 4))
}

/// A session for a read in `cache`. It may read ahead as far as a range does, whatever pages it admits.
pub(crate) fn session(cache: &Arc<PageCache>, reads: &dyn Reads, reason: Reason, admit: Admit) -> Session {
    Session::new(cache, reason, admit).with_ahead_bytes(ahead_bytes(cache, reads.latency()))
}

/// How much memory one reader may use for the pages that it asks for ahead in `cache`. `latency` is the time that a
/// read takes.
fn ahead_bytes(cache: &PageCache, latency: Duration) -> u64 {
    widened(latency, near_bytes(cache), cache.budget_bytes() / 4)
}

/// The same as [`ahead_bytes`], for reads with no latency.
pub(crate) fn near_bytes(cache: &PageCache) -> u64 {
    MAX_AHEAD_BYTES.min(cache.budget_bytes() / 8)
}

/// The bytes to read ahead. Without latency, this is `near_bytes`. Otherwise it is twice the bytes that a machine
/// receives in the time of one read: one half is on its way while the other half is used. It is at most
/// `most_bytes`.
#[inline]
pub(crate) fn widened(latency: Duration, near_bytes: u64, most_bytes: u64) -> u64 {
    // Each get calls this, and most reads have no latency.
    if latency.is_zero() {
        return near_bytes;
    }
    near_bytes.max(bytes_in(latency, 2 * MACHINE_BYTES).min(most_bytes))
}

/// The number of bytes that come in `time`. If a store takes longer than [`FARTHEST`], it is busy and not far, and
/// more requests would make it busier.
#[inline]
fn bytes_in(time: Duration, bytes_per_second: u64) -> u64 {
    // The time is less than a second, so no division of 128 bits is needed.
    u64::from(time.min(FARTHEST).subsec_nanos()) * bytes_per_second / 1_000_000_000
}

#[cfg(test)]
mod tests;
