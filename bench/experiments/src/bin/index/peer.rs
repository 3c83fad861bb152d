//! A data page as many engines have it, for comparison with ours: a slot array, with a binary search that compares
//! whole keys by memcmp.
//!
//! ```text
//!  0  rows u16
//!  2  slots u16 x rows: where each record starts
//!     records, from the end of the page down: key bytes u16 | value bytes u16 | key | value
//! ```

const SLOTS_AT: usize = 2;
const RECORD_HEAD_BYTES: usize = 4;

/// Builds a page of `BYTES` bytes, fewer than 64 KiB.
pub struct SlotPageBuilder<const BYTES: usize> {
    page: Box<[u8; BYTES]>,
    rows: usize,
    free_end: usize,
}

impl<const BYTES: usize> SlotPageBuilder<BYTES> {
    /// An empty page.
    pub fn new() -> Self {
        Self { page: Box::new([0; BYTES]), rows: 0, free_end: BYTES }
    }

    /// Adds a row, whose key must be greater than all earlier ones. Returns false if it does not fit.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> bool {
        let record_bytes = RECORD_HEAD_BYTES + key.len() + value.len();
        let slot_at = SLOTS_AT + self.rows * 2;
        let Some(start) = self.free_end.checked_sub(record_bytes).filter(|&start| start >= slot_at + 2) else {
            return false;
        };
        let (head, body) = self.page[start..self.free_end].split_at_mut(RECORD_HEAD_BYTES);
        head[..2].copy_from_slice(&(key.len() as u16).to_le_bytes());
        head[2..].copy_from_slice(&(value.len() as u16).to_le_bytes());
        body[..key.len()].copy_from_slice(key);
        body[key.len()..].copy_from_slice(value);
        self.page[slot_at..slot_at + 2].copy_from_slice(&(start as u16).to_le_bytes());
        self.rows += 1;
        self.free_end = start;
        true
    }

    /// Rows added so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Finishes the page.
    pub fn finish(mut self) -> Box<[u8; BYTES]> {
        self.page[..2].copy_from_slice(&(self.rows as u16).to_le_bytes());
        self.page
    }
}

/// A page to search.
#[derive(Clone, Copy)]
pub struct SlotPage<'p, const BYTES: usize>(pub &'p [u8; BYTES]);

impl<'p, const BYTES: usize> SlotPage<'p, BYTES> {
    #[inline]
    fn number(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes([self.0[at], self.0[at + 1]]))
    }

    /// The number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.number(0)
    }

    /// The key of row `i`.
    #[inline]
    pub fn key(&self, i: usize) -> &'p [u8] {
        let record = self.number(SLOTS_AT + i * 2);
        let start = record + RECORD_HEAD_BYTES;
        &self.0[start..start + self.number(record)]
    }

    /// Searches for `wanted`: `Ok(i)` if row `i` has this key, otherwise `Err(i)` for the first row `i` with a
    /// greater key.
    #[inline]
    pub fn search(&self, wanted: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.rows());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.key(middle).cmp(wanted) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }
}

#[cfg(test)]
mod tests;
