//! Small numbers are likelier than large ones: `ZipfianGenerator`, after Gray, Sundaresan, Englert, Baclawski and
//! Weinberger, "Quickly generating billion-record synthetic databases", SIGMOD 1994.
//!
//! The constant theta is 0.99. `zetan`, the sum of `1 / i^theta` over all items, takes a power for each; it is counted
//! once, and carried on where the number of items grows.

use crate::random::Random;

const THETA: f64 = 0.99;

/// Numbers from `min`, the likeliest, to `max`.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: i64,
    base: i64,
    alpha: f64,
    /// `1 + 0.5^theta`: below it is the second item.
    second: f64,
    zeta2theta: f64,
    constants: Constants,
}

/// What depends on the number of items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// Items that `zetan` is the sum of.
    pub count: i64,
    pub zetan: f64,
    pub eta: f64,
}

impl Zipfian {
    /// Counts `zetan`: a power for each number from `min` to `max`.
    ///
    /// # Panics
    ///
    /// If `max` is less than `min`.
    pub fn new(min: i64, max: i64) -> Zipfian {
        Zipfian::with_zetan(min, max, zeta(0, max - min + 1, 0.0))
    }

    /// For a `zetan` that is known.
    pub(super) fn with_zetan(min: i64, max: i64, zetan: f64) -> Zipfian {
        assert!(min <= max, "a range has a number in it");
        let items = max - min + 1;
        let zeta2theta = zeta(0, 2, 0.0);
        let eta = eta(items, zeta2theta, zetan);
        Zipfian {
            items,
            base: min,
            alpha: 1.0 / (1.0 - THETA),
            second: 1.0 + 0.5_f64.powf(THETA),
            zeta2theta,
            constants: Constants { count: items, zetan, eta },
        }
    }

    /// The next number.
    #[inline]
    pub fn next(&self, random: &mut Random) -> i64 {
        self.next_of(self.items, random)
    }

    /// The next number of `items` items, which may be more than the constants know: then [`Self::grown`] comes first.
    /// As in the original, fewer items than they know are drawn with the constants of more.
    #[inline]
    pub fn next_of(&self, items: i64, random: &mut Random) -> i64 {
        let Constants { zetan, eta, .. } = self.constants;
        let u = random.double();
        let uz = u * zetan;
        if uz < 1.0 {
            return self.base;
        }
        if uz < self.second {
            return self.base + 1;
        }
        self.base + (items as f64 * (eta * u - eta + 1.0).powf(self.alpha)) as i64
    }

    /// `from`, carried on to `items` items.
    pub fn grown(&self, from: Constants, items: i64) -> Constants {
        let zetan = zeta(from.count, items, from.zetan);
        // The original divides by the items there were at first.
        Constants { count: items, zetan, eta: eta(self.items, self.zeta2theta, zetan) }
    }

    /// What the numbers are drawn with now.
    pub fn constants(&self) -> Constants {
        self.constants
    }

    /// Draws with the constants that another generator of the same range has carried on.
    pub fn set_constants(&mut self, constants: Constants) {
        self.constants = constants;
    }

    #[cfg(test)]
    pub(super) fn alpha_and_zeta2theta(&self) -> (f64, f64) {
        (self.alpha, self.zeta2theta)
    }
}

/// `sum`, which is over the first `from` items, carried on to `to`.
fn zeta(from: i64, to: i64, sum: f64) -> f64 {
    (from..to).fold(sum, |sum, i| sum + 1.0 / ((i + 1) as f64).powf(THETA))
}

fn eta(items: i64, zeta2theta: f64, zetan: f64) -> f64 {
    (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta2theta / zetan)
}
