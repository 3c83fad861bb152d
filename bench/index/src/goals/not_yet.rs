//! Goals of what the engine cannot do yet.

use super::{Line, Verdict};
use crate::workplace::Workplace;
use crate::{Result, Size};

/// What many readers of an index page share.
pub fn sharing(_: &Workplace, _: Size) -> Result<Vec<Line>> {
    Ok(vec![Line {
        metric: "sharing of index pages among readers",
        goal: "2 -> 1 reads, +70 %".into(),
        measured: "not yet (comes with the work on the cache)".into(),
        verdict: Verdict::NotYet,
        notes: Vec::new(),
    }])
}
