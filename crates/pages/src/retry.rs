//! The fault loop: run a step, fetch what it missed, run it again, by a thread that waits or by a future; and steps made of
//! several, which fault together.

use crate::{PageSource, Result, Session, Stop};
use std::future::poll_fn;
use std::task::{Context, Poll};

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

/// A source whose pages a future can wait for.
pub trait AsyncSource: PageSource {
    /// As [`PageSource::fetch`], but [`Poll::Pending`] while pages are on their way: the task of `context` is woken when it
    /// is worth asking again. Nothing is asked of the source in between.
    fn poll_fetch(&mut self, context: &mut Context<'_>) -> Poll<Result<()>>;
}

impl AsyncSource for Session {
    fn poll_fetch(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        Session::poll_fetch(self, context)
    }
}

/// As [`retry`], but no thread waits for pages. Who drops this half done releases or drops the source.
pub async fn retry_async<S: AsyncSource, T>(source: &mut S, mut step: impl FnMut(&S) -> Result<T, Stop>) -> Result<T> {
    let outcome = loop {
        match step(source) {
            Ok(value) => break Ok(value),
            Err(Stop::Failed(error)) => break Err(*error),
            Err(Stop::Fault) => {
                if let Err(error) = poll_fn(|context| source.poll_fetch(context)).await {
                    break Err(error);
                }
            }
        }
    };
    source.release();
    outcome
}

/// A composite step: runs a step for each of `parts` before it answers a fault, so that all of them fault together. Which
/// parts are left to do, the caller says each time it is run.
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
