//! Anonymous mappings. This module does not know what lies in them.

use super::HugePages;
use crate::BLOCK_BYTES;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ptr::{NonNull, null_mut};

/// Maps `bytes` zeroed bytes, which must be whole blocks, aligned to `align`, a power of two. They take no memory
/// before they are touched. `None` if the system has no memory left.
pub fn map(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    let spare = if align > rustix::param::page_size() { align } else { 0 };
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: the system chooses the place, so nothing that exists is touched.
    let start = unsafe { mmap_anonymous(null_mut(), bytes + spare, protection, flags) }.ok()?;
    let before = if spare > 0 { start.addr().next_multiple_of(align) - start.addr() } else { 0 };
    let after = spare - before;
    for (offset, bytes) in [(0, before), (before + bytes, after)] {
        if bytes > 0 {
            // If this part cannot be unmapped, its addresses stay reserved, but it takes no memory, since it is never
            // touched. SAFETY: this part of the new mapping is not returned, so no other code knows of it.
            unsafe { munmap(start.wrapping_byte_add(offset), bytes) }.ok();
        }
    }
    NonNull::new(start.wrapping_byte_add(before).cast())
}

/// Unmaps memory that [`map`] returned.
///
/// # Safety
/// `start` came from [`map`] with the same `bytes` and `align`, and the memory is not used from now on.
pub unsafe fn unmap(start: NonNull<u8>, bytes: usize, _align: usize) {
    // SAFETY: the mapping is ours and is not used any more, as the caller promises.
    if unsafe { munmap(start.as_ptr().cast(), bytes) }.is_err() {
        // The system cannot split the surrounding mapping in two. The addresses are lost, but the memory is not.
        // SAFETY: as above, and the mapping has whole blocks.
        unsafe { discard(start, bytes) };
    }
}

/// Whether [`discard`] works on single blocks.
pub fn discards_blocks() -> bool {
    cfg!(target_os = "linux") && rustix::param::page_size() == BLOCK_BYTES
}

/// Gives memory back to the system, but keeps its addresses, which then read as zeros. Returns false if this is not
/// possible, for example because the memory is locked. The bytes may then be unchanged, or zeros.
///
/// # Safety
/// The range consists of whole blocks within memory that [`map`] gave, and nothing else uses it during the call.
#[cfg(target_os = "linux")]
pub unsafe fn discard(start: NonNull<u8>, bytes: usize) -> bool {
    // SAFETY: nothing else uses the range, as the caller promises, and zeros are valid bytes.
    unsafe { rustix::mm::madvise(start.as_ptr().cast(), bytes, rustix::mm::Advice::LinuxDontNeed) }.is_ok()
}

/// On other systems, no such call exists.
///
/// # Safety
/// The caller need not ensure anything, because the function does nothing.
#[cfg(not(target_os = "linux"))]
pub unsafe fn discard(_start: NonNull<u8>, _bytes: usize) -> bool {
    false
}

/// Splits the huge page under a range that is to be discarded. Otherwise the system may keep the whole huge page until
/// memory is short, and count it as memory of the process.
///
/// # Safety
/// As [`discard`].
#[cfg(target_os = "linux")]
pub unsafe fn split(start: NonNull<u8>, bytes: usize) {
    // The system splits a huge page to free a part of it lazily. If the call fails, only the split is missing.
    // SAFETY: nothing else uses the range, as the caller promises, and zeros are valid bytes.
    unsafe { rustix::mm::madvise(start.as_ptr().cast(), bytes, rustix::mm::Advice::LinuxFree) }.ok();
}

/// On other systems, no such call exists.
///
/// # Safety
/// The caller need not ensure anything, because the function does nothing.
#[cfg(not(target_os = "linux"))]
pub unsafe fn split(_start: NonNull<u8>, _bytes: usize) {}

/// Tells the system whether huge pages are wanted under a range. On a system without huge pages, this has no
/// effect.
///
/// # Safety
/// The range consists of whole blocks within memory that [`map`] gave.
#[cfg(target_os = "linux")]
pub unsafe fn advise(start: NonNull<u8>, bytes: usize, huge_pages: HugePages) {
    let advice = match huge_pages {
        HugePages::Wanted => rustix::mm::Advice::LinuxHugepage,
        HugePages::Refused => rustix::mm::Advice::LinuxNoHugepage,
    };
    // The call fails if the kernel was built without huge pages. On such a kernel, the advice is not needed.
    // SAFETY: the range is mapped, as the caller promises; the advice changes no bytes.
    unsafe { rustix::mm::madvise(start.as_ptr().cast(), bytes, advice) }.ok();
}

/// On other systems, no such call exists.
///
/// # Safety
/// The caller need not ensure anything, because the function does nothing.
#[cfg(not(target_os = "linux"))]
pub unsafe fn advise(_start: NonNull<u8>, _bytes: usize, _huge_pages: HugePages) {}
