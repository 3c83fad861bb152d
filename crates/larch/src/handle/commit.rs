//! A commit that was applied and may become durable later. This module only asks whether the commit is durable, and
//! waits for that. `log/sync.rs` decides who runs the sync.
//!
//! A handle keeps its database open. The handle may be sent to another thread, and may be dropped at any time.

use crate::base::error::Result;
use crate::core::Core;
use crate::core::handle::DatabaseHandle;
use crate::log::Ticket;
use os::sync::Arc;
use sst::Version;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A commit that reads already see and that becomes durable later. [`Batch::submit`](crate::Batch::submit) returns
/// this handle.
///
/// The commit becomes durable soon if the program asks for this. It can ask in three ways: [`Commit::wait`] blocks
/// the thread until the commit is durable, `.await` waits in a task of any executor, and [`Commit::on_durable`]
/// registers a callback. One sync makes all commits durable that were applied before the sync. So a thread can
/// submit thousands of commits before it waits, and they need only a few syncs. If nobody asks, the commit becomes
/// durable together with a later commit, or when its rows are written to a file.
///
/// Commits become durable in the order of their versions. A dropped handle changes nothing for its commit. As long
/// as the handle exists, it keeps the database open.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let db = larch::Database::open(&directory)?;
/// let fruit = db.table("fruit")?;
/// let mut commits = Vec::new();
/// for (name, color) in [("apple", "red"), ("banana", "yellow"), ("cherry", "red")] {
///     let mut batch = db.batch();
///     batch.insert(&fruit, name, color);
///     commits.push(batch.submit()?);
/// }
/// assert!(fruit.contains_key("cherry")?); // Reads see it.
/// for commit in &commits {
///     commit.wait()?; // The first one syncs for all.
/// }
/// assert_eq!(db.durable_version(), commits[2].version());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// If a sync of the log fails, a program that waits for a commit that is not durable yet gets
/// [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown). This is so for all three ways to wait. Only opening
/// the database again shows whether the commit is durable. Until then the database refuses writes. In a child
/// process that was forked after the database was opened, the program gets [`Error::Forked`](crate::Error::Forked).
#[derive(Debug)]
pub struct Commit {
    handle: Arc<DatabaseHandle>,
    version: Version,
    /// The place of this handle in the queue of those that wait for commits to be durable. `None` until the handle
    /// is polled for the first time.
    ticket: Option<Ticket>,
}

impl Commit {
    pub(super) fn new(handle: Arc<DatabaseHandle>, version: Version) -> Self {
        Self { handle, version, ticket: None }
    }

    fn core(&self) -> &Arc<Core> {
        self.handle.core()
    }

    /// The version of the commit, which is its place in the order of all commits.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether this commit and all earlier commits are on stable storage. This call does not ask for a sync and does
    /// not wait.
    pub fn is_durable(&self) -> bool {
        self.core().is_durable(self.version)
    }

    /// Waits until the commit is durable, even if its batch has
    /// [`Durability::Buffered`](crate::Durability::Buffered). Returns the version. Either this thread runs the
    /// sync, or it waits for a sync that another thread runs.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown) if a sync has failed, and
    /// [`Error::Forked`](crate::Error::Forked); see [`Commit`].
    pub fn wait(&self) -> Result<Version> {
        self.core().make_durable(self.version).map(|()| self.version)
    }

    /// When the commit is durable, this calls `callback` with the version of the commit. If it stays unknown whether
    /// the commit is durable, `callback` gets the error instead, see [`Commit`]. The callback is called exactly
    /// once. The database stays open until the callback returns.
    ///
    /// If it is already known whether the commit is durable, the callback is called before this function returns.
    /// Otherwise a background thread calls it later. Callbacks of older commits are called before it. The
    /// background thread holds no lock during the call. The callback may use the database, but it should return
    /// soon, because other callbacks wait for the same thread. The callback must not wait for another callback, or
    /// for the future of another `Commit`. It may call [`Commit::wait`]. If the callback panics, the panic is
    /// caught, and the other callbacks are called nevertheless.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// let (sender, durable) = std::sync::mpsc::channel();
    /// let mut batch = db.batch();
    /// batch.insert(&fruit, "apple", "red");
    /// batch.submit()?.on_durable(move |outcome| {
    ///     sender.send(outcome).ok();
    /// });
    /// assert_eq!(durable.recv()??, db.version());
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_durable(self, callback: impl FnOnce(Result<Version>) + Send + 'static) {
        let (core, version) = (self.core().clone(), self.version);
        if !core.is_durable(version)
            && let Err(forked) = core.env.check_origin()
        {
            return callback(Err(forked));
        }
        let call = Box::new(move || {
            let outcome = self.core().durable_outcome(version).expect("it is called when there is an outcome");
            callback(outcome.map(|()| version));
        });
        if let Some(call) = core.writes.sync.call_later(version, call) {
            call();
        }
    }
}

impl Future for Commit {
    type Output = Result<Version>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { handle, version, ticket } = &mut *self;
        let (core, version) = (handle.core(), *version);
        if !core.is_durable(version) {
            if let Err(forked) = core.env.check_origin() {
                return Poll::Ready(Err(forked));
            }
            // On a machine without threads, this call runs the sync itself.
            core.writes.sync.wake_later(version, ticket, context.waker().clone());
        }
        match core.durable_outcome(version) {
            Some(outcome) => Poll::Ready(outcome.map(|()| version)),
            None => Poll::Pending,
        }
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        // In a forked child, a thread that exists only in the parent may hold the lock of the waiters.
        if let Some(ticket) = self.ticket.filter(|_| self.core().env.check_origin().is_ok()) {
            self.core().writes.sync.forget(ticket);
        }
    }
}
