//! The fault loop: run a step, fetch what it missed, run it again.

use crate::{PageSource, Result, Stop};

/// Runs `step` until it no longer faults; every round brings all pages the last run noted. Pages fetched stay pinned
/// until the step is done, so that each run gets further.
pub fn retry<S: PageSource + ?Sized, T>(source: &S, mut step: impl FnMut() -> Result<T, Stop>) -> Result<T> {
    let outcome = loop {
        match step() {
            Ok(value) => break Ok(value),
            Err(Stop::Failed(error)) => break Err(*error),
            Err(Stop::Fault) => {
                if let Err(error) = source.fetch() {
                    break Err(error);
                }
            }
        }
    };
    source.release();
    outcome
}
