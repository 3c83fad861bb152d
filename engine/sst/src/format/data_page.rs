//! A data page: rows in key order. Pages of the history and of range erases have the same layout, but other keys.
//! This module does not know what keys and values mean.
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
//! record:  tag u8 | key suffix bytes varint | version delta varint? | key tail | until u64? | value
//! tag:     bits 0-1 kind, 2 value lies outside, 3 older versions are in the history, 4 version is the base version
//! ```
//!
//! The key suffix is what follows the prefix in the key. The head has the first four bytes of the key suffix, and the
//! tail has the rest. Only a row of the kind "put until" has a time, see [`Until`]. The value ends where the next
//! record begins. If the value lies outside the page, the record has a reference in its place; see [`OutsideValue`].

use super::key::{self, Suffix};
use super::little_endian::{u32_at, u64_at};
use super::outside_value::OutsideValue;
use super::page_rows::{PageRows, Seen};
use super::varint;
use crate::row::{MAX_KEY_BYTES, RowKind, Until, Version};
use os::memory::prefetch;
use pages::page::HEADER_BYTES;

const ROWS_AT: usize = HEADER_BYTES;
const HEADS_AT: usize = HEADER_BYTES + 24;

const WIDE_OFFSETS: u8 = 1;

/// The most bytes of a record that are prefetched. The processor fetches the rest of a long value by itself.
const MAX_PREFETCH_BYTES: usize = 256;

const TAG_KIND: u8 = 0b11;
const TAG_OUTSIDE: u8 = 1 << 2;
const TAG_HISTORY: u8 = 1 << 3;
const TAG_BASE_VERSION: u8 = 1 << 4;
const TAG_UNKNOWN: u8 = !(TAG_KIND | TAG_OUTSIDE | TAG_HISTORY | TAG_BASE_VERSION);

/// A row as it lies in its page, without its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRecord {
    /// The commit that wrote the row.
    pub version: Version,
    /// What the row says about the key.
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

impl RowRecord {
    /// The time until which the row of this record in `page` is there; `None` if it has no time.
    #[inline]
    pub fn until(&self, page: &[u8]) -> Option<Until> {
        if self.kind == RowKind::PutUntil { Until::before(page, self.value_at) } else { None }
    }
}

/// The offsets of the parts of a page, read from its head once per visit.
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

/// The place in a page at which the search for a key begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadGuess<'k> {
    /// The part of the key after the prefix of the page.
    suffix: Suffix<'k>,
    /// The first of the neighbouring heads among which the key's head is guessed to be; `None` for no guess.
    start: Option<usize>,
}

