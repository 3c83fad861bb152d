//! Draws numbers that are rarer the larger they are: `ExponentialGenerator`.

use crate::random::Random;

/// Draws numbers that are at least 0 and have no upper bound.
#[derive(Clone, Debug)]
pub struct Exponential {
    gamma: f64,
}

impl Exponential {
    /// Draws numbers of which `percentile` percent are less than `range`.
    pub fn new(percentile: f64, range: f64) -> Exponential {
        Exponential { gamma: -(1.0 - percentile / 100.0).ln() / range }
    }

    /// The next number.
    #[inline]
    pub fn next(&self, random: &mut Random) -> f64 {
        -random.double().ln() / self.gamma
    }
}
