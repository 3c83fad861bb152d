//! Reads by a pool of threads, each with one read under way. The pool does not know `io_uring`.

use super::closed::closed;
use super::hands::{Hands, HandsWork};
use crate::io::Usage;
use crate::io::queue::{Begun, Elsewhere, Queue, QueueLimits};
use crate::io::run::{ReadRun, join};
use crate::sync::{Arc, Mutex};
use crate::{ReadRequest, Reads};
use std::fmt;

/// Threads that read.
pub(super) struct Pool {
    shared: Arc<ReadPoolShared>,
    hands: Hands<ReadPoolShared>,
    /// Counts the reads that callers make themselves.
    elsewhere: Arc<Elsewhere>,
}

struct ReadPoolShared {
    queue: Mutex<Queue<ReadRun>>,
}

impl Pool {
    /// At most `threads` threads, none of which is started yet.
    pub(super) fn new(limits: QueueLimits, threads: usize) -> Pool {
        let queue = Queue::new(limits);
        let elsewhere = queue.elsewhere();
        let shared = Arc::new(ReadPoolShared { queue: Mutex::new(queue) });
        Pool { hands: Hands::new(shared.clone(), threads), shared, elsewhere }
    }
}

impl Reads for Pool {
    fn submit(&self, reads: Vec<ReadRequest>) {
        let runs = join(reads);
        let mut queue = self.shared.queue.lock();
        for run in runs {
            let urgency = run.urgency();
            queue.push(run, urgency);
        }
        let begun = begin(&mut queue);
        drop(queue);
        self.hands.give(begun);
    }

    fn raise(&self, ticket: u64) {
        let mut queue = self.shared.queue.lock();
        queue.raise(ticket);
        let begun = begin(&mut queue);
        drop(queue);
        self.hands.give(begun);
    }

    fn make(&self, read: ReadRequest) {
        self.elsewhere.make(read);
    }

    fn name(&self) -> &'static str {
        "threads"
    }

    fn usage(&self) -> Usage {
        self.shared.queue.lock().usage()
    }
}

/// Takes all runs that may begin now out of the queue.
fn begin(queue: &mut Queue<ReadRun>) -> Vec<Begun<ReadRun>> {
    std::iter::from_fn(|| queue.next()).collect()
}

impl HandsWork for ReadPoolShared {
    type Job = Begun<ReadRun>;

    fn work(&self, mut begun: Begun<ReadRun>) -> Vec<Begun<ReadRun>> {
        let outcome = begun.item.read();
        let mut queue = self.queue.lock();
        let run = queue.over(begun);
        let next = begin(&mut queue);
        drop(queue);
        run.tell(outcome);
        next
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let waiting = self.shared.queue.lock().clear();
        for run in waiting {
            run.fail(closed);
        }
        self.hands.close();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("hands", &self.hands).field("usage", &self.usage()).finish()
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
