//! Decides how full memtables get before they are frozen. This module does not know what freezes or flushes
//! memtables.
//!
//! ```text
//! write buffer   ├──────────── frozen, being flushed ────────────┼── commits meanwhile ──┼── as much again ──┤
//! ```
//!
//! The more rows each flush writes, the less compactions have to write. But commits need room in the write buffer
//! during a flush. So memtables are frozen while the free part of the write buffer is still twice what commits write
//! during a flush: twice, because commits are slowed down once half of it is used, see [`super::pace`]. Memtables
//! get at least half of the write buffer, so that the largest batch fits, and at most three quarters, so that a
//! burst of commits after a quiet time finds room.
//!
//! This module is thread-safe. The numbers are only estimates, so stale values do no harm.

use os::sync::atomic::{AtomicU64, Ordering};

/// How much commits write during a flush, relative to what is flushed.
#[derive(Debug)]
pub struct Fill {
    /// Bytes that commits wrote during a flush, in thousandths of the flushed bytes.
    written: AtomicU64,
}

impl Default for Fill {
    fn default() -> Self {
        Self { written: AtomicU64::new(500) }
    }
}

impl Fill {
    /// The size in bytes at which memtables are frozen, for a write buffer of `buffer_bytes`.
    pub fn limit(&self, buffer_bytes: u64) -> u64 {
        let written = self.written.load(Ordering::Relaxed);
        (buffer_bytes / (1000 + 2 * written) * 1000).clamp(buffer_bytes / 2, buffer_bytes / 4 * 3)
    }

    /// Notes that commits wrote `written_bytes` to memtables while a flush wrote `flushed_bytes`. The estimate rises
    /// at once, and falls by at most a quarter each time.
    pub fn note_flush(&self, flushed_bytes: u64, written_bytes: u64) {
        let before = self.written.load(Ordering::Relaxed);
        let now = (written_bytes.saturating_mul(1000) / flushed_bytes.max(1)).min(1000);
        self.written.store(now.max(before / 4 * 3), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memtables_leave_room_for_twice_what_commits_write_during_a_flush() {
        let fill = Fill::default();
        assert_eq!(fill.limit(1000), 500, "nothing is known yet");
        for _ in 0..10 {
            fill.note_flush(100, 20);
        }
        assert_eq!(fill.limit(1_000_000), 714_000, "flushed 5, commits meanwhile 1, as much again");
        fill.note_flush(100, 40);
        assert_eq!(fill.limit(1_000_000), 555_000, "more counts at once");
        fill.note_flush(100, 20);
        assert_eq!(fill.limit(1_000_000), 625_000, "less does not");
    }

    #[test]
    fn memtables_have_half_of_the_buffer_or_more_and_not_all_of_it() {
        let fill = Fill::default();
        for (written, share) in [(0, 750), (1000, 500)] {
            for _ in 0..30 {
                fill.note_flush(1000, written);
            }
            assert_eq!(fill.limit(1000), share);
            assert!(fill.limit(4 << 10) >= 2 << 10 && fill.limit(u64::MAX) >= u64::MAX / 2);
        }
        fill.note_flush(0, u64::MAX);
        assert_eq!(fill.limit(1000), 500);
    }
}
