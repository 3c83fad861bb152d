//! The memory limit of a cache, and the right to exceed it. The budget does not know pages or files, only bytes,
//! and which session holds the turn to overdraw.
//!
//! * A [`Charge`] counts bytes as used while it lives. It first belongs to the session that reserved the bytes, and
//!   then, once the page has arrived, to the page's frame. Dropping it gives the bytes back.
//! * [`Budget::try_charge`] never lets the used bytes exceed the limit. Only the holder of the [`Turn`] may exceed
//!   it, by the pages of its own step. The holder does not share these pages, and releases them before the turn.
//!   Threads have one turn among them, and tasks another. So the used bytes are at most the sum of: the limit (or,
//!   if the limit was lowered, what was used at that moment); the pages of one step of a thread and one step of a
//!   task; and the bytes by which pinned pages have unpacked to more than was reserved for them. In the budget of a
//!   session's [own memory](crate::OwnMemory), needed pages may exceed the limit without a turn.
//! * No session waits for the turn forever. A thread that holds it waits only for the disk and then gives it back.
//!   A task that holds it may never be polled again, so the tasks in the queue [take the turn
//!   away](crate::cache::parked) once the holder's pages have landed. Queued sessions are woken when these pages
//!   land and when the turn is given back: one of the threads, but all of the tasks, because a task that is woken
//!   may never be polled.
//!
//! Thread safe. The counters are relaxed: each is exact by itself, and orders no other memory access.

use crate::PageKind;
use crate::wake::wake;
use os::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use os::sync::{Arc, Condvar, Mutex};
use std::collections::BTreeMap;
use std::fmt;
use std::task::{Context, Waker};

/// The bytes of one cache, or of sessions' own memory.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    limit: AtomicU64,
    /// The limit, or what the limit does not fall below by itself.
    least: AtomicU64,
    used: AtomicU64,
    /// Bytes reserved for pages that are not in memory yet; included in `used`.
    in_flight: AtomicU64,
    /// The cost of the pages that callers hold for values in them; included in `used`. A page that is held twice
    /// counts twice.
    held: AtomicU64,
    /// The number of pages in memory. Their cost is in `by_kind`.
    frames: AtomicU64,
    by_kind: [AtomicU64; PageKind::ALL.len()],
    /// Whether a thread has the turn.
    taken: Mutex<bool>,
    bell: Condvar,
    /// Whether a task holds the tasks' turn, and which tasks queue for it.
    tasks: Mutex<Tasks>,
    queued: AtomicUsize,
}

#[derive(Debug, Default)]
struct Tasks {
    is_taken: bool,
    /// The tasks that queue for the turn; also counted in `queued`. The key is the session's number, so that a
    /// session that goes away can leave the queue.
    queue: BTreeMap<u64, Waker>,
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self { limit: AtomicU64::new(limit), least: AtomicU64::new(limit), ..Self::default() }
    }

    #[inline]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    #[inline]
    pub fn least(&self) -> u64 {
        self.least.load(Ordering::Relaxed)
    }

    /// Sets what callers can count on, however the limit changes.
    pub fn set_least(&self, bytes: u64) {
        self.least.store(bytes, Ordering::Relaxed);
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

    /// By how many bytes the limit is exceeded.
    pub fn excess(&self) -> u64 {
        self.used().saturating_sub(self.limit())
    }

    /// Charges `bytes` if they fit.
    ///
    /// # Errors
    ///
    /// How many bytes must be released before the charge fits.
    pub fn try_charge(self: &Arc<Self>, bytes: u64) -> Result<Charge, u64> {
        let limit = self.limit();
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(self.charge(bytes)),
            Err(used) => Err(used.saturating_add(bytes) - limit),
        }
    }

    /// Charges `bytes` whether they fit or not. The top of this file says who may do this.
    pub fn overdraw(self: &Arc<Self>, bytes: u64) -> Charge {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.charge(bytes)
    }

    fn charge(self: &Arc<Self>, bytes: u64) -> Charge {
        self.in_flight.fetch_add(bytes, Ordering::Relaxed);
        Charge { budget: Some(Arc::clone(self)), bytes, purpose: Purpose::Flight }
    }

    /// Counts `bytes` of charged memory as held by a caller. Returns false, and counts nothing, if callers would
    /// then hold more than a quarter of [`Budget::least`].
    pub fn try_hold(&self, bytes: u64) -> bool {
        let most = self.least() / 4;
        let fits = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= most);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Reverts [`Budget::try_hold`].
    pub fn let_go(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes the turn if it is free. Otherwise the call waits until the turn is given back or room may have
    /// appeared, and takes the turn if it is free then. If it is not, the result is `None`: the caller looks for
    /// room and queues again.
    ///
    /// The caller must have no page in flight, because the holder of the turn may be waiting for that very page.
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

    /// Takes the tasks' turn if it is free. Otherwise returns `None`, and the task of `context` queues under the
    /// number `waiter` until it is woken or [leaves](Budget::leave_queue). It is woken when the turn is given back,
    /// when the holder's pages have landed, and when room may have appeared.
    pub fn poll_queue(self: &Arc<Self>, waiter: u64, context: &Context<'_>) -> Option<Turn> {
        // Clone and drop wakers outside of the lock, because they run foreign code.
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

    /// Wakes one queueing thread and all queueing tasks, because pages were unpinned. A session that begins to
    /// queue just after this call is woken when the turn is given back.
    pub fn room_appeared(&self) {
        if self.queued() > 0 {
            self.bell.notify_one();
            self.wake_tasks(|_| {});
        }
    }

    /// Wakes the queueing tasks, because the pages of the task with the turn have landed.
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

/// The right to exceed the limit. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Turn {
    budget: Arc<Budget>,
    is_of_task: bool,
}

impl Turn {
    /// The budget, if this is the tasks' turn.
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

/// Bytes that count as used until dropped.
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
    /// The hints of a page in memory, which say where its children are.
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

    /// Splits `bytes` off a reservation.
    pub fn split(&mut self, bytes: u64) -> Self {
        assert!(
            bytes <= self.bytes && self.purpose == Purpose::Flight,
            "the caller reserved the sum of what it splits off"
        );
        self.bytes -= bytes;
        Self { budget: self.budget.clone(), bytes, purpose: Purpose::Flight }
    }

    /// Whether it pays for a page of this kind.
    pub fn pays_for(&self, kind: PageKind) -> bool {
        self.budget.is_some() && self.purpose == Purpose::Page(kind)
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

    /// Turns the reservation into the charge of a page that has arrived. The page takes `bytes`, at most what was
    /// reserved; the rest is given back.
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

    /// Charges `bytes` more to the same budget, for the hints of the page that this charge pays for. `None` if they
    /// do not fit.
    pub fn for_hints(&self, bytes: u64) -> Option<Self> {
        let (Some(budget), Purpose::Page(kind)) = (&self.budget, self.purpose) else { return None };
        // The usual exit when the budget is full.
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
