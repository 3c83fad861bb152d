//! The fault loop: it runs a step, fetches the pages that the step missed, and runs the step again. The loop runs
//! in a thread that waits, or in a future. This module also has composite steps. The parts of a composite step
//! fault together.

use crate::{PageSource, Result, Session, Stop};
use std::future::poll_fn;

/// Runs `step` until it no longer faults. Every round brings all pages that the last run has noted. Fetched pages
/// stay pinned until the step is done, so that each run gets further.
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

/// Does the same as [`retry`], but no thread waits for pages. If this future is dropped before its end, its caller
/// has to release or drop the session.
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

/// A composite step. It runs a step for each of `parts` before it answers with a fault, so that all these steps
/// fault together. For each run, the caller says which parts are left to do.
///
/// # Errors
///
/// The error of the first step that fails; after it no further step is run. If no step fails but at least one step
/// faults, the result is [`Stop::Fault`].
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
