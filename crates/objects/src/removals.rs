//! SSTs that the database no longer needs, but that are removed only later, because followers may still read them
//! or branches may need them. This module does not know why the database no longer needs them.
//!
//! A timer removes the files whose time has come, even if the writer has nothing else to do. Thread safe. No lock
//! is held while a request to the store is under way.

use crate::branches::Branches;
use crate::journal::Journal;
use crate::object_file::name_of;
use os::sync::{Arc, Mutex, OnceLock, Weak};
use os::{Job, Polled, Priority, Worker};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// After the database has given up an object, the object can still be read for this long. The reason is that
/// followers on a store have no leases that would keep an object. A writer that closes the database removes all
/// waiting objects at once. If a writer dies, the next writer removes these objects after this time.
pub const REMOVED_AFTER: Duration = Duration::from_secs(600);

/// The files that wait.
#[derive(Debug)]
pub struct Removals {
    journal: Arc<Journal>,
    branches: Branches,
    /// The files that wait, each with the time when it may be removed, ordered by this time.
    waiting: Mutex<VecDeque<(Duration, String)>>,
    /// The files whose time has come and that no branch needs, so they can be removed.
    free: Mutex<VecDeque<String>>,
    /// Set once, before anything waits.
    worker: OnceLock<Box<dyn Worker>>,
}

/// The job that removes one object in each step.
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
    /// An error if this process is not the writer, or knows that another process has taken over. After an error,
    /// the file is not removed.
    pub fn add(&self, file: &str) -> io::Result<()> {
        self.journal.check_writer()?;
        self.waiting.lock().push_back((self.now() + REMOVED_AFTER, file.to_owned()));
        self.set_timer();
        self.drive();
        Ok(())
    }

    /// Removes the files whose time has come. Only a machine without threads needs this call, because there no
    /// thread removes them.
    pub fn drive(&self) {
        if let Some(worker) = self.worker.get() {
            worker.drive();
        }
    }

    /// Whether no file waits to be removed.
    pub fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty() && self.free.lock().is_empty()
    }

    /// If this process is still the writer, removes all waiting files that no branch needs. The next writer
    /// removes the other waiting files.
    pub fn remove_all(&self) {
        if self.journal.check_writer().is_ok() {
            self.divide_due(Duration::MAX);
            while self.remove_free() {}
        }
        self.waiting.lock().clear();
        self.free.lock().clear();
    }

    /// Removes one file whose time has come at `now`. Returns false if no file can be removed.
    fn remove_one(&self, now: Duration) -> bool {
        if self.journal.check_writer().is_err() {
            return false;
        }
        if self.free.lock().is_empty() {
            self.divide_due(now);
        }
        self.remove_free()
    }

    /// Finds out which of the files whose time has come can be removed. Files that a branch needs have to wait
    /// again, after the files that are waiting already.
    fn divide_due(&self, now: Duration) {
        let due: Vec<String> = {
            let waiting = &mut *self.waiting.lock();
            std::iter::from_fn(|| waiting.pop_front_if(|(due, _)| *due <= now)).map(|(_, file)| file).collect()
        };
        if due.is_empty() {
            return;
        }
        // If nobody knows what the branches need, all these files count as needed.
        let (free, kept) = self.branches.divide(due.clone()).unwrap_or((Vec::new(), due));
        self.free.lock().extend(free);
        let again = now.saturating_add(REMOVED_AFTER);
        self.waiting.lock().extend(kept.into_iter().map(|file| (again, file)));
    }

    /// Removes the first of the files in `free`. If the removal fails, all files in `free` have to wait again,
    /// because the other removals would mostly fail for the same reason. Then the result is false.
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

    /// Sets the timer so that the job is polled when the time of the first waiting file has come.
    fn set_timer(&self) {
        if self.journal.check_writer().is_err() {
            // This process is not the writer, so it will not remove any files.
            return;
        }
        let first = self.waiting.lock().front().map(|(due, _)| *due);
        if let (Some(due), Some(worker)) = (first, self.worker.get()) {
            worker.wake_after(due.saturating_sub(self.now()));
        }
    }
}
