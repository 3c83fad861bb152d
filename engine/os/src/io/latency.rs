//! The recent latency of short reads from a store. This module does not know what is read.
//!
//! Reads are measured in consecutive groups of [`GROUP`]. The latency is the mean of the last complete group or the
//! mean of the current group, whichever is smaller. The current group counts from a quarter of its reads on. So a
//! burst of reads that wait for a busy store or a connection does not raise the latency for long. The estimated time
//! to transfer the bytes is subtracted from each read first.

use std::time::Duration;

/// The latency before the first measurement: that of a store in another building. The first reads correct it if the
/// store is near.
const ASSUMED: Duration = Duration::from_millis(10);

const GROUP: u32 = 32;

/// The assumed bandwidth of a read. Several reads may share a connection, and the share of each is unknown.
const BYTES_PER_SECOND: u64 = 64 << 20;

/// The measured latency of a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latency {
    /// The mean time of the last complete group.
    before: Option<Duration>,
    sum: Duration,
    count: u32,
}

impl Latency {
    /// Notes that a read of `bytes` bytes took `time`.
    pub fn note(&mut self, time: Duration, bytes: usize) {
        let transfer = Duration::from_nanos((bytes as u64).saturating_mul(1_000_000_000 / BYTES_PER_SECOND));
        // At least a quarter of the time counts as latency, because a connection may be faster than assumed.
        self.sum += time.saturating_sub(transfer).max(time / 4);
        self.count += 1;
        if self.count == GROUP {
            *self = Latency { before: Some(self.sum / GROUP), ..Latency::default() };
        }
    }

    /// The time that a short read takes.
    pub fn get(&self) -> Duration {
        let now = (self.count > 0).then(|| self.sum / self.count);
        match (self.before, now) {
            (Some(before), Some(now)) if self.count >= GROUP / 4 => before.min(now),
            (before, now) => before.or(now).unwrap_or(ASSUMED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_store_is_as_far_as_its_last_reads() {
        let mut latency = Latency::default();
        assert_eq!(latency.get(), ASSUMED);
        latency.note(millis(3), 0);
        assert_eq!(latency.get(), millis(3));
        (0..100).for_each(|_| latency.note(millis(30), 0));
        assert_eq!(latency.get(), millis(30), "it has gone away");
        (0..100).for_each(|_| latency.note(millis(1), 0));
        assert_eq!(latency.get(), millis(1), "it has come near");
    }

    #[test]
    fn a_busy_moment_does_not_count() {
        let mut latency = Latency::default();
        (0..64).for_each(|_| latency.note(millis(5), 0));
        (0..20).for_each(|_| latency.note(millis(500), 0));
        assert_eq!(latency.get(), millis(5));
    }

    #[test]
    fn the_bytes_of_a_long_read_do_not_make_it_far() {
        let mut latency = Latency::default();
        // A read of 1 MiB from a store 5 ms away, through a connection that gives 64 MiB per second.
        latency.note(millis(5) + Duration::from_micros(15_625), 1 << 20);
        let measured = latency.get();
        assert!(measured >= millis(5) && measured < millis(7), "{measured:?}");
        // Even if the connection is much faster than assumed, the latency is not zero.
        let mut latency = Latency::default();
        latency.note(millis(8), 1 << 20);
        assert_eq!(latency.get(), millis(2));
    }
}
