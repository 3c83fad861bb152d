//! Objects that wait to be removed, because followers may still read them. It does not know why nobody else needs them.
//!
//! A timer removes what is due, so a writer that has nothing to do removes, too. Thread safe. No lock is held while the store is
//! asked.

use crate::journal::Journal;
use os::sync::{Arc, Mutex, OnceLock, Weak};
use os::{Job, Polled, Priority, Worker};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// How long an object can be read after it was removed, as long as its writer lives: followers have no leases. A writer that closes the
/// database removes at once what still waits. What a writer that died has left is removed like this by the next one.
pub const REMOVED_AFTER: Duration = Duration::from_secs(600);

/// The objects that wait.
#[derive(Debug)]
pub struct Removals {
    journal: Arc<Journal>,
    /// With the times when they are due, from the first on.
    waiting: Mutex<VecDeque<(Duration, String)>>,
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
    pub fn new(journal: &Arc<Journal>) -> Arc<Removals> {
        let (waiting, worker) = (Mutex::default(), OnceLock::new());
        let removals = Arc::new(Removals { journal: journal.clone(), waiting, worker });
        let job = Arc::new(RemovalJob(Arc::downgrade(&removals)));
        removals.worker.get_or_init(|| journal.outside.threads.sleeping_worker(Priority::Low, job));
        removals
    }

    fn now(&self) -> Duration {
        self.journal.outside.clock.now()
    }

    /// Has an object removed later.
    ///
    /// # Errors
    ///
    /// This process does not write, or knows that another has taken over: it removes nothing.
    pub fn add(&self, object: String) -> io::Result<()> {
        self.journal.check_writer()?;
        self.waiting.lock().push_back((self.now() + REMOVED_AFTER, object));
        self.set_timer();
        self.drive();
        Ok(())
    }

    /// Removes what is due, where there are no threads to do it.
    pub fn drive(&self) {
        if let Some(worker) = self.worker.get() {
            worker.drive();
        }
    }

    /// Removes all that waits, if it can be removed now. The next writer has the rest removed.
    pub fn remove_all(&self) {
        while self.remove_one(Duration::MAX) {}
        self.waiting.lock().clear();
    }

    /// Removes the first object if it is due at `now`. One that cannot be removed waits once more, behind the others: then it
    /// returns false, because the cause is mostly the same for all.
    fn remove_one(&self, now: Duration) -> bool {
        if self.journal.check_writer().is_err() {
            return false;
        }
        let Some((due, object)) = self.waiting.lock().pop_front_if(|(due, _)| *due <= now) else { return false };
        let removed = self.journal.store().remove(&object);
        let is_gone = removed.map_or_else(|error| error.kind() == ErrorKind::NotFound, |()| true);
        if !is_gone {
            self.waiting.lock().push_back((due.saturating_add(REMOVED_AFTER), object));
        }
        is_gone
    }

    /// Has the job polled when the first object is due.
    fn set_timer(&self) {
        let first = self.waiting.lock().front().map(|(due, _)| *due);
        if let (Some(due), Some(worker)) = (first, self.worker.get()) {
            worker.wake_after(due.saturating_sub(self.now()));
        }
    }
}
