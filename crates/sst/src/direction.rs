//! Which way a walk goes. It knows neither keys nor rows.

/// Which way a walk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// Keys and row ids grow.
    #[default]
    Forward,
    /// They shrink.
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

    /// Swaps two ends if the walk goes backward: a low and a high end become the near and the far one, and the other
    /// way round.
    pub fn near_far<T>(self, (low, high): (T, T)) -> (T, T) {
        match self {
            Self::Forward => (low, high),
            Self::Backward => (high, low),
        }
    }
}
