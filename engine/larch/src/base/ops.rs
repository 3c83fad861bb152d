//! Encodes the operations of one commit. Those of a batch have the same bytes in memory and in the log; a single one
//! is encoded when it is written to the log. This module knows no versions, knows tables only by their ids, and
//! compares keys as bytes.
//!
//! ```text
//! batch:  op | op | …
//! op:     kind u8 | table u32 | key bytes varint | key | value bytes varint | until u64? | value
//!
//! kind             key       value
//! 0 put            key       value
//! 1 erase          key       (both value fields are absent)
//! 2 merge          key       an operand of one step, see `operand`
//! 3 range erase    start     exclusive end; empty: no end
//! 4 put until      key       value, with the time until which the row is there before it
//! ```
//!
//! A varint has seven bits in each byte, low bits first; all bytes but the last have the high bit set. It has at
//! most five bytes.
//!
//! Invariant: the bytes of a [`BatchOps`] always decode, because bytes from a file are checked before the batch
//! takes them. The order of ops matters: if two ops write the same key, the later one wins, and a range erase hides
//! earlier ops in its range.
//!
//! All ops of a batch get the same version, and at equal versions a put wins over a range erase. So
//! [`BatchOps::resolve`] removes the puts that a later range erase hides.

use super::{operand, parts};
use sst::format::varint;
use sst::{MAX_KEY_BYTES, Until};
use std::collections::BTreeMap;
use std::ops::{Bound, Range};

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// Gives the key this value.
    Put {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
        /// The time until which the row is there; `None` if it does not expire.
        until: Option<Until>,
    },
    /// Changes the value of the key by an [operand](super::operand) of one step.
    Merge {
        /// The key.
        key: &'a [u8],
        /// The operand.
        operand: &'a [u8],
    },
    /// Removes the value of the key.
    Erase {
        /// The key.
        key: &'a [u8],
    },
    /// Removes the values of all keys in the range.
    RangeErase {
        /// The first key of the range.
        start: &'a [u8],
        /// The end of the range, exclusive. If it is empty, the range has no end.
        end: &'a [u8],
    },
}

const PUT: u8 = 0;
const ERASE: u8 = 1;
const MERGE: u8 = 2;
const RANGE_ERASE: u8 = 3;
const PUT_UNTIL: u8 = 4;

/// Bytes do not decode as ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the op at byte {at} of the batch {why}")]
pub struct OpsError {
    /// Where the bad op starts.
    pub at: usize,
    /// What is wrong with this op.
    pub why: &'static str,
}

/// The ops of one commit, in order: those of a batch, or a single op that is in no batch. It is encoded only when it
/// is written to the log.
#[derive(Clone, Copy, Debug)]
pub enum CommitOps<'a> {
    /// A single op on the table with this id.
    One(u32, Op<'a>),
    /// The ops of a batch.
    Batch(&'a BatchOps),
}

/// The ops of a batch, in order.
#[derive(Clone, Debug, Default)]
pub struct BatchOps {
    bytes: Vec<u8>,
    count: u32,
    /// How many of the ops are range erases.
    range_erases: u32,
    /// Whether a range erase was appended after other ops, and `resolve` has not run since.
    is_unresolved: bool,
    /// Whether a merge was appended since the batch was empty.
    has_merges: bool,
}

/// A position between two ops of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BatchMark {
    bytes: usize,
    count: u32,
    range_erases: u32,
    is_unresolved: bool,
}

impl BatchMark {
    /// The number of ops before this position.
    pub fn count(&self) -> u32 {
        self.count
    }
}

