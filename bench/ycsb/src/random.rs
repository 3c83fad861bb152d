//! Java's `ThreadLocalRandom`, step by step as in Java 17. Therefore a seed gives the same numbers here as in Java.
//!
//! The state is a counter. Every draw of 32 or 64 bits adds the golden ratio to the counter, and mixes the result.
//! Java also adds twice the number of the thread, but here this number is always 0. Each client has a generator of
//! its own.

#[cfg(test)]
mod tests;

/// 2^64 divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of a generator whose `threadLocalRandomSeed` is `state` in Java.
    pub fn with_state(state: u64) -> Random {
        Random { state }
    }

    /// The stream of client number `client` in a run with seed `seed`. The seed and the number are mixed instead of
    /// added, so the streams of different clients start far from each other.
    pub fn of_client(seed: u64, client: u64) -> Random {
        Random { state: mix(mix(seed ^ GOLDEN).wrapping_add(client)) }
    }

    fn step(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        self.state
    }

    /// `nextLong()`.
    #[inline]
    pub fn long(&mut self) -> i64 {
        mix(self.step()).cast_signed()
    }

    /// `nextInt()`.
    #[inline]
    pub fn int(&mut self) -> i32 {
        self.bits(32).cast_signed()
    }

    /// Java's function `next(count)`. It returns the upper `count` bits of 32 random bits.
    fn bits(&mut self, count: u32) -> u32 {
        let z = self.step();
        let z = (z ^ (z >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let z = (z ^ (z >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        ((z >> 32) as u32) >> (32 - count)
    }

    /// `nextDouble()`: a multiple of 2^-53 that is at least 0 and less than 1. It draws twice.
    #[inline]
    pub fn double(&mut self) -> f64 {
        let high = u64::from(self.bits(26));
        let low = u64::from(self.bits(27));
        const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
        ((high << 27) + low) as f64 * UNIT
    }

    /// `nextInt(bound)`: at least 0, and less than `bound`.
    ///
    /// # Panics
    ///
    /// Panics if `bound` is not positive.
    pub fn below(&mut self, bound: i32) -> i32 {
        assert!(bound > 0, "a bound is positive");
        let mask = bound - 1;
        let mut bits = self.bits(31).cast_signed();
        if bound & mask == 0 {
            return ((i64::from(bound) * i64::from(bits)) >> 31) as i32;
        }
        loop {
            let value = bits % bound;
            // The range of the random numbers is divided into parts of `bound` numbers, of which the last may be
            // shorter. A draw from a shorter last part is rejected, because it would make small values likelier than
            // large ones.
            if bits.wrapping_sub(value).wrapping_add(mask) >= 0 {
                return value;
            }
            bits = self.bits(31).cast_signed();
        }
    }
}

/// The 64-bit finalizer of MurmurHash3, `mixMurmur64` in Java.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let z = (z ^ (z >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    z ^ (z >> 33)
}
