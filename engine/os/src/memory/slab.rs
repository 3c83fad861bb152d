//! Sets of blocks of a slab, as bits. This module does not know where the slab lies.

use std::ops::{BitAnd, Range};

/// Blocks of 4 KiB in a slab of 2 MiB.
pub const SLAB_BLOCKS: usize = 512;

const WORD_BITS: usize = u64::BITS as usize;

/// A bit for each block of a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks([u64; SLAB_BLOCKS / WORD_BITS]);

impl Blocks {
    /// No block.
    pub const NONE: Self = Self([0; SLAB_BLOCKS / WORD_BITS]);
    /// Every block.
    pub const ALL: Self = Self([u64::MAX; SLAB_BLOCKS / WORD_BITS]);

    /// Sets the bits of a range.
    pub fn insert(&mut self, blocks: Range<usize>) {
        for_words(blocks, |word, mask| self.0[word] |= mask);
    }

    /// Clears the bits of a range.
    pub fn remove(&mut self, blocks: Range<usize>) {
        for_words(blocks, |word, mask| self.0[word] &= !mask);
    }

    /// How many bits of a range are set.
    pub fn count_in(&self, blocks: Range<usize>) -> usize {
        let mut count = 0;
        for_words(blocks, |word, mask| count += (self.0[word] & mask).count_ones() as usize);
        count
    }

    /// The first run of at least `blocks` set bits, cut to `blocks` bits.
    pub fn find(&self, blocks: usize) -> Option<Range<usize>> {
        self.runs().find(|run| run.len() >= blocks).map(|run| run.start..run.start + blocks)
    }

    /// The longest run of set bits, the first of several that are equally long. Empty if no bit is set.
    pub fn longest(&self) -> Range<usize> {
        self.runs().fold(0..0, |longest, run| if run.len() > longest.len() { run } else { longest })
    }

    /// Maximal runs of set bits, in order.
    fn runs(&self) -> impl Iterator<Item = Range<usize>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.next(at, 0);
            at = self.next(start, u64::MAX);
            (start < SLAB_BLOCKS).then_some(start..at)
        })
    }

    /// The place of the first set bit from `at` on, or of the first clear bit if `flip` is all ones. The number of
    /// blocks if no such bit exists.
    fn next(&self, at: usize, flip: u64) -> usize {
        let mut at = at;
        while at < SLAB_BLOCKS {
            let rest = (self.0[at / WORD_BITS] ^ flip) >> (at % WORD_BITS);
            if rest != 0 {
                return at + rest.trailing_zeros() as usize;
            }
            at = (at / WORD_BITS + 1) * WORD_BITS;
        }
        SLAB_BLOCKS
    }
}

impl BitAnd for Blocks {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }
}

/// Calls `each` for each word that a range touches, with the bits of the range in that word.
fn for_words(blocks: Range<usize>, mut each: impl FnMut(usize, u64)) {
    debug_assert!(blocks.end <= SLAB_BLOCKS, "a range of blocks is within its slab");
    let mut at = blocks.start;
    while at < blocks.end {
        let (word, bit) = (at / WORD_BITS, at % WORD_BITS);
        let bits = (WORD_BITS - bit).min(blocks.end - at);
        each(word, (u64::MAX >> (WORD_BITS - bits)) << bit);
        at += bits;
    }
}