impl<'a> Op<'a> {
    /// The key of the op, or `None` for a range erase.
    pub fn key(self) -> Option<&'a [u8]> {
        match self {
            Self::Put { key, .. } | Self::Merge { key, .. } | Self::Erase { key } => Some(key),
            Self::RangeErase { .. } => None,
        }
    }

    /// The number of bytes that the op has in the log.
    fn encoded_bytes(self) -> usize {
        let of = |bytes: &[u8]| encoded_length::<MAX_LENGTH_BYTES>(bytes.len()).1 + bytes.len();
        let fields = match self {
            Self::Put { key, value, until } => of(key) + of(value) + if until.is_some() { Until::BYTES } else { 0 },
            Self::Merge { key, operand } => of(key) + of(operand),
            Self::Erase { key } => of(key),
            Self::RangeErase { start, end } => of(start) + of(end),
        };
        size_of::<u8>() + size_of::<u32>() + fields
    }

    /// Whether the op writes `key`: puts or changes it, or erases it alone or in a range.
    pub fn writes_to(&self, key: &[u8]) -> bool {
        match *self {
            Self::Put { key: written, .. } | Self::Merge { key: written, .. } | Self::Erase { key: written } => {
                written == key
            }
            Self::RangeErase { start, end } => start <= key && (end.is_empty() || key < end),
        }
    }
}

impl<'a> From<&'a BatchOps> for CommitOps<'a> {
    fn from(ops: &'a BatchOps) -> Self {
        Self::Batch(ops)
    }
}

impl<'a> CommitOps<'a> {
    /// The number of ops.
    pub fn count(self) -> u32 {
        match self {
            Self::One(..) => 1,
            Self::Batch(ops) => ops.count(),
        }
    }

    /// The number of bytes that the ops have in the log.
    pub fn encoded_bytes(self) -> usize {
        match self {
            Self::One(_, op) => op.encoded_bytes(),
            Self::Batch(ops) => ops.bytes.len(),
        }
    }

    /// Whether no op is a put or a merge.
    pub fn is_erases_only(self) -> bool {
        match self {
            Self::One(_, op) => !matches!(op, Op::Put { .. } | Op::Merge { .. }),
            Self::Batch(ops) => ops.is_erases_only(),
        }
    }

    /// Whether some op may be a merge. Such a commit is applied after all commits before it.
    #[inline]
    pub fn has_merges(self) -> bool {
        match self {
            Self::One(_, op) => matches!(op, Op::Merge { .. }),
            Self::Batch(ops) => ops.has_merges,
        }
    }

    /// Whether applying all ops at a single version has the same effect as applying them one after the other, see
    /// [`BatchOps::is_resolved`].
    pub fn is_resolved(self) -> bool {
        match self {
            Self::One(..) => true,
            Self::Batch(ops) => ops.is_resolved(),
        }
    }

    /// The ops in order, each with its table.
    pub fn iter(self) -> impl Iterator<Item = (u32, Op<'a>)> {
        let (one, batch) = match self {
            Self::One(table, op) => (Some((table, op)), None),
            Self::Batch(ops) => (None, Some(ops)),
        };
        one.into_iter().chain(batch.into_iter().flatten())
    }

    /// Calls `take` for each op in order, with its table.
    #[inline]
    pub fn for_each(self, mut take: impl FnMut(u32, Op<'a>)) {
        match self {
            Self::One(table, op) => take(table, op),
            Self::Batch(ops) => ops.iter().for_each(|(table, op)| take(table, op)),
        }
    }
}

/// A single op as it is in the log, in parts that need not be copied.
///
/// ```text
/// kind u8 | table u32 | key bytes varint │ key │ value bytes varint │ value        of a range erase: its start and end
/// ```
#[derive(Debug)]
pub struct EncodedOp<'a> {
    head: ([u8; MAX_HEAD_BYTES], usize),
    key: &'a [u8],
    /// Nothing, if the op is an erase. The time of a row with a time comes after the length.
    length: ([u8; MAX_LENGTH_BYTES + Until::BYTES], usize),
    rest: &'a [u8],
}

