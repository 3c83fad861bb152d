//! Buffers: bytes whose address and capacity are multiples of [`BLOCK_BYTES`], as direct I/O needs. This module does
//! not know what is read into them.
//!
//! The memory of a buffer is in an [`Arena`], in a mapping of its own, or on the heap, and goes back there when the
//! buffer is dropped. Outside arenas, a buffer of [`MAPPED_BYTES`] or more is mapped, so that the system gets its
//! memory back at once. Smaller buffers are on the heap.

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

/// Buffers of this capacity or more are mapped. glibc maps such buffers, too, but after it has freed one, it keeps the
/// memory of later ones. The system zeroes mapped pages when they are first touched, which takes 0.5 ms per MiB, about
/// as long as a fast disk takes to read one MiB. So a caller that needs such buffers again and again should keep them
/// or use an arena.
pub const MAPPED_BYTES: usize = 128 << 10;

/// The capacity of all living buffers. All accesses are relaxed, because the number is a statistic and orders no
/// other memory access. It is an atomic of `std`, because it must outlive each model that a model checker runs.
static ALLOCATED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The capacity of all living mapped buffers. Accessed like `ALLOCATED_BYTES`.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// An owned run of bytes, aligned for direct I/O. It dereferences to `[u8]`.
pub struct Buffer {
    /// The start of `capacity` initialized bytes that this buffer owns. If `capacity` is 0, an aligned address that is
    /// never read.
    start: NonNull<u8>,
    /// At most `capacity`.
    len: usize,
    /// A multiple of `BLOCK_BYTES`.
    capacity: usize,
    home: Home,
}

/// Where the memory of a buffer came from, and where it is given back to.
enum Home {
    /// The allocator. A buffer of capacity 0 has no memory to give back.
    Heap,
    /// A mapping of its own.
    Mapping,
    /// A run in this slab of the arena.
    Arena { arena: Arc<Arena>, slab: u32 },
}

// SAFETY: the bytes are owned by this value alone and reached only through its borrows, as in a `Box<[u8]>`.
unsafe impl Send for Buffer {}
// SAFETY: a shared borrow only reads.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `len` zeros, on the heap or in a mapping of their own. The capacity is `len`, rounded up to whole blocks.
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
            // SAFETY: the size of the layout is not 0, as was checked above.
            let start = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
            (start, Home::Heap)
        };
        ALLOCATED_BYTES.fetch_add(capacity, Ordering::Relaxed);
        Buffer { start, len, capacity, home }
    }

    /// The first `len` bytes of a run in an arena. The arena gets the run back when the buffer is dropped.
    ///
    /// # Safety
    /// `start` is aligned to blocks. `capacity` is a multiple of blocks and at least `len`. The `capacity` bytes
    /// from `start` on are initialized and lie in the slab with the number `slab`. These bytes belong to the
    /// buffer alone until the buffer gives them back to the arena.
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

    /// Shortens or extends the buffer in place. New bytes contain what was last in this memory: zeros or older bytes.
    pub fn set_len_within_capacity(&mut self, len: usize) {
        assert!(len <= self.capacity, "{len} bytes in a buffer of {}", self.capacity);
        self.len = len;
    }

    /// The capacity of all living buffers of the process, wherever they lie.
    pub fn allocated_bytes() -> usize {
        ALLOCATED_BYTES.load(Ordering::Relaxed)
    }

    /// The capacity of all living buffers of the process that are mapped, and so neither on the heap nor in an arena.
    pub fn mapped_bytes() -> usize {
        MAPPED.load(Ordering::Relaxed)
    }
}

/// The layout with which `capacity` bytes are allocated, and with which they must be freed.
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
                // SAFETY: the bytes were mapped in `zeroed` with this capacity and alignment, and nothing borrows
                // the buffer any more.
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
        // SAFETY: `start` is aligned and not null. The buffer owns `capacity` bytes from `start` on, which is at
        // least `len`, and they were initialized when the buffer was made. The result borrows `self`, so these
        // bytes are not written or freed while it lives.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`. The result borrows `self` mutably, so nothing else reaches the bytes while it
        // lives.
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
