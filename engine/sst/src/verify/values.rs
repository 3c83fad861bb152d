//! Checks values that lie outside their pages. It reads the chunks of each value, and compares their total length
//! with the length that the page's reference to the value states. This module does not know to which rows the
//! values belong.

use super::check::{Check, check_level};
use crate::format::OutsideValue;
use pages::{Address, HEADER_BYTES, PageKind, PageRef, PageSource, Result};

/// The addresses of the chunks of a value. `stored` is what the page stores for the value. If the value lies in
/// the page itself, it has no chunks.
pub(super) fn chunks_of(stored: &[u8], outside: bool) -> Vec<Address> {
    if !outside {
        return Vec::new();
    }
    OutsideValue::new(stored).expect("a validated page's references decode").chunks().collect()
}

/// A list of chunks that are read in this order.
pub(super) struct Values<'c> {
    chunks: &'c [Address],
    next: usize,
    /// The first chunk that has not been asked for ahead.
    asked: usize,
}

impl<'c> Values<'c> {
    pub fn new(chunks: &'c [Address]) -> Self {
        Self { chunks, next: 0, asked: 0 }
    }
}

impl<S: PageSource + ?Sized> Check<'_, S> {
    /// Reads the chunks of a value if the value lies outside `page`. `stored` is what the page stores for the
    /// value. Returns the stored bytes of the chunks.
    pub fn value(&mut self, page: &PageRef, stored: &[u8], outside: bool, values: &mut Values<'_>) -> Result<u64> {
        if !outside {
            self.found.user_bytes += stored.len() as u64;
            return Ok(0);
        }
        let reference = OutsideValue::new(stored).expect("a validated page's references decode");
        let (mut bytes, mut stored_bytes) = (0, 0);
        for at in reference.chunks() {
            if values.next >= values.asked {
                // The round that begins now reads the first chunk in any case. So only the chunks after it must be
                // asked for.
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
