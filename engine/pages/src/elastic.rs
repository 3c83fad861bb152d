//! How large an elastic budget is: how it follows the memory that is free. This module decides, from readings, and
//! does nothing. It does not know the time; the readings come at even distances.
//!
//! ```text
//! all memory of the machine, or of the control group
//! ├─ others ─┬─ this cache ─┬─ share for others ──────┬─ headroom ─┤
//!            │              │ a sixteenth of the cache│            │
//!            └─ backed ─────┴─ available ─────────────┴────────────┘
//! ```
//!
//! * The *headroom* stays free whatever happens: a twentieth of all memory, at least 256 MiB, but at most a quarter. It
//!   is what others can take before the cache has seen it and has given back. Of the limit after a reading, no byte
//!   is in the headroom, unless the limit is the least one.
//! * The *share for others* makes room for other elastic caches. A large cache leaves more than a small one, so the
//!   small one grows and the large one shrinks until they have the same size, although they know nothing of each
//!   other.
//! * The limit grows slowly: by an eighth of the way at each reading, and at most by a 1024th of all memory. It
//!   shrinks slowly within the share for others, and at once when the headroom is touched.
//! * Memory that the system uses for cached files counts as available. If threads wait because the system drops files
//!   that are wanted, the limit shrinks by a sixteenth at each reading, and then rests before it grows again.

use os::{MemoryReading, ScopeMemory};
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// The least headroom of a machine with enough memory. Two threads fill it in about 50 ms.
const LEAST_HEADROOM_BYTES: u64 = 256 * MIB;

/// The limit leaves the cache's bytes divided by this number to others, beside the headroom.
const SHARE_FOR_OTHERS: u64 = 16;

/// A step is the rest of the way divided by this number.
const STEP_SHARE: u64 = 8;

/// A step up is at most all memory divided by this number. So 50 processes that grow at the same time do not take
/// more than the headroom between two readings.
const STEP_UP_SHARE: u64 = 1024;

/// A step of less than the limit divided by this number is not worth a change of the limit.
const IDLE_STEP_SHARE: u64 = 1024;

/// If threads have waited for memory this long since the last reading, memory is short. It is about a tenth of the
/// time between two readings.
const LONG_STALL: Duration = Duration::from_micros(2500);

/// After memory was short, the limit does not grow for this many readings.
const RESTING_READINGS: u32 = 40;

/// After this many readings that failed, the limit is the least one, because nothing is known.
const BLIND_READINGS: u32 = 3;

/// An elastic cache does not grow beyond this. Each slab of 2 MiB is a mapping of its own, and Linux gives a process
/// 65,530 of them.
const MOST_MAPPED_BYTES: u64 = 96 << 30;

/// The bounds of an elastic budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elastic {
    /// The budget is never less, even if that memory is wanted.
    pub least_bytes: u64,
    /// The budget is never more, even if more memory is free.
    pub most_bytes: u64,
}

/// Follows the readings of one cache.
#[derive(Debug)]
pub struct Steering {
    elastic: Elastic,
    /// How long threads had waited for memory at the last reading.
    stalled: Option<Duration>,
    /// The limit may grow after this many readings.
    resting: u32,
    /// The readings in a row that failed.
    blind: u32,
}

impl Steering {
    /// At the start, a limit is within `elastic`.
    pub fn new(elastic: Elastic) -> Self {
        Self { elastic, stalled: None, resting: 0, blind: 0 }
    }

    /// The next limit of a cache that has the given `limit` and for which the system gives `backed` bytes.
    pub fn next(&mut self, limit: u64, backed: u64, reading: Option<&MemoryReading>) -> u64 {
        let Elastic { least_bytes, most_bytes } = self.elastic;
        let next = match reading {
            Some(reading) => {
                self.blind = 0;
                let is_short = self.is_short(reading);
                // What is in swap takes no memory, and would take some again.
                let backed = backed.saturating_sub(reading.swapped_bytes);
                let fits = fitting(backed, reading).min(MOST_MAPPED_BYTES);
                self.step(limit, fits.saturating_sub(backed / SHARE_FOR_OTHERS), is_short, reading).min(fits)
            }
            None => {
                self.blind = self.blind.saturating_add(1);
                if self.blind < BLIND_READINGS { limit } else { 0 }
            }
        };
        next.min(most_bytes).max(least_bytes)
    }

    /// The limit after one step from `limit` towards `goal`.
    fn step(&mut self, limit: u64, goal: u64, is_short: bool, reading: &MemoryReading) -> u64 {
        self.resting = if is_short { RESTING_READINGS } else { self.resting.saturating_sub(1) };
        let most_up = reading.scopes.iter().map(|scope| scope.total_bytes / STEP_UP_SHARE).min().unwrap_or(0);
        let next = match goal.checked_sub(limit) {
            _ if is_short => limit - limit / SHARE_FOR_OTHERS,
            Some(_) if self.resting > 0 => limit,
            Some(way) => limit + way.div_ceil(STEP_SHARE).min(most_up),
            None => limit - (limit - goal).div_ceil(STEP_SHARE),
        };
        if next.abs_diff(limit) < limit / IDLE_STEP_SHARE { limit } else { next }
    }

    /// Whether threads wait for memory because of what caches like this one take: they have waited long, and nothing
    /// but the headroom is free without dropping cached files. Elsewhere threads wait for another reason, such as the
    /// limit of a group that this process is not in.
    fn is_short(&mut self, reading: &MemoryReading) -> bool {
        let before = self.stalled.replace(reading.stalled);
        let waited = before.map_or(Duration::ZERO, |before| reading.stalled.saturating_sub(before));
        waited >= LONG_STALL && reading.scopes.iter().any(|scope| scope.free_bytes < headroom(scope))
    }
}

/// What stays free in `scope`.
fn headroom(scope: &ScopeMemory) -> u64 {
    (scope.total_bytes / 20).max(LEAST_HEADROOM_BYTES).min(scope.total_bytes / 4)
}

/// The largest cache that leaves the headroom of each scope free, if the cache has `backed` bytes at the time of
/// `reading`.
fn fitting(backed: u64, reading: &MemoryReading) -> u64 {
    let in_scope = |scope: &ScopeMemory| backed.saturating_add(scope.available_bytes).saturating_sub(headroom(scope));
    reading.scopes.iter().map(in_scope).min().unwrap_or(0)
}

#[cfg(test)]
mod tests;
