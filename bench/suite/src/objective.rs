//! What a rate has to meet, as `--objective` says it: `p99<5ms`. This module knows nothing of rates.

#[cfg(test)]
mod tests;

use harness::Times;
use std::fmt;

/// How an objective is written.
const GRAMMAR: &str = "an objective is a percentile from p50 to p99.99, or max, then `<`, then a time in us, ms or s: \
                       'p99<5ms', 'p99.9<800us', 'max<1s'";

/// An upper bound on a percentile of the response times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// The quantile, 0.5 to 0.9999. `None` is the longest time.
    pub quantile: Option<f64>,
    /// The bound, which times must be below.
    pub bound_nanos: u64,
}

impl Objective {
    /// Parses `p99<5ms`. Spaces around `<` are allowed.
    ///
    /// # Errors
    ///
    /// Fails with the grammar if the text is not an objective.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parsed(text).ok_or_else(|| GRAMMAR.to_owned())
    }

    fn parsed(text: &str) -> Option<Self> {
        let (what, bound) = text.split_once('<')?;
        let quantile = match what.trim() {
            "max" => None,
            percentile => {
                let percentile = number(percentile.strip_prefix('p')?)?;
                // A division of the percentile itself would give 0.9998999… for 99.99.
                let quantile = (percentile * 1e4).round() / 1e6;
                Some((50.0..=99.99).contains(&percentile).then_some(quantile)?)
            }
        };
        let bound = bound.trim();
        let units = [("us", 1e3), ("ms", 1e6), ("s", 1e9)];
        let (value, unit_nanos) = units.iter().find_map(|(unit, nanos)| Some((bound.strip_suffix(unit)?, nanos)))?;
        let nanos = number(value.trim_end())? * unit_nanos;
        (1e3..=1e15).contains(&nanos).then_some(Self { quantile, bound_nanos: nanos.round() as u64 })
    }

    /// The percentile of `times` in nanoseconds. `None` if there are too few times to know it.
    pub fn of(self, times: &Times) -> Option<u64> {
        match self.quantile {
            Some(quantile) => times.known_quantile(quantile),
            None => (!times.is_empty()).then(|| times.max()),
        }
    }

    /// The name of the percentile: `p99.9`, `max`.
    pub fn name(self) -> String {
        self.quantile.map_or("max".to_owned(), |quantile| format!("p{}", (quantile * 1e6).round() / 1e4))
    }
}

/// A number of digits with at most one point.
fn number(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_plain.then(|| text.parse().ok())?
}

impl fmt::Display for Objective {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} < {}", self.name(), harness::report::text::nanos(self.bound_nanos as f64))
    }
}
