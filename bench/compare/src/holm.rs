//! Corrects many comparisons so that the probability of an error in any of them is at most the level (Holm, 1979).

#[cfg(test)]
mod tests;

/// Raises each p-value in `p` so that it can be compared with the level. Suppose the two sides do not differ at all.
/// Then the probability that any of the raised p-values is below the level is at most the level. This guarantee
/// holds even if the comparisons depend on each other.
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
