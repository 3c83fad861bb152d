//! Draws numbers of a range, all of which are equally likely: `UniformLongGenerator`.

use super::modulo;
use crate::random::Random;

/// Draws numbers from `min` to `max`, both included.
#[derive(Clone, Debug)]
pub struct Uniform {
    min: i64,
    interval: i64,
}

impl Uniform {
    /// # Panics
    ///
    /// Panics if `max` is less than `min`.
    pub fn new(min: i64, max: i64) -> Uniform {
        assert!(min <= max, "a range has a number in it");
        Uniform { min, interval: max - min + 1 }
    }

    /// The next number.
    #[inline]
    pub fn next(&self, random: &mut Random) -> i64 {
        modulo(random.long(), self.interval) + self.min
    }
}
