//! Keeps the error of many comparisons at its level (Holm, 1979).

#[cfg(test)]
mod tests;

/// Each of `p`, raised so that it may be compared with the level: the chance that any of them falls below it where
/// nothing differs is at most the level, however they depend on each other.
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