impl<'a> EncodedOp<'a> {
    /// Encodes an op on the table with this id.
    #[inline]
    pub fn new(table: u32, op: Op<'a>) -> Self {
        let (kind, key, rest) = match op {
            Op::Put { key, value, until: None } => (PUT, key, value),
            Op::Put { key, value, until: Some(_) } => (PUT_UNTIL, key, value),
            Op::Merge { key, operand } => (MERGE, key, operand),
            Op::Erase { key } => (ERASE, key, &[][..]),
            Op::RangeErase { start, end } => (RANGE_ERASE, start, end),
        };
        let mut length = match kind {
            ERASE => ([0; _], 0),
            _ => encoded_length(rest.len()),
        };
        if let Op::Put { until: Some(until), .. } = op {
            length.0[length.1..][..Until::BYTES].copy_from_slice(&until.to_bytes());
            length.1 += Until::BYTES;
        }
        Self { head: encoded_head(kind, table, key.len()), key, length, rest }
    }

    /// The parts of the encoded op, one after the other.
    #[inline]
    pub fn parts(&self) -> [&[u8]; 4] {
        [&self.head.0[..self.head.1], self.key, &self.length.0[..self.length.1], self.rest]
    }
}

/// The most bytes of an encoded length.
const MAX_LENGTH_BYTES: usize = 5;

/// The most bytes of an op before its key: kind, table and the length of the key.
const MAX_HEAD_BYTES: usize = 1 + 4 + MAX_LENGTH_BYTES;

/// Encodes what is before a key of `key_bytes` bytes. Returns the bytes and how many they are.
#[inline]
fn encoded_head(kind: u8, table: u32, key_bytes: usize) -> ([u8; MAX_HEAD_BYTES], usize) {
    let mut head = [0; MAX_HEAD_BYTES];
    head[0] = kind;
    head[1..5].copy_from_slice(&table.to_le_bytes());
    let (length, length_bytes) = encoded_length::<MAX_LENGTH_BYTES>(key_bytes);
    head[5..].copy_from_slice(&length);
    (head, 5 + length_bytes)
}

/// Encodes the length of a key, a value or a range end. Returns the bytes and how many they are.
#[inline]
fn encoded_length<const N: usize>(length: usize) -> ([u8; N], usize) {
    const { assert!(N >= MAX_LENGTH_BYTES, "every length has room") }
    let mut left = u32::try_from(length).expect("the caller bounds keys and values well below 4 GiB");
    let (mut bytes, mut count) = ([0; N], 1);
    while left >= 0x80 {
        bytes[count - 1] = left as u8 | 0x80;
        left >>= 7;
        count += 1;
    }
    bytes[count - 1] = left as u8;
    (bytes, count)
}

