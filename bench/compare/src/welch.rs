//! Whether two sets of runs differ in one figure, and by how much.
//!
//! Figures are compared by their logarithms, so that a difference is a ratio. Runs of one build differ by more than the
//! seconds within a run do: memory lies elsewhere, files grew in another order, the machine has another neighbour. So a
//! run counts as one value, and Welch's test compares the means of both sides by the variance between their runs. This
//! variance is not taken to be less than what the seconds within the runs say, below which it falls by chance with few
//! runs.
//!
//! A side with a single run does not show how its runs would differ. It takes the variance between runs of the other
//! side, and where this has a single run too, one that the caller assumes, beside that within the runs.

use crate::batch_means::{Uncertainty, mean, variance};
use statrs::distribution::{ContinuousCDF, StudentsT};

#[cfg(test)]
pub mod tests;

/// More degrees of freedom than anyone measures: the normal distribution.
const MOST_DEGREES: f64 = 1e6;

/// One figure of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The figure; above 0.
    pub value: f64,
    /// Its variance as a part of its square, by what the run's intervals say, if they do.
    pub within: Option<Uncertainty>,
}

/// How far two sides differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// New by base, less 1.
    pub ratio: f64,
    /// Where it begins and ends at the level that was asked for; `None` where nothing says how sure it is.
    pub interval: Option<(f64, f64)>,
    /// How likely a difference this large is between equal means.
    pub p: Option<f64>,
}

/// What one side says.
struct Side {
    runs: f64,
    mean: f64,
    /// Variance between runs; `None` with a single one.
    between: Option<f64>,
    within: Option<Uncertainty>,
}

impl Side {
    fn new(figures: &[Figure]) -> Self {
        assert!(!figures.is_empty(), "a side has a run");
        let values: Vec<f64> = figures.iter().map(|figure| figure.value.ln()).collect();
        let within: Option<Vec<Uncertainty>> = figures.iter().map(|figure| figure.within).collect();
        let within = within.map(|all| Uncertainty {
            variance: mean(&all.iter().map(|one| one.variance).collect::<Vec<_>>()),
            degrees: all.iter().map(|one| one.degrees).sum(),
        });
        let between = (values.len() > 1).then(|| variance(&values));
        Self { runs: values.len() as f64, mean: mean(&values), between, within }
    }

    /// Variance of the mean by the runs of this side.
    fn of_runs(&self) -> Option<Uncertainty> {
        let within = self.within.map_or(0.0, |within| within.variance);
        self.between.map(|between| Uncertainty { variance: between.max(within) / self.runs, degrees: self.runs - 1.0 })
    }
}

/// Compares two sides. `level` is how often a difference may be seen where none exists; `spread` the standard deviation
/// between runs, as a part of the figure, that is assumed where neither side has a second run.
pub fn difference(base: &[Figure], new: &[Figure], level: f64, spread: f64) -> Difference {
    let (base, new) = (Side::new(base), Side::new(new));
    let log = new.mean - base.mean;
    let ratio = log.exp_m1();
    let Some(of_difference) = uncertainty(&base, &new, spread) else {
        return Difference { ratio, interval: None, p: None };
    };
    let error = of_difference.variance.sqrt();
    if error == 0.0 {
        let p = if log == 0.0 { 1.0 } else { 0.0 };
        return Difference { ratio, interval: Some((ratio, ratio)), p: Some(p) };
    }
    let student = StudentsT::new(0.0, 1.0, of_difference.degrees.clamp(1.0, MOST_DEGREES)).expect("they are above 0");
    let reach = student.inverse_cdf(1.0 - level / 2.0) * error;
    let p = 2.0 * student.cdf(-(log / error).abs());
    Difference { ratio, interval: Some(((log - reach).exp_m1(), (log + reach).exp_m1())), p: Some(p) }
}

/// Variance of the difference of both means; `None` where nothing tells it.
fn uncertainty(base: &Side, new: &Side, spread: f64) -> Option<Uncertainty> {
    match (base.of_runs(), new.of_runs()) {
        (Some(base), Some(new)) => Some(sum(&[base, new])),
        (Some(several), None) => Some(one_run(several, base.runs, new.within)),
        (None, Some(several)) => Some(one_run(several, new.runs, base.within)),
        (None, None) => {
            let assumed = Uncertainty { variance: 2.0 * spread.powi(2), degrees: MOST_DEGREES };
            Some(sum(&[base.within?, new.within?, assumed]))
        }
    }
}

/// The variance between the runs of one side serves the other, whose single run varies at least as its seconds do.
fn one_run(of_several: Uncertainty, runs: f64, within: Option<Uncertainty>) -> Uncertainty {
    let one = (of_several.variance * runs).max(within.map_or(0.0, |within| within.variance));
    Uncertainty { variance: of_several.variance + one, degrees: of_several.degrees }
}

/// Adds variances of independent estimates, with the degrees of freedom of Welch and Satterthwaite.
fn sum(parts: &[Uncertainty]) -> Uncertainty {
    let variance: f64 = parts.iter().map(|part| part.variance).sum();
    let squares: f64 = parts.iter().map(|part| part.variance.powi(2) / part.degrees).sum();
    let degrees = if squares > 0.0 { variance.powi(2) / squares } else { MOST_DEGREES };
    Uncertainty { variance, degrees }
}
