//! How an arena gives buffers. It does not know how blocks are found, nor when a buffer is dropped.

use super::{Arena, Buffer, LONGEST_BLOCKS};
use crate::BLOCK_BYTES;
use crate::sync::Arc;

impl Arena {
    /// Room for `bytes`, in whole blocks. What is in it is whatever was there last; zeros if nothing was.
    ///
    /// `None` when buffers would take more than the limit, when the run would be longer than 1 MiB (the heap has
    /// room for those), or when the system has no more. A caller that keeps what it can do without drops some of it
    /// and asks again.
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
        // SAFETY: `take` gives out the run of `blocks` blocks at `place` only once until `release` has it back, which
        // only the buffer calls, when it is dropped. They stay mapped so long: a slab is unmapped when all of it is
        // free, or with the arena, which the buffer keeps. They are initialized, by the system with zeros or by
        // buffers.
        Some(unsafe { Buffer::in_arena(start, bytes, blocks * BLOCK_BYTES, Arc::clone(self), place.slab) })
    }
}
