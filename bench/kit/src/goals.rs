//! Checks measured figures against goals, which are bounds. A report says of each goal whether it is reached, and
//! ends with the number of goals that are not.

use std::fmt;

/// The bound of a goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The figure is to be this or more.
    AtLeast(f64),
    /// The figure is to be this or less.
    AtMost(f64),
}

impl Bound {
    /// Whether `figure` is within the bound. A figure that is NaN is not within any bound.
    pub fn is_reached(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(bound) => figure >= bound,
            Self::AtMost(bound) => figure <= bound,
        }
    }

    /// The number of the bound.
    pub fn number(self) -> f64 {
        match self {
            Self::AtLeast(bound) | Self::AtMost(bound) => bound,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(out, "at least {bound}"),
            Self::AtMost(bound) => write!(out, "at most {bound}"),
        }
    }
}

/// The word for a goal in a report, which depends on whether the goal is reached.
pub fn word(is_reached: bool) -> &'static str {
    if is_reached { "reached" } else { "falls short" }
}

/// The last line of a report.
pub fn summary(short: usize) -> String {
    format!("falls short: {short}\n")
}
