//! The fault loop: it runs a step, fetches the pages that the step missed, and runs the step again, in a thread
//! that waits or in a future. This module also has composite steps, whose parts fault together.

use crate::{PageLender, PageSource, Result, Session, Stop};
use std::future::poll_fn;

/// Runs `step` until it no longer faults. Each round brings all pages that the last run noted. They stay pinned
/// until the step is done, so that each run gets further.
///
/// # Errors
///
/// The error of `step` or of [`PageSource::fetch`]. The source is released in this case, too.
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

/// Like [`retry`], but no thread waits for pages. If this future is dropped before it ends, the caller has to
/// release or drop the session.
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

/// A composite step: runs `step` for each of `parts`, and only then faults, so that all parts fault together. On
/// each run, the caller passes the parts that are left to do.
///
/// # Errors
///
/// The error of the first part that fails; later parts are not run. [`Stop::Fault`] if no part fails but at least
/// one faults.
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
