//! The middle and the spread of repeated measurements.

#[cfg(test)]
mod tests;

/// The middle figure, or the mean of the two middle figures.
///
/// # Panics
///
/// Panics if it is given no figures.
pub fn median(figures: &[f64]) -> f64 {
    middle(&sorted(figures))
}

/// The difference between the upper and the lower quartile, as a part of the median.
///
/// # Panics
///
/// Panics if it is given no figures.
pub fn spread(figures: &[f64]) -> f64 {
    let sorted = sorted(figures);
    let quarter = sorted.len() / 4;
    (sorted[sorted.len() - 1 - quarter] - sorted[quarter]) / middle(&sorted).max(f64::MIN_POSITIVE)
}

/// The least and the greatest figure.
pub fn extremes(figures: &[f64]) -> (f64, f64) {
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    (least, figures.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

fn sorted(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}
