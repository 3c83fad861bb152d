//! How much memory may be used, and which step may exceed this limit. The budget does not know pages or files. The
//! budget knows only bytes, and which session has the turn to overdraw.
//!
//! * A [`Charge`] counts bytes as used as long as the charge lives. A charge first belongs to the session that has
//!   reserved the bytes. When the page has arrived, the charge belongs to the frame of the page. Dropping the
//!   charge gives the bytes back.
//! * [`Budget::try_charge`] never lets the used bytes exceed the limit. Only the holder of the [`Turn`] may exceed
//!   the limit, by the pages of its own step. The holder does not share these pages. It releases the pages first
//!   and then the turn. One turn exists for all threads, and another for all tasks. So the used bytes are at most
//!   the sum of three things. The first is the limit or, if the limit was lowered, what was used at that moment.
//!   The second is the pages of one step of a thread and of one step of a task. The third is a sum over pinned
//!   pages: the bytes by which each of them has unpacked to more than was reserved for it.
//! * No session waits for the turn forever. A thread that holds the turn waits only for the disk and then gives
//!   the turn back. A task that holds the turn may never be polled again. Then the tasks in the queue [take the
//!   turn away](crate::cache::parked) once the holder's pages have landed. Queued sessions are woken when these
//!   pages land and when the turn is given back. In the queue of threads, one is woken. In the queue of tasks, all
//!   are woken. It would not be enough to wake one task, because a task that is woken may never be polled.
//!
//! Thread safe. Counters are relaxed: each counter is exact by itself, and orders no other memory access.

use crate::PageKind;
use crate::wake::wake;
use os::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use os::sync::{Arc, Condvar, Mutex};
use std::collections::BTreeMap;
use std::fmt;
use std::task::{Context, Waker};

/// The bytes of one cache.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    limit: AtomicU64,
    used: AtomicU64,
    /// Bytes that are reserved for pages that are not in memory yet; a part of `used`.
    in_flight: AtomicU64,
    /// The cost of the pages that callers keep because they still use values in these pages. This cost is a part
    /// of `used`. A page that is kept twice counts twice.
    held: AtomicU64,
    /// How many pages are in memory and what they cost, by kind.
    frames: AtomicU64,
    by_kind: [AtomicU64; PageKind::ALL.len()],
    /// Whether a thread has the turn.
    taken: Mutex<bool>,
    bell: Condvar,
    /// Whether a task has the tasks' turn, and which tasks queue for this turn.
    tasks: Mutex<Tasks>,
    queued: AtomicUsize,
}

