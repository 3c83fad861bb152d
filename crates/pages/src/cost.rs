//! What a page costs in memory, and what is reserved for one before it is there. It does not know which budget pays.

use crate::page::MAX_PAGE_BYTES;
use crate::{Address, PageKind};
use os::BLOCK_BYTES;

/// What a page in memory costs besides its buffer, in bytes: its frame 64, the rest of it 128, its share of the table
/// 4 to 8, the policy's node 24, the ghost's entries 16, rounded up.
pub(crate) const FRAME_BYTES: u64 = 248;

/// Bytes of a page for which it gets one hint. As a rule, a child with its separator takes more bytes.
const HINTED_BYTES: u64 = 12;

/// Bytes of a hint.
const HINT_BYTES: u64 = 8;

/// How many times its stored bytes a page is expected to take once it is unpacked. The reservation uses this: LZ4
/// seldom does better on rows.
const UNPACKED_TIMES: u64 = 4;

impl Address {
    /// Memory to reserve for a page that is not in memory yet, in bytes. A stored page of whole blocks is a plain
    /// page, and it is read into the buffer where it stays. Other pages are read with the blocks that they share with
    /// their neighbours, and are copied or unpacked.
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

/// Memory that a page takes if its buffer has a capacity of `buffer_bytes`, without hints.
#[inline]
pub(crate) fn cost_bytes(buffer_bytes: u64) -> u64 {
    buffer_bytes + FRAME_BYTES
}

/// Memory for the hints of a page of `bytes` bytes: where its children are in memory. A page gets hints when a child
/// is first looked for, if the budget has room. If it has no room, pages are read from the disk, and a look in the
/// table of all frames costs nothing in comparison.
#[inline]
pub(crate) fn hint_bytes(bytes: u64, kind: PageKind) -> u64 {
    match kind {
        PageKind::Index | PageKind::Flat => bytes / HINTED_BYTES * HINT_BYTES,
        _ => 0,
    }
}
