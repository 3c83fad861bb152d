//! What a page costs in memory, and how much is reserved for a page before it is there. This module does not know
//! which budget pays.

use crate::page::MAX_PAGE_BYTES;
use crate::{Address, PageKind};
use os::BLOCK_BYTES;

/// The cost of a page in memory beside its buffer, in bytes: its frame 64, the rest of the frame 128, its share of
/// the table 4 to 8, its node in the policy 24, and its entries in the ghost 16; rounded up.
pub(crate) const FRAME_BYTES: u64 = 248;

/// A page gets one hint per this many of its bytes. A child and its separator usually take more.
const HINTED_BYTES: u64 = 12;

/// Bytes of a hint.
const HINT_BYTES: u64 = 8;

/// The assumed ratio of a page's unpacked length to its stored length, for reservations. LZ4 seldom does better on
/// rows.
const UNPACKED_TIMES: u64 = 4;

impl Address {
    /// The memory to reserve for a page that is not in memory yet, in bytes. A stored page of whole blocks is a
    /// plain page, which stays in the buffer that it is read into. Any other page is read with the blocks that it
    /// shares with its neighbours, and then copied or unpacked into a buffer of its own.
    #[inline]
    pub fn memory_bytes(&self) -> u64 {
        let block = BLOCK_BYTES as u64;
        let bytes = u64::from(self.bytes);
        let start = self.offset % block;
        if start == 0 && bytes.is_multiple_of(block) {
            return bytes + FRAME_BYTES;
        }
        let unpacked = (bytes * UNPACKED_TIMES).min(MAX_PAGE_BYTES as u64).next_multiple_of(block);
        (start + bytes).next_multiple_of(block) + unpacked + FRAME_BYTES
    }
}

/// The memory of a page without hints whose buffer has a capacity of `buffer_bytes`.
#[inline]
pub(crate) fn cost_bytes(buffer_bytes: u64) -> u64 {
    buffer_bytes + FRAME_BYTES
}

/// The memory for the hints of a page of `bytes` bytes. Hints say where the page's children are in memory. A page
/// gets them when one of its children is first looked for, if the budget has room. Without hints, each child is
/// looked up in the table of all frames. This does not matter, because a cache that is so full also has to read
/// pages from disk, which takes far longer.
#[inline]
pub(crate) fn hint_bytes(bytes: u64, kind: PageKind) -> u64 {
    match kind {
        PageKind::Index | PageKind::Flat => bytes / HINTED_BYTES * HINT_BYTES,
        _ => 0,
    }
}
