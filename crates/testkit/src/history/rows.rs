//! Keys, values and ranges out of a small world, so that histories meet themselves again.

use super::History;
use crate::model::KeyRange;
use rand::RngExt;
use rand::seq::IndexedRandom;
use std::ops::Bound;

impl History {
    /// Mostly one of a few dozen short keys; sometimes one that differs from its neighbours after 64 bytes only, where
    /// bounds are cut, one of bytes that sort at the edges, or a long one.
    pub(super) fn key(&mut self) -> Vec<u8> {
        let rng = &mut self.rng;
        match rng.random_range(0..100) {
            0..70 => format!("k{:02}", rng.random_range(0..60)).into_bytes(),
            70..85 => {
                let mut key = vec![b'p'; rng.random_range(62..66)];
                key.extend_from_slice(format!("{:02}", rng.random_range(0..20)).as_bytes());
                key
            }
            85..95 => {
                let bytes = rng.random_range(0..4);
                (0..bytes).map(|_| *[0, 1, b'k', 0xff].choose(rng).expect("there are four")).collect()
            }
            _ => {
                let mut key = vec![b'x'; rng.random_range(0..400)];
                key.extend_from_slice(format!("{}", rng.random_range(0..9)).as_bytes());
                key
            }
        }
    }

    /// A value like no other, unless it is empty: of a few bytes, of some, or as long as one may be.
    pub(super) fn value(&mut self) -> Vec<u8> {
        self.values += 1;
        let most = (self.options.write_buffer_bytes / 4) as usize;
        let rng = &mut self.rng;
        let bytes = match rng.random_range(0..10) {
            0 => return Vec::new(),
            1..7 => rng.random_range(0..20),
            7..9 => rng.random_range(20..200),
            _ => rng.random_range(200..=most),
        };
        let mut value = format!("{}:", self.values).into_bytes();
        if rng.random() {
            value.resize(bytes.max(value.len()), b'v');
        } else {
            value.extend(std::iter::repeat_with(|| rng.random::<u8>()).take(bytes.saturating_sub(value.len())));
        }
        value
    }

    /// Any range: bounded or not, inclusive or not, often empty.
    pub(super) fn range(&mut self) -> KeyRange {
        let (low, high) = (self.bound(), self.bound());
        if self.rng.random_range(0..4) == 0 {
            return (low, high);
        }
        match (&low, &high) {
            (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) if a > b => (high, low),
            _ => (low, high),
        }
    }

    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.rng.random_range(0..8) {
            0 => Bound::Unbounded,
            1..5 => Bound::Included(self.key()),
            _ => Bound::Excluded(self.key()),
        }
    }
}
