//! Decides whether two sets of runs differ in one figure, and by how much.
//!
//! Logarithms of figures are compared, since a difference of logarithms is a ratio of figures. Two runs of one
//! build differ more than two seconds of one run: memory is laid out differently, files grow in another order, and
//! the machine has other neighbours on its host. So a run counts as one value, and Welch's test compares the means
//! of the sides by the variance between their runs. With few runs this variance can be too low by chance, so it is
//! taken to be at least the variance within the runs.
//!
//! A side with a single run shows no variance between runs, so it is taken from the other side. If neither side has
//! a second run, an assumed variance is added to the variance within the runs.

use crate::batch_means::{Uncertainty, mean, variance};
use statrs::distribution::{ContinuousCDF, StudentsT};

#[cfg(test)]
pub mod tests;

/// Stands for unlimited degrees of freedom, with which the t distribution is practically normal.
const MOST_DEGREES: f64 = 1e6;

/// One figure of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure; above 0.
    pub value: f64,
    /// The relative variance of the figure, estimated from the run's intervals if possible.
    pub within: Option<Uncertainty>,
}

/// How far two sides differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The new mean divided by the mean of the base, minus 1.
    pub ratio: f64,
    /// The interval of the difference; `None` if nothing shows how certain the difference is.
    pub interval: Option<(f64, f64)>,
    /// The probability of at least this difference if the means are equal.
    pub p: Option<f64>,
}

/// The statistics of one side.
struct Side {
    runs: f64,
    mean: f64,
    /// The variance between runs; `None` if there is a single run.
    between: Option<f64>,
    within: Option<Uncertainty>,
}

impl Side {
    fn new(figures: &[Estimate]) -> Self {
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

    /// The variance of the mean, from the runs of this side.
    fn of_runs(&self) -> Option<Uncertainty> {
        let within = self.within.map_or(0.0, |within| within.variance);
        self.between.map(|between| Uncertainty { variance: between.max(within) / self.runs, degrees: self.runs - 1.0 })
    }
}

/// Compares two sides. `level` is the significance level of the interval. `spread` is the relative standard
/// deviation between runs that is assumed if neither side has a second run.
pub fn difference(base: &[Estimate], new: &[Estimate], level: f64, spread: f64) -> Difference {
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

/// The variance of the difference between the means; `None` if nothing shows it.
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

/// The variance of the difference if one side has a single run: its variance is taken from the other side's runs,
/// or from within the run if that is greater.
fn one_run(of_several: Uncertainty, runs: f64, within: Option<Uncertainty>) -> Uncertainty {
    let one = (of_several.variance * runs).max(within.map_or(0.0, |within| within.variance));
    Uncertainty { variance: of_several.variance + one, degrees: of_several.degrees }
}

/// Adds independent variances. Degrees of freedom by Welch and Satterthwaite.
fn sum(parts: &[Uncertainty]) -> Uncertainty {
    let variance: f64 = parts.iter().map(|part| part.variance).sum();
    let squares: f64 = parts.iter().map(|part| part.variance.powi(2) / part.degrees).sum();
    let degrees = if squares > 0.0 { variance.powi(2) / squares } else { MOST_DEGREES };
    Uncertainty { variance, degrees }
}
