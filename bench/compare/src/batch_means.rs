//! Estimates the uncertainty of the mean of a series whose values are correlated, as the seconds of a run are.
//!
//! The method is batch means: means of batches of neighbouring values are less correlated than the values
//! themselves. The variance of the mean is estimated from batches of 1, 2, 4, … values, until too few batches would
//! be left. Correlated batches give too low an estimate, so the largest one is taken (Flyvbjerg and Petersen,
//! 1989). A run of a minute is too short for long batches. Therefore each estimate is also corrected for
//! correlation between its batches, assuming AR(1).

#[cfg(test)]
mod tests;

/// The least number of batches. With fewer, the noise of an estimate does more harm than the bias of shorter
/// batches.
const LEAST_BATCHES: usize = 8;

/// A cap on the correlation that an estimate is corrected for. A greater correlation among a few batches is too
/// uncertain to use.
const MOST_KEPT: f64 = 0.8;

/// How far the mean of a series may be from the true mean, that of an endless series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uncertainty {
    /// Variance of the mean.
    pub variance: f64,
    /// Degrees of freedom of the variance's estimate.
    pub degrees: f64,
}

/// The uncertainty of the mean of `series`; `None` for fewer than two values.
pub fn uncertainty(series: &[f64]) -> Option<Uncertainty> {
    let mut best = of_batches(series)?;
    let mut batches = series.to_vec();
    while batches.len() / 2 >= LEAST_BATCHES {
        // An odd last value is dropped.
        batches = batches.chunks_exact(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect();
        if let Some(longer) = of_batches(&batches).filter(|longer| longer.variance > best.variance) {
            best = longer;
        }
    }
    Some(best)
}

/// The uncertainty of the ratio sum(`above`) / sum(`below`), where both have a summand for each piece of a run.
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

/// The correlation of neighbouring batches, clamped to 0 if it is negative by chance, and to [`MOST_KEPT`].
fn kept(batches: &[f64]) -> f64 {
    let center = mean(batches);
    let products: f64 = batches.windows(2).map(|pair| (pair[0] - center) * (pair[1] - center)).sum();
    let squares: f64 = batches.iter().map(|value| (value - center).powi(2)).sum();
    if squares > 0.0 { (products / squares).clamp(0.0, MOST_KEPT) } else { 0.0 }
}

/// The sample variance of `values`; 0 for a single value.
pub fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len().max(2) - 1) as f64
}

/// Mean of `values`.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
