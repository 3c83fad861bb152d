//! What a page costs in memory, and how much memory is reserved for a page before it is there. This module does not
//! know which budget pays.

use crate::page::MAX_PAGE_BYTES;
use crate::{Address, PageKind};
use os::BLOCK_BYTES;

/// The cost of a page in memory without its buffer, in bytes: its frame 64, the rest of the frame 128, its share of
/// the table 4 to 8, the node of the policy 24, and the entries of the ghost 16. The sum is rounded up.
pub(crate) const FRAME_BYTES: u64 = 248;

/// A page gets one hint for this many of its bytes. As a rule, a child and its separator take more bytes than this.
const HINTED_BYTES: u64 = 12;

/// Bytes of a hint.
const HINT_BYTES: u64 = 8;

/// The expected ratio of the unpacked length of a page to its stored length. The reservation uses this ratio,
/// because LZ4 seldom does better on rows.
const UNPACKED_TIMES: u64 = 4;

impl Address {
    /// The memory to reserve for a page that is not in memory yet, in bytes. A stored page of whole blocks is a
    /// plain page. It is read into the buffer in which it stays. Other pages are read together with the blocks that
    /// they share with their neighbours. Then they are copied or unpacked.
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

/// The memory that a page without hints takes, if its buffer has a capacity of `buffer_bytes`.
#[inline]
pub(crate) fn cost_bytes(buffer_bytes: u64) -> u64 {
    buffer_bytes + FRAME_BYTES
}

/// The memory for the hints of a page of `bytes` bytes. The hints say where the page's children are in memory. A
/// page gets hints when a child is first looked for, if the budget has room. If the budget has no room, there are
/// no hints, and each child is looked up in the table of all frames. This does not matter, because a full cache
/// also has to read pages from the disk, which takes far longer.
#[inline]
pub(crate) fn hint_bytes(bytes: u64, kind: PageKind) -> u64 {
    match kind {
        PageKind::Index | PageKind::Flat => bytes / HINTED_BYTES * HINT_BYTES,
        _ => 0,
    }
}
