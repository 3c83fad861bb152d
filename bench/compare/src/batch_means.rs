//! Estimates how exact the mean of a series is. Each value of the series may depend on the values before it. For
//! example, what a run does in a second may depend on the second before.
//!
//! The method is called batch means. The means of batches of neighbouring values depend less on each other than the
//! values do. So the variance of the mean is estimated from batches of 1, 2, 4, … values, until too few batches
//! would be left. If the batches depend on each other, longer batches give a greater estimate (Flyvbjerg and
//! Petersen, 1989). So the largest estimate is taken. A run of a minute is too short for long batches. So each
//! estimate is corrected. For this correction, each batch is assumed to keep a part of the batch before it (AR(1)).

#[cfg(test)]
mod tests;

/// The least number of batches for an estimate. With fewer batches, an estimate is so rough that it does more harm
/// than the bias of shorter batches.
const LEAST_BATCHES: usize = 8;

/// The greatest correlation of neighbouring batches with which an estimate is corrected. If a few batches show a
/// greater correlation, their estimate is too rough.
const MOST_KEPT: f64 = 0.8;

/// How far the mean of a series may be from the true mean: the mean of an endless series of this kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uncertainty {
    /// Variance of the mean.
    pub variance: f64,
    /// Degrees of freedom of the variance's estimate.
    pub degrees: f64,
}

/// The uncertainty of the mean of `series`. `None` for fewer than two values, because one value does not show any
/// uncertainty.
pub fn uncertainty(series: &[f64]) -> Option<Uncertainty> {
    let mut best = of_batches(series)?;
    let mut batches = series.to_vec();
    while batches.len() / 2 >= LEAST_BATCHES {
        // If the number of values is odd, the last value is in no batch.
        batches = batches.chunks_exact(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect();
        if let Some(longer) = of_batches(&batches).filter(|longer| longer.variance > best.variance) {
            best = longer;
        }
    }
    Some(best)
}

/// The uncertainty of a ratio of two sums. `above` has the summands of the first sum, and `below` has the summands
/// of the sum by which the first sum is divided. Both lists have one summand for each piece of a run. The variance
/// in the result is the variance of this ratio.
pub fn uncertainty_of_ratio(above: &[f64], below: &[f64]) -> Option<Uncertainty> {
    assert_eq!(above.len(), below.len(), "both are sums over the same pieces");
    let sum: f64 = below.iter().sum();
    if sum <= 0.0 {
        return None;
    }
    let ratio = above.iter().sum::<f64>() / sum;
    let mean = sum / below.len() as f64;
    let rests: Vec<f64> = above.iter().zip(below).map(|(above, below)| (above - ratio * below) / mean).collect();
    uncertainty(&rests)
}

fn of_batches(batches: &[f64]) -> Option<Uncertainty> {
    let degrees = batches.len().checked_sub(1).filter(|degrees| *degrees > 0)? as f64;
    let kept = kept(batches);
    Some(Uncertainty { variance: variance(batches) / batches.len() as f64 * (1.0 + kept) / (1.0 - kept), degrees })
}

/// How much of the difference between a batch and the mean the next batch keeps. This is the correlation of
/// neighbouring batches. A correlation that is below 0 by chance is taken as 0.
fn kept(batches: &[f64]) -> f64 {
    let center = mean(batches);
    let products: f64 = batches.windows(2).map(|pair| (pair[0] - center) * (pair[1] - center)).sum();
    let squares: f64 = batches.iter().map(|value| (value - center).powi(2)).sum();
    if squares > 0.0 { (products / squares).clamp(0.0, MOST_KEPT) } else { 0.0 }
}

/// The estimated variance of the population from which `values` are a sample; 0 for a single value.
pub fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len().max(2) - 1) as f64
}

/// Mean of `values`.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
