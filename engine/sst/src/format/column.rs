//! A column of numbers in a node: running totals or addresses, packed so that a child costs a few bytes instead of
//! whole words. This module does not know what the numbers mean.
//!
//! `value(i) = base + i * step + residual(i)`, wrapping. Residuals are unsigned and have `width` bytes each. Totals
//! grow nearly linearly from child to child, so residuals are small. Pages of the same size that lie one after the
//! other need no residuals at all.

/// Header of a packed column; the residuals lie elsewhere in the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Column {
    /// Value 0 without its residual.
    pub base: u64,
    /// Growth from one value to the next.
    pub step: u64,
    /// The bytes of a residual, 0 to 8.
    pub width: u8,
}

impl Column {
    /// The narrowest column for `values`. The step is the mean difference of the values, or their first difference.
    pub fn fit(values: impl ExactSizeIterator<Item = u64> + Clone) -> Self {
        let len = values.len() as u64;
        let mut ends = values.clone();
        let (Some(first), second) = (ends.next(), ends.next()) else { return Self::default() };
        let last = values.clone().last().unwrap_or(first);
        let mean = if len > 1 && last >= first { (last - first) / (len - 1) } else { 0 };
        let narrow = Self::with_step(values.clone(), mean);
        let jump = second.map_or(0, |second| second.wrapping_sub(first));
        if narrow.width == 0 || jump == mean || jump > u64::MAX / 2 {
            return narrow;
        }
        let other = Self::with_step(values, jump);
        if other.width < narrow.width { other } else { narrow }
    }

    fn with_step(values: impl Iterator<Item = u64>, step: u64) -> Self {
        let (mut low, mut high) = (i128::MAX, i128::MIN);
        for (i, value) in values.enumerate() {
            let residual = i128::from(value) - i as i128 * i128::from(step);
            low = low.min(residual);
            high = high.max(residual);
        }
        // With a step of 0, no residual needs more than 64 bits. If the residuals of this step need more, the
        // column is stored with a step of 0.
        let Ok(spread) = u64::try_from(high - low) else { return Self { base: 0, step: 0, width: 8 } };
        Self { base: low as u64, step, width: (64 - spread.leading_zeros()).div_ceil(8) as u8 }
    }

    /// Appends the residuals of `values`. `values` must be the same values for which the column was made.
    pub fn put(&self, out: &mut Vec<u8>, values: impl Iterator<Item = u64>) {
        for (i, value) in values.enumerate() {
            let residual = value.wrapping_sub(self.base).wrapping_sub((i as u64).wrapping_mul(self.step));
            out.extend_from_slice(&residual.to_le_bytes()[..usize::from(self.width)]);
        }
    }

    /// Value `i`. `residuals` are the residuals of the whole column.
    #[inline]
    pub fn get(&self, residuals: &[u8], i: usize) -> u64 {
        let width = usize::from(self.width);
        let linear = self.base.wrapping_add((i as u64).wrapping_mul(self.step));
        if width == 0 {
            return linear;
        }
        let at = i * width;
        let residual = match residuals.get(at..).and_then(|rest| rest.first_chunk()) {
            // A whole word is read and masked, because a read of a fixed length takes one instruction.
            Some(word) => u64::from_le_bytes(*word) & (u64::MAX >> (64 - 8 * u32::from(self.width))),
            None => {
                let mut bytes = [0; 8];
                bytes[..width].copy_from_slice(&residuals[at..at + width]);
                u64::from_le_bytes(bytes)
            }
        };
        linear.wrapping_add(residual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::StdRng};

    fn check(values: &[u64]) -> u8 {
        let column = Column::fit(values.iter().copied());
        let mut residuals = Vec::new();
        column.put(&mut residuals, values.iter().copied());
        assert_eq!(residuals.len(), values.len() * usize::from(column.width));
        for (i, &value) in values.iter().enumerate() {
            assert_eq!(column.get(&residuals, i), value, "{i} of {values:?} as {column:?}");
        }
        column.width
    }

    #[test]
    fn any_values_come_back() {
        let mut rng = StdRng::seed_from_u64(4);
        check(&[]);
        check(&[u64::MAX]);
        check(&[0, u64::MAX, 0, u64::MAX]);
        check(&[u64::MAX, 0]);
        for _ in 0..2_000 {
            let len = rng.random_range(1..50);
            let bits = rng.random_range(0..64);
            let values: Vec<u64> = (0..len).map(|_| rng.random::<u64>() >> bits).collect();
            check(&values);
        }
    }

    #[test]
    fn regular_growth_costs_nothing() {
        assert_eq!(check(&[7; 100]), 0);
        assert_eq!(check(&(0..700).map(|i| (1 << 40) | (i * 16384)).collect::<Vec<_>>()), 0);
        let mut rows: Vec<u64> = (1..=700).map(|i| i * 92).collect();
        rows[699] -= 50;
        assert_eq!(check(&rows), 1, "a short last page costs one byte a child, not two");
    }
}
