//! Draws numbers, some of which are much likelier than others. The likely numbers are spread over the range:
//! `ScrambledZipfianGenerator`.
//!
//! The generator draws a zipfian number among 10^10 items, hashes this number, and maps the hash to the range by a
//! remainder. Therefore the likelihoods do not depend on the length of the range, and the sum `zetan` need not be
//! computed for each range.

use super::Zipfian;
use crate::key::fnv;
use crate::random::Random;

/// The number of the last item among which the zipfian number is drawn, before it is hashed.
const LAST_ITEM: i64 = 10_000_000_000;
/// The value of `zetan` for 10^10 items, as in the original.
const ZETAN: f64 = 26.469_028_201_783_02;

/// Draws numbers from `min` to `max`, both included.
#[derive(Clone, Debug)]
pub struct Scrambled {
    pub(super) inner: Zipfian,
    min: i64,
    interval: i64,
}

impl Scrambled {
    /// # Panics
    ///
    /// Panics if `max` is less than `min`.
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
