//! Mapping and unmapping of memory. This module does not know what lies in the memory.

#[cfg(any(miri, not(unix)))]
mod allocator;
#[cfg(all(unix, not(miri)))]
mod mapped;

#[cfg(any(miri, not(unix)))]
pub use allocator::{advise, discard, discards_blocks, map, split, unmap};
#[cfg(all(unix, not(miri)))]
pub use mapped::{advise, discard, discards_blocks, map, split, unmap};

/// Whether the system may lay huge pages under a range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// When any byte of a huge page is touched, the system backs all 2 MiB.
    Wanted,
    /// Only pages that are touched take memory.
    Refused,
}
