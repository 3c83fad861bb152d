//! Keys from one string to before another. It knows keys and nothing else.

use crate::bounds;
use sst::KeyBounds;
use std::ops::Bound;

/// A range of keys that is not empty: from `start` to before `end`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// First string that belongs to it.
    pub start: Vec<u8>,
    /// First string after it; `None`: it has no end.
    pub end: Option<Vec<u8>>,
}

impl Span {
    /// From `start` to before `end`, if any string is.
    pub fn new(start: Vec<u8>, end: Option<Vec<u8>>) -> Option<Self> {
        end.as_ref().is_none_or(|end| start < *end).then_some(Self { start, end })
    }

    /// The keys between two bounds, if there can be any.
    pub fn between((low, high): &bounds::Owned) -> Option<Self> {
        let range = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
        bounds::half_open(&range).map(|(start, end)| Self { start, end })
    }

    /// All keys that may be in a file, as readers see it.
    pub fn of_bounds(bounds: &KeyBounds) -> Self {
        Self { start: bounds.low.clone(), end: bounds.high.as_deref().map(after) }
    }

    /// One key.
    pub fn of_key(key: &[u8]) -> Self {
        Self { start: key.to_vec(), end: Some(after(key)) }
    }

    /// What belongs to both.
    pub fn meet(&self, other: &Self) -> Option<Self> {
        let start = (&self.start).max(&other.start).clone();
        let end = match (&self.end, &other.end) {
            (Some(a), Some(b)) => Some(a.min(b).clone()),
            (a, b) => a.as_ref().or(b.as_ref()).cloned(),
        };
        Self::new(start, end)
    }

    /// Whether `key` is before its end.
    pub fn ends_after(&self, key: &[u8]) -> bool {
        self.end.as_deref().is_none_or(|end| key < end)
    }

    /// As a lower bound.
    pub fn low(&self) -> Bound<&[u8]> {
        Bound::Included(&self.start)
    }

    /// As an upper bound.
    pub fn high(&self) -> Bound<&[u8]> {
        self.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded)
    }
}

/// The string right after `key`.
pub fn after(key: &[u8]) -> Vec<u8> {
    let mut after = Vec::with_capacity(key.len() + 1);
    after.extend_from_slice(key);
    after.push(0);
    after
}
