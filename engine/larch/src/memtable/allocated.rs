//! How much memory an allocation takes. This module does not know what is allocated.

/// The bytes that glibc takes for an allocation of `bytes`: 8 more, rounded up to a multiple of 16, and at least 32.
/// Allocators with size classes (jemalloc, mimalloc) have no header but waste up to an eighth, which comes to about
/// the same on average.
pub fn allocated_bytes(bytes: usize) -> u64 {
    ((bytes + 8).next_multiple_of(16)).max(32) as u64
}