impl BatchOps {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the ops of this batch with the `count` ops encoded in `bytes`, after checking them. The batch keeps
    /// its memory, so a reader that decodes many batches allocates only once. After an error the batch is empty.
    ///
    /// # Errors
    ///
    /// Returns where and why `bytes` do not decode.
    pub fn decode(&mut self, bytes: &[u8], count: u32) -> Result<(), OpsError> {
        self.clear();
        let (mut found, mut range_erases, mut has_merges) = (0u32, 0, false);
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let (_, op) = split_op(&mut rest).map_err(|why| OpsError { at, why })?;
            found += 1;
            range_erases += u32::from(op.key().is_none());
            has_merges |= matches!(op, Op::Merge { .. });
        }
        if found != count {
            return Err(OpsError { at: bytes.len(), why: "is missing or too many: the count of ops does not match" });
        }
        self.bytes.extend_from_slice(bytes);
        (self.count, self.range_erases, self.has_merges) = (count, range_erases, has_merges);
        Ok(())
    }

    /// Appends a put.
    pub fn put(&mut self, table: u32, key: &[u8], value: &[u8]) {
        self.begin(PUT, table, key, value.len());
        self.push_bytes(value);
    }

    /// Appends a put of a row that is there until `until`, if there is such a time.
    pub fn put_until(&mut self, table: u32, key: &[u8], value: &[u8], until: Option<Until>) {
        let Some(until) = until else { return self.put(table, key, value) };
        self.begin(PUT_UNTIL, table, key, Until::BYTES + value.len());
        self.push_length(value.len());
        self.bytes.extend_from_slice(&until.to_bytes());
        self.bytes.extend_from_slice(value);
    }

    /// Appends `op`.
    pub fn push(&mut self, table: u32, op: Op<'_>) {
        match op {
            Op::Put { key, value, until } => self.put_until(table, key, value, until),
            Op::Merge { key, operand } => self.merge(table, key, operand),
            Op::Erase { key } => self.erase(table, key),
            Op::RangeErase { start, end } => self.range_erase(table, start, end),
        }
    }

    /// Appends a put whose value is given in parts, which [`parts::encode`] joins.
    pub fn put_parts(&mut self, table: u32, key: &[u8], parts: &[impl AsRef<[u8]>]) {
        self.put_parts_until(table, key, parts, None);
    }

    /// As [`BatchOps::put_parts`], of a row that is there until `until`, if there is such a time.
    pub fn put_parts_until(&mut self, table: u32, key: &[u8], parts: &[impl AsRef<[u8]>], until: Option<Until>) {
        let bytes = parts::encoded_bytes(parts);
        match until {
            None => self.begin(PUT, table, key, bytes),
            Some(_) => self.begin(PUT_UNTIL, table, key, Until::BYTES + bytes),
        }
        self.push_length(bytes);
        self.bytes.extend(until.iter().flat_map(|until| until.to_bytes()));
        parts::encode(parts, &mut self.bytes);
    }

    /// Appends a merge by `operand`, which must be [valid](super::operand::is_valid).
    pub fn merge(&mut self, table: u32, key: &[u8], operand: &[u8]) {
        self.has_merges = true;
        self.begin(MERGE, table, key, operand.len());
        self.push_bytes(operand);
    }

    /// Appends an erase.
    pub fn erase(&mut self, table: u32, key: &[u8]) {
        self.begin(ERASE, table, key, 0);
    }

    /// Appends a range erase of the keys in `start..end`. If `end` is empty, it erases all keys from `start` on.
    pub fn range_erase(&mut self, table: u32, start: &[u8], end: &[u8]) {
        self.is_unresolved |= self.count > 0;
        self.range_erases += 1;
        self.begin(RANGE_ERASE, table, start, end.len());
        self.push_bytes(end);
    }

    /// Begins an op whose value or range end has `more_bytes`. Reserves memory for the whole op, so a batch of one
    /// op allocates once.
    fn begin(&mut self, kind: u8, table: u32, key: &[u8], more_bytes: usize) {
        self.bytes.reserve(MAX_HEAD_BYTES + key.len() + MAX_LENGTH_BYTES + more_bytes);
        self.count = self.count.checked_add(1).expect("a batch that fits in memory has fewer than 2^32 ops");
        let (head, bytes) = encoded_head(kind, table, key.len());
        self.bytes.extend_from_slice(&head[..bytes]);
        self.bytes.extend_from_slice(key);
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        self.push_length(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    fn push_length(&mut self, length: usize) {
        let (bytes, count) = encoded_length::<MAX_LENGTH_BYTES>(length);
        self.bytes.extend_from_slice(&bytes[..count]);
    }

    /// Appends the ops of `other`.
    pub fn append(&mut self, other: &Self) {
        self.is_unresolved |= other.is_unresolved || self.count > 0 && other.range_erases > 0;
        self.range_erases += other.range_erases;
        self.has_merges |= other.has_merges;
        self.count = self.count.checked_add(other.count).expect("batches that fit in memory have fewer than 2^32 ops");
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// Whether no op is a put or a merge.
    pub fn is_erases_only(&self) -> bool {
        self.iter().all(|(_, op)| !matches!(op, Op::Put { .. } | Op::Merge { .. }))
    }

    /// The ops of the batch in order, each with its table.
    pub fn iter(&self) -> Ops<'_> {
        Ops { rest: &self.bytes, left: self.count }
    }

    /// The ops after `mark`, in order, each with its table.
    pub fn iter_from(&self, mark: &BatchMark) -> Ops<'_> {
        Ops { rest: &self.bytes[mark.bytes..], left: self.count - mark.count }
    }

    /// The position after the last op.
    pub fn mark(&self) -> BatchMark {
        BatchMark {
            bytes: self.bytes.len(),
            count: self.count,
            range_erases: self.range_erases,
            is_unresolved: self.is_unresolved,
        }
    }

    /// The position after the first `count` ops.
    pub fn mark_after(&self, count: u32) -> BatchMark {
        let (mut ops, mut is_unresolved, mut range_erases) = (self.iter(), false, 0);
        for number in 0..count {
            let is_range = ops.next().is_some_and(|(_, op)| op.key().is_none());
            range_erases += u32::from(is_range);
            is_unresolved |= is_range && number > 0;
        }
        BatchMark { bytes: self.bytes.len() - ops.rest.len(), count, range_erases, is_unresolved }
    }

    /// Removes all ops after `mark`. [`Self::resolve`] must not have changed the batch since `mark` was taken.
    pub fn rewind(&mut self, mark: &BatchMark) {
        self.bytes.truncate(mark.bytes);
        (self.count, self.range_erases, self.is_unresolved) = (mark.count, mark.range_erases, mark.is_unresolved);
    }

    /// Whether some op may be a merge.
    pub fn has_merges(&self) -> bool {
        self.has_merges
    }

    /// The number of ops.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// How many of the ops are range erases.
    pub fn range_erases(&self) -> u32 {
        self.range_erases
    }

    /// Whether the batch has no ops.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The encoded ops.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all ops. Keeps the memory for later ops.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.range_erases = 0;
        self.is_unresolved = false;
        self.has_merges = false;
    }

    /// Whether applying all ops at a single version has the same effect as applying them one after the other. It
    /// has, unless a range erase hides an earlier op.
    pub fn is_resolved(&self) -> bool {
        !self.is_unresolved
    }

    /// Removes the puts and erases that a later range erase hides, and returns the other ops. Removes nothing if no
    /// range erase came after other ops.
    pub fn resolve(&mut self) -> CommitOps<'_> {
        self.remove_hidden();
        CommitOps::Batch(self)
    }

    fn remove_hidden(&mut self) {
        if !self.is_unresolved {
            return;
        }
        let visible = visible_ops(&self.bytes);
        let mut end = 0;
        self.count = visible.len() as u32;
        for place in visible {
            let length = place.len();
            self.bytes.copy_within(place, end);
            end += length;
        }
        self.bytes.truncate(end);
        self.is_unresolved = false;
    }
}

