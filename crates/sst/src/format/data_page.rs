//! A data page: rows in key order. History and range-erase pages have the same layout with other keys. It does not know
//! what keys and values mean.
//!
//! ```text
//!  0  page header                                                            16
//! 16  rows u32 | prefix bytes u16 | flags u8 | zero u8                        8
//! 24  base version u64                                                        8
//! 32  first row id u64                                                        8
//! 40  heads     u32 x rows        next four key bytes after the prefix
//!     offsets   u16 x (rows + 1)  starts of the records and the end of the last; u32 where flag 1 is set
//!     prefix    common to all keys of the page
//!     records
//!
//! record:  tag u8 | key suffix bytes varint | version delta varint? | key tail | value
//! tag:     bits 0-1 kind, 2 value lies outside, 3 older versions are in the history, 4 version is the base version
//! ```
//!
//! The key suffix is what follows the prefix; its first four bytes are in the head, the tail is the rest. The value
//! runs to the next record. A value that lies outside is a reference, see [`OutsideValue`].

use super::key::{self, Suffix};
use super::little_endian::{u32_at, u64_at};
use super::outside_value::OutsideValue;
use super::page_rows::{PageRows, Seen};
use super::varint;
use crate::row::{MAX_KEY_BYTES, RowKind, Version};
use os::memory::prefetch;
use pages::page::HEADER_BYTES;

const ROWS_AT: usize = HEADER_BYTES;
const HEADS_AT: usize = HEADER_BYTES + 24;

const WIDE_OFFSETS: u8 = 1;

/// The most of a record that is asked for ahead. The processor finds out by itself about the rest of a long value.
const MAX_PREFETCH_BYTES: usize = 256;

const TAG_KIND: u8 = 0b11;
const TAG_OUTSIDE: u8 = 1 << 2;
const TAG_HISTORY: u8 = 1 << 3;
const TAG_BASE_VERSION: u8 = 1 << 4;
const TAG_UNKNOWN: u8 = !(TAG_KIND | TAG_OUTSIDE | TAG_HISTORY | TAG_BASE_VERSION);

/// A row as it lies in its page, without its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRecord {
    /// Commit that wrote it.
    pub version: Version,
    /// What it says about the key.
    pub kind: RowKind,
    /// Whether the value is a reference to value pages.
    pub outside: bool,
    /// Whether older versions are in the history.
    pub has_history: bool,
    /// Where the value, or the reference, starts in the page.
    pub value_at: usize,
    /// Its length in bytes.
    pub value_bytes: usize,
}

/// Offsets of the parts of a page, read from its head once per visit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    rows: usize,
    prefix_bytes: usize,
    offsets_at: usize,
    prefix_at: usize,
    records_at: usize,
    wide: bool,
    base_version: u64,
    first_row: u64,
}

impl PageRows for Layout {
    #[inline]
    fn of(page: &[u8]) -> Self {
        let head: &[u8; HEADS_AT] = page.first_chunk().expect("a validated page has its head");
        let rows = u32_at(head, ROWS_AT) as usize;
        let wide = head[ROWS_AT + 6] & WIDE_OFFSETS != 0;
        let prefix_bytes = usize::from(u16::from_le_bytes([head[ROWS_AT + 4], head[ROWS_AT + 5]]));
        let offsets_at = HEADS_AT + rows * 4;
        let prefix_at = offsets_at + (rows + 1) * if wide { 4 } else { 2 };
        Self {
            rows,
            prefix_bytes,
            offsets_at,
            prefix_at,
            records_at: prefix_at + prefix_bytes,
            wide,
            base_version: u64_at(head, ROWS_AT + 8),
            first_row: u64_at(head, ROWS_AT + 16),
        }
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn first_row(&self) -> u64 {
        self.first_row
    }

    fn outside<'p>(&self, page: &'p [u8], i: usize, seen: Seen) -> Option<OutsideValue<'p>> {
        let record = self.record(page, i);
        if !record.outside {
            return None;
        }
        let is_seen = match seen {
            Seen::All => true,
            Seen::At(at) => record.version <= at,
            Seen::NewestAt(at) => record.version <= at && (i == 0 || !self.is_older_version(page, i, at)),
        };
        if is_seen { OutsideValue::new(&page[record.value_at..record.value_at + record.value_bytes]) } else { None }
    }
}

