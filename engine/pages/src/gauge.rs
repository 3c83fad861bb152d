//! A sum of bytes over several holders. This module does not know what the holders use their bytes for.
//!
//! Thread safe. All accesses are relaxed, because the sum serves metrics and rough decisions, and orders no other
//! memory access.

use os::sync::Arc;
use os::sync::atomic::{AtomicU64, Ordering};

/// The sum of all holdings.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// The sum now.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A new holding that counts nothing yet.
    pub fn holding(self: &Arc<Self>) -> Holding {
        Holding { gauge: Arc::clone(self), bytes: 0 }
    }
}

/// The bytes of one holder. Dropping it subtracts them from the sum.
#[derive(Debug)]
pub struct Holding {
    gauge: Arc<Gauge>,
    bytes: u64,
}

impl Holding {
    /// The bytes that this holder counts.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Replaces the count of this holder by `bytes`.
    pub fn set(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.gauge.0.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else if bytes < self.bytes {
            self.gauge.0.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests;
