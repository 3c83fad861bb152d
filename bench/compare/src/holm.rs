//! Holm's correction for multiple comparisons (1979): bounds the probability of any false difference by the level.

#[cfg(test)]
mod tests;

/// Raises each p-value so that it can be compared with the level directly. If nothing differs, the probability that
/// any raised value is below the level is at most the level, even if the comparisons depend on each other.
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut raised = vec![0.0; p.len()];
    let mut least = 0.0_f64;
    for (place, index) in order.into_iter().enumerate() {
        least = least.max(((p.len() - place) as f64 * p[index]).min(1.0));
        raised[index] = least;
    }
    raised
}
