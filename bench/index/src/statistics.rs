//! The place of what is to be measured of statistics: counts, sizes and histograms of ranges. They are not part of the
//! engine yet, so nothing is measured.

/// What the report says instead.
pub const NOT_YET: [&str; 2] = [
    "count, size of a range                  not yet (the engine has no statistics)",
    "histogram of 10 buckets                 not yet (the engine has no statistics)",
];
