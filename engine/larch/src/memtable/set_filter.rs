//! The filter of a memory set. It denies most keys that the set does not have, so that a look-up need not search the
//! memtables for them. This module does not know the rows.
//!
//! ```text
//! part           0       | 1       | 2       | …  6        | 7        | …       each is made when the first key is noted in it
//! its size       64      | 256     | 1 KiB   | …  256 KiB  | 1 MiB    | …
//! memory of rows 4 KiB   | 20 KiB  | 84 KiB  | …  21.3 MiB | 85.3 MiB | …       with which keys are noted in the next part
//! block          64 bytes, a line of the processor's cache; a key sets three bits in each of two words of one block
//! ```
//!
//! The filter consists of parts and grows with the rows, by one byte for 64 bytes of rows. A row of 160 bytes gets
//! twenty bits, and then one in two hundred absent keys is not denied. A row with hardly any value gets eight bits or
//! fewer, and then it is one in six. The filters of ten thousand databases with a few rows each stay small, and
//! nearly all keys of a large set are in its last two parts. The parts are blocked Bloom filters: Putze, Sanders and
//! Singler, "Cache-, hash- and space-efficient Bloom filters" (2009).
//!
//! Thread-safe. A key is added before its commit becomes visible, so a reader at a visible version finds the bits of
//! all rows that it may see.

use crate::base::table::TableId;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, OnceLock};

const FIRST_BYTES: usize = size_of::<Block>();
/// The size of each part relative to the one before it.
const GROWTH: usize = 4;
/// How many bytes of rows there are for each byte of a part.
const ROW_BYTES_EACH: u64 = 64;
/// The number of parts. The last one has 16 MiB. Beyond 340 MiB of rows, all further keys go into it.
const PARTS: usize = 10;
/// The number of bits that a key sets in a word.
const WORD_BITS: u32 = 3;
const WORDS: usize = 8;

/// The keys of a memory set, as a Bloom filter in parts.
#[derive(Debug, Default)]
pub(super) struct SetFilter {
    parts: [OnceLock<Box<[Block]>>; PARTS],
    bytes: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Block([AtomicU64; WORDS]);

/// The filter of a memory set, for the keys of one table.
#[derive(Debug)]
pub(super) struct TableFilter {
    filter: Arc<SetFilter>,
    /// Differs from table to table, so that the same key has different hashes in two tables.
    salt: u64,
}

/// The two words of a block in which a key sets bits, and these bits.
struct Bits([(usize, u64); 2]);

impl SetFilter {
    /// The memory of all parts, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds a key with this hash while the rows of the set take `row_bytes`. Inlined, because each row goes through it.
    #[inline(always)]
    fn note(&self, hash: u64, row_bytes: u64) {
        let number = part_at(row_bytes);
        let part = self.parts[number].get_or_init(|| {
            let bytes = FIRST_BYTES * GROWTH.pow(number as u32);
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            (0..bytes / size_of::<Block>()).map(|_| Block::default()).collect()
        });
        let block = block_of(part, hash);
        for (word, bits) in Bits::of(hash).0 {
            // Most rows are new versions of keys that are already in the filter. Writing nothing for them leaves the
            // cache line with the other processors. (A merge of a key that has a row in the memtable does not even
            // come here: such a key stays noted in the part where it was first noted, while the key of a put is noted
            // again in each newer part.) Relaxed: whatever makes the commit visible to a reader also makes these bits
            // visible.
            if block.0[word].load(Ordering::Relaxed) & bits != bits {
                block.0[word].fetch_or(bits, Ordering::Relaxed);
            }
        }
    }

    /// Whether a key with this hash may have been added.
    #[inline]
    fn may_have(&self, hash: u64) -> bool {
        let Bits([(first, first_bits), (second, second_bits)]) = Bits::of(hash);
        // The last part has most of the keys.
        self.parts.iter().rev().filter_map(|part| part.get()).any(|part| {
            let block = block_of(part, hash);
            block.0[first].load(Ordering::Relaxed) & first_bits == first_bits
                && block.0[second].load(Ordering::Relaxed) & second_bits == second_bits
        })
    }
}

impl TableFilter {
    /// The filter for the keys of `table`, with its bits in `filter`, which all tables of the set share.
    pub(super) fn new(filter: Arc<SetFilter>, table: TableId) -> Self {
        Self { filter, salt: u64::from(table.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }

    /// Adds a key with this hash while the rows of all tables take `row_bytes`.
    #[inline]
    pub(super) fn note(&self, hash: u64, row_bytes: u64) {
        self.filter.note(hash ^ self.salt, row_bytes);
    }

    /// Whether a key with this hash may have been added.
    #[inline]
    pub(super) fn may_have(&self, hash: u64) -> bool {
        self.filter.may_have(hash ^ self.salt)
    }
}

impl Bits {
    #[inline]
    fn of(hash: u64) -> Self {
        // The top bits of the hash have chosen the block, so they are not used again here.
        let mut fields = hash.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 16;
        let mut next = |values: u64| {
            let field = fields % values;
            fields /= values;
            field
        };
        let mut word = || {
            let number = next(WORDS as u64) as usize;
            (number, (0..WORD_BITS).fold(0, |bits, _| bits | 1 << next(64)))
        };
        Self([word(), word()])
    }
}

/// The block for a hash.
#[inline]
fn block_of(part: &[Block], hash: u64) -> &Block {
    &part[(((hash >> 32) * part.len() as u64) >> 32) as usize]
}

/// The part to which keys are added while the rows take `row_bytes`. The parts before part `i` together are
/// (4^i - 1) / 3 times as large as the first one.
#[inline]
fn part_at(row_bytes: u64) -> usize {
    let firsts = row_bytes / (ROW_BYTES_EACH * FIRST_BYTES as u64);
    ((3 * firsts + 1).ilog2() as usize / GROWTH.ilog2() as usize).min(PARTS - 1)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