impl Layout {
    /// Whether the history row before row `i` is of the same main row, and not newer than `at`.
    fn is_older_version(&self, page: &[u8], i: usize, at: Version) -> bool {
        let main_row = |i: usize| {
            let mut row = [0; 8];
            self.copy_key(page, i, &mut row);
            row
        };
        self.record(page, i - 1).version <= at && main_row(i - 1) == main_row(i)
    }

    /// Bytes common to all keys.
    pub fn prefix<'p>(&self, page: &'p [u8]) -> &'p [u8] {
        &page[self.prefix_at..self.prefix_at + self.prefix_bytes]
    }

    fn heads<'p>(&self, page: &'p [u8]) -> &'p [[u8; 4]] {
        page[HEADS_AT..self.offsets_at].as_chunks().0
    }

    #[inline]
    fn offset(&self, page: &[u8], i: usize) -> usize {
        if self.wide {
            u32_at(page, self.offsets_at + i * 4) as usize
        } else {
            let at = self.offsets_at + i * 2;
            usize::from(u16::from_le_bytes([page[at], page[at + 1]]))
        }
    }

    /// Where record `i` starts and where it ends.
    #[inline]
    fn ends(&self, page: &[u8], i: usize) -> (usize, usize) {
        if self.wide {
            return (self.offset(page, i), self.offset(page, i + 1));
        }
        // Both lie together and are read as one number.
        let both = u32_at(page, self.offsets_at + i * 2);
        ((both & 0xffff) as usize, (both >> 16) as usize)
    }

    #[inline]
    fn record_bytes<'p>(&self, page: &'p [u8], i: usize) -> &'p [u8] {
        let (start, end) = self.ends(page, i);
        &page[self.records_at + start..self.records_at + end]
    }

    /// Splits record `i`: key suffix and the rest. It is part of its callers, because a scan spends half of its time here.
    #[inline(always)]
    fn decode<'p>(&self, page: &'p [u8], i: usize) -> Option<(Suffix<'p>, RowRecord)> {
        let (start, end) = self.ends(page, i);
        let bytes = &page[self.records_at + start..self.records_at + end];
        let (&tag, mut rest) = bytes.split_first()?;
        let suffix_bytes = varint::take(&mut rest)?;
        let delta = if tag & TAG_BASE_VERSION != 0 { 0 } else { varint::take(&mut rest)? };
        let head_bytes = suffix_bytes.min(key::HEAD_BYTES as u64) as u8;
        let (tail, value) = rest.split_at_checked(usize::try_from(suffix_bytes).ok()? - usize::from(head_bytes))?;
        let suffix = Suffix { head: u32_at(page, HEADS_AT + i * 4), head_bytes, tail };
        let record = RowRecord {
            version: Version(self.base_version.wrapping_add(delta)),
            kind: RowKind::from_u8(tag & TAG_KIND)?,
            outside: tag & TAG_OUTSIDE != 0,
            has_history: tag & TAG_HISTORY != 0,
            value_at: self.records_at + end - value.len(),
            value_bytes: value.len(),
        };
        Some((suffix, record))
    }

    /// Row `i` without its key.
    #[inline]
    pub fn record(&self, page: &[u8], i: usize) -> RowRecord {
        self.decode(page, i).expect("a validated record decodes").1
    }

    /// Key suffix of row `i`: what a search looks at, and nothing else.
    #[inline]
    pub fn suffix<'p>(&self, page: &'p [u8], i: usize) -> Suffix<'p> {
        self.suffix_at(page, i).expect("a validated record decodes")
    }

    #[inline]
    fn suffix_at<'p>(&self, page: &'p [u8], i: usize) -> Option<Suffix<'p>> {
        let (&tag, mut rest) = page.get(self.records_at + self.offset(page, i)..)?.split_first()?;
        let suffix_bytes = usize::try_from(varint::take(&mut rest)?).ok()?;
        if tag & TAG_BASE_VERSION == 0 {
            varint::take(&mut rest)?;
        }
        let head_bytes = suffix_bytes.min(key::HEAD_BYTES);
        let tail = rest.get(..suffix_bytes - head_bytes)?;
        Some(Suffix { head: u32_at(page, HEADS_AT + i * 4), head_bytes: head_bytes as u8, tail })
    }

    /// Replaces `key` with the whole key of row `i` and returns the rest of the row.
    #[inline]
    pub fn read_row(&self, page: &[u8], i: usize, key: &mut Vec<u8>) -> RowRecord {
        let (suffix, record) = self.decode(page, i).expect("a validated record decodes");
        key.clear();
        key.reserve(self.prefix_bytes + key::HEAD_BYTES + suffix.tail.len());
        key.extend_from_slice(self.prefix(page));
        suffix.append_to(key);
        record
    }

    /// Reads row `i` as [`Layout::read_row`] does, into a `key` that begins with the prefix of the page already.
    #[inline]
    pub fn read_after_prefix(&self, page: &[u8], i: usize, key: &mut Vec<u8>) -> RowRecord {
        let (suffix, record) = self.decode(page, i).expect("a validated record decodes");
        key.truncate(self.prefix_bytes);
        suffix.append_to(key);
        record
    }

    /// Copies the key of row `i` into `key`, whose length it should have; a shorter key is padded with zeros, a longer
    /// one cut.
    pub fn copy_key(&self, page: &[u8], i: usize, key: &mut [u8]) {
        let suffix = self.suffix(page, i);
        let head = suffix.head.to_be_bytes();
        let bytes = self.prefix(page).iter().chain(&head[..usize::from(suffix.head_bytes)]).chain(suffix.tail);
        for (to, from) in key.iter_mut().zip(bytes.chain(std::iter::repeat(&0))) {
            *to = *from;
        }
    }

    /// What the versions of the records are counted from.
    pub fn base_version(&self) -> u64 {
        self.base_version
    }

    /// How many of the rows are erases; `None` if a row has older versions in the history, or its value outside the page.
    pub fn erased_alone(&self, page: &[u8]) -> Option<u64> {
        let mut erased = 0;
        for i in 0..self.rows {
            let tag = page[self.records_at + self.offset(page, i)];
            if tag & (TAG_HISTORY | TAG_OUTSIDE) != 0 {
                return None;
            }
            erased += u64::from(tag & TAG_KIND == RowKind::Erase as u8);
        }
        Some(erased)
    }

    /// Replaces the base version of `page`, and the id of its first row.
    pub fn rebase(page: &mut [u8], base_version: u64, first_row: u64) {
        page[ROWS_AT + 8..ROWS_AT + 16].copy_from_slice(&base_version.to_le_bytes());
        page[ROWS_AT + 16..ROWS_AT + 24].copy_from_slice(&first_row.to_le_bytes());
    }

    /// Asks the memory for the record of row `i`, whose key is compared now and whose value is read after that.
    #[inline]
    fn prefetch_record(&self, page: &[u8], i: usize) {
        let (start, end) = (self.offset(page, i), self.offset(page, i + 1));
        prefetch(page.as_ptr().addr() + self.records_at + start, (end - start).min(MAX_PREFETCH_BYTES));
    }

    /// Asks the memory for the record of the row that has the head of `key`, if one has.
    pub fn prefetch(&self, page: &[u8], key: &[u8]) {
        let Ok(suffix) = key::strip_prefix(key, page, self.prefix_at..self.records_at) else { return };
        let (low, high) = key::equal_heads(self.heads(page), suffix.head);
        if low < high {
            self.prefetch_record(page, low);
        }
    }

    /// Position of `key`: `Ok(i)` if row `i` has this key, else `Err(i)` with the first row whose key is greater.
    #[inline]
    pub fn search(&self, page: &[u8], key: &[u8]) -> Result<usize, usize> {
        let suffix = match key::strip_prefix(key, page, self.prefix_at..self.records_at) {
            Ok(suffix) => suffix,
            Err(std::cmp::Ordering::Less) => return Err(0),
            Err(_) => return Err(self.rows),
        };
        let (mut low, mut high) = key::equal_heads(self.heads(page), suffix.head);
        if high - low == 1 {
            self.prefetch_record(page, low);
            if self.suffix(page, low).is(&suffix) {
                return Ok(low);
            }
        }
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.suffix(page, middle).cmp(&suffix) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }
}

