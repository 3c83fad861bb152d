//! How full memtables get before they are frozen. It does not know what freezes or flushes them.
//!
//! ```text
//! write buffer   ├──────────── frozen, being flushed ────────────┼── commits meanwhile ──┼── as much again ──┤
//! ```
//!
//! The more rows a flush has, the fewer bytes compactions write. But commits need room while the flush runs. So
//! memtables are frozen when the rest of the write buffer is twice what commits wrote during a flush. It is twice as
//! much because commits are slowed down when half of their room is full, see [`super::pace`]. Memtables always get
//! at least a half of the write buffer, so that the largest batch has room, and at most three quarters, so that
//! commits that come all at once after a quiet time have room, too.
//!
//! Thread safe. The numbers are hints: a commit may see them late.

use os::sync::atomic::{AtomicU64, Ordering};

/// What commits wrote during the last flushes.
#[derive(Debug)]
pub struct Fill {
    /// What commits wrote, in thousandths of what the flush wrote.
    written: AtomicU64,
}

impl Default for Fill {
    fn default() -> Self {
        Self { written: AtomicU64::new(500) }
    }
}

impl Fill {
    /// The bytes with which memtables are frozen, of a write buffer of `buffer_bytes`.
    pub fn limit(&self, buffer_bytes: u64) -> u64 {
        let written = self.written.load(Ordering::Relaxed);
        (buffer_bytes / (1000 + 2 * written) * 1000).clamp(buffer_bytes / 2, buffer_bytes / 4 * 3)
    }

    /// Notes that commits have put `written_bytes` into memtables while `flushed_bytes` were flushed. If they wrote
    /// more than so far, this counts at once; if they wrote less, it counts little by little.
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