#[derive(Debug, Default)]
struct Tasks {
    is_taken: bool,
    /// The tasks that wait for the turn. They are included in `queued`. The key is the session's number, so that a
    /// session that goes away can leave the queue.
    queue: BTreeMap<u64, Waker>,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self { limit: AtomicU64::new(limit), ..Self::default() }
    }

    #[inline]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    pub fn of_kind(&self, kind: PageKind) -> u64 {
        self.by_kind[kind.index()].load(Ordering::Relaxed)
    }

    /// The number of used bytes above the limit; 0 if the limit is not exceeded.
    pub fn excess(&self) -> u64 {
        self.used().saturating_sub(self.limit())
    }

    /// Charges `bytes` if they fit.
    ///
    /// # Errors
    ///
    /// The error is the number of bytes that must be released before the charge fits.
    pub fn try_charge(self: &Arc<Self>, bytes: u64) -> Result<Charge, u64> {
        let limit = self.limit();
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(self.charge(bytes)),
            Err(used) => Err(used.saturating_add(bytes) - limit),
        }
    }

    /// Charges `bytes` whether they fit or not. The top of this file says which callers may do this.
    pub fn overdraw(self: &Arc<Self>, bytes: u64) -> Charge {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.charge(bytes)
    }

    fn charge(self: &Arc<Self>, bytes: u64) -> Charge {
        self.in_flight.fetch_add(bytes, Ordering::Relaxed);
        Charge { budget: Some(Arc::clone(self)), bytes, purpose: Purpose::Flight }
    }

    /// Counts `bytes` of charged memory as held by a caller. Returns false, and counts nothing, if callers would
    /// hold more than a quarter of the limit with these bytes.
    pub fn try_hold(&self, bytes: u64) -> bool {
        let most = self.limit() / 4;
        let fits = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= most);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Takes back what [`Budget::try_hold`] counted.
    pub fn let_go(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes the turn if it is free. If another session has the turn, the call waits until the turn is given back,
    /// or until room may have appeared. If another session has the turn after the wait, too, the call returns
    /// `None`. The caller then looks for room and queues again.
    ///
    /// The caller must have no page in flight, because the session with the turn may be waiting for that very page.
    pub fn queue(self: &Arc<Self>) -> Option<Turn> {
        let mut taken = self.taken.lock();
        if *taken {
            self.queued.fetch_add(1, Ordering::SeqCst);
            taken = self.bell.wait(taken);
            self.queued.fetch_sub(1, Ordering::SeqCst);
            if *taken {
                return None;
            }
        }
        *taken = true;
        Some(Turn { budget: Arc::clone(self), is_of_task: false })
    }

    /// Takes the tasks' turn if it is free. Otherwise returns `None`. The task of `context` then queues under the
    /// number `waiter` until it is woken or [leaves](Budget::leave_queue). The task is woken when the turn is given
    /// back, when the pages of the turn's holder have landed, and when room may have appeared.
    pub fn poll_queue(self: &Arc<Self>, waiter: u64, context: &Context<'_>) -> Option<Turn> {
        // Wakers are cloned and dropped outside of the lock, because they run code that is not ours.
        let waker = context.waker().clone();
        let mut tasks = self.tasks.lock();
        if tasks.is_taken {
            let before = tasks.queue.insert(waiter, waker);
            if before.is_none() {
                self.queued.fetch_add(1, Ordering::SeqCst);
            }
            drop(tasks);
            drop(before);
            return None;
        }
        tasks.is_taken = true;
        drop(tasks);
        Some(Turn { budget: Arc::clone(self), is_of_task: true })
    }

    /// Removes the task with the number `waiter` from the queue.
    pub fn leave_queue(&self, waiter: u64) {
        let mut tasks = self.tasks.lock();
        let waker = tasks.queue.remove(&waiter);
        if waker.is_some() {
            self.queued.fetch_sub(1, Ordering::SeqCst);
        }
        drop(tasks);
        drop(waker);
    }

    /// Called when pages were unpinned. It wakes sessions that queue: one thread, and all tasks. A session that
    /// begins to queue just after the call is woken later, when the turn is given back.
    pub fn room_appeared(&self) {
        if self.queued() > 0 {
            self.bell.notify_one();
            self.wake_tasks(|_| {});
        }
    }

    /// Wakes the tasks that queue. This is called when the pages of the task with the turn have landed.
    pub fn holder_landed(&self) {
        if self.queued() > 0 {
            self.wake_tasks(|_| {});
        }
    }

    fn wake_tasks(&self, change: impl FnOnce(&mut Tasks)) {
        let queue = {
            let mut tasks = self.tasks.lock();
            change(&mut tasks);
            self.queued.fetch_sub(tasks.queue.len(), Ordering::SeqCst);
            std::mem::take(&mut tasks.queue)
        };
        queue.into_values().for_each(wake);
    }

    /// How many sessions queue for a turn.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::SeqCst)
    }
}

/// The right to exceed the limit. Dropping this value gives the right back.
#[derive(Debug)]
pub(crate) struct Turn {
    budget: Arc<Budget>,
    is_of_task: bool,
}

impl Turn {
    /// The budget, if the turn is the tasks'.
    pub fn budget_of_tasks(&self) -> Option<&Arc<Budget>> {
        self.is_of_task.then_some(&self.budget)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_of_task {
            self.budget.wake_tasks(|tasks| tasks.is_taken = false);
            return;
        }
        *self.budget.taken.lock() = false;
        self.budget.bell.notify_one();
    }
}

