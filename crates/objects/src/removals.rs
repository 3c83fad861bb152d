//! SSTs that wait to be removed, because followers may still read them or branches may need them. It does not know
//! why this database no longer needs them.
//!
//! A timer removes the files that are due, so a writer that has nothing to do removes them, too. Thread safe. No
//! lock is held while the store is asked.

use crate::branches::Branches;
use crate::journal::Journal;
use crate::object_file::name_of;
use os::sync::{Arc, Mutex, OnceLock, Weak};
use os::{Job, Polled, Priority, Worker};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// How long an object can still be read after its removal, as long as its writer lives: followers have no leases. A
/// writer that closes the database removes all waiting objects at once. If a writer dies, the next writer removes
/// its waiting objects after this time.
pub const REMOVED_AFTER: Duration = Duration::from_secs(600);

/// The files that wait.
#[derive(Debug)]
pub struct Removals {
    journal: Arc<Journal>,
    branches: Branches,
    /// The files with the times when they are due, ordered by time.
    waiting: Mutex<VecDeque<(Duration, String)>>,
    /// The files that were due and that no branch needs.
    free: Mutex<VecDeque<String>>,
    /// Set once, before anything waits.
    worker: OnceLock<Box<dyn Worker>>,
}

/// The job that removes one object a step.
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

    /// Has an SST removed later.
    ///
    /// # Errors
    ///
    /// If this process does not write, or knows that another has taken over: then it removes nothing.
    pub fn add(&self, file: &str) -> io::Result<()> {
        self.journal.check_writer()?;
        self.waiting.lock().push_back((self.now() + REMOVED_AFTER, file.to_owned()));
        self.set_timer();
        self.drive();
        Ok(())
    }

    /// Removes what is due, where no threads do it.
    pub fn drive(&self) {
        if let Some(worker) = self.worker.get() {
            worker.drive();
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty() && self.free.lock().is_empty()
    }

    /// Removes all waiting files, if this process may still remove files. The next writer removes the rest.
    pub fn remove_all(&self) {
        if self.journal.check_writer().is_ok() {
            self.divide_due(Duration::MAX);
            while self.remove_free() {}
        }
        self.waiting.lock().clear();
        self.free.lock().clear();
    }

    /// Removes the first file that is due at `now`. Returns false if no file can be removed.
    fn remove_one(&self, now: Duration) -> bool {
        if self.journal.check_writer().is_err() {
            return false;
        }
        if self.free.lock().is_empty() {
            self.divide_due(now);
        }
        self.remove_free()
    }

    /// Finds out which of the due files can be removed. The others wait once more, behind the files that are not
    /// due yet.
    fn divide_due(&self, now: Duration) {
        let due: Vec<String> = {
            let waiting = &mut *self.waiting.lock();
            std::iter::from_fn(|| waiting.pop_front_if(|(due, _)| *due <= now)).map(|(_, file)| file).collect()
        };
        if due.is_empty() {
            return;
        }
        // If it is unknown what branches need, they may need all files.
        let (free, kept) = self.branches.divide(due.clone()).unwrap_or((Vec::new(), due));
        self.free.lock().extend(free);
        let again = now.saturating_add(REMOVED_AFTER);
        self.waiting.lock().extend(kept.into_iter().map(|file| (again, file)));
    }

    /// Removes the first file that can be removed. If the removal fails, the file waits once more and the result is
    /// false, because other removals mostly fail for the same cause.
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

    /// Has the job polled when the first object is due.
    fn set_timer(&self) {
        if self.journal.check_writer().is_err() {
            // It will not remove anything any more.
            return;
        }
        let first = self.waiting.lock().front().map(|(due, _)| *due);
        if let (Some(due), Some(worker)) = (first, self.worker.get()) {
            worker.wake_after(due.saturating_sub(self.now()));
        }
    }
}
