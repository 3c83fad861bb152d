//! Sets of keys, as sorted lists of byte ranges that do not overlap.
//!
//! Invariant: each range ends at or before the beginning of the next one, and no range is empty. Ranges that touch
//! are not joined, because each of them may stand for one value of a field.

use serde::{Deserialize, Serialize};
use std::ops::Bound;

#[cfg(test)]
mod tests;

/// The keys from `low` to before `high`, or all keys from `low` on if `high` is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRange {
    /// The first key.
    pub low: Vec<u8>,
    /// The end of the range, exclusive; `None` if it contains all keys from `low` on.
    pub high: Option<Vec<u8>>,
}

/// A set of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySet {
    ranges: Vec<KeyRange>,
}

impl KeyRange {
    /// All keys.
    pub fn all() -> Self {
        Self { low: Vec::new(), high: None }
    }

    /// The keys that begin with these bytes.
    pub fn of_prefix(prefix: Vec<u8>) -> Self {
        let high = after_prefix(&prefix);
        Self { low: prefix, high }
    }

    /// The bounds of the range in the form that the engine takes.
    pub fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (Bound::Included(self.low.clone()), self.high.clone().map_or(Bound::Unbounded, Bound::Excluded))
    }

    /// The range of keys that are `prefix` followed by a key of this range.
    pub fn below(&self, prefix: &[u8]) -> Self {
        let high = match &self.high {
            Some(high) => Some([prefix, high].concat()),
            None => after_prefix(prefix),
        };
        Self { low: [prefix, &self.low].concat(), high }
    }

    fn is_empty(&self) -> bool {
        self.high.as_ref().is_some_and(|high| *high <= self.low)
    }
}

/// The least string after all strings with `prefix`; `None` if no such string exists.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    match rows::prefix_range(prefix.to_vec()).1 {
        Bound::Excluded(end) => Some(end),
        _ => None,
    }
}

/// Whether the end `one` is at or before the end `other`.
fn ends_first(one: &Option<Vec<u8>>, other: &Option<Vec<u8>>) -> bool {
    match (one, other) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(one), Some(other)) => one <= other,
    }
}

impl KeySet {
    /// No key.
    pub fn none() -> Self {
        Self::default()
    }

    /// All keys.
    pub fn all() -> Self {
        Self { ranges: vec![KeyRange::all()] }
    }

    /// The keys in any of these ranges.
    pub fn of(mut ranges: Vec<KeyRange>) -> Self {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by(|one, other| one.low.cmp(&other.low));
        let mut joined: Vec<KeyRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match joined.last_mut() {
                Some(last) if last.high.as_ref().is_none_or(|high| *high > range.low) => {
                    if ends_first(&last.high, &range.high) {
                        last.high = range.high;
                    }
                }
                _ => joined.push(range),
            }
        }
        Self { ranges: joined }
    }

    /// The same set, with ranges that touch joined into one.
    pub fn joined(self) -> Self {
        let mut joined: Vec<KeyRange> = Vec::with_capacity(self.ranges.len());
        for range in self.ranges {
            match joined.last_mut() {
                Some(last) if last.high.as_ref() == Some(&range.low) => last.high = range.high,
                _ => joined.push(range),
            }
        }
        Self { ranges: joined }
    }

    /// The ranges, in order.
    pub fn ranges(&self) -> &[KeyRange] {
        &self.ranges
    }

    /// Whether the set contains all keys.
    pub fn is_all(&self) -> bool {
        matches!(&self.ranges[..], [KeyRange { low, high: None }] if low.is_empty())
    }

    /// The keys that are in at least one of the two sets.
    pub fn union(mut self, other: Self) -> Self {
        self.ranges.extend(other.ranges);
        Self::of(self.ranges)
    }

    /// The keys that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut one, mut two) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        let mut ranges = Vec::new();
        while let (Some(a), Some(b)) = (one.peek(), two.peek()) {
            let first_ends = ends_first(&a.high, &b.high);
            let high = if first_ends { a.high.clone() } else { b.high.clone() };
            let range = KeyRange { low: a.low.clone().max(b.low.clone()), high };
            if !range.is_empty() {
                ranges.push(range);
            }
            if first_ends {
                one.next();
            } else {
                two.next();
            }
        }
        Self { ranges }
    }

    /// The keys of `within` that are not in the set.
    pub fn complement_in(&self, within: &KeyRange) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut low = Some(Vec::new());
        for range in &self.ranges {
            if let Some(low) = low.take() {
                ranges.push(KeyRange { low, high: Some(range.low.clone()) });
            }
            low = range.high.clone();
        }
        ranges.extend(low.map(|low| KeyRange { low, high: None }));
        Self::of(ranges).intersection(&Self::of(vec![within.clone()]))
    }
}
