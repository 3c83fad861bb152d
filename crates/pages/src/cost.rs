//! What a page costs in memory, and what is reserved for one before it is there. It does not know which budget pays.

use crate::page::MAX_PAGE_BYTES;
use crate::{Address, PageKind};
use os::{BLOCK_BYTES, Buffer};

/// What a page in memory costs besides its buffer: a frame 192, its share of the table 4 to 8, the policy's node 24, the
/// ghost's entries 16, rounded up.
pub(crate) const FRAME_BYTES: u64 = 240;

/// The numbers of the frames of a page's children take one byte for so many bytes of the page: 4 bytes for 32, and a
/// child with its separator takes more than these as a rule.
const HINT_SHARE: u64 = 8;

/// What a page is expected to unpack to, for the reservation: LZ4 seldom does better on rows.
const UNPACKED_TIMES: u64 = 4;

impl Address {
    /// Memory to reserve for a page that is not here yet, in bytes. A whole number of blocks is a plain page and read into
    /// the buffer it stays in; others are read with the blocks they share, and copied or unpacked.
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

/// Memory a page in `buffer` takes.
#[inline]
pub(crate) fn cost_bytes(buffer: &Buffer, kind: PageKind) -> u64 {
    let bytes = buffer.capacity() as u64;
    bytes + FRAME_BYTES + hint_bytes(bytes, kind)
}

/// Memory for the places of the children of a page of so many bytes.
#[inline]
pub(crate) fn hint_bytes(bytes: u64, kind: PageKind) -> u64 {
    match kind {
        PageKind::Index | PageKind::Flat => bytes / HINT_SHARE / 4 * 4,
        _ => 0,
    }
}