impl<'a> IntoIterator for &'a BatchOps {
    type Item = (u32, Op<'a>);
    type IntoIter = Ops<'a>;

    fn into_iter(self) -> Ops<'a> {
        self.iter()
    }
}

/// Iterates over the ops of a batch in order, each with its table.
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Iterator for Ops<'a> {
    type Item = (u32, Op<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        self.left -= 1;
        Some(split_op(&mut self.rest).expect("a batch holds only bytes that it wrote or checked"))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Ops<'_> {}

/// The byte ranges of the ops that no later range erase hides. Visits the ops from the last to the first, and
/// collects the ranges of range erases on the way.
fn visible_ops(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let start = bytes.len() - rest.len();
        let op = split_op(&mut rest).expect("a batch holds only bytes that it wrote or checked");
        places.push((start..bytes.len() - rest.len(), op));
    }
    let mut erased = Spans::default();
    let mut visible: Vec<Range<usize>> = Vec::with_capacity(places.len());
    for (place, (table, op)) in places.into_iter().rev() {
        let is_visible = match op {
            Op::Put { key, .. } | Op::Merge { key, .. } | Op::Erase { key } => !erased.contains(table, key),
            Op::RangeErase { start, end } => {
                erased.insert(table, start, end);
                true
            }
        };
        if is_visible {
            visible.push(place);
        }
    }
    visible.reverse();
    visible
}

