//! Draws numbers of which some are much likelier than others. The likely numbers lie anywhere in the range:
//! `ScrambledZipfianGenerator`.
//!
//! A zipfian number out of 10^10 items is hashed, and the hash is mapped to the range by a remainder. So the
//! likelihoods do not depend on the number of items, and no constant has to be computed.

use super::Zipfian;
use crate::key::fnv;
use crate::random::Random;

/// The last item of those that are drawn and hashed.
const LAST_ITEM: i64 = 10_000_000_000;
/// The sum over these items, as in the original.
const ZETAN: f64 = 26.469_028_201_783_02;

/// Numbers from `min` to `max`, both included.
#[derive(Clone, Debug)]
pub struct Scrambled {
    pub(super) inner: Zipfian,
    min: i64,
    interval: i64,
}

impl Scrambled {
    /// # Panics
    ///
    /// If `max` is less than `min`.
    pub fn new(min: i64, max: i64) -> Scrambled {
        assert!(min <= max, "a range has a number in it");
        Scrambled { inner: Zipfian::with_zetan(0, LAST_ITEM, ZETAN), min, interval: max - min + 1 }
    }

    /// The next number.
    #[inline]
    pub fn next(&self, random: &mut Random) -> i64 {
        self.min + fnv(self.inner.next(random)) % self.interval
    }
}