/// Checks a page of this layout: bounds, order of offsets and of keys, records that decode.
///
/// # Errors
///
/// What is wrong with the page.
pub fn validate(page: &[u8]) -> Result<(), String> {
    let Some(head) = page.first_chunk::<HEADS_AT>() else {
        return Err(format!("{} bytes are too few for a data page", page.len()));
    };
    let rows = u64::from(u32_at(head, ROWS_AT));
    let flags = head[ROWS_AT + 6];
    if rows == 0 {
        return Err("a data page has no rows".to_owned());
    }
    if flags & !WIDE_OFFSETS != 0 || head[ROWS_AT + 7] != 0 {
        return Err(format!("unknown flags {flags:#x}"));
    }
    let offset_bytes = if flags & WIDE_OFFSETS != 0 { 4 } else { 2 };
    let prefix_bytes = u64::from(u16::from_le_bytes([head[ROWS_AT + 4], head[ROWS_AT + 5]]));
    if HEADS_AT as u64 + rows * 4 + (rows + 1) * offset_bytes + prefix_bytes > page.len() as u64 {
        return Err(format!("{rows} rows do not fit {} bytes", page.len()));
    }
    let layout = Layout::of(page);
    if layout.first_row.checked_add(rows).is_none() {
        return Err(format!("{rows} rows from row {} are beyond the last row there can be", layout.first_row));
    }
    if layout.wide {
        let offsets: &[[u8; 4]] = page[layout.offsets_at..layout.prefix_at].as_chunks().0;
        layout.validate_rows(page, offsets, |offset| u32::from_le_bytes(offset) as usize)
    } else {
        let offsets: &[[u8; 2]] = page[layout.offsets_at..layout.prefix_at].as_chunks().0;
        layout.validate_rows(page, offsets, |offset| usize::from(u16::from_le_bytes(offset)))
    }
}

