//! How sure the mean of a series is whose values depend on those before them, as the seconds of a run do.
//!
//! The method is that of batch means: means of neighbouring values depend on each other less than the values do, so the
//! variance of the mean is estimated from batches of 1, 2, 4, … values, while batches are enough. As long as the
//! batches depend on each other the estimate grows with their length (Flyvbjerg and Petersen, 1989), so the largest one
//! is taken. A run of a minute is too short for long batches, so each estimate is corrected as if a batch kept a part
//! of the one before it (AR(1)).

#[cfg(test)]
mod tests;

/// Batches that an estimate needs. With fewer it is too rough to be worth more than the bias of shorter batches.
const LEAST_BATCHES: usize = 8;

/// Beyond this a correlation of few batches is too rough to correct by.
const MOST_KEPT: f64 = 0.8;

/// How far the mean of a series may be from the mean of what it samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uncertainty {
    /// Variance of the mean.
    pub variance: f64,
    /// Degrees of freedom of this estimate.
    pub degrees: f64,
}

/// The uncertainty of the mean of `series`; `None` for fewer than two values, which say nothing of it.
pub fn uncertainty(series: &[f64]) -> Option<Uncertainty> {
    let mut best = of_batches(series)?;
    let mut batches = series.to_vec();
    while batches.len() / 2 >= LEAST_BATCHES {
        // An odd value at the end is in no batch.
        batches = batches.chunks_exact(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect();
        if let Some(longer) = of_batches(&batches).filter(|longer| longer.variance > best.variance) {
            best = longer;
        }
    }
    Some(best)
}

/// The uncertainty of a ratio of two sums over the same pieces of a run, `above` and `below`; its variance is that of
/// the ratio.
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

/// The part of a batch that the next one keeps: the correlation of neighbours. A value that is below 0 by chance counts
/// as 0.
fn kept(batches: &[f64]) -> f64 {
    let center = mean(batches);
    let products: f64 = batches.windows(2).map(|pair| (pair[0] - center) * (pair[1] - center)).sum();
    let squares: f64 = batches.iter().map(|value| (value - center).powi(2)).sum();
    if squares > 0.0 { (products / squares).clamp(0.0, MOST_KEPT) } else { 0.0 }
}

/// Variance of what `values` are a sample of; 0 for a single one.
pub fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len().max(2) - 1) as f64
}

/// Mean of `values`.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
