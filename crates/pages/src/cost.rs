//! What a page costs in memory, and what is reserved for one before it is there. It does not know which budget pays.

use crate::page::MAX_PAGE_BYTES;
use crate::{Address, PageKind};
use os::BLOCK_BYTES;

/// What a page in memory costs besides its buffer: a frame 64, the rest of it 128, its share of the table 4 to 8, the
/// policy's node 24, the ghost's entries 16, rounded up.
pub(crate) const FRAME_BYTES: u64 = 248;

/// Bytes of a page for one hint: a child with its separator takes more as a rule.
const HINTED_BYTES: u64 = 12;

/// Bytes of a hint.
const HINT_BYTES: u64 = 8;

/// What a page is expected to unpack to, for the reservation: LZ4 seldom does better on rows.
const UNPACKED_TIMES: u64 = 4;

impl Address {
    /// Memory to reserve for a page that is not here yet, in bytes. A whole number of blocks is a plain page and read
    /// into the buffer it stays in; others are read with the blocks they share, and copied or unpacked.
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

/// Memory a page takes whose buffer has a capacity of `buffer_bytes`, without hints.
#[inline]
pub(crate) fn cost_bytes(buffer_bytes: u64) -> u64 {
    buffer_bytes + FRAME_BYTES
}

/// Memory for hints of where the children of a page of `bytes` bytes are in memory. A page gets them once a child was
/// looked for, if the budget has room: where it has none, a look in the table of all frames is nothing beside what is
/// read from the disk.
#[inline]
pub(crate) fn hint_bytes(bytes: u64, kind: PageKind) -> u64 {
    match kind {
        PageKind::Index | PageKind::Flat => bytes / HINTED_BYTES * HINT_BYTES,
        _ => 0,
    }
}
