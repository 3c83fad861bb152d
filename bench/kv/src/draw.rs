//! Draws numbers. This module does not know what the numbers are for.

use ycsb::Random;

/// A number that is at least 0 and less than `bound`, which is at least 1.
#[inline]
pub fn below(random: &mut Random, bound: u64) -> u64 {
    ((u128::from(random.long().cast_unsigned()) * u128::from(bound)) >> 64) as u64
}