/// A union of disjoint key ranges: maps the start of each range to its end. An empty end means the end of the table.
#[derive(Default)]
struct Spans<'a>(BTreeMap<(u32, &'a [u8]), &'a [u8]>);

impl<'a> Spans<'a> {
    fn contains(&self, table: u32, key: &[u8]) -> bool {
        let at_or_before = (Bound::Included((table, [].as_slice())), Bound::Included((table, key)));
        let span = self.0.range(at_or_before).next_back();
        span.is_some_and(|(_, end)| end.is_empty() || key < *end)
    }

    fn insert(&mut self, table: u32, start: &'a [u8], end: &'a [u8]) {
        if !end.is_empty() && start >= end {
            return;
        }
        let (mut start, mut end) = (start, end);
        // Join the new span with a span before it that reaches its start, and with all spans that start inside it.
        let before = self.0.range((table, [].as_slice())..=(table, start)).next_back();
        if let Some((&(_, before_start), &before_end)) = before
            && (before_end.is_empty() || start <= before_end)
        {
            start = before_start;
            end = later_end(end, before_end);
        }
        while let Some((&inside, &inside_end)) = self.0.range((table, start)..).next()
            && inside.0 == table
            && (end.is_empty() || inside.1 <= end)
        {
            end = later_end(end, inside_end);
            self.0.remove(&inside);
        }
        self.0.insert((table, start), end);
    }
}

/// The later of two range ends.
fn later_end<'a>(a: &'a [u8], b: &'a [u8]) -> &'a [u8] {
    if a.is_empty() || b.is_empty() { &[] } else { a.max(b) }
}

/// Takes the first op off `rest`, or returns what is wrong with the bytes.
fn split_op<'a>(rest: &mut &'a [u8]) -> Result<(u32, Op<'a>), &'static str> {
    let (&[kind, a, b, c, d], after) = rest.split_first_chunk().ok_or("ends within its kind and table")?;
    *rest = after;
    let table = u32::from_le_bytes([a, b, c, d]);
    let key = split_bytes(rest).ok_or("has a key that ends after the batch")?;
    let op = match kind {
        PUT | MERGE | ERASE if key.len() > MAX_KEY_BYTES => return Err("has a key that is too long"),
        PUT => Op::Put { key, value: split_bytes(rest).ok_or("has a value that ends after the batch")?, until: None },
        PUT_UNTIL if key.len() > MAX_KEY_BYTES => return Err("has a key that is too long"),
        PUT_UNTIL => {
            let (value, until) = split_until(rest)?;
            Op::Put { key, value, until: Some(until) }
        }
        ERASE => Op::Erase { key },
        RANGE_ERASE => {
            Op::RangeErase { start: key, end: split_bytes(rest).ok_or("has a range end that ends after the batch")? }
        }
        MERGE => {
            let operand = split_bytes(rest).ok_or("has an operand that ends after the batch")?;
            if !operand::is_valid(operand) {
                return Err("has an operand that does not decode, or that only a newer release can read");
            }
            Op::Merge { key, operand }
        }
        _ => return Err("has an unknown kind"),
    };
    Ok((table, op))
}

/// Takes a length-prefixed string of bytes off `rest`. Returns `None` if it does not decode.
fn split_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut length = 0u64;
    for shift in [0, 7, 14, 21, 28] {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        length |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let (bytes, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            *rest = after;
            return Some(bytes);
        }
    }
    None
}

/// Takes a value with a time off `rest`: its length, the time, and its bytes.
#[cold]
fn split_until<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], Until), &'static str> {
    let too_short = "has a value that ends after the batch";
    let length = varint::take(rest).filter(|length| *length <= u32::MAX.into()).ok_or(too_short)?;
    let (time, after) = rest.split_first_chunk().ok_or(too_short)?;
    let until = Until::of_bytes(*time).ok_or("has a time of 0")?;
    let (value, after) = after.split_at_checked(length as usize).ok_or(too_short)?;
    *rest = after;
    Ok((value, until))
}

#[cfg(test)]
mod tests;
