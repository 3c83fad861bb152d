//! Memory from the allocator in place of mappings, for Miri, which has no mappings, and for systems without them.

use super::HugePages;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Returns `bytes` zeroed bytes (not 0), aligned to `align`, a power of two. `None` if no memory is left.
pub fn map(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    // SAFETY: the size of the layout is not 0, as the caller promises.
    NonNull::new(unsafe { alloc_zeroed(layout(bytes, align)) })
}

/// Frees memory that [`map`] returned.
///
/// # Safety
/// `start` came from [`map`] with the same `bytes` and `align`, and the memory is not used from now on.
pub unsafe fn unmap(start: NonNull<u8>, bytes: usize, align: usize) {
    // SAFETY: `map` allocated this memory with the same layout, as the caller promises.
    unsafe { dealloc(start.as_ptr(), layout(bytes, align)) }
}

/// Whether [`discard`] works on single blocks. It does under Miri, so that Miri checks the same behaviour as on Linux.
pub fn discards_blocks() -> bool {
    cfg!(miri)
}

/// Under Miri, zeroes the range, as Linux does when it takes memory back. Elsewhere does nothing and returns false.
///
/// # Safety
/// The range lies within memory that [`map`] gave, and nothing else uses it during the call.
pub unsafe fn discard(start: NonNull<u8>, bytes: usize) -> bool {
    if cfg!(miri) {
        // SAFETY: the range is allocated and nothing else uses it, as the caller promises.
        unsafe { start.write_bytes(0, bytes) };
    }
    cfg!(miri)
}

/// This allocator has no huge pages.
///
/// # Safety
/// The caller need not ensure anything, because the function does nothing.
pub unsafe fn split(_start: NonNull<u8>, _bytes: usize) {}

/// This allocator has no huge pages.
///
/// # Safety
/// The caller need not ensure anything, because the function does nothing.
pub unsafe fn advise(_start: NonNull<u8>, _bytes: usize, _huge_pages: HugePages) {}

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).expect("a mapping is smaller than the address space")
}
