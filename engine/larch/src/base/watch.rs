//! Progress and cancellation of long work. Long work reports to a callback of the program how far it has come, and
//! the callback decides whether to go on. If it does not, the unfinished part is undone: new files that no table
//! sees are removed, and the files that they should have replaced are kept.

use super::error::{Error, Result};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::ControlFlow;

/// How far long work has come. What is counted depends on the work: bytes or rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What is done.
    pub done: u64,
    /// The total amount of work, or 0 while it is not known.
    pub total: u64,
}

/// What a callback returns to long work that reports its [`Progress`]. A callback that returns nothing lets the work
/// go on. One that returns a [`ControlFlow`] can end it: after `Break`, the work fails with [`Error::Cancelled`].
///
/// The working thread calls the callback at each page or after some rows, even if nothing has changed since the last
/// call. So a callback that checks a flag or a deadline can end the work soon:
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// use std::ops::ControlFlow;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::time::{Duration, Instant};
///
/// static STOP: AtomicBool = AtomicBool::new(false); // set by another thread, or by a handler of signals
/// let end = Instant::now() + Duration::from_secs(60);
/// db.compact_with(|progress| {
///     println!("{} of {} bytes", progress.done, progress.total);
///     match STOP.load(Ordering::Relaxed) || Instant::now() > end {
///         true => ControlFlow::Break(()),
///         false => ControlFlow::Continue(()),
///     }
/// })?;
/// # Ok(())
/// # }
/// ```
pub trait GoOn {
    /// Whether the work goes on.
    fn goes_on(self) -> bool;
}

impl GoOn for () {
    fn goes_on(self) -> bool {
        true
    }
}

impl GoOn for ControlFlow<()> {
    fn goes_on(self) -> bool {
        self.is_continue()
    }
}

/// A piece of long work with its callback. Once the callback has ended the work, it is not called again.
pub(crate) struct Watch<'w> {
    /// The name of the work, for [`Error::Cancelled`].
    work: &'static str,
    goes_on: RefCell<Box<dyn FnMut(Progress) -> bool + 'w>>,
    at: Cell<Progress>,
    is_over: Cell<bool>,
}

impl<'w> Watch<'w> {
    /// Watches work that starts now.
    pub fn new<G: GoOn>(work: &'static str, mut watch: impl FnMut(Progress) -> G + 'w) -> Self {
        let goes_on = Box::new(move |progress| watch(progress).goes_on());
        Self { work, goes_on: RefCell::new(goes_on), at: Cell::default(), is_over: Cell::new(false) }
    }

    /// Reports progress to the callback. Returns whether the work goes on.
    pub fn tell(&self, done: u64, total: u64) -> bool {
        self.at.set(Progress { done, total });
        !self.is_over()
    }

    /// Whether the work must end.
    pub fn is_over(&self) -> bool {
        if !self.is_over.get() {
            let goes_on = (self.goes_on.borrow_mut())(self.at.get());
            self.is_over.set(!goes_on);
        }
        self.is_over.get()
    }

    /// Returns an error if the work must end.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] if the callback has ended the work.
    pub fn check(&self) -> Result<()> {
        if self.is_over() { Err(Error::Cancelled(self.work)) } else { Ok(()) }
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("work", &self.work).field("at", &self.at).finish_non_exhaustive()
    }
}