impl Layout {
    /// Checks the rows, one after the other. A page is checked whenever it was read, so what nearly all rows are is
    /// seen at a glance: a short key whose head is greater than the one before, and a value in the page.
    #[inline]
    fn validate_rows<const N: usize>(
        &self,
        page: &[u8],
        offsets: &[[u8; N]],
        offset: impl Fn([u8; N]) -> usize,
    ) -> Result<(), String> {
        let (heads, records) = (self.heads(page), &page[self.records_at..]);
        let is_short = self.prefix_bytes + PLAIN_SUFFIX_BYTES <= MAX_KEY_BYTES;
        let ends = offsets.split_first().filter(|(first, ends)| offset(**first) == 0 && ends.len() == heads.len());
        let Some((_, ends)) = ends.filter(|(_, ends)| ends.last().is_some_and(|end| offset(*end) == records.len()))
        else {
            return Err("records do not fill the page".to_owned());
        };
        let (mut start, mut head) = (0, None);
        for (i, (next, end)) in heads.iter().zip(ends).enumerate() {
            let (next, end) = (u32::from_le_bytes(*next), offset(*end));
            let Some(record) = records.get(start..end).filter(|record| !record.is_empty()) else {
                return Err(format!("record {i} ends at {end}, outside the page or before its start"));
            };
            if !(is_short && head.is_none_or(|head| head < next) && is_plain(record, next)) {
                self.validate_row(page, i)?;
            }
            (start, head) = (end, Some(next));
        }
        Ok(())
    }

    /// Checks row `i`, and that it comes after the one before it, whose record decodes.
    #[inline(never)]
    fn validate_row(&self, page: &[u8], i: usize) -> Result<(), String> {
        let tag = self.record_bytes(page, i)[0];
        let Some((suffix, record)) = self.decode(page, i).filter(|_| tag & TAG_UNKNOWN == 0) else {
            return Err(format!("record {i} does not decode"));
        };
        let key_bytes = self.prefix_bytes + usize::from(suffix.head_bytes) + suffix.tail.len();
        if key_bytes > MAX_KEY_BYTES {
            return Err(format!("key {i} has {key_bytes} bytes"));
        }
        let head = suffix.head.to_be_bytes();
        if head[usize::from(suffix.head_bytes)..].iter().any(|&byte| byte != 0) {
            return Err(format!("head {i} holds bytes its key does not have"));
        }
        if i > 0 && self.suffix(page, i - 1) >= suffix {
            return Err(format!("key {i} is not greater than the one before it"));
        }
        if record.outside {
            OutsideValue::check(&page[record.value_at..record.value_at + record.value_bytes])
                .map_err(|why| format!("value reference {i} {why}"))?;
        }
        Ok(())
    }
}

