//! Prefetching of cache lines that are read soon. This module does not know what lies in them.

/// The size of a cache line.
const LINE_BYTES: usize = 64;

/// Prefetches the cache lines of `bytes` bytes from `start` on. It is only a hint, and an address where nothing is
/// mapped does no harm. The misses of lines that are prefetched together overlap, while those of dependent reads come
/// one after the other.
#[inline(always)]
pub fn prefetch(start: usize, bytes: usize) {
    let mut at = start & !(LINE_BYTES - 1);
    while at < start.wrapping_add(bytes) {
        prefetch_line(at);
        at += LINE_BYTES;
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn prefetch_line(at: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction takes any address: it reads nothing that the program can see, and it does not fault.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(at)) }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
fn prefetch_line(at: usize) {
    // SAFETY: the instruction takes any address: it reads nothing that the program can see, and it does not fault.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
#[inline(always)]
fn prefetch_line(_: usize) {}
