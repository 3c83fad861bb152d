//! The form of partitions that is written: a split block Bloom filter (Putze, Sanders and Singler, "Cache-, Hash-
//! and Space-Efficient Bloom Filters", 2007; Parquet has such a filter with blocks of half the size).
//!
//! ```text
//! 28  blocks u32
//! 32  zero u8 x 10 | form u8: 1 | zero u8 x 21
//! 64  blocks   (word u64 x 8) x blocks
//! ```
//!
//! A hash belongs to one block, and has one bit in each word of the block:
//!
//! ```text
//! block       (hash x blocks) >> 64
//! bit in word i   (hash >> 6 i) and 63
//! ```
//!
//! A key is denied if one of its eight bits is not set. Blocks begin at multiples of 64 bytes, so a look-up touches
//! one cache line. The number of blocks follows from the length of the page, so a look-up does not need the head.

use super::super::little_endian::u32_at;

/// Bytes of a block: one cache line.
pub(super) const BLOCK_BYTES: usize = 64;
/// Where blocks begin.
pub(super) const BLOCKS_AT: usize = 64;

const COUNT_AT: usize = 28;
const FORM_AT: usize = 42;
/// Marks a page of this form. A page of fingerprints has a zero at this place.
const FORM: u8 = 1;

/// The number of words of a block, which is also the number of bits that a hash sets.
const WORDS: usize = 8;

/// Whether the head of a page says that the page is of this form. The page must be long enough for a head.
#[inline]
pub(super) fn is_form_of(page: &[u8]) -> bool {
    page.get(FORM_AT) == Some(&FORM)
}

/// The blocks of a page.
#[inline]
fn blocks(page: &[u8]) -> &[[u8; BLOCK_BYTES]] {
    page.get(BLOCKS_AT..).unwrap_or_default().as_chunks().0
}

/// The number of blocks in the page.
pub(super) fn count(page: &[u8]) -> usize {
    blocks(page).len()
}

#[inline]
fn block_of(hash: u64, blocks: usize) -> usize {
    ((u128::from(hash) * blocks as u128) >> 64) as usize
}

/// The bit of `hash` in word `i`.
#[inline]
fn bit_of(hash: u64, i: usize) -> u64 {
    hash >> (6 * i) & 63
}

/// Whether a key or prefix with the given hash may be among the rows. The function accepts any page. A page
/// without blocks denies nothing.
#[inline]
pub(super) fn may_contain(page: &[u8], hash: u64) -> bool {
    let blocks = blocks(page);
    let Some(block) = blocks.get(block_of(hash, blocks.len())) else { return true };
    let (words, _) = block.as_chunks();
    let words = words.iter().enumerate();
    words.fold(1, |set, (i, word)| set & u64::from_le_bytes(*word) >> bit_of(hash, i)) & 1 != 0
}

/// Checks that the page has as many blocks as its head states.
pub(super) fn validate(page: &[u8]) -> Result<(), String> {
    let Some(head) = page.first_chunk::<BLOCKS_AT>() else {
        return Err(format!("{} bytes are too few for a filter", page.len()));
    };
    let mut rest = *head;
    rest[FORM_AT] = 0;
    if rest[COUNT_AT + 4..] != [0; BLOCKS_AT - COUNT_AT - 4] {
        return Err(format!("a filter of unknown shape {:?}", &head[COUNT_AT + 4..]));
    }
    let count = u64::from(u32_at(head, COUNT_AT));
    let bytes = BLOCKS_AT as u64 + count * BLOCK_BYTES as u64;
    if count == 0 || bytes != page.len() as u64 {
        return Err(format!("a filter of {count} blocks in {} bytes", page.len()));
    }
    Ok(())
}

/// Appends a filter of `count` blocks over `hashes`. They follow the row numbers at the front of the partition.
/// `count` is at least one.
pub(super) fn append(count: usize, hashes: &[u64], out: &mut Vec<u8>) {
    out.extend_from_slice(&(count as u32).to_le_bytes());
    out.resize(FORM_AT, 0);
    out.push(FORM);
    out.resize(BLOCKS_AT, 0);
    let mut blocks = vec![[0_u64; WORDS]; count];
    for &hash in hashes {
        let block = &mut blocks[block_of(hash, count)];
        for (i, word) in block.iter_mut().enumerate() {
            *word |= 1 << bit_of(hash, i);
        }
    }
    out.reserve(count * BLOCK_BYTES);
    for word in blocks.iter().flatten() {
        out.extend_from_slice(&word.to_le_bytes());
    }
}
