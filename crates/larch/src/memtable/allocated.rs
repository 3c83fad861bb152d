//! What an allocation takes of memory.

/// What glibc takes for an allocation of `bytes`: 8 bytes of its own, rounded up to 16, at least 32. Size-class
/// allocators (jemalloc, mimalloc) waste up to an eighth instead of the header, which is about as much.
pub fn allocated_bytes(bytes: usize) -> u64 {
    ((bytes + 8).next_multiple_of(16)).max(32) as u64
}