/// Longest key suffix of a plain record: its length takes one byte.
const PLAIN_SUFFIX_BYTES: usize = 0x7f;

/// Whether a record with this head is one that needs no further look: of a known kind and near the base version, its
/// value within, and its key no longer than a plain one.
#[inline]
fn is_plain(record: &[u8], head: u32) -> bool {
    let [tag, suffix_bytes, rest @ ..] = record else { return false };
    let rest = match rest {
        _ if tag & TAG_BASE_VERSION != 0 => rest,
        [0..0x80, rest @ ..] | [_, 0..0x80, rest @ ..] | [_, _, 0..0x80, rest @ ..] | [_, _, _, 0..0x80, rest @ ..] => {
            rest
        }
        _ => return false,
    };
    let suffix_bytes = usize::from(*suffix_bytes);
    let beyond_key = u32::MAX.checked_shr(8 * suffix_bytes as u32).unwrap_or(0);
    tag & (TAG_UNKNOWN | TAG_OUTSIDE) == 0
        && tag & TAG_KIND <= RowKind::Merge as u8
        && suffix_bytes <= PLAIN_SUFFIX_BYTES
        && suffix_bytes.saturating_sub(key::HEAD_BYTES) <= rest.len()
        && head & beyond_key == 0
}

/// Collects the rows of one page.
#[derive(Debug, Default)]
pub struct DataPageBuilder {
    rows: Vec<PendingRow>,
    /// Keys and values, back to back.
    arena: Vec<u8>,
    /// Ends of the records of a page that is being written; kept for its memory.
    ends: Vec<u32>,
    first_row: u64,
    base_version: u64,
    top_version: u64,
    key_bytes: usize,
    value_bytes: usize,
    longest_key: usize,
    shortest_key: usize,
}

#[derive(Debug, Clone, Copy)]
struct PendingRow {
    key_at: usize,
    value_at: usize,
    end: usize,
    version: u64,
    tag: u8,
}

