//! Allocation of buffers from an arena. This module does not know how blocks are found, or when a buffer is dropped.

use super::{Arena, Buffer, LONGEST_BLOCKS};
use crate::BLOCK_BYTES;
use crate::sync::Arc;

impl Arena {
    /// A buffer of `bytes` bytes, with a capacity of whole blocks. It contains what was last in its memory, or zeros
    /// if the memory is new.
    ///
    /// `None` if the buffers would exceed the limit, if the buffer is longer than 1 MiB (such buffers belong on the
    /// heap), or if the system is out of memory. The caller then drops memory that it can do without, and asks again.
    pub fn buffer(self: &Arc<Self>, bytes: usize) -> Option<Buffer> {
        let blocks = bytes.div_ceil(BLOCK_BYTES);
        if blocks > LONGEST_BLOCKS {
            return None;
        }
        if blocks == 0 {
            return Some(Buffer::zeroed(0));
        }
        let mut state = self.state.lock();
        let place = state.take(blocks)?;
        let start = state.address(place);
        drop(state);
        // SAFETY: `take` has given out the run of `blocks` blocks at `place`, and does not give it out again before
        // `release` takes it back. Only the buffer calls `release`, when it is dropped. Until then the blocks stay
        // mapped: a slab is unmapped when all of it is free, or together with the arena, which the buffer keeps alive.
        // The blocks were initialized, by the system with zeros or by earlier buffers.
        Some(unsafe { Buffer::in_arena(start, bytes, blocks * BLOCK_BYTES, Arc::clone(self), place.slab) })
    }
}
