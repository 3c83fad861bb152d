//! How much memory an allocation takes. This module does not know what is allocated.

/// The memory that glibc takes for an allocation of `bytes` bytes: 8 bytes more, rounded up to a multiple of 16,
/// and at least 32 bytes. Allocators with size classes (jemalloc, mimalloc) have no header, but waste up to an
/// eighth of the memory. On average, they take about as much as glibc.
pub fn allocated_bytes(bytes: usize) -> u64 {
    ((bytes + 8).next_multiple_of(16)).max(32) as u64
}
