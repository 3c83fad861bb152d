//! The fault loop: run a step, fetch what it missed, run it again. A thread that waits or a future runs the loop.
//! This module also has composite steps, whose parts fault together.

use crate::{PageSource, Result, Session, Stop};
use std::future::poll_fn;

/// Runs `step` until it no longer faults. Every round brings all pages that the last run noted. Fetched pages stay
/// pinned until the step is done, so that each run gets further.
///
/// # Errors
///
/// The error of `step`, or of [`PageSource::fetch`]. The source is released in this case, too.
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

/// As [`retry`], but no thread waits for pages. A caller that drops this future before its end then releases or drops
/// the session.
///
/// # Errors
///
/// As [`retry`].
pub async fn retry_async<T>(session: &mut Session, mut step: impl FnMut(&Session) -> Result<T, Stop>) -> Result<T> {
    let outcome = loop {
        match step(session) {
            Ok(value) => break Ok(value),
            Err(Stop::Failed(error)) => break Err(*error),
            Err(Stop::Fault) => {
                if let Err(error) = poll_fn(|context| session.poll_fetch(context)).await {
                    break Err(error);
                }
            }
        }
    };
    session.release();
    outcome
}

/// A composite step: it runs a step for each of `parts` before it answers a fault, so that all of them fault
/// together. For each run, the caller says which parts are left to do.
///
/// # Errors
///
/// The first failure, after which no further step is run; otherwise [`Stop::Fault`] if any of the steps faulted.
pub fn together<I>(
    parts: impl IntoIterator<Item = I>,
    mut step: impl FnMut(I) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut missing = false;
    for part in parts {
        match step(part) {
            Ok(()) => {}
            Err(Stop::Fault) => missing = true,
            Err(stop) => return Err(stop),
        }
    }
    if missing { Err(Stop::Fault) } else { Ok(()) }
}
