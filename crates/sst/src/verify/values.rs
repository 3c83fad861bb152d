//! Values that lie outside their pages: each of their chunks is read, and they are as long as the reference says. It
//! does not know the rows that they belong to.

use super::check::{Check, check_level};
use crate::format::OutsideValue;
use pages::{Address, HEADER_BYTES, PageKind, PageRef, PageSource, Result};

/// Addresses of the chunks of a value that a page has `stored`; none if it lies in the page.
pub(super) fn chunks_of(stored: &[u8], outside: bool) -> Vec<Address> {
    if !outside {
        return Vec::new();
    }
    OutsideValue::new(stored).expect("a validated page's references decode").chunks().collect()
}

/// Chunks to be read one after the other.
pub(super) struct Values<'c> {
    chunks: &'c [Address],
    next: usize,
    /// The first not asked for ahead.
    asked: usize,
}

impl<'c> Values<'c> {
    pub fn new(chunks: &'c [Address]) -> Self {
        Self { chunks, next: 0, asked: 0 }
    }
}

impl<S: PageSource + ?Sized> Check<'_, S> {
    /// Reads the chunks of the value that `page` has `stored`, if it lies outside; says how many bytes they take.
    pub fn value(&mut self, page: &PageRef, stored: &[u8], outside: bool, values: &mut Values<'_>) -> Result<u64> {
        if !outside {
            self.found.user_bytes += stored.len() as u64;
            return Ok(0);
        }
        let reference = OutsideValue::new(stored).expect("a validated page's references decode");
        let (mut bytes, mut stored_bytes) = (0, 0);
        for at in reference.chunks() {
            if values.next >= values.asked {
                // The first is read in this round anyway.
                let next = values.chunks.get(values.next + 1..).unwrap_or_default();
                values.asked = values.next + 1 + self.whole.ask_next(PageKind::Value, next);
            }
            values.next += 1;
            let chunk = self.page(&at, PageKind::Value)?;
            check_level(self, &chunk, &at, 0)?;
            bytes += (chunk.len() - HEADER_BYTES) as u64;
            stored_bytes += u64::from(at.bytes);
        }
        if bytes != reference.bytes {
            let why = format!("a value of {} bytes has chunks of {bytes}", reference.bytes);
            return Err(self.corrupt(page.kind(), page.address().offset, why));
        }
        self.found.value_bytes += stored_bytes;
        self.found.user_bytes += bytes;
        Ok(stored_bytes)
    }
}
