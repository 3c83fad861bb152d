//! Heap bytes whose address and capacity are multiples of [`BLOCK_BYTES`], as direct I/O wants them. It does not know
//! what is read into them.

use crate::BLOCK_BYTES;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, without_provenance_mut};
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Capacity of all buffers alive. Relaxed everywhere: a statistic, nothing is ordered by it. It outlives every model of
/// a model checker, and is std's for that reason.
static ALLOCATED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// An owned run of bytes, aligned for direct I/O. Dereferences to `[u8]`.
pub struct Buffer {
    /// Start of `capacity` initialized bytes owned by this buffer; if `capacity` is 0, aligned and never read.
    start: NonNull<u8>,
    /// At most `capacity`.
    len: usize,
    /// A multiple of `BLOCK_BYTES`.
    capacity: usize,
}

// SAFETY: the bytes are owned by this value alone and reached only through its borrows, as in a `Box<[u8]>`.
unsafe impl Send for Buffer {}
// SAFETY: a shared borrow only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `len` zeros, in room rounded up to whole blocks.
    pub fn zeroed(len: usize) -> Buffer {
        let capacity = len.next_multiple_of(BLOCK_BYTES);
        let start = if capacity == 0 {
            NonNull::new(without_provenance_mut(BLOCK_BYTES)).expect("a block is not 0 bytes")
        } else {
            let layout = layout(capacity);
            // SAFETY: the size of the layout is not 0, checked above.
            NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
        };
        ALLOCATED_BYTES.fetch_add(capacity, Ordering::Relaxed);
        Buffer { start, len, capacity }
    }

    /// A copy of `bytes`.
    pub fn copied(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::zeroed(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// Bytes reserved, a multiple of [`BLOCK_BYTES`].
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Cuts or extends the buffer in place. Bytes it extends over are what they were last: zeros or older contents.
    pub fn set_len_within_capacity(&mut self, len: usize) {
        assert!(len <= self.capacity, "{len} bytes in a buffer of {}", self.capacity);
        self.len = len;
    }

    /// Capacity of all buffers of the process that are alive.
    pub fn allocated_bytes() -> usize {
        ALLOCATED_BYTES.load(Ordering::Relaxed)
    }
}

/// How `capacity` bytes are allocated, and therefore freed.
fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, BLOCK_BYTES).expect("a buffer is smaller than the address space")
}

impl Drop for Buffer {
    fn drop(&mut self) {
        ALLOCATED_BYTES.fetch_sub(self.capacity, Ordering::Relaxed);
        if self.capacity > 0 {
            // SAFETY: `start` came from `alloc_zeroed` with this same layout, and nothing borrows the buffer any more.
            unsafe { dealloc(self.start.as_ptr(), layout(self.capacity)) }
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is aligned and not null, and `len <= capacity` bytes from it are owned and were zeroed when
        // allocated; the result borrows `self`, so nobody writes or frees them meanwhile.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the result borrows `self` mutably, so it is the only way to the bytes.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.len).field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
