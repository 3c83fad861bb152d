//! The name under which the cache finds a page. This module does not know what the page holds.

use crate::{Address, PACK_BYTES};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// The name of a page: the slot of its file, and the offset of the page in units of [`PACK_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageKey {
    pub slot: u32,
    pub unit: u64,
}

impl PageKey {
    /// The name of the page at the given address, in the file with the given slot.
    #[inline]
    pub fn new(slot: u32, at: &Address) -> Self {
        Self { slot, unit: at.offset / PACK_BYTES }
    }

    /// A hash whose every bit depends on every bit of the key: the two halves of a 128-bit product, folded into
    /// one. The constants are digits of pi and e. They need not be secret, because an attacker chooses neither
    /// slots nor offsets.
    #[inline]
    pub fn hash(self) -> u64 {
        let unit = u128::from(self.unit ^ 0x243F_6A88_85A3_08D3);
        let slot = u128::from(u64::from(self.slot).rotate_left(32) ^ 0xB7E1_5162_8AED_2A6B);
        let product = unit * (slot | 1);
        (product >> 64) as u64 ^ product as u64
    }
}

impl Hash for PageKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(PageKey::hash(*self));
    }
}

/// Passes on the hash that a [`PageKey`] writes.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("a key writes one u64");
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        // All keys of a stripe have the same lowest bits.
        self.0 = hash.rotate_right(16);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Hashes maps by [`PageKey`].
pub(crate) type KeyHash = BuildHasherDefault<KeyHasher>;
