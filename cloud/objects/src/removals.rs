//! SSTs that the database no longer needs, but that are removed only later, because followers may still read them
//! or branches may need them. This module does not know why the database no longer needs them.
//!
//! A timer removes the files that are due, even if the writer has nothing else to do. Thread safe. No lock is held
//! while a request to the store is under way.

use crate::branches::Branches;
use crate::journal::Journal;
use crate::object_file::name_of;
use os::sync::{Arc, Mutex, OnceLock, Weak};
use os::{Job, Polled, Priority, Worker};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// How long an object stays readable after the database has given it up, because followers on a store have no
/// leases that would keep it. A writer that closes the database removes all waiting objects at once. If a writer
/// dies, the next one removes its objects after this time.
pub const REMOVED_AFTER: Duration = Duration::from_secs(600);

/// The files that wait to be removed.
#[derive(Debug)]
pub struct Removals {
    journal: Arc<Journal>,
    branches: Branches,
    /// The waiting files with the times when they are due, in this order.
    waiting: Mutex<VecDeque<(Duration, String)>>,
    /// The due files that no branch needs, so that they can be removed.
    free: Mutex<VecDeque<String>>,
    /// Set once, before anything waits.
    worker: OnceLock<Box<dyn Worker>>,
}

/// Removes one object per step.
#[derive(Debug)]
struct RemovalJob(Weak<Removals>);

impl Job for RemovalJob {
    fn poll(&self) -> Polled {
        let Some(removals) = self.0.upgrade() else { return Polled::Idle };
        if removals.remove_one(removals.now()) {
            return Polled::Worked;
        }
        removals.set_timer();
        Polled::Idle
    }
}

impl Removals {
    pub fn new(journal: &Arc<Journal>, branches: Branches) -> Arc<Removals> {
        let (waiting, free, worker) = (Mutex::default(), Mutex::default(), OnceLock::new());
        let removals = Arc::new(Removals { journal: journal.clone(), branches, waiting, free, worker });
        let job = Arc::new(RemovalJob(Arc::downgrade(&removals)));
        removals.worker.get_or_init(|| journal.outside.threads.sleeping_worker(Priority::Low, job));
        removals
    }

    fn now(&self) -> Duration {
        self.journal.outside.clock.now()
    }

    /// Adds an SST to the files that wait to be removed.
    ///
    /// # Errors
    ///
    /// An error if this process is not the writer, or knows that another process has taken over. The file is then
    /// not removed.
    pub fn add(&self, file: &str) -> io::Result<()> {
        self.journal.check_writer()?;
        self.waiting.lock().push_back((self.now() + REMOVED_AFTER, file.to_owned()));
        self.set_timer();
        self.drive();
        Ok(())
    }

    /// Removes the files that are due, on a machine without threads, where no thread does so.
    pub fn drive(&self) {
        if let Some(worker) = self.worker.get() {
            worker.drive();
        }
    }

    /// Whether no file waits to be removed.
    pub fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty() && self.free.lock().is_empty()
    }

    /// Removes all waiting files that no branch needs, if this process is still the writer. The next writer removes
    /// the others.
    pub fn remove_all(&self) {
        if self.journal.check_writer().is_ok() {
            self.divide_due(Duration::MAX);
            while self.remove_free() {}
        }
        self.waiting.lock().clear();
        self.free.lock().clear();
    }

    /// Removes one file that is due at `now`. Returns false if no file can be removed.
    fn remove_one(&self, now: Duration) -> bool {
        if self.journal.check_writer().is_err() {
            return false;
        }
        if self.free.lock().is_empty() {
            self.divide_due(now);
        }
        self.remove_free()
    }

    /// Finds out which of the due files can be removed. Files that a branch needs go to the end of the queue.
    fn divide_due(&self, now: Duration) {
        let due: Vec<String> = {
            let waiting = &mut *self.waiting.lock();
            std::iter::from_fn(|| waiting.pop_front_if(|(due, _)| *due <= now)).map(|(_, file)| file).collect()
        };
        if due.is_empty() {
            return;
        }
        // If the branches' needs cannot be found out, all these files count as needed.
        let (free, kept) = self.branches.divide(due.clone()).unwrap_or((Vec::new(), due));
        self.free.lock().extend(free);
        let again = now.saturating_add(REMOVED_AFTER);
        self.waiting.lock().extend(kept.into_iter().map(|file| (again, file)));
    }

    /// Removes the first file in `free`. If that fails, returns false, and all files in `free` have to wait again,
    /// because the other removals would mostly fail for the same reason.
    fn remove_free(&self) -> bool {
        let Some(file) = self.free.lock().pop_front() else { return false };
        let removed = self.journal.store().remove(&name_of(&file));
        let is_gone = removed.map_or_else(|error| error.kind() == ErrorKind::NotFound, |()| true);
        if !is_gone {
            let files = std::iter::once(file).chain(std::mem::take(&mut *self.free.lock()));
            let again = self.now() + REMOVED_AFTER;
            self.waiting.lock().extend(files.map(|file| (again, file)));
        }
        is_gone
    }

    /// Sets the timer for the time when the first waiting file is due.
    fn set_timer(&self) {
        if self.journal.check_writer().is_err() {
            // Not the writer, so this process will not remove any files.
            return;
        }
        let first = self.waiting.lock().front().map(|(due, _)| *due);
        if let (Some(due), Some(worker)) = (first, self.worker.get()) {
            worker.wake_after(due.saturating_sub(self.now()));
        }
    }
}
