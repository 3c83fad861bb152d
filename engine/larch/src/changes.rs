//! The feed of committed changes. It gives the commits after a version in commit order, each whole and none twice.
//!
//! ```text
//! version     at + 1 ……………… v - 1      v          newest
//! changes    in files, not in logs   in a log     the newest durable version
//! ```
//!
//! A commit is read from its log while the log is there (`from_log`). Versions that no log has are looked up in files
//! (`from_files`): those of imports and large transactions, and those whose logs were removed after a flush.
//!
//! Invariants:
//! - The newest durable version is read first, then the view, and then the logs. So each commit up to that version is in
//!   the files of the view or in a log that the feed reads to its end.
//! - Files are asked only if they have all changes after `at`: the past is kept from `at` or from before it.
//!
//! One thread at a time uses a feed (`feed`). It holds nothing of the writer back, but the space of a log that it
//! reads, and of the files in which it stands within a commit with many changes. A task has a job of the pool read for
//! it (`flow`).

mod change;
mod feed;
mod filter;
mod flow;
mod from_files;
mod from_log;

pub use change::{Change, ChangeKind, ChangedParts};
pub(crate) use from_files::bad_parts;

use crate::base::bounds::{self, IntoKeyRange};
use crate::base::error::Result;
use crate::core::handle::DatabaseHandle;
use crate::read::Reader;
use feed::{Feed, Reads};
use flow::Flow;
use futures_core::Stream;
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex};
use sst::Version;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The commits of a database after a version, in commit order: [`Database::changes`](crate::Database::changes).
///
/// A feed is where its last change was. To go on in another process, store [`Changes::position`] with what was made of
/// the changes, and begin there.
///
/// A thread asks by [`Changes::next_change`], and waits by [`Changes::wait`]. A task asks by
/// [`Changes::next_change_async`], or reads the feed as a [`Stream`], which never ends: it is woken when there are
/// commits. Both may be used in turn.
#[derive(Debug)]
pub struct Changes {
    /// Reads for a task; `None` until one asks. It is dropped before the handle, which may wait for the end of its job.
    flow: Option<Flow>,
    handle: Arc<DatabaseHandle>,
    /// Reads logs and files. The job that reads for a task locks it meanwhile.
    feed: Arc<Mutex<Feed>>,
    /// All commits up to this version were found by the feed when it was last asked.
    found: Version,
    /// All commits up to this version were given.
    given: Version,
    /// What was found and not given yet.
    ready: VecDeque<Change>,
    /// Whether the last call has found nothing to give. Then all was given that the feed has found.
    is_drained: bool,
    /// The greatest position that a call has seen, so that none sees an earlier one.
    passed: AtomicU64,
}

impl Changes {
    /// A feed of the commits after `after`.
    pub(crate) fn new(handle: Arc<DatabaseHandle>, after: Version) -> Self {
        let feed = Arc::new(Mutex::new(Feed::new(after)));
        let (ready, passed) = (VecDeque::new(), AtomicU64::new(after.0));
        Self { handle, feed, flow: None, found: after, given: after, ready, is_drained: false, passed }
    }

    /// Gives only changes of this table, and of those named by other calls.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) if the table belongs to another database.
    pub fn of(self, table: &Reader<'_>) -> Result<Self> {
        table.handle().check_handle(&self.handle)?;
        self.feed.lock().tables.get_or_insert_default().push(table.handle().id());
        Ok(self)
    }

    /// Gives only changes of keys in `range`. A range that was erased is cut to `range`.
    pub fn within(self, range: impl IntoKeyRange) -> Self {
        self.feed.lock().keys = bounds::keys(&range);
        self
    }

    /// The feed has given every change up to this version that it was asked for. A feed that begins here gives the
    /// commits after it.
    ///
    /// While there is nothing to give, the position moves on past commits of other tables and keys: with each
    /// [`Changes::next_change`] that gives `None`, and while a task waits. So a reader of few tables should acknowledge
    /// its position at times, and not only after a change.
    pub fn position(&self) -> Version {
        let mut position = self.given.0;
        if self.is_drained {
            let found = self.feed.try_lock().filter(|feed| feed.ready.is_empty() && !feed.is_looking);
            let found = found.map(|feed| feed.found.0);
            self.let_job_look();
            position = position.max(found.unwrap_or(0));
        }
        Version(self.passed.fetch_max(position, Ordering::Relaxed).max(position))
    }

    /// A job that wants to read for a task does not wait for the lock of the feed. Called after it was released.
    fn let_job_look(&self) {
        // In a forked child, a thread that exists only in the parent may hold a lock of the job.
        if let Some(flow) = &self.flow
            && self.handle.core().env.check_origin().is_ok()
        {
            flow.look_again();
        }
    }

