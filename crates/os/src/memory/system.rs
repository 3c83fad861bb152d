//! Memory as the system gives it and takes it back. It does not know what lies in it.

#[cfg(any(miri, not(unix)))]
mod allocator;
#[cfg(all(unix, not(miri)))]
mod mapped;

#[cfg(any(miri, not(unix)))]
pub use allocator::{advise, discard, discards_blocks, map, unmap};
#[cfg(all(unix, not(miri)))]
pub use mapped::{advise, discard, discards_blocks, map, unmap};

/// Whether the system may lay huge pages under a range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// As soon as anything in their 2 MiB is touched.
    Wanted,
    /// Never: only what is touched takes memory.
    Refused,
}