/// Bytes counted as used until dropped.
pub(crate) struct Charge {
    /// `None` for pages outside every cache.
    budget: Option<Arc<Budget>>,
    bytes: u64,
    purpose: Purpose,
}

/// What a charge pays for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A page that is not in memory yet.
    Flight,
    /// A page in memory.
    Page(PageKind),
    /// The hints of a page in memory: where its children are.
    Hints(PageKind),
}

impl Charge {
    /// A charge of nothing, to no budget.
    pub fn none() -> Self {
        Self { budget: None, bytes: 0, purpose: Purpose::Flight }
    }

    /// The bytes charged.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes `bytes` out of a reservation.
    pub fn split(&mut self, bytes: u64) -> Self {
        assert!(
            bytes <= self.bytes && self.purpose == Purpose::Flight,
            "the caller reserved the sum of what it splits off"
        );
        self.bytes -= bytes;
        Self { budget: self.budget.clone(), bytes, purpose: Purpose::Flight }
    }

    /// Whether `budget` was charged.
    pub fn is_of(&self, budget: &Arc<Budget>) -> bool {
        self.budget.as_ref().is_some_and(|own| Arc::ptr_eq(own, budget))
    }

    /// Charges `bytes` more to the same budget, whether they fit or not.
    pub fn grow(&mut self, bytes: u64) {
        if let Some(budget) = &self.budget {
            let more = budget.overdraw(bytes);
            self.join(more);
        }
    }

    /// Adds another reservation of the same budget.
    pub fn join(&mut self, mut other: Self) {
        assert!(self.purpose == Purpose::Flight && other.purpose == Purpose::Flight, "both are reservations");
        self.bytes += other.bytes;
        other.bytes = 0;
    }

    /// Turns the reservation into the charge of a page that has arrived. The page takes `bytes`, which is at most
    /// what was reserved. The rest is given back.
    pub fn convert_to_page(mut self, bytes: u64, kind: PageKind) -> Self {
        drop(self.split(self.bytes - bytes));
        if let Some(budget) = &self.budget {
            budget.in_flight.fetch_sub(bytes, Ordering::Relaxed);
            budget.frames.fetch_add(1, Ordering::Relaxed);
            budget.by_kind[kind.index()].fetch_add(bytes, Ordering::Relaxed);
        }
        self.purpose = Purpose::Page(kind);
        self
    }

    /// This charge pays for a page. Makes a new charge of `bytes` to the same budget, for the hints of this page.
    /// `None` if the bytes do not fit.
    pub fn for_hints(&self, bytes: u64) -> Option<Self> {
        let (Some(budget), Purpose::Page(kind)) = (&self.budget, self.purpose) else { return None };
        // Once the budget is full, most calls end here.
        if bytes == 0 || budget.used().saturating_add(bytes) > budget.limit() {
            return None;
        }
        let mut charge = budget.try_charge(bytes).ok()?;
        budget.in_flight.fetch_sub(bytes, Ordering::Relaxed);
        budget.by_kind[kind.index()].fetch_add(bytes, Ordering::Relaxed);
        charge.purpose = Purpose::Hints(kind);
        Some(charge)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let Some(budget) = &self.budget else { return };
        match self.purpose {
            Purpose::Flight => budget.in_flight.fetch_sub(self.bytes, Ordering::Relaxed),
            Purpose::Page(kind) => {
                budget.frames.fetch_sub(1, Ordering::Relaxed);
                budget.by_kind[kind.index()].fetch_sub(self.bytes, Ordering::Relaxed)
            }
            Purpose::Hints(kind) => budget.by_kind[kind.index()].fetch_sub(self.bytes, Ordering::Relaxed),
        };
        budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.bytes > 0 {
            budget.room_appeared();
        }
    }
}

impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge").field("bytes", &self.bytes).field("purpose", &self.purpose).finish()
    }
}
