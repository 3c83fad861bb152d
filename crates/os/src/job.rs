//! Background work as pollable jobs: a real machine gives each worker a thread, a simulated one polls them on the
//! caller's thread, so that one seed decides everything.

use crate::sync::Arc;
use std::fmt::Debug;

/// What a poll achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// A bounded piece of work was done; poll again.
    Worked,
    /// Nothing to do until the worker is woken.
    Idle,
}

/// A piece of background work, cut into bounded steps.
pub trait Job: Send + Sync {
    /// Does the next step.
    fn poll(&self) -> Polled;
}

/// Whoever polls a job. Dropping it stops the polling and waits for a running poll to end.
pub trait Worker: Send + Sync + Debug {
    /// Says that there may be work. Returns at once on a real machine; a simulated one only remembers it.
    fn wake(&self);
    /// On a machine without threads: polls until idle, on this thread. Does nothing where a thread polls.
    fn drive(&self);
}

/// Where workers come from.
pub trait Threads: Send + Sync + Debug {
    /// Makes a worker that polls `job`, as if woken once already.
    fn worker(&self, name: &str, job: Arc<dyn Job>) -> Box<dyn Worker>;
    /// Whether workers have threads of their own.
    fn are_real(&self) -> bool;
}
