//! A page of a column group: the parts of consecutive rows, found by row id. The rows' keys, versions and kinds are
//! not here but in the main tree or, for older versions, in the history.
//!
//! ```text
//!  0  page header                                                            16
//! 16  rows u32 | flags u8 | zero u8 x 3                                       8
//! 24  first row id u64                                                        8
//! 32  offsets   u16 x (rows + 1)   starts of the parts and the end of the last; u32 where flag 1 is set
//!     outside   u8 x ceil(rows / 8), where flag 2 is set: bit i % 8 of byte i / 8 says that part i is a reference
//!     parts     back to back
//! ```

use super::little_endian::{u32_at, u64_at};
use super::outside_value::OutsideValue;
use super::page_rows::{PageRows, Seen};
use pages::page::HEADER_BYTES;

const ROWS_AT: usize = HEADER_BYTES;
const OFFSETS_AT: usize = HEADER_BYTES + 16;

const WIDE_OFFSETS: u8 = 1;
const OUTSIDE_BITS: u8 = 2;

/// A part as it lies in its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPart {
    /// Where the part, or the reference, starts in the page.
    pub at: usize,
    /// Its length in bytes.
    pub bytes: usize,
    /// Whether the page has a reference to value pages in place of the part.
    pub outside: bool,
}

/// The offsets of the parts of a page, read from its head once per visit.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupLayout {
    rows: usize,
    first_row: u64,
    parts_at: usize,
    flags: u8,
}

impl PageRows for GroupLayout {
    fn of(page: &[u8]) -> Self {
        let head: &[u8; OFFSETS_AT] = page.first_chunk().expect("a validated page has its head");
        let rows = u32_at(head, ROWS_AT) as usize;
        let mut layout = Self { rows, first_row: u64_at(head, ROWS_AT + 8), parts_at: 0, flags: head[ROWS_AT + 4] };
        let bits = if layout.has_outside() { rows.div_ceil(8) } else { 0 };
        layout.parts_at = layout.bits_at() + bits;
        layout
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn first_row(&self) -> u64 {
        self.first_row
    }

    /// Ignores what is seen: only the main tree or the history knows the version of a part.
    fn outside<'p>(&self, page: &'p [u8], i: usize, _: Seen) -> Option<OutsideValue<'p>> {
        let part = self.part(page, i);
        if part.outside { OutsideValue::new(&page[part.at..part.at + part.bytes]) } else { None }
    }
}

impl GroupLayout {
    fn has_outside(&self) -> bool {
        self.flags & OUTSIDE_BITS != 0
    }

    fn offset_bytes(&self) -> usize {
        if self.flags & WIDE_OFFSETS != 0 { 4 } else { 2 }
    }

    fn bits_at(&self) -> usize {
        OFFSETS_AT + (self.rows + 1) * self.offset_bytes()
    }

    fn offset(&self, page: &[u8], i: usize) -> usize {
        let at = OFFSETS_AT + i * self.offset_bytes();
        match self.offset_bytes() {
            4 => u32_at(page, at) as usize,
            _ => usize::from(u16::from_le_bytes([page[at], page[at + 1]])),
        }
    }

    /// Part `i` of the page. It is inlined, because a scan that reads the group calls it for each row.
    #[inline(always)]
    pub fn part(&self, page: &[u8], i: usize) -> StoredPart {
        let (start, end) = (self.offset(page, i), self.offset(page, i + 1));
        StoredPart { at: self.parts_at + start, bytes: end - start, outside: self.is_outside(page, i) }
    }

    /// Whether part `i` of the page is a reference to value pages.
    #[inline(always)]
    pub fn is_outside(&self, page: &[u8], i: usize) -> bool {
        self.has_outside() && page[self.bits_at() + i / 8] >> (i % 8) & 1 != 0
    }
}

