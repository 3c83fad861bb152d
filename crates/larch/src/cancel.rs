//! Long work that can be given up: by a call, or when its time is over. What a cancelled piece of work has not finished is
//! as it was before: files that no table saw are removed, those that it was to replace stay.
//!
//! Thread safety: a [`Cancel`] may be used from any thread, also from a signal handler's.

use crate::error::{Error, Result};
use os::Clock;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A handle that gives up long work. Clones give up the same work.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// # let fruit = db.table("fruit")?;
/// let cancel = larch::Cancel::new();
/// fruit.until(&cancel).compact()?;
/// cancel.cancel(); // in another thread, or when a user presses ^C
/// assert!(matches!(fruit.until(&cancel).compact(), Err(larch::Error::Cancelled(_))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    asked: Arc<AtomicBool>,
    within: Option<Duration>,
}

impl Cancel {
    /// One that is never over by itself.
    pub fn new() -> Self {
        Self::default()
    }

    /// One whose work may take so long, each piece from its own beginning.
    pub fn after(time: Duration) -> Self {
        Self { asked: Arc::default(), within: Some(time) }
    }

    /// Gives up all work that is under way with this handle or a clone of it, and what would begin with one later. The work
    /// ends at its next page or row.
    pub fn cancel(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Whether it was given up by a call.
    pub fn is_cancelled(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}

/// One piece of work that may be given up.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    cancel: Cancel,
    clock: Arc<dyn Clock>,
    end: Option<Duration>,
}

impl Limit {
    /// Work that begins now.
    pub fn new(clock: &Arc<dyn Clock>, cancel: &Cancel) -> Self {
        let clock = clock.clone();
        let end = cancel.within.map(|within| clock.now().saturating_add(within));
        Self { cancel: cancel.clone(), clock, end }
    }

    /// Work that goes on to its end.
    pub fn none(clock: &Arc<dyn Clock>) -> Self {
        Self::new(clock, &Cancel::new())
    }

    /// Whether to give up.
    pub fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || self.end.is_some_and(|end| end <= self.clock.now())
    }

    /// An error about `work` if it is to be given up.
    pub fn check(&self, work: &'static str) -> Result<()> {
        if self.is_over() { Err(Error::Cancelled(work)) } else { Ok(()) }
    }
}
