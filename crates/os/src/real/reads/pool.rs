//! Reads by threads, each with one under way. It does not know `io_uring`.

use super::closed;
use super::hands::{Hands, Work};
use crate::io::Usage;
use crate::io::queue::{Begun, Limits, Queue};
use crate::io::run::{Run, join};
use crate::sync::{Arc, Mutex};
use crate::{Read, Reads};
use std::fmt;

/// Threads that read.
pub(super) struct Pool {
    shared: Arc<Shared>,
    hands: Hands<Shared>,
}

struct Shared {
    state: Mutex<State>,
}

struct State {
    queue: Queue<Run>,
    reads: u64,
    joined: u64,
}

impl Pool {
    /// At most `threads` threads, none yet.
    pub(super) fn new(limits: Limits, threads: usize) -> Pool {
        let state = State { queue: Queue::new(limits), reads: 0, joined: 0 };
        let shared = Arc::new(Shared { state: Mutex::new(state) });
        Pool { hands: Hands::new(shared.clone(), threads), shared }
    }
}

impl Reads for Pool {
    fn submit(&self, reads: Vec<Read>) {
        let runs = join(reads);
        let mut state = self.shared.state.lock();
        for run in runs {
            state.reads += run.len() as u64;
            state.joined += if run.is_single() { 0 } else { run.len() as u64 };
            let urgency = run.urgency();
            state.queue.push(run, urgency);
        }
        let begun = state.begin();
        drop(state);
        self.hands.give(begun);
    }

    fn raise(&self, ticket: u64) {
        let mut state = self.shared.state.lock();
        state.queue.raise(ticket);
        let begun = state.begin();
        drop(state);
        self.hands.give(begun);
    }

    fn name(&self) -> &'static str {
        "threads"
    }

    fn usage(&self) -> Usage {
        let state = self.shared.state.lock();
        Usage {
            under_way: state.queue.under_way(),
            queued: state.queue.queued(),
            reads: state.reads,
            joined: state.joined,
        }
    }
}

impl State {
    fn begin(&mut self) -> Vec<Begun<Run>> {
        std::iter::from_fn(|| self.queue.next()).collect()
    }
}

impl Work for Shared {
    type Job = Begun<Run>;

    fn work(&self, mut begun: Begun<Run>) -> Vec<Begun<Run>> {
        let outcome = begun.item.read();
        let mut state = self.state.lock();
        let run = state.queue.over(begun);
        let next = state.begin();
        drop(state);
        run.tell(outcome);
        next
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let waiting = self.shared.state.lock().queue.clear();
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
