//! A page on its way into memory: it is read once, and any number of sessions may await it. A flight does not know
//! the cache's table, or which session reads.
//!
//! A flight lands exactly once. A session that awaits several flights shares one [`Arrivals`] among them, and the
//! last flight to land wakes the session. If a session goes away earlier, its [`Arrivals`] stay until the flights
//! have landed; they are no more than a count.
//!
//! Thread safe. The lock of an [`Arrivals`] is taken under the lock of a flight, never the other way round. No
//! thread or task is woken while either lock is held.

use crate::budget::Budget;
use crate::wake::wake;
use crate::{Error, PageRef};
use os::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use os::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};

/// How a flight ended.
#[derive(Clone)]
pub(crate) enum Landing {
    Arrived(PageRef),
    /// The read failed. All waiting sessions get the error.
    Failed(Error),
    /// The flight ended without an outcome: its claim was dropped, for example because the reading thread panicked,
    /// or the page was only read ahead and did not fit. Sessions that need the page ask again.
    Abandoned,
}

/// Who needs a page that is on its way. The value only grows during a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Demand {
    /// No step needs the page yet: it was asked for ahead.
    None = 0,
    /// A step of background work.
    Background = 1,
    /// A step of a reader. A read for such a step is made before reads for background work.
    Reader = 2,
}

/// One page being read.
pub(crate) struct Flight {
    /// The number that names the read, for raising its urgency.
    ticket: u64,
    /// Whether the cache is to admit the page. Set under the lock of the page's stripe.
    admit: AtomicBool,
    /// A [`Demand`].
    demand: AtomicU8,
    state: Mutex<FlightState>,
}

#[derive(Default)]
struct FlightState {
    landing: Option<Landing>,
    awaiting: Vec<Arc<Arrivals>>,
}

impl Flight {
    /// A flight that has not landed. `ticket` names its read.
    pub fn new(ticket: u64, admit: bool, demand: Demand) -> Self {
        let (admit, demand) = (AtomicBool::new(admit), AtomicU8::new(demand as u8));
        Self { ticket, admit, demand, state: Mutex::default() }
    }

    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Asks the cache to admit the page. The caller holds the stripe's lock.
    pub fn ask_to_admit(&self) {
        self.admit.store(true, Ordering::Relaxed);
    }

    /// Whether a session asked the cache to admit the page. The caller holds the stripe's lock.
    pub fn is_to_be_admitted(&self) -> bool {
        self.admit.load(Ordering::Relaxed)
    }

    /// Notes that a step needs the page. Returns true if this is the first reader to need it, so the read has to
    /// become more urgent.
    pub fn need(&self, demand: Demand) -> bool {
        let before = self.demand.fetch_max(demand as u8, Ordering::Relaxed);
        demand == Demand::Reader && before < demand as u8
    }

    /// Whether a step needs the page.
    pub fn is_needed(&self) -> bool {
        self.demand.load(Ordering::Relaxed) > Demand::None as u8
    }

    /// Whether a step of a reader needs the page.
    pub fn is_urgent(&self) -> bool {
        self.demand.load(Ordering::Relaxed) == Demand::Reader as u8
    }

    /// Ends the flight. The claim calls this and hands over its own reference, which is dropped before sessions are
    /// woken, so that only those sessions still hold the page.
    pub fn land(self: Arc<Self>, landing: Landing) {
        let awaiting = {
            let mut state = self.state.lock();
            let before = state.landing.replace(landing);
            debug_assert!(before.is_none(), "a flight lands once");
            std::mem::take(&mut state.awaiting)
        };
        drop(self);
        awaiting.iter().for_each(|arrivals| arrivals.arrived());
    }

    /// How it ended, if it has.
    pub fn landing(&self) -> Option<Landing> {
        self.state.lock().landing.clone()
    }

    /// Makes `arrivals` wait for the flight to land, unless it already has.
    pub fn await_in(&self, arrivals: &Arc<Arrivals>) {
        let mut state = self.state.lock();
        if state.landing.is_none() {
            // Counted under the flight's lock, before the flight can land, so that the count does not reach zero
            // too early.
            arrivals.pending.lock().flights += 1;
            state.awaiting.push(Arc::clone(arrivals));
        }
    }

    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.state.lock().awaiting.len()
    }
}

/// Flights that are awaited together.
#[derive(Default)]
pub(crate) struct Arrivals {
    pending: Mutex<PendingFlights>,
    last: Condvar,
    /// The budget whose turn the waiting task holds. When the last flight lands, the tasks that queue for the turn
    /// are woken, too.
    turn_of: Option<Arc<Budget>>,
}

#[derive(Default)]
struct PendingFlights {
    flights: usize,
    /// The task that the last flight wakes.
    waker: Option<Waker>,
    /// Whether a thread waits for the last flight. If none does, the condition variable is not notified, which
    /// saves a system call.
    is_awaited: bool,
}

impl Arrivals {
    /// Arrivals for a task that holds the turn of `budget`.
    pub fn of_holder(budget: &Arc<Budget>) -> Self {
        Self { turn_of: Some(Arc::clone(budget)), ..Self::default() }
    }

    fn arrived(&self) {
        let (waker, is_awaited) = {
            let mut pending = self.pending.lock();
            pending.flights -= 1;
            if pending.flights > 0 {
                return;
            }
            (pending.waker.take(), pending.is_awaited)
        };
        if is_awaited {
            self.last.notify_all();
        }
        if let Some(waker) = waker {
            wake(waker);
        }
        if let Some(budget) = &self.turn_of {
            budget.holder_landed();
        }
    }

    /// Whether all these flights have landed.
    pub fn are_all_here(&self) -> bool {
        self.pending.lock().flights == 0
    }

    /// Waits until all these flights have landed.
    pub fn wait(&self) {
        let mut pending = self.pending.lock();
        while pending.flights > 0 {
            pending.is_awaited = true;
            pending = self.last.wait(pending);
        }
    }

    /// Ready if all these flights have landed. If not, the task of `context` is woken when the last one lands.
    pub fn poll(&self, context: &Context<'_>) -> Poll<()> {
        // Wakers are cloned and dropped outside of the lock, because they run code that is not ours.
        let waker = context.waker().clone();
        let mut pending = self.pending.lock();
        if pending.flights == 0 {
            return Poll::Ready(());
        }
        let before = pending.waker.replace(waker);
        drop(pending);
        drop(before);
        Poll::Pending
    }
}