    /// The next change; `None` if there is none at the moment. The changes of a commit come one after the other, ranges
    /// that were erased before rows, and the last one [says so](Change::is_last).
    ///
    /// In the process that writes, only durable commits are given. A follower gives those that it shows, which a power
    /// failure of the writer may take back unless the writer syncs each commit.
    ///
    /// # Errors
    ///
    /// * [`Error::ChangesGone`](crate::Error::ChangesGone) if the changes at this position were not kept. [Retain](crate::Database::retain) the
    ///   past for as long as a feed may lag, or [subscribe](crate::Database::subscribe).
    /// * [`Error::Page`](crate::Error::Page) or [`Error::Log`](crate::Error::Log) if a file or a log cannot be read; [`Error::BadParts`](crate::Error::BadParts) if one is damaged.
    ///
    /// After an error, the next call tries again.
    pub fn next_change(&mut self) -> Result<Option<Change>> {
        if self.ready.is_empty() {
            // A job may be reading for a future that was dropped. What it finds is taken here.
            let mut feed = self.feed.lock();
            let outcome = if feed.ready.is_empty() { feed.fill(self.handle.core(), Reads::All) } else { Ok(true) };
            std::mem::swap(&mut feed.ready, &mut self.ready);
            self.found = feed.found;
            drop(feed);
            self.let_job_look();
            outcome?;
        }
        let next = self.take_ready();
        if next.is_none() {
            self.given = self.found;
            self.is_drained = true;
        }
        Ok(next)
    }

    /// The first change that was found and not given yet.
    fn take_ready(&mut self) -> Option<Change> {
        let next = self.ready.pop_front()?;
        self.is_drained = false;
        if next.is_last() {
            self.given = next.version();
        }
        Some(next)
    }

    /// All changes of the next commit that has some. Empty if there is none at the moment. The whole commit has to fit
    /// in memory; [`Changes::next_change`] needs less for a commit with many rows.
    ///
    /// # Errors
    ///
    /// As [`Changes::next_change`].
    pub fn next_commit(&mut self) -> Result<Vec<Change>> {
        let mut commit = Vec::new();
        while commit.last().is_none_or(|change: &Change| !change.is_last()) {
            match self.next_change() {
                Ok(Some(change)) => commit.push(change),
                Ok(None) => break,
                Err(error) => {
                    commit.into_iter().rev().for_each(|change| self.ready.push_front(change));
                    return Err(error);
                }
            }
        }
        Ok(commit)
    }

    /// Waits until there are commits that this feed has not found yet, at most for `time`. Returns whether there are
    /// some. Their changes may be of other tables or keys. In the process that writes, it makes commits durable.
    ///
    /// # Errors
    ///
    /// [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown) if a sync fails; otherwise as [`Database::wait_for`](crate::Database::wait_for).
    pub fn wait(&self, time: Duration) -> Result<bool> {
        let found = {
            let feed = self.feed.lock();
            if !self.ready.is_empty() || !feed.ready.is_empty() {
                drop(feed);
                self.let_job_look();
                return Ok(true);
            }
            feed.found
        };
        self.let_job_look();
        let core = self.handle.core();
        if !core.wait_for(Version(found.0 + 1), time)? {
            return Ok(false);
        }
        core.make_durable(core.views.visible())?;
        Ok(true)
    }

    /// As [`Changes::next_change`], but as a future that waits until there is a change. It never blocks its thread: a
    /// thread of the pool reads logs and files and makes commits durable, and a commit wakes the task. The future can
    /// be dropped at any time; what it has found is given by the next call.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { smol::block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = larch::Database::open(&directory)?;
    /// # let fruit = db.table("fruit")?;
    /// let mut changes = db.changes(db.version())?;
    /// fruit.insert("apple", "green")?;
    /// let change = changes.next_change_async().await?;
    /// assert_eq!(change.key(), b"apple");
    /// # Ok(()) }) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Changes::next_change`] and [`Changes::wait`].
    pub async fn next_change_async(&mut self) -> Result<Change> {
        poll_fn(|context| self.poll_change(context)).await
    }

    /// As [`Changes::next_commit`], but as a future that waits until there is a commit, see
    /// [`Changes::next_change_async`].
    ///
    /// # Errors
    ///
    /// As [`Changes::next_change_async`].
    pub async fn next_commit_async(&mut self) -> Result<Vec<Change>> {
        poll_fn(|context| {
            loop {
                // Changes are taken only once the whole commit is here, so that none is lost with this future.
                if let Some(last) = self.ready.iter().position(Change::is_last) {
                    let commit: Vec<Change> = self.ready.drain(..=last).collect();
                    self.given = commit[last].version();
                    self.is_drained = false;
                    return Poll::Ready(Ok(commit));
                }
                match self.poll_more(context) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }

    fn poll_change(&mut self, context: &mut Context<'_>) -> Poll<Result<Change>> {
        loop {
            if let Some(change) = self.take_ready() {
                return Poll::Ready(Ok(change));
            }
            match self.poll_more(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Adds changes to `ready`, at least one.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        // In a forked child, a thread that exists only in the parent may hold a lock.
        self.handle.core().env.check_origin()?;
        let flow = self.flow.get_or_insert_with(|| Flow::new(&self.handle, &self.feed));
        let found = match flow.poll(context) {
            Poll::Ready(found) => found?,
            Poll::Pending => {
                self.is_drained = self.ready.is_empty();
                return Poll::Pending;
            }
        };
        self.ready.extend(found.changes);
        self.found = found.through;
        Poll::Ready(Ok(()))
    }
}

/// The changes, as they come. The stream never ends. After an error, the next poll tries again.
impl Stream for Changes {
    type Item = Result<Change>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_change(context).map(Some)
    }
}

const _: () = {
    const fn sent<T: Send>() {}
    sent::<Changes>();
};

#[cfg(test)]
mod tests;
