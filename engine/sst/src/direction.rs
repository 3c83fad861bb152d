//! The direction of a walk. This module knows neither keys nor rows.

/// The direction of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// Keys and row ids grow.
    #[default]
    Forward,
    /// Keys and row ids shrink.
    Backward,
}

impl Direction {
    /// The other direction.
    pub fn reversed(self) -> Self {
        match self {
            Self::Forward => Self::Backward,
            Self::Backward => Self::Forward,
        }
    }

    /// Whether keys and row ids grow.
    #[inline]
    pub fn is_forward(self) -> bool {
        self == Self::Forward
    }

    /// The direction in which `b` lies, seen from `a`; forward if they are equal.
    pub fn towards<T: Ord>(a: T, b: T) -> Self {
        if b >= a { Self::Forward } else { Self::Backward }
    }

    /// Turns a low and a high end into the near and the far end of the walk, and vice versa: it swaps the two ends
    /// if the walk goes backward.
    pub fn near_far<T>(self, (low, high): (T, T)) -> (T, T) {
        match self {
            Self::Forward => (low, high),
            Self::Backward => (high, low),
        }
    }
}
