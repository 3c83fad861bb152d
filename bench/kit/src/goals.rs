//! A goal is a bound of a figure; the report of goals says of each whether it is reached, and ends with a count of
//! those that are not.

use std::fmt;

/// What a figure is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Bound {
    /// Whether `figure` is as it should be. A figure that is no number is not.
    pub fn is_reached(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(bound) => figure >= bound,
            Self::AtMost(bound) => figure <= bound,
        }
    }

    /// The number alone.
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

/// The word of a report for a goal that is reached or not.
pub fn word(is_reached: bool) -> &'static str {
    if is_reached { "reached" } else { "falls short" }
}

/// The last line of a report.
pub fn summary(short: usize) -> String {
    format!("falls short: {short}\n")
}
