//! Draws one of a few things, each of which has a weight: `DiscreteGenerator`.

use crate::random::Random;

/// Chooses among things by their weights.
#[derive(Clone, Debug)]
pub struct Discrete<T> {
    /// For each thing that can be drawn, its share of all draws.
    shares: Vec<(f64, T)>,
}

impl<T: Copy> Discrete<T> {
    /// Makes a generator for things with weights. The weights need not add up to 1. A thing with a weight of 0 or
    /// less is never drawn. `None` if no thing is left.
    pub fn new(weights: impl IntoIterator<Item = (f64, T)>) -> Option<Discrete<T>> {
        let weights: Vec<(f64, T)> = weights.into_iter().filter(|(weight, _)| *weight > 0.0).collect();
        let sum = weights.iter().fold(0.0, |sum, (weight, _)| sum + weight);
        let shares: Vec<(f64, T)> = weights.into_iter().map(|(weight, thing)| (weight / sum, thing)).collect();
        (!shares.is_empty()).then_some(Discrete { shares })
    }

    /// Draws the next thing.
    #[inline]
    pub fn next(&self, random: &mut Random) -> T {
        let mut draw = random.double();
        for &(share, thing) in &self.shares {
            if draw < share {
                return thing;
            }
            draw -= share;
        }
        // If rounding makes the shares add up to slightly less than 1, there is a gap, and the last thing is drawn.
        // The original throws an exception in this case.
        self.shares.last().expect("there is a thing: the constructor looked").1
    }
}