/// Checks a page of this layout: bounds, the order of offsets, and that references decode.
///
/// # Errors
///
/// The error says what is wrong with the page.
pub fn validate(page: &[u8]) -> Result<(), String> {
    let Some(head) = page.first_chunk::<OFFSETS_AT>() else {
        return Err(format!("{} bytes are too few for a group page", page.len()));
    };
    let rows = u64::from(u32_at(head, ROWS_AT));
    let flags = head[ROWS_AT + 4];
    if rows == 0 {
        return Err("a group page has no rows".to_owned());
    }
    if flags & !(WIDE_OFFSETS | OUTSIDE_BITS) != 0 || head[ROWS_AT + 5..ROWS_AT + 8] != [0; 3] {
        return Err(format!("unknown flags {flags:#x}"));
    }
    let offset_bytes = if flags & WIDE_OFFSETS != 0 { 4 } else { 2 };
    let bits = if flags & OUTSIDE_BITS != 0 { rows.div_ceil(8) } else { 0 };
    if OFFSETS_AT as u64 + (rows + 1) * offset_bytes + bits > page.len() as u64 {
        return Err(format!("{rows} rows do not fit {} bytes", page.len()));
    }
    let layout = GroupLayout::of(page);
    if layout.first_row.checked_add(rows).is_none() {
        return Err(format!("{rows} rows from row {} are beyond the last row there can be", layout.first_row));
    }
    let room = page.len() - layout.parts_at;
    if layout.offset(page, 0) != 0 || layout.offset(page, layout.rows) != room {
        return Err("parts do not fill the page".to_owned());
    }
    for i in 0..layout.rows {
        let end = layout.offset(page, i + 1);
        if end < layout.offset(page, i) || end > room {
            return Err(format!("part {i} ends at {end}, outside the page or before its start"));
        }
        let StoredPart { at, bytes, outside } = layout.part(page, i);
        if outside {
            OutsideValue::check(&page[at..at + bytes]).map_err(|why| format!("value reference {i} {why}"))?;
        }
    }
    if bits > 0 {
        let stray = page[layout.parts_at - 1] >> ((rows - 1) % 8) >> 1;
        if stray != 0 {
            return Err("bits of rows that are not there".to_owned());
        }
    }
    Ok(())
}

/// Collects the parts of one page.
#[derive(Debug, Default)]
pub struct GroupPageBuilder {
    first_row: u64,
    /// The parts, one after the other, and the end of each part.
    parts: Vec<u8>,
    ends: Vec<usize>,
    outside: Vec<bool>,
    any_outside: bool,
}

impl GroupPageBuilder {
    /// Memory of the open page.
    pub fn memory_bytes(&self) -> usize {
        self.parts.capacity() + self.ends.capacity() * size_of::<usize>() + self.outside.capacity()
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    /// Row id of the next row to be added.
    pub fn next_row(&self) -> u64 {
        self.first_row + self.ends.len() as u64
    }

    /// The length of the page if a part of `bytes` bytes is added.
    pub fn bytes_with(&self, bytes: usize, outside: bool) -> usize {
        Self::parts_at(self.rows() + 1, self.parts.len() + bytes, self.any_outside || outside)
            + self.parts.len()
            + bytes
    }

    fn parts_at(rows: usize, parts_bytes: usize, any_outside: bool) -> usize {
        let offset_bytes = if parts_bytes > usize::from(u16::MAX) { 4 } else { 2 };
        OFFSETS_AT + (rows + 1) * offset_bytes + if any_outside { rows.div_ceil(8) } else { 0 }
    }

    /// Adds the part of the next row.
    pub fn add(&mut self, part: &[u8], outside: bool) {
        self.parts.extend_from_slice(part);
        self.ends.push(self.parts.len());
        self.outside.push(outside);
        self.any_outside |= outside;
    }

    /// Writes the page into `out`, which is cleared first, and starts the next page. The page header stays zero.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let rows = self.rows();
        let wide = self.parts.len() > usize::from(u16::MAX);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        out.clear();
        out.resize(HEADER_BYTES, 0);
        out.extend_from_slice(&(rows as u32).to_le_bytes());
        out.extend_from_slice(&[flag(wide, WIDE_OFFSETS) | flag(self.any_outside, OUTSIDE_BITS), 0, 0, 0]);
        out.extend_from_slice(&self.first_row.to_le_bytes());
        for end in std::iter::once(0).chain(self.ends.iter().copied()) {
            if wide {
                out.extend_from_slice(&(end as u32).to_le_bytes());
            } else {
                out.extend_from_slice(&(end as u16).to_le_bytes());
            }
        }
        if self.any_outside {
            let byte = |bits: &[bool]| bits.iter().enumerate().map(|(bit, &set)| u8::from(set) << bit).sum::<u8>();
            out.extend(self.outside.chunks(8).map(byte));
        }
        debug_assert_eq!(out.len(), Self::parts_at(rows, self.parts.len(), self.any_outside), "as the picture says");
        out.extend_from_slice(&self.parts);
        self.first_row += rows as u64;
        self.parts.clear();
        self.ends.clear();
        self.outside.clear();
        self.any_outside = false;
    }
}

#[cfg(test)]
mod tests;
