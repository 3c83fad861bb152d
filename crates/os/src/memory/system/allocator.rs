//! The allocator in place of mappings. It is used under Miri, which knows no mappings, and on systems without them.

use super::HugePages;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// `bytes` zeros (more than none) that start at a multiple of `align`, a power of two. `None` if no memory is left.
pub fn map(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    // SAFETY: the size of the layout is not 0, as the caller promises.
    NonNull::new(unsafe { alloc_zeroed(layout(bytes, align)) })
}

/// Takes away what [`map`] gave.
///
/// # Safety
/// `start` came from [`map`] with the same `bytes` and `align`, and the memory is not used from now on.
pub unsafe fn unmap(start: NonNull<u8>, bytes: usize, align: usize) {
    // SAFETY: allocated by `map` with this same layout, as the caller promises.
    unsafe { dealloc(start.as_ptr(), layout(bytes, align)) }
}

/// Whether [`discard`] works for each block by itself. Under Miri it does, so that Miri sees what Linux would do.
pub fn discards_blocks() -> bool {
    cfg!(miri)
}

/// Under Miri, writes zeros over memory, as Linux does when it takes memory back. Elsewhere it does nothing and
/// returns false.
///
/// # Safety
/// The range is within something that [`map`] gave, and it is not used elsewhere meanwhile.
pub unsafe fn discard(start: NonNull<u8>, bytes: usize) -> bool {
    if cfg!(miri) {
        // SAFETY: the range is allocated and it is not used elsewhere, as the caller promises.
        unsafe { start.write_bytes(0, bytes) };
    }
    cfg!(miri)
}

/// This allocator has no huge pages.
///
/// # Safety
/// None needed: nothing is done.
pub unsafe fn advise(_start: NonNull<u8>, _bytes: usize, _huge_pages: HugePages) {}

fn layout(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).expect("a mapping is smaller than the address space")
}