/// What the heads of a page say about a key.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadMatch<'k> {
    /// The part of the key after the prefix of the page, if the key begins with that prefix.
    suffix: Suffix<'k>,
    /// The rows from `low` to `high` have the same head as the key. All earlier rows have lesser keys, and all
    /// later rows have greater keys.
    low: usize,
    high: usize,
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
    /// Whether the history row before row `i` belongs to the same main row and is not newer than `at`.
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

    #[inline]
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

    /// Where record `i` starts, and where it ends.
    #[inline]
    fn ends(&self, page: &[u8], i: usize) -> (usize, usize) {
        if self.wide {
            return (self.offset(page, i), self.offset(page, i + 1));
        }
        // The two offsets are next to each other, and are read as one number.
        let both = u32_at(page, self.offsets_at + i * 2);
        ((both & 0xffff) as usize, (both >> 16) as usize)
    }

    #[inline]
    fn record_bytes<'p>(&self, page: &'p [u8], i: usize) -> &'p [u8] {
        let (start, end) = self.ends(page, i);
        &page[self.records_at + start..self.records_at + end]
    }

    /// Splits record `i` into the key suffix and the rest. It is inlined, because a scan spends half of its time
    /// here.
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
        let kind = RowKind::from_u8(tag & TAG_KIND)?;
        let value = if kind == RowKind::PutUntil { after_until(value)? } else { value };
        let record = RowRecord {
            version: Version(self.base_version.wrapping_add(delta)),
            kind,
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

    /// The key suffix of row `i`. A search reads only this.
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

    /// Reads row `i` as [`Layout::read_row`] does. `key` must already begin with the prefix of the page.
    #[inline(always)]
    pub fn read_after_prefix(&self, page: &[u8], i: usize, key: &mut Vec<u8>) -> RowRecord {
        let (suffix, record) = self.decode(page, i).expect("a validated record decodes");
        key.truncate(self.prefix_bytes);
        suffix.append_to(key);
        record
    }

    /// Reads the key of row `i` into `key`, which must already begin with the prefix of the page.
    #[inline]
    pub fn read_key_after_prefix(&self, page: &[u8], i: usize, key: &mut Vec<u8>) {
        key.truncate(self.prefix_bytes);
        self.suffix(page, i).append_to(key);
    }

    /// Copies the key of row `i` into `key`. The two should have the same length. If the key of the row is shorter,
    /// zeros are appended. If it is longer, it is cut.
    pub fn copy_key(&self, page: &[u8], i: usize, key: &mut [u8]) {
        let suffix = self.suffix(page, i);
        let head = suffix.head.to_be_bytes();
        let bytes = self.prefix(page).iter().chain(&head[..usize::from(suffix.head_bytes)]).chain(suffix.tail);
        for (to, from) in key.iter_mut().zip(bytes.chain(std::iter::repeat(&0))) {
            *to = *from;
        }
    }

    /// The base version, from which the versions of the records are counted.
    pub fn base_version(&self) -> u64 {
        self.base_version
    }

    /// How many of the rows are erases; `None` if some row has older versions in the history, a value outside the
    /// page, or a time until which it is there, or is a merge.
    pub fn erased_alone(&self, page: &[u8]) -> Option<u64> {
        let mut erased = 0;
        for i in 0..self.rows {
            let tag = page[self.records_at + self.offset(page, i)];
            // The kinds of merges and of rows with times have this bit, and no other kind has.
            const { assert!(RowKind::Merge as u8 == 2 && RowKind::PutUntil as u8 == 3 && RowKind::Erase as u8 == 1) };
            if tag & (TAG_HISTORY | TAG_OUTSIDE | RowKind::Merge as u8) != 0 {
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

    /// Prefetches the record of row `i`, whose key is compared first and whose value is read after that.
    #[inline]
    fn prefetch_record(&self, page: &[u8], i: usize) {
        let (start, end) = self.ends(page, i);
        prefetch(page.as_ptr().addr() + self.records_at + start, (end - start).min(MAX_PREFETCH_BYTES));
    }

    /// The position of `key`: `Ok(i)` if row `i` has this key. If no row has the key, the result is `Err(i)`,
    /// where `i` is the first row whose key is greater.
    #[inline]
    pub fn search(&self, page: &[u8], key: &[u8]) -> Result<usize, usize> {
        self.search_among(page, &self.match_heads(page, key))
    }

    /// The part of [`Layout::search`] that reads the heads. It prefetches the record of the first row with the same
    /// head as `key`.
    #[inline(always)]
    pub fn match_heads<'k>(&self, page: &[u8], key: &'k [u8]) -> HeadMatch<'k> {
        let suffix = match key::strip_prefix(key, page, self.prefix_at..self.records_at) {
            Ok(suffix) => suffix,
            Err(std::cmp::Ordering::Less) => return HeadMatch::default(),
            Err(_) => return HeadMatch { low: self.rows, high: self.rows, ..HeadMatch::default() },
        };
        let (low, high) = key::equal_heads(self.heads(page), suffix.head);
        if low < high {
            self.prefetch_record(page, low);
        }
        HeadMatch { suffix, low, high }
    }

    /// Prefetches what [`Layout::guess_heads`] reads.
    #[inline(always)]
    pub fn prefetch_ends(&self, page: &[u8]) {
        let page = page.as_ptr().addr();
        prefetch(page + self.offsets_at - key::HEAD_BYTES, key::HEAD_BYTES);
        prefetch(page + self.prefix_at, self.prefix_bytes.max(1));
    }

    /// The first half of [`Layout::match_heads`], which touches few cache lines if keys are spread evenly. It
    /// prefetches the heads and offsets among which the key is guessed to be, or without a guess, the first heads.
    /// If the answer is already known, it is returned as `Err`.
    #[inline(always)]
    pub fn guess_heads<'k>(&self, page: &[u8], key: &'k [u8]) -> Result<HeadGuess<'k>, HeadMatch<'k>> {
        let suffix = match key::strip_prefix(key, page, self.prefix_at..self.records_at) {
            Ok(suffix) => suffix,
            Err(std::cmp::Ordering::Less) => return Err(HeadMatch::default()),
            Err(_) => return Err(HeadMatch { low: self.rows, high: self.rows, ..HeadMatch::default() }),
        };
        let start = key::guess(self.heads(page), suffix.head);
        let at = page.as_ptr().addr();
        match start {
            Some(start) => {
                let offset_bytes = if self.wide { 4 } else { 2 };
                prefetch(at + HEADS_AT + start * key::HEAD_BYTES, key::GUESSED * key::HEAD_BYTES);
                prefetch(at + self.offsets_at + start * offset_bytes, key::GUESSED * offset_bytes);
            }
            None => prefetch(at + HEADS_AT, (self.offsets_at - HEADS_AT).min(MAX_PREFETCH_BYTES)),
        }
        Ok(HeadGuess { suffix, start })
    }

    /// The second half of [`Layout::match_heads`], after a guess.
    #[inline(always)]
    pub fn match_guessed<'k>(&self, page: &[u8], guess: &HeadGuess<'k>) -> HeadMatch<'k> {
        let HeadGuess { suffix, start } = *guess;
        let heads = self.heads(page);
        let guessed = start.and_then(|start| key::equal_heads_guessed(heads, start, suffix.head));
        let (low, high) = guessed.unwrap_or_else(|| key::equal_heads(heads, suffix.head));
        if low < high {
            self.prefetch_record(page, low);
        }
        HeadMatch { suffix, low, high }
    }

    /// The row that has the key. `None` if it does not exist, or if `heads` leave several rows that may have the
    /// key.
    #[inline(always)]
    pub fn lone_match(&self, page: &[u8], heads: &HeadMatch<'_>) -> Option<(usize, RowRecord)> {
        if heads.high - heads.low != 1 {
            return None;
        }
        let (suffix, record) = self.decode(page, heads.low).expect("a validated record decodes");
        suffix.is(&heads.suffix).then_some((heads.low, record))
    }

    /// The part of [`Layout::search`] that reads records.
    #[inline(always)]
    pub fn search_among(&self, page: &[u8], heads: &HeadMatch<'_>) -> Result<usize, usize> {
        let HeadMatch { suffix, mut low, mut high } = *heads;
        if high - low == 1 && self.suffix(page, low).is(&suffix) {
            return Ok(low);
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

/// Checks a page of this layout: bounds, the order of offsets and of keys, and that records decode.
///
/// # Errors
///
/// The error says what is wrong with the page.
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
    /// Checks the rows, one after the other. A page is checked each time it is read. So the check must be fast for
    /// the usual row. Such a row has a short key, a head that is greater than the head of the row before, and a
    /// value in the page.
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

    /// Checks row `i`, and that it comes after the row before it. The record of that row decodes.
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

/// The longest key suffix of a plain record, whose length then takes one byte.
const PLAIN_SUFFIX_BYTES: usize = 0x7f;

/// Whether a record with the given head needs no further check: its kind is known, its version is near the base
/// version, its value lies within the page, and its key suffix is short.
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

/// What comes after the time of a row; `None` if there is no time.
#[cold]
fn after_until(bytes: &[u8]) -> Option<&[u8]> {
    let (until, value) = bytes.split_first_chunk()?;
    Until::of_bytes(*until)?;
    Some(value)
}

/// Collects the rows of one page.
#[derive(Debug, Default)]
pub struct DataPageBuilder {
    rows: Vec<PendingRow>,
    /// Keys and values, one after the other.
    arena: Vec<u8>,
    first_row: u64,
    base_version: u64,
    top_version: u64,
    key_bytes: usize,
    value_bytes: usize,
    longest_key: usize,
    shortest_key: usize,
}

/// Where a row lies in the arena.
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
        self.rows.capacity() * size_of::<PendingRow>() + self.arena.capacity()
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

    /// Skips the ids of `rows` rows, which are in a page that was written without this builder. The open page must
    /// be empty.
    pub fn skip_rows(&mut self, rows: u64) {
        assert!(self.rows.is_empty(), "the page before is closed");
        self.first_row += rows;
    }

    fn key(&self, i: usize) -> &[u8] {
        self.rows[i].key(&self.arena)
    }

    /// Key of the last row.
    pub fn last_key(&self) -> Option<&[u8]> {
        self.rows.len().checked_sub(1).map(|last| self.key(last))
    }

    /// Key of the first row.
    pub fn first_key(&self) -> Option<&[u8]> {
        (!self.rows.is_empty()).then(|| self.key(0))
    }

    /// Adds a row. Its key must be greater than all keys before it.
    #[inline]
    pub fn add(&mut self, key: &[u8], version: Version, kind: RowKind, outside: bool, value: &[u8]) {
        debug_assert!(kind != RowKind::PutUntil, "such a row has a time");
        let key_at = self.arena.len();
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(value);
        self.add_bytes(key_at, key, version, kind, outside);
    }

    /// Adds a put that is there until `until`. Its key must be greater than all keys before it. In the calculation of
    /// lengths, the time counts as a part of the value.
    pub fn add_until(&mut self, key: &[u8], version: Version, until: Until, outside: bool, value: &[u8]) {
        let key_at = self.arena.len();
        self.arena.extend_from_slice(key);
        self.arena.extend_from_slice(&until.to_bytes());
        self.arena.extend_from_slice(value);
        self.add_bytes(key_at, key, version, RowKind::PutUntil, outside);
    }

    /// Adds the row whose bytes lie in the arena from `key_at` on.
    #[inline(always)]
    fn add_bytes(&mut self, key_at: usize, key: &[u8], version: Version, kind: RowKind, outside: bool) {
        let tag = kind as u8 | if outside { TAG_OUTSIDE } else { 0 };
        let (value_at, end) = (key_at + key.len(), self.arena.len());
        self.rows.push(PendingRow { key_at, value_at, end, version: version.0, tag });
        self.base_version = self.base_version.min(version.0);
        self.top_version = self.top_version.max(version.0);
        self.key_bytes += key.len();
        self.value_bytes += end - value_at;
        self.longest_key = self.longest_key.max(key.len());
        self.shortest_key = self.shortest_key.min(key.len());
    }

    /// Removes the last row, so that its key can be added again with another value. Returns the number of bytes of
    /// its key and value.
    pub fn take_back(&mut self) -> usize {
        let row = self.rows.pop().expect("a row was added");
        self.arena.truncate(row.key_at);
        self.key_bytes -= row.value_at - row.key_at;
        self.value_bytes -= row.end - row.value_at;
        row.end - row.key_at
    }

    /// Notes that the last row has older versions in the history.
    pub fn mark_history(&mut self) {
        self.rows.last_mut().expect("an older version follows its newest").tag |= TAG_HISTORY;
    }

    /// Whether the page stays within `limit` bytes if a row with the given key and value is added. It may also
    /// return false if the page would be only a little shorter than `limit`.
    #[inline]
    pub fn fits(&self, key: &[u8], version: Version, value_bytes: usize, limit: usize) -> bool {
        let records = self.records_with(key, version, value_bytes);
        // Most rows would fit even if the keys had no common prefix. This is checked first, because finding the
        // prefix takes time.
        Self::page_bytes(self.rows.len() + 1, records, 4) <= limit
            || self.bytes_with(key, version, value_bytes) <= limit
    }

    /// The length that the page has if a row with the given key and value is added, or a little more.
    #[inline(never)]
    pub fn bytes_with(&self, key: &[u8], version: Version, value_bytes: usize) -> usize {
        let rows = self.rows.len() + 1;
        let prefix = self.first_key().map_or(key.len(), |first| key::common_prefix(first, key)).min(u16::MAX.into());
        // The keys are in order. So if the first and the last key begin with the prefix, all keys do.
        let in_heads = (self.shortest_key.min(key.len()) - prefix).min(key::HEAD_BYTES);
        let longest = self.longest_key.max(key.len());
        let shorter = varint::encoded_len(longest as u64) - varint::encoded_len((longest - prefix) as u64);
        let records = self.records_with(key, version, value_bytes) - rows * (prefix + in_heads + shorter);
        prefix + Self::page_bytes(rows, records, if records > usize::from(u16::MAX) { 4 } else { 2 })
    }

    /// The length that all records would have with this row, if the keys had no common prefix and no heads.
    #[inline]
    fn records_with(&self, key: &[u8], version: Version, value_bytes: usize) -> usize {
        let suffix_len = varint::encoded_len(self.longest_key.max(key.len()) as u64);
        let low = self.base_version.min(version.0);
        let top = self.top_version.max(version.0);
        let version_bytes = if low == top { 0 } else { varint::encoded_len(top - low) };
        (self.rows.len() + 1) * (1 + suffix_len + version_bytes)
            + (self.key_bytes + key.len())
            + (self.value_bytes + value_bytes)
    }

    /// Length in bytes of a page with `rows` rows and no prefix. The records take `records` bytes, and each offset
    /// takes `offset_bytes`.
    fn page_bytes(rows: usize, records: usize, offset_bytes: usize) -> usize {
        HEADS_AT + rows * 4 + (rows + 1) * offset_bytes + records
    }

    /// Replaces `out` with the page, and starts the next page. The page header is written as zeros.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let rows = self.rows.len();
        assert!(rows > 0, "a page has at least one row");
        let prefix = key::common_prefix(self.key(0), self.key(rows - 1)).min(u16::MAX.into());
        // The most bytes that the records can take. The exact length takes time to compute. It is needed only if
        // `most` does not fit narrow offsets.
        let lengths = 1 + varint::encoded_len(self.longest_key as u64) + self.version_bytes();
        let most = self.key_bytes - rows * prefix + self.value_bytes + rows * lengths;
        let is_wide = |bytes: usize| bytes > usize::from(u16::MAX);
        let wide = is_wide(most) && is_wide(self.rows.iter().map(|row| self.record_bytes(row, prefix)).sum());
        let records_at = prefix + Self::page_bytes(rows, 0, if wide { 4 } else { 2 });
        // Every byte up to the end of the last record is written below.
        out.resize(records_at + most, 0);
        let (head, records) = out.split_at_mut(records_at);
        head[..HEADER_BYTES].fill(0);
        head[HEADER_BYTES..][..4].copy_from_slice(&(rows as u32).to_le_bytes());
        head[HEADER_BYTES + 4..][..2].copy_from_slice(&(prefix as u16).to_le_bytes());
        head[HEADER_BYTES + 6..][..2].copy_from_slice(&[if wide { WIDE_OFFSETS } else { 0 }, 0]);
        head[HEADER_BYTES + 8..][..8].copy_from_slice(&self.base_version.to_le_bytes());
        head[HEADER_BYTES + 16..][..8].copy_from_slice(&self.first_row.to_le_bytes());
        const { assert!(HEADER_BYTES + 24 == HEADS_AT, "the picture and the code agree") }
        let (head, common) = head.split_at_mut(records_at - prefix);
        common.copy_from_slice(&self.key(0)[..prefix]);
        let (heads, offsets) = head[HEADS_AT..].split_at_mut(rows * 4);
        let heads = heads.as_chunks_mut().0;
        let records_bytes = if wide {
            self.write_rows::<4>(prefix, heads, offsets.as_chunks_mut().0, records)
        } else {
            self.write_rows::<2>(prefix, heads, offsets.as_chunks_mut().0, records)
        };
        out.truncate(records_at + records_bytes);

        self.first_row += rows as u64;
        self.rows.clear();
        self.arena.clear();
        self.base_version = u64::MAX;
        self.top_version = 0;
        (self.key_bytes, self.value_bytes, self.longest_key, self.shortest_key) = (0, 0, 0, usize::MAX);
    }

    /// The most bytes that a version takes in a record.
    fn version_bytes(&self) -> usize {
        match self.top_version - self.base_version {
            0 => 0,
            delta => varint::encoded_len(delta),
        }
    }

    /// Length of the record of a row.
    fn record_bytes(&self, row: &PendingRow, prefix: usize) -> usize {
        let suffix = row.key(&self.arena).len() - prefix;
        let delta = row.version - self.base_version;
        let version_bytes = if delta == 0 { 0 } else { varint::encoded_len(delta) };
        let rest = row.tail_and_value(&self.arena, prefix).len();
        1 + varint::encoded_len(suffix as u64) + version_bytes + rest
    }

    /// Writes heads, offsets of `N` bytes, and records. Returns the length of the records.
    fn write_rows<const N: usize>(
        &self,
        prefix: usize,
        heads: &mut [[u8; 4]],
        offsets: &mut [[u8; N]],
        records: &mut [u8],
    ) -> usize {
        let offset = |at: usize| *(at as u64).to_le_bytes().first_chunk().expect("an offset is shorter than a word");
        // The first record starts at 0.
        let (first, ends) = offsets.split_first_mut().expect("there is one more than rows");
        *first = offset(0);
        let mut at = 0;
        for ((row, head), end) in self.rows.iter().zip(heads).zip(ends) {
            let suffix = &row.key(&self.arena)[prefix..];
            *head = Suffix::new(suffix).head.to_le_bytes();
            let rest = row.tail_and_value(&self.arena, prefix);
            let delta = row.version - self.base_version;
            let record = &mut records[at..];
            let front = if suffix.len() < 0x80 && delta == 0 {
                record[..2].copy_from_slice(&[row.tag | TAG_BASE_VERSION, suffix.len() as u8]);
                2
            } else {
                record[0] = row.tag | if delta == 0 { TAG_BASE_VERSION } else { 0 };
                let after_suffix = 1 + varint::write(&mut record[1..], suffix.len() as u64);
                after_suffix + if delta == 0 { 0 } else { varint::write(&mut record[after_suffix..], delta) }
            };
            record[front..][..rest.len()].copy_from_slice(rest);
            at += front + rest.len();
            *end = offset(at);
        }
        at
    }
}

impl PendingRow {
    fn key<'a>(&self, arena: &'a [u8]) -> &'a [u8] {
        &arena[self.key_at..self.value_at]
    }

    /// The tail of the key and the value, which lies directly behind it. The key begins with a prefix of `prefix`
    /// bytes, then comes its head, and then its tail.
    fn tail_and_value<'a>(&self, arena: &'a [u8], prefix: usize) -> &'a [u8] {
        &arena[(self.key_at + prefix + key::HEAD_BYTES).min(self.value_at)..self.end]
    }
}

#[cfg(test)]
mod tests;
