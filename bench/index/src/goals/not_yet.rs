//! Goals of what the engine cannot do yet.

use super::{Line, Verdict};
use crate::workplace::Workplace;
use crate::{Result, Size};

fn line(metric: &'static str, goal: &str, missing: &str) -> Line {
    let (goal, measured) = (goal.to_owned(), format!("not yet ({missing})"));
    Line { metric, goal, measured, verdict: Verdict::NotYet, notes: Vec::new() }
}

/// Counts, sizes, histograms.
pub fn statistics(_: &Workplace, _: Size) -> Result<Vec<Line>> {
    let bounds = "an interval that holds the truth, 0 data reads, <= 2 x height index pages";
    Ok(vec![
        line("count and size of a range", bounds, "the engine has no statistics"),
        line(
            "statistics with 10 buckets",
            "the same, error of a bucket <= half a resolution",
            "the engine has no statistics",
        ),
    ])
}

/// What many readers of an index page share.
pub fn sharing(_: &Workplace, _: Size) -> Result<Vec<Line>> {
    Ok(vec![line("sharing of index pages among readers", "2 -> 1 reads, +70 %", "comes with the work on the cache")])
}
