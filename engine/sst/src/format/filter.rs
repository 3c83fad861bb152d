//! A filter partition: one page about the keys of some rows of a file. A partition denies nearly every key that
//! these rows do not have. It never denies a key that they have. This module knows no tree.
//!
//! ```text
//!  0  page header                                                           16
//! 16  first row id u64 | rows u32                                           12
//! 28  as the form of the filter has it: [blocks], or in files of release 0.1 [fuse]
//! ```
//!
//! The feature bits of a file say in which form its partitions are. So a look-up does not need the heads of
//! partitions. The hash of a key is fixed for ever; see [`hash_key`].

mod blocks;
mod fuse;

use super::little_endian::{u32_at, u64_at};
use super::page_rows::PageRows;
use fuse::Fingerprints;
use pages::page::HEADER_BYTES;

const FIRST_ROW_AT: usize = HEADER_BYTES;
const ROWS_AT: usize = 24;
const HEAD_BYTES: usize = 28;

/// The largest partition, even in files with larger pages. While a partition is being built, its hashes take five
/// times as much memory.
pub const MAX_PARTITION_BYTES: u32 = 64 << 10;

/// The filter that a file gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FilterKind {
    /// No filter.
    #[default]
    None,
    /// About 12 bits a key. For one in 256 keys that the file does not have, the filter says that the file may
    /// have the key.
    Bits12,
    /// About 20 bits a key. For one in 4,000 keys that the file does not have, the filter says that the file may
    /// have the key.
    Bits20,
}

impl FilterKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::None, Self::Bits12, Self::Bits20];

    /// The number of keys of a block.
    fn block_keys(self) -> usize {
        match self {
            Self::None => usize::MAX,
            Self::Bits12 => 42,
            Self::Bits20 => 25,
        }
    }
}

/// How the partitions of a file deny keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterForm {
    /// By three fingerprints. Files of release 0.1 have this form.
    Fuse,
    /// By eight bits of a block.
    Blocks,
}

impl FilterForm {
    /// Whether a key or prefix with the given hash may be among the rows of `page`, a validated partition. If the
    /// page has another form, the answer means nothing; [`verify`](crate::verify()) reports such a page.
    #[inline]
    pub fn may_contain(self, page: &[u8], hash: u64) -> bool {
        match self {
            Self::Blocks => blocks::may_contain(page, hash),
            Self::Fuse => FilterLayout::of(page).fingerprints.is_none_or(|fuse| fuse.may_contain(page, hash)),
        }
    }
}

const KEY_SEED: u64 = 0xa076_1d64_78bd_642f;
const PREFIX_SEED: u64 = 0xe703_7ed1_a0b4_28db;
const FOLD: u64 = 0x8ebc_6af0_9c88_c6e3;
const LAST: u64 = 0x5899_65cc_7537_4cc3;

/// The hash of a whole key. It is the same on every machine and for ever:
///
/// ```text
/// x = a0761d6478bd642f xor length
/// for each 8 bytes, little-endian, the last filled up with zeros:   x = fold(x xor bytes)
/// hash = fold(x xor 589965cc75374cc3)
/// fold(x) = low half xor high half of x times 8ebc6af09c88c6e3, 128 bits
/// ```
///
/// The folded product and the constants come from Wang Yi's wyhash.
#[inline]
pub fn hash_key(key: &[u8]) -> u64 {
    hash(key, KEY_SEED)
}

/// The hash of a key prefix. It is computed like [`hash_key`], but begins with e7037ed1a0b428db, so it differs from
/// the hash of a key that consists of the same bytes.
pub fn hash_prefix(prefix: &[u8]) -> u64 {
    hash(prefix, PREFIX_SEED)
}

#[inline]
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut x = seed ^ bytes.len() as u64;
    for chunk in chunks {
        x = fold(x ^ u64::from_le_bytes(*chunk));
    }
    if !rest.is_empty() {
        let last = match bytes.last_chunk::<8>() {
            // The last eight bytes of the key, without the bytes that come before `rest`.
            Some(last) => u64::from_le_bytes(*last) >> (64 - 8 * rest.len()),
            None => rest.iter().rev().fold(0, |last, &byte| last << 8 | u64::from(byte)),
        };
        x = fold(x ^ last);
    }
    fold(x ^ LAST)
}

#[inline]
fn fold(x: u64) -> u64 {
    let product = u128::from(x) * u128::from(FOLD);
    product as u64 ^ (product >> 64) as u64
}

/// The head of a partition.
#[derive(Clone, Copy, Debug)]
pub struct FilterLayout {
    first_row: u64,
    rows: u32,
    /// The fingerprints, if the form has them.
    fingerprints: Option<Fingerprints>,
}

impl PageRows for FilterLayout {
    fn of(page: &[u8]) -> Self {
        let fingerprints = (!blocks::is_form_of(page)).then(|| Fingerprints::of(page));
        Self { first_row: u64_at(page, FIRST_ROW_AT), rows: u32_at(page, ROWS_AT), fingerprints }
    }

    fn rows(&self) -> usize {
        self.rows as usize
    }

    fn first_row(&self) -> u64 {
        self.first_row
    }
}

impl FilterLayout {
    /// The form of the page.
    pub fn form(&self) -> FilterForm {
        if self.fingerprints.is_some() { FilterForm::Fuse } else { FilterForm::Blocks }
    }

    /// Describes for people what `page` is made of. `self` must be the head of `page`.
    pub fn shape(&self, page: &[u8]) -> String {
        match self.fingerprints {
            Some(fingerprints) => fingerprints.to_string(),
            None => format!("{} blocks", blocks::count(page)),
        }
    }
}

/// Checks a partition. After this check, a look-up of any hash reads only within the partition.
///
/// # Errors
///
/// The error says what is wrong with the page.
pub fn validate(page: &[u8]) -> Result<(), String> {
    if blocks::is_form_of(page) { blocks::validate(page) } else { fuse::validate(page) }?;
    let (first_row, rows) = (u64_at(page, FIRST_ROW_AT), u32_at(page, ROWS_AT));
    if rows == 0 || first_row.checked_add(rows.into()).is_none() {
        return Err(format!("a filter of {rows} rows from {first_row}"));
    }
    Ok(())
}

/// How many rows a partition of at most `page_bytes` bytes has; at least one.
///
/// # Panics
///
/// If `kind` is [`FilterKind::None`].
pub fn partition_rows(kind: FilterKind, page_bytes: u32) -> u32 {
    assert!(kind != FilterKind::None, "a file without a filter has no partitions");
    let room = (page_bytes.min(MAX_PARTITION_BYTES) as usize).saturating_sub(blocks::BLOCKS_AT);
    (room / blocks::BLOCK_BYTES * kind.block_keys()).max(1) as u32
}

/// Writes the partition of `rows` rows from `first_row` on into `out`, which is cleared first. The page header
/// stays zero. `hashes` are the hashes of the rows' keys and prefixes, in any order.
pub fn build(kind: FilterKind, (first_row, rows): (u64, u32), hashes: &[u64], out: &mut Vec<u8>) {
    out.clear();
    out.resize(HEADER_BYTES, 0);
    out.extend_from_slice(&first_row.to_le_bytes());
    out.extend_from_slice(&rows.to_le_bytes());
    debug_assert_eq!(out.len(), HEAD_BYTES, "the picture and the code agree");
    blocks::append(hashes.len().div_ceil(kind.block_keys()).max(1), hashes, out);
}

#[cfg(test)]
mod tests;
