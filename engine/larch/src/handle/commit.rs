//! A handle for a commit that was applied and may become durable later. It keeps its database open, and may be sent
//! to another thread or dropped at any time. `log/sync.rs` decides who runs the sync.

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
/// A program can ask for the sync in three ways: [`Commit::wait`] blocks the thread until the commit is durable,
/// `.await` waits in a task of any executor, and [`Commit::on_durable`] registers a callback. One sync makes all
/// commits durable that were applied before it. So a thread can submit thousands of commits before it waits, and
/// they need only a few syncs. If nobody asks, the commit becomes durable together with a later commit, or when its
/// rows are flushed to a file.
///
/// Commits become durable in the order of their versions. Dropping the handle does not affect its commit. While the
/// handle exists, it keeps the database open.
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
/// All three ways to wait report [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown) if a sync of the log fails
/// before the commit is durable. Only opening the database again shows whether it is, and until then the database
/// refuses writes. In a child process that was forked after the database was opened, they report
/// [`Error::Forked`](crate::Error::Forked).
#[derive(Debug)]
pub struct Commit {
    handle: Arc<DatabaseHandle>,
    version: Version,
    /// This handle's place in the queue of waiters. `None` until the first poll that has to wait.
    ticket: Option<Ticket>,
}

impl Commit {
    pub(super) fn new(handle: Arc<DatabaseHandle>, version: Version) -> Self {
        Self { handle, version, ticket: None }
    }

    fn core(&self) -> &Arc<Core> {
        self.handle.core()
    }

    /// The version of the commit: its place in the order of all commits.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether this commit and all earlier ones are on stable storage. This neither asks for a sync nor waits.
    pub fn is_durable(&self) -> bool {
        self.core().is_durable(self.version)
    }

    /// Waits until the commit is durable, even if its batch has
    /// [`Durability::Buffered`](crate::Durability::Buffered), and returns its version. The calling thread either
    /// runs the sync or waits for that of another thread.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown) if a sync has failed, and
    /// [`Error::Forked`](crate::Error::Forked); see [`Commit`].
    pub fn wait(&self) -> Result<Version> {
        self.core().make_durable(self.version).map(|()| self.version)
    }

    /// Calls `callback` exactly once: with the version of the commit when it is durable, or with an error if a sync
    /// has failed, see [`Commit`]. The database stays open until the callback returns.
    ///
    /// If the outcome is already known, the callback runs before this function returns. Otherwise a background
    /// thread calls it later, after the callbacks of older commits and without holding any lock. The callback may
    /// use the database, but it should return soon, because other callbacks wait for the same thread. It may call
    /// [`Commit::wait`], but must not wait for another callback or for the future of another `Commit`. If it
    /// panics, the panic is caught, and the other callbacks still run.
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
            // On a machine without threads, `wake_later` runs the sync itself.
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
        // In a forked child, do not take the lock of the waiters: a thread that exists only in the parent may hold
        // it.
        if let Some(ticket) = self.ticket.filter(|_| self.core().env.check_origin().is_ok()) {
            self.core().writes.sync.forget(ticket);
        }
    }
}
