//! The steps of a search for the highest rate that meets an objective. It knows nothing of runs: it asks for rates, and
//! is given whether a run at that rate met the objective.
//!
//! ```text
//!  1. bracket   the rate doubles until a run misses, or halves until one meets
//!  2. halve     the middle of the two bounds, as a ratio, replaces one of them, until they are close
//!  3. confirm   runs at both bounds are repeated until most of them decide
//! ```
//!
//! A rate *meets* if more of its runs met than missed. A bound that does not hold when it is confirmed becomes the other
//! bound, and the search goes back to step 1 or 2. The next step is always computed from all runs so far.

#[cfg(test)]
mod tests;

/// How a search goes.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The first rate.
    pub first: f64,
    /// The bounds are close if the upper one is at most this share above the lower one.
    pub precision: f64,
    /// The number of runs at each bound, of which most decide.
    pub repeats: u32,
}

/// What a run at a rate showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It met the objective.
    Met,
    /// It missed the objective.
    Missed,
    /// It had too few requests to decide.
    TooFew,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The highest rate that met the objective, below every rate that missed it. `None` if no rate met it.
    pub lower: Option<Bound>,
    /// The lowest rate that missed the objective. `None` if no rate missed it.
    pub upper: Option<Bound>,
    /// Whether the bounds are as close as was asked for, and both are confirmed.
    pub is_confirmed: bool,
}

/// A rate with its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Operations per second.
    pub rate: f64,
    /// The number of runs that met the objective.
    pub met: u32,
    /// The number of runs that missed it.
    pub missed: u32,
}

/// The greatest rate that is tried. The clock counts whole nanoseconds.
const MOST_RATE: f64 = 1e9;
/// The search gives up below this part of the first rate.
const LEAST_PART: f64 = 1.0 / 4096.0;
/// A store whose runs contradict each other is given up after this many runs, besides the repeats.
const MOST_RUNS: usize = 60;

/// Finds the highest rate at which `run` meets the objective. An error of `run` ends the search.
///
/// # Errors
///
/// Returns the error of `run`.
pub fn search<E>(options: Options, mut run: impl FnMut(f64) -> Result<Verdict, E>) -> Result<Found, E> {
    let mut runs = Vec::new();
    while let Some(rate) = next(options, &runs) {
        runs.push((rate, run(rate)?));
    }
    Ok(found(options, &runs))
}

/// What the runs so far have found.
pub fn found(options: Options, runs: &[(f64, Verdict)]) -> Found {
    let rates = rates(runs);
    let (lower, upper) = bounds(&rates);
    let is_confirmed = lower.zip(upper).is_some_and(|(lower, upper)| {
        are_close(options, lower.rate, upper.rate) && [lower, upper].iter().all(|bound| bound.is_decided(options))
    });
    Found { lower, upper, is_confirmed }
}

/// The next rate to try. `None` if the search is over.
fn next(options: Options, runs: &[(f64, Verdict)]) -> Option<f64> {
    let is_over = runs.last().is_some_and(|(_, verdict)| *verdict == Verdict::TooFew);
    if is_over || runs.len() >= MOST_RUNS + 2 * options.repeats as usize {
        return None;
    }
    let rates = rates(runs);
    match bounds(&rates) {
        (None, None) => Some(rounded(options.first)),
        (Some(lower), None) => (lower.rate < MOST_RATE).then(|| rounded(lower.rate * 2.0).min(MOST_RATE)),
        (None, Some(upper)) => Some(rounded(upper.rate / 2.0)).filter(|rate| *rate >= options.first * LEAST_PART),
        (Some(lower), Some(upper)) if !are_close(options, lower.rate, upper.rate) => {
            Some(rounded((lower.rate * upper.rate).sqrt()))
        }
        (Some(lower), Some(upper)) => {
            [lower, upper].into_iter().find(|bound| !bound.is_decided(options)).map(|bound| bound.rate)
        }
    }
}

fn are_close(options: Options, lower: f64, upper: f64) -> bool {
    // Rates are rounded, so the last ratio may be a little above the one that was asked for.
    upper <= lower * (1.0 + options.precision) * 1.001
}

/// A rate of four digits. The least precision is ten times as coarse.
fn rounded(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.log10().floor() - 3.0);
    let digits = (rate / unit).round();
    // A division by a whole number is exact where a multiplication by a fraction is not: 0.0123, not 0.012300000000000002.
    if unit < 1.0 { digits / (1.0 / unit).round() } else { digits * unit.round() }
}

impl Bound {
    /// Whether more runs met the objective than missed it. `None` if as many met it as missed it.
    fn meets(self) -> Option<bool> {
        (self.met != self.missed).then_some(self.met > self.missed)
    }

    /// Whether most of the repeats agree, so that more of them would change nothing.
    fn is_decided(self, options: Options) -> bool {
        self.met.max(self.missed) > options.repeats / 2
    }
}

/// The rates that were tried, in ascending order.
fn rates(runs: &[(f64, Verdict)]) -> Vec<Bound> {
    let mut rates: Vec<Bound> = Vec::new();
    for (rate, verdict) in runs.iter().filter(|(_, verdict)| *verdict != Verdict::TooFew) {
        let at = rates.iter().position(|bound| bound.rate == *rate).unwrap_or_else(|| {
            rates.push(Bound { rate: *rate, met: 0, missed: 0 });
            rates.len() - 1
        });
        match verdict {
            Verdict::Met => rates[at].met += 1,
            Verdict::Missed | Verdict::TooFew => rates[at].missed += 1,
        }
    }
    rates.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    rates
}

/// The lower and the upper bound. The upper bound is the lowest rate that misses. If as many runs at a rate met the
/// objective as missed it, the rate counts as one that misses, and more runs at it decide.
fn bounds(rates: &[Bound]) -> (Option<Bound>, Option<Bound>) {
    let first_miss = rates.iter().position(|bound| bound.meets() != Some(true));
    let below = &rates[..first_miss.unwrap_or(rates.len())];
    (below.last().copied(), first_miss.map(|at| rates[at]))
}
