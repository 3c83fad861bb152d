//! Gives one part of the range a fixed share of the draws. Inside this part and outside of it, all numbers are
//! equally likely: `HotspotIntegerGenerator`.

use super::modulo;
use crate::random::Random;

/// Draws numbers from `min` to `max`, both included. The hot numbers are the first ones of the range.
#[derive(Clone, Debug)]
pub struct Hotspot {
    min: i64,
    hot: i64,
    cold: i64,
    hot_draws: f64,
}

impl Hotspot {
    /// Gives the first `hot_part` of the range the share `hot_draws` of all draws. Both are from 0 to 1. Returns
    /// `None` if a draw could find no number, because the hot or the cold part of the range is empty but gets draws.
    pub fn new(min: i64, max: i64, hot_part: f64, hot_draws: f64) -> Option<Hotspot> {
        let interval = max - min + 1;
        // As in the original, the number of hot items keeps only 32 bits.
        let hot = i64::from((interval as f64 * hot_part) as i32);
        let cold = interval - hot;
        let is_possible = (hot > 0 || hot_draws <= 0.0) && (cold > 0 || hot_draws >= 1.0);
        (interval > 0 && is_possible).then_some(Hotspot { min, hot, cold, hot_draws })
    }

    /// The next number.
    pub fn next(&self, random: &mut Random) -> i64 {
        if random.double() < self.hot_draws {
            self.min + modulo(random.long(), self.hot)
        } else {
            self.min + self.hot + modulo(random.long(), self.cold)
        }
    }
}
