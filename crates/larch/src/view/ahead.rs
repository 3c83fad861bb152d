//! How far a walk through many files reads ahead. This module does not know what is read.
//!
//! On a disk, a window of an eighth of the cache holds more than the disk has under way at once. A far store gives
//! many bytes in the time that one request takes. All these bytes have to be under way, or a scan does not use the
//! full bandwidth. So the windows widen with the latency, see [`widened`].

use os::Reads;
use os::sync::Arc;
use pages::{Admit, PageCache, Reason, Session};
use sst::Readahead;
use std::time::Duration;

/// The most bytes that the files of a range ask for ahead together. The limit of an eighth of the cache holds as
/// well. This is enough for a scan to use the full bandwidth of a disk.
const MAX_AHEAD_BYTES: u64 = 128 << 20;

/// A connection to a store gives about this number of bytes in a second. A request for as many bytes as come in one
/// latency takes twice the latency.
const CONNECTION_BYTES: u64 = 64 << 20;

/// A machine takes about this number of bytes in a second, over many connections together.
const MACHINE_BYTES: u64 = 1 << 30;

/// The latency to the other side of the earth, with the time that the store itself takes.
const FARTHEST: Duration = Duration::from_millis(500);

/// How far a range reads ahead in `cache`.
pub(crate) fn readahead(cache: &PageCache, reads: &dyn Reads) -> Readahead {
    let latency = reads.latency();
    let high_bytes = ahead_bytes(cache, latency);
    let second_bytes = bytes_in(latency, CONNECTION_BYTES);
    Readahead::growing(high_bytes).then(second_bytes.min(high_bytes / 4))
}

/// A session for a read in `cache`. It may read as far ahead as a range does, whatever it admits.
pub(crate) fn session(cache: &Arc<PageCache>, reads: &dyn Reads, reason: Reason, admit: Admit) -> Session {
    Session::new(cache, reason, admit).with_ahead_bytes(ahead_bytes(cache, reads.latency()))
}

/// The memory for what one reader asks for ahead in `cache`, if reads take `latency`.
fn ahead_bytes(cache: &PageCache, latency: Duration) -> u64 {
    widened(latency, near_bytes(cache), cache.budget_bytes() / 4)
}

/// As [`ahead_bytes`], for reads that are near.
pub(crate) fn near_bytes(cache: &PageCache) -> u64 {
    MAX_AHEAD_BYTES.min(cache.budget_bytes() / 8)
}

/// If reads are near, `near_bytes` are enough. Otherwise it is twice what a machine takes in the time of one read:
/// one half is on its way while the other half is used. It is at most `most_bytes`.
#[inline]
pub(crate) fn widened(latency: Duration, near_bytes: u64, most_bytes: u64) -> u64 {
    // Each get asks, and most reads are near.
    if latency.is_zero() {
        return near_bytes;
    }
    near_bytes.max(bytes_in(latency, 2 * MACHINE_BYTES).min(most_bytes))
}

/// How many bytes come in `time`. A store that takes longer than [`FARTHEST`] is busy rather than far, and more
/// requests make it busier.
#[inline]
fn bytes_in(time: Duration, bytes_per_second: u64) -> u64 {
    // The time is less than a second, so no division of 128 bits is needed.
    u64::from(time.min(FARTHEST).subsec_nanos()) * bytes_per_second / 1_000_000_000
}

#[cfg(test)]
mod tests;
