//! Random numbers that follow from a seed. This module does not know what the numbers are used for.
//!
//! The generator is part of this crate because a seed must name the same run in every release: a test that failed with
//! a seed is run again with this seed years later.

use crate::Random;
use crate::sync::Mutex;
use std::time::Duration;

/// For the same seed, the numbers are the same in any build and on any platform.
#[derive(Debug)]
pub struct SimRandom(Mutex<Draws>);

impl SimRandom {
    /// The numbers of `seed`.
    pub fn new(seed: u64) -> SimRandom {
        SimRandom(Mutex::new(Draws::new(seed)))
    }
}

impl Random for SimRandom {
    fn next_u64(&self) -> u64 {
        self.0.lock().number()
    }
}

/// What the simulated machine draws, by the generator xoshiro256++ of David Blackman and Sebastiano Vigna. The state
/// comes from the seed by SplitMix64, as the authors advise.
#[derive(Clone, Debug)]
pub(super) struct Draws([u64; 4]);

impl Draws {
    pub(super) fn new(seed: u64) -> Draws {
        let mut at = seed;
        Draws([(); 4].map(|()| {
            at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (at ^ (at >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }))
    }

    /// A number, uniform over all values.
    pub(super) fn number(&mut self) -> u64 {
        let Draws(state) = self;
        let drawn = state[0].wrapping_add(state[3]).rotate_left(23).wrapping_add(state[0]);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        drawn
    }

    /// True in half of all cases.
    pub(super) fn coin(&mut self) -> bool {
        self.number() >> 63 == 1
    }

    /// A number below `bound`, which is not 0. All numbers are equally likely, but for less than one part in 2^32.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "no number is below 0");
        match u32::try_from(bound) {
            Ok(bound) => {
                let bound = u64::from(bound);
                // The upper half of the product of a random fraction and the bound, by Canon's method: a fraction that
                // is too coarse for this bound gets 32 more bits.
                let product = (self.number() >> 32) * bound;
                let (whole, fraction) = (product >> 32, product & u64::from(u32::MAX));
                let carry = fraction > (1 << 32) - bound
                    && fraction + (((self.number() >> 32) * bound) >> 32) > u64::from(u32::MAX);
                usize::try_from(whole + u64::from(carry)).expect("it is below a bound of this type")
            }
            Err(_) => usize::try_from(self.wide_below(bound as u64)).expect("it is below a bound of this type"),
        }
    }

    /// A time from 0 to `most`.
    pub(super) fn time_up_to(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_nanos()).expect("the simulated machine runs for less than 584 years");
        Duration::from_nanos(self.wide_below(most + 1))
    }

    /// As [`Draws::below`], with 64 bits for the fraction.
    fn wide_below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.number()) * u128::from(bound);
        let (whole, fraction) = ((product >> 64) as u64, product as u64);
        if fraction <= bound.wrapping_neg() {
            return whole;
        }
        let more = (u128::from(self.number()) * u128::from(bound)) >> 64;
        whole + u64::from(fraction.checked_add(more as u64).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{Rng, RngExt, SeedableRng};

    /// Seeds that were written down in earlier releases were drawn by the crate `rand`.
    #[test]
    fn draws_are_those_of_the_crate_rand() {
        for seed in [0, 1, 30_036_038, u64::MAX] {
            let (mut ours, mut theirs) = (Draws::new(seed), Xoshiro256PlusPlus::seed_from_u64(seed));
            for i in 1..2_000_usize {
                assert_eq!(ours.number(), theirs.next_u64(), "seed {seed}");
                assert_eq!(ours.coin(), theirs.random::<bool>(), "seed {seed}");
                for bound in [i, i << 20, u32::MAX as usize - i, u32::MAX as usize, i << 40] {
                    assert_eq!(ours.below(bound), theirs.random_range(0..bound), "seed {seed}, bound {bound}");
                }
                let most = Duration::from_nanos(u64::MAX / 3 * 2 - i as u64);
                let drawn = Duration::from_nanos(theirs.random_range(0..=most.as_nanos() as u64));
                assert_eq!(ours.time_up_to(most), drawn, "seed {seed}");
            }
        }
    }
}
