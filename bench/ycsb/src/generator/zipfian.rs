//! Draws numbers of which small ones are likelier than large ones: `ZipfianGenerator`, after Gray, Sundaresan,
//! Englert, Baclawski and Weinberger, "Quickly generating billion-record synthetic databases", SIGMOD 1994.
//!
//! The constant theta is 0.99. `zetan` is the sum of `1 / i^theta`, for `i` from 1 to the number of items. When
//! the number of items grows, only the terms of the new items are added to `zetan`. The original computes a power
//! for each item. Here, a power is computed only for the first [`TERMS`] items, so the sum of these terms equals
//! the original's sum to the last bit. The terms of all later items are computed in one step. Therefore a range of
//! any length is ready in a fraction of a second.

#[cfg(test)]
mod tests;

use crate::random::Random;

const THETA: f64 = 0.99;

/// The number of items whose terms are added one by one. This takes up to half a second. Each time the number of
/// items grows, the terms of at most this many new items are added one by one.
const TERMS: i64 = 1 << 24;

/// Draws numbers from `min` to `max`. The likeliest number is `min`.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: i64,
    base: i64,
    alpha: f64,
    /// `1 + 0.5^theta`. A random number is scaled to at most `zetan`. If it is then at least 1 and less than this
    /// constant, the second item is drawn.
    second: f64,
    zeta2theta: f64,
    constants: Constants,
}

/// The constants that depend on the number of items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// The number of items whose terms are added up in `zetan`.
    pub count: i64,
    pub zetan: f64,
    pub eta: f64,
}

impl Zipfian {
    /// Makes a generator and computes its `zetan`. This computes a power for each of the first `TERMS` items.
    ///
    /// # Panics
    ///
    /// Panics if `max` is less than `min`.
    pub fn new(min: i64, max: i64) -> Zipfian {
        Zipfian::with_zetan(min, max, zeta(0, max - min + 1, 0.0))
    }

    /// Makes a generator whose `zetan` is already known.
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

    /// Draws the next number among `items` items. If the constants are for fewer items, [`Self::grown`] must be
    /// called first. If the constants are for more items, they are used nevertheless, as in the original.
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

    /// Extends the constants `from` to `items` items, and returns them.
    pub fn grown(&self, from: Constants, items: i64) -> Constants {
        let zetan = zeta(from.count, items, from.zetan);
        // As in the original, `eta` is computed with the number of items with which the generator started.
        Constants { count: items, zetan, eta: eta(self.items, self.zeta2theta, zetan) }
    }

    /// The constants that the generator uses now.
    pub fn constants(&self) -> Constants {
        self.constants
    }

    /// Sets the constants for the next draws. The caller has these constants from another generator of the same
    /// range, which has extended them.
    pub fn set_constants(&mut self, constants: Constants) {
        self.constants = constants;
    }

    #[cfg(test)]
    pub(super) fn alpha_and_zeta2theta(&self) -> (f64, f64) {
        (self.alpha, self.zeta2theta)
    }
}

/// `sum` contains the terms of the first `from` items. Returns the sum of the terms of the first `to` items.
fn zeta(from: i64, to: i64, sum: f64) -> f64 {
    let middle = to.min(from.saturating_add(TERMS));
    let sum = (from..middle).fold(sum, |sum, i| sum + 1.0 / ((i + 1) as f64).powf(THETA));
    if middle < to { sum + rest(middle as f64, to as f64) } else { sum }
}

/// The sum of `1 / i^theta` for `i` from `after + 1` to `last`, by the formula of Euler and Maclaurin:
///
/// ```text
/// f(x) = x^-theta     sum = integral of f + (f(last) - f(after)) / 2 + (f'(last) - f'(after)) / 12 + error
/// ```
///
/// All derivatives of `f` keep their signs, so the error is less than the next term, `|f'''(after)| / 720`. The
/// next term is less than `after^-3.99 / 120`, which is 10^-30 after [`TERMS`] items. There is another error,
/// because the operations below round. It is less than 10 units in the last place. Adding the terms one by one
/// would be less exact, because each addition rounds.
fn rest(after: f64, last: f64) -> f64 {
    let power = 1.0 - THETA;
    // `integral` is `(last^power - after^power) / power`, in a form that does not subtract two nearly equal
    // numbers.
    let integral = after.powf(power) * (power * (last / after).ln()).exp_m1() / power;
    let half = (last.powf(-THETA) - after.powf(-THETA)) / 2.0;
    let slope = |x: f64| -THETA * x.powf(-THETA - 1.0);
    integral + half + (slope(last) - slope(after)) / 12.0
}

fn eta(items: i64, zeta2theta: f64, zetan: f64) -> f64 {
    (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta2theta / zetan)
}