impl DataPageBuilder {
    /// Memory of the open page.
    pub fn memory_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<PendingRow>() + self.arena.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    /// A page whose first row has id `first_row`.
    pub fn new(first_row: u64) -> Self {
        Self { first_row, base_version: u64::MAX, shortest_key: usize::MAX, ..Self::default() }
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Row id of the next row to be added.
    pub fn next_row(&self) -> u64 {
        self.first_row + self.rows.len() as u64
    }

    /// Counts rows of a page that was written without this builder, while it has none itself.
    pub fn skip_rows(&mut self, rows: u64) {
        assert!(self.rows.is_empty(), "the page before is closed");
        self.first_row += rows;
    }

    fn key(&self, i: usize) -> &[u8] {
        &self.arena[self.rows[i].key_at..self.rows[i].value_at]
    }

    /// Key of the last row.
    pub fn last_key(&self) -> Option<&[u8]> {
        self.rows.len().checked_sub(1).map(|last| self.key(last))
    }

    /// Key of the first row.
    pub fn first_key(&self) -> Option<&[u8]> {
        (!self.rows.is_empty()).then(|| self.key(0))
    }

    /// Adds a row with a key greater than all before it.
    pub fn add(&mut self, key: &[u8], version: Version, kind: RowKind, outside: bool, value: &[u8]) {
        let key_at = self.arena.len();
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(value);
        let tag = kind as u8 | if outside { TAG_OUTSIDE } else { 0 };
        self.rows.push(PendingRow {
            key_at,
            value_at: key_at + key.len(),
            end: self.arena.len(),
            version: version.0,
            tag,
        });
        self.base_version = self.base_version.min(version.0);
        self.top_version = self.top_version.max(version.0);
        self.key_bytes += key.len();
        self.value_bytes += value.len();
        self.longest_key = self.longest_key.max(key.len());
        self.shortest_key = self.shortest_key.min(key.len());
    }

    /// Notes that the last row has older versions in the history.
    pub fn mark_history(&mut self) {
        self.rows.last_mut().expect("an older version follows its newest").tag |= TAG_HISTORY;
    }

    /// Length of the page, or a little more, if a row with this key and value were added.
    pub fn bytes_with(&self, key: &[u8], version: Version, value_bytes: usize) -> usize {
        let rows = self.rows.len() + 1;
        let prefix = self.first_key().map_or(key.len(), |first| key::common_prefix(first, key)).min(u16::MAX.into());
        let shortest = self.shortest_key.min(key.len());
        let in_heads = if shortest >= prefix + key::HEAD_BYTES { key::HEAD_BYTES } else { 0 };
        let suffix_len = varint::encoded_len((self.longest_key.max(key.len()) - prefix) as u64);
        let low = self.base_version.min(version.0);
        let top = self.top_version.max(version.0);
        let version_bytes = if low == top { 0 } else { varint::encoded_len(top - low) };
        let records = rows * (1 + suffix_len + version_bytes)
            + (self.key_bytes + key.len() - rows * (prefix + in_heads))
            + (self.value_bytes + value_bytes);
        let offset_bytes = if records > usize::from(u16::MAX) { 4 } else { 2 };
        HEADS_AT + rows * 4 + (rows + 1) * offset_bytes + prefix + records
    }

    /// Writes the page into `out` (cleared first; the page header stays zero) and starts the next one.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let rows = self.rows.len();
        assert!(rows > 0, "a page has at least one row");
        let prefix = key::common_prefix(self.key(0), self.key(rows - 1)).min(u16::MAX.into());
        // Ends of the records first: the last one decides the width of the offsets.
        self.ends.clear();
        let mut total = 0;
        for row in &self.rows {
            let suffix = row.value_at - row.key_at - prefix;
            let delta = row.version - self.base_version;
            total += 1
                + varint::encoded_len(suffix as u64)
                + if delta == 0 { 0 } else { varint::encoded_len(delta) }
                + suffix.saturating_sub(key::HEAD_BYTES)
                + (row.end - row.value_at);
            self.ends.push(total as u32);
        }
        let wide = total > usize::from(u16::MAX);

        out.clear();
        out.reserve(HEADS_AT + rows * 4 + (rows + 1) * 4 + prefix + total);
        out.resize(HEADER_BYTES, 0);
        out.extend_from_slice(&(rows as u32).to_le_bytes());
        out.extend_from_slice(&(prefix as u16).to_le_bytes());
        out.extend_from_slice(&[if wide { WIDE_OFFSETS } else { 0 }, 0]);
        out.extend_from_slice(&self.base_version.to_le_bytes());
        out.extend_from_slice(&self.first_row.to_le_bytes());
        debug_assert_eq!(out.len(), HEADS_AT, "the picture and the code agree");
        out.resize(HEADS_AT + rows * 4 + (rows + 1) * if wide { 4 } else { 2 }, 0);
        let (heads, offsets) = out[HEADS_AT..].split_at_mut(rows * 4);
        for (slot, row) in heads.as_chunks_mut::<4>().0.iter_mut().zip(&self.rows) {
            *slot = Suffix::new(&self.arena[row.key_at + prefix..row.value_at]).head.to_le_bytes();
        }
        // The first record starts at 0.
        if wide {
            let ends = offsets.as_chunks_mut::<4>().0.iter_mut().skip(1);
            ends.zip(&self.ends).for_each(|(slot, end)| *slot = end.to_le_bytes());
        } else {
            let ends = offsets.as_chunks_mut::<2>().0.iter_mut().skip(1);
            ends.zip(&self.ends).for_each(|(slot, end)| *slot = (*end as u16).to_le_bytes());
        }
        out.extend_from_slice(&self.arena[self.rows[0].key_at..self.rows[0].key_at + prefix]);
        for row in &self.rows {
            let suffix_at = row.key_at + prefix;
            let delta = row.version - self.base_version;
            out.push(row.tag | if delta == 0 { TAG_BASE_VERSION } else { 0 });
            varint::put(out, (row.value_at - suffix_at) as u64);
            if delta != 0 {
                varint::put(out, delta);
            }
            // The tail of the key and the value lie together.
            out.extend_from_slice(&self.arena[(suffix_at + key::HEAD_BYTES).min(row.value_at)..row.end]);
        }

        self.first_row += rows as u64;
        self.rows.clear();
        self.arena.clear();
        self.base_version = u64::MAX;
        self.top_version = 0;
        (self.key_bytes, self.value_bytes, self.longest_key, self.shortest_key) = (0, 0, 0, usize::MAX);
    }
}

#[cfg(test)]
mod tests;
