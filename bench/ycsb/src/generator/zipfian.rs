//! Small numbers are likelier than large ones: `ZipfianGenerator`, after Gray, Sundaresan, Englert, Baclawski and
//! Weinberger, "Quickly generating billion-record synthetic databases", SIGMOD 1994.
//!
//! The constant theta is 0.99. `zetan` is the sum of `1 / i^theta` over all items, and is carried on where the number
//! of items grows. The original takes a power for each item. Here the first [`TERMS`] are added in this way, so that
//! the sum is that of the original to the last bit, and what follows them is counted in one step: a range of any length
//! is ready in a fraction of a second.

#[cfg(test)]
mod tests;

use crate::random::Random;

const THETA: f64 = 0.99;

/// How many items are added one by one: up to half a second. A run that grows adds as many again at most.
const TERMS: i64 = 1 << 24;

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
    /// Counts `zetan`: a power for each of the first `TERMS` numbers.
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
    /// As in the original, if the items are fewer than those for which the constants were computed, the same constants
    /// are used.
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
        // The original divides by the number of items at first.
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
/// All derivatives of `f` keep their signs, so the error is less than the next term, `|f'''(after)| / 720`, and that is
/// less than `after^-3.99 / 120`: 10^-30 after [`TERMS`] items. What remains is the rounding of the operations below,
/// less than 10 units in the last place. Adding the items one by one is less exact: each addition rounds.
fn rest(after: f64, last: f64) -> f64 {
    let power = 1.0 - THETA;
    // `(last^power - after^power) / power`, without taking the difference of two numbers that are nearly alike.
    let integral = after.powf(power) * (power * (last / after).ln()).exp_m1() / power;
    let half = (last.powf(-THETA) - after.powf(-THETA)) / 2.0;
    let slope = |x: f64| -THETA * x.powf(-THETA - 1.0);
    integral + half + (slope(last) - slope(after)) / 12.0
}

fn eta(items: i64, zeta2theta: f64, zetan: f64) -> f64 {
    (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta2theta / zetan)
}
