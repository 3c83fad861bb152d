//! Prefetches memory that is read soon. This module does not know what lies in that memory, or whether anything
//! does.

/// The number of bytes that the processor fetches together: one cache line.
const LINE_BYTES: usize = 64;

/// Prefetches the lines of `bytes` bytes from `start` on. It is only a hint: the program gets no bytes, and an
/// address where nothing lies does no harm. Lines that are prefetched together arrive at the same time. If each
/// read needs the result of the read before, the lines arrive one after the other.
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
