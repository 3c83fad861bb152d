//! Bytes whose address and capacity are multiples of [`BLOCK_BYTES`], as direct I/O wants them. It does not know what
//! is read into them.
//!
//! They lie in one of three places, where they go back to when the buffer is dropped: in an [`Arena`]; from
//! [`MAPPED_BYTES`] on in a mapping of their own, so that the system has their memory again at once; or else on the
//! heap.

use super::Arena;
use super::system::{map, unmap};
use crate::BLOCK_BYTES;
use crate::sync::Arc;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, without_provenance_mut};
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Buffers of this capacity and more are mapped: what glibc maps too, until the first such is freed and it begins to
/// keep them. The system zeroes them page by page as they are filled, 0.5 ms a MiB, about what a fast disk takes to
/// read as much; so a caller that needs them again and again keeps them, or has an arena.
pub const MAPPED_BYTES: usize = 128 << 10;

/// Capacity of all buffers alive. Relaxed everywhere: a statistic, nothing is ordered by it. It outlives every model of
/// a model checker, and is std's for that reason.
static ALLOCATED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Capacity of those alive that have a mapping of their own. As above.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// An owned run of bytes, aligned for direct I/O. Dereferences to `[u8]`.
pub struct Buffer {
    /// Start of `capacity` initialized bytes owned by this buffer; if `capacity` is 0, aligned and never read.
    start: NonNull<u8>,
    /// At most `capacity`.
    len: usize,
    /// A multiple of `BLOCK_BYTES`.
    capacity: usize,
    home: Home,
}

/// Where the bytes came from and go back to.
enum Home {
    /// The allocator; nowhere if the capacity is 0.
    Heap,
    /// A mapping of their own.
    Mapping,
    /// A run in this slab of the arena.
    Arena { arena: Arc<Arena>, slab: u32 },
}

// SAFETY: the bytes are owned by this value alone and reached only through its borrows, as in a `Box<[u8]>`.
unsafe impl Send for Buffer {}
// SAFETY: a shared borrow only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `len` zeros, in room rounded up to whole blocks, on the heap or in a mapping of their own.
    pub fn zeroed(len: usize) -> Buffer {
        let capacity = len.next_multiple_of(BLOCK_BYTES);
        let (start, home) = if capacity == 0 {
            (NonNull::new(without_provenance_mut(BLOCK_BYTES)).expect("a block is not 0 bytes"), Home::Heap)
        } else if capacity >= MAPPED_BYTES {
            let start = map(capacity, BLOCK_BYTES).unwrap_or_else(|| handle_alloc_error(layout(capacity)));
            MAPPED.fetch_add(capacity, Ordering::Relaxed);
            (start, Home::Mapping)
        } else {
            let layout = layout(capacity);
            // SAFETY: the size of the layout is not 0, checked above.
            let start = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
            (start, Home::Heap)
        };
        ALLOCATED_BYTES.fetch_add(capacity, Ordering::Relaxed);
        Buffer { start, len, capacity, home }
    }

    /// The first `len` bytes of a run in an arena, which gets it back when the buffer is dropped.
    ///
    /// # Safety
    /// `start` is aligned to blocks; `capacity` bytes from it, a multiple of blocks and at least `len`, are
    /// initialized, lie in the slab of this number, and are the buffer's alone until it gives them back.
    pub(crate) unsafe fn in_arena(
        start: NonNull<u8>,
        len: usize,
        capacity: usize,
        arena: Arc<Arena>,
        slab: u32,
    ) -> Buffer {
        ALLOCATED_BYTES.fetch_add(capacity, Ordering::Relaxed);
        Buffer { start, len, capacity, home: Home::Arena { arena, slab } }
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

    /// Cuts or extends the buffer in place. Bytes that it gains keep their last contents: zeros, or older bytes.
    pub fn set_len_within_capacity(&mut self, len: usize) {
        assert!(len <= self.capacity, "{len} bytes in a buffer of {}", self.capacity);
        self.len = len;
    }

    /// Capacity of all buffers of the process that are alive, wherever they lie.
    pub fn allocated_bytes() -> usize {
        ALLOCATED_BYTES.load(Ordering::Relaxed)
    }

    /// Capacity of those buffers alive that have a mapping of their own: memory that the allocator knows nothing of,
    /// and no arena either.
    pub fn mapped_bytes() -> usize {
        MAPPED.load(Ordering::Relaxed)
    }
}

/// How `capacity` bytes are allocated, and therefore freed.
fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, BLOCK_BYTES).expect("a buffer is smaller than the address space")
}

impl Drop for Buffer {
    fn drop(&mut self) {
        ALLOCATED_BYTES.fetch_sub(self.capacity, Ordering::Relaxed);
        match &self.home {
            // SAFETY: the run is of this arena and this slab, and nothing borrows the buffer any more.
            Home::Arena { arena, slab } => unsafe { arena.release(self.start, self.capacity, *slab) },
            Home::Mapping => {
                MAPPED.fetch_sub(self.capacity, Ordering::Relaxed);
                // SAFETY: mapped in `zeroed` with this capacity and alignment, and nothing borrows the buffer any more.
                unsafe { unmap(self.start, self.capacity, BLOCK_BYTES) }
            }
            Home::Heap if self.capacity == 0 => {}
            // SAFETY: `start` came from `alloc_zeroed` with this same layout, and nothing borrows the buffer any more.
            Home::Heap => unsafe { dealloc(self.start.as_ptr(), layout(self.capacity)) },
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is aligned and not null, and `len <= capacity` bytes from it are owned and were initialized
        // when the buffer was made; the result borrows `self`, so they are not written or freed meanwhile.
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
