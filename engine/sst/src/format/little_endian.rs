//! The little-endian numbers in a page. This module does not know what the numbers mean.

/// The little-endian number at `at`, within the page.
#[inline]
pub fn u32_at(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"))
}

/// As [`u32_at`], of eight bytes.
#[inline]
pub fn u64_at(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(page[at..at + 8].try_into().expect("eight bytes"))
}
