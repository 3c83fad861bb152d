//! Ends long work early: by a call, or when its time is over. It does not know the work; the work asks the limit from
//! time to time. Work that is cancelled undoes what it has not finished: new files that no table sees are removed, and
//! the files that they were to replace stay.
//!
//! Thread safety: a [`Cancel`] may be used from any thread, also in a signal handler.

use super::error::{Error, Result};
use os::Clock;
use os::sync::Arc;
use os::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A handle that ends long work early, see [`Table::until`](crate::Table::until). Clones end the same work.
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
    /// A handle without a limit of time: the work ends early only after [`Cancel::cancel`].
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle whose work may take `time`. The time of each piece of work begins when that piece begins.
    pub fn after(time: Duration) -> Self {
        Self { asked: Arc::default(), within: Some(time) }
    }

    /// Ends all work that is under way with this handle or a clone of it, and all work that begins with one later. The
    /// work ends at its next page or row, with [`Error::Cancelled`].
    pub fn cancel(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}

/// When one piece of work must end.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    cancel: Cancel,
    clock: Arc<dyn Clock>,
    end: Option<Duration>,
}

impl Limit {
    /// The limit of work that begins now.
    pub fn new(clock: &Arc<dyn Clock>, cancel: &Cancel) -> Self {
        let clock = clock.clone();
        let end = cancel.within.map(|within| clock.now().saturating_add(within));
        Self { cancel: cancel.clone(), clock, end }
    }

    /// No limit: the work goes on to its end.
    pub fn none(clock: &Arc<dyn Clock>) -> Self {
        Self::new(clock, &Cancel::new())
    }

    /// Whether the work must end.
    pub fn is_over(&self) -> bool {
        self.cancel.is_cancelled() || self.end.is_some_and(|end| end <= self.clock.now())
    }

    /// Ends `work` with an error when it must end.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`].
    pub fn check(&self, work: &'static str) -> Result<()> {
        if self.is_over() { Err(Error::Cancelled(work)) } else { Ok(()) }
    }
}
