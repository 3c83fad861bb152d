//! How a session reserves memory for the pages that it is about to read: either within the budget, for which other
//! pages are evicted, or beyond the budget, for which the session needs the turn to overdraw. This module does not
//! know how pages are read.

use super::PageCache;
use super::look::LOOK;
use super::parked::Holder;
use crate::budget::{Charge, Turn};
use crate::frame::{Evicted, Frame};
use os::sync::Arc;
use os::sync::atomic::Ordering;
use std::task::Context;

/// A shrinking cache evicts at most this many bytes at a time.
const TRIM_BYTES: u64 = 256 << 10;

/// Memory for pages that are going to be read.
pub(crate) enum Reserved {
    /// Within the budget: the pages can be shared and kept.
    Room(Charge),
    /// Beyond the budget: the pages are for this step alone.
    Overdrawn(Charge),
}

impl PageCache {
    /// Charges `bytes`, and evicts pages if needed. `None` if too many pages are pinned to make room, or if `bytes`
    /// exceed the whole budget.
    pub(crate) fn try_reserve(&self, bytes: u64) -> Option<Charge> {
        loop {
            match self.budget.try_charge(bytes) {
                Ok(charge) => return Some(charge),
                Err(_) if bytes > self.budget.limit() => return None,
                Err(short) if self.evict(short, LOOK) == 0 => return None,
                Err(_) => {}
            }
        }
    }

    /// Charges `bytes`, and evicts pages if needed. If too many pages are pinned to make room, the call takes the
    /// turn to overdraw and puts it into `turn`, where it stays until the end of the step. The call may wait for
    /// the session that holds the turn, so the caller must have no page in flight.
    pub(crate) fn reserve(&self, bytes: u64, turn: &mut Option<Arc<Turn>>) -> Reserved {
        loop {
            match self.reserve_with(bytes, turn, || self.budget.queue()) {
                Some(reserved) => return reserved,
                None => continue,
            }
        }
    }

    /// Like [`PageCache::reserve`], but for a task. `None` if the task has to wait: it then queues under the number
    /// `waiter`, and is woken when it should ask again.
    pub(crate) fn poll_reserve(
        &self,
        bytes: u64,
        turn: &mut Option<Arc<Turn>>,
        waiter: u64,
        context: &Context<'_>,
    ) -> Option<Reserved> {
        loop {
            let reserved = self.reserve_with(bytes, turn, || self.budget.poll_queue(waiter, context));
            if reserved.is_some() {
                self.budget.leave_queue(waiter);
                return reserved;
            }
            match self.parking.look_at_holder(self.budget.queued()) {
                Holder::Busy => return None,
                // The holder may never be polled again. So this task asks to be polled again, after the other
                // tasks.
                Holder::Due => {
                    context.waker().wake_by_ref();
                    return None;
                }
                Holder::Late(parked) => parked.strip(),
            }
        }
    }

    fn reserve_with(
        &self,
        bytes: u64,
        turn: &mut Option<Arc<Turn>>,
        queue: impl FnOnce() -> Option<Turn>,
    ) -> Option<Reserved> {
        if let Some(charge) = self.try_reserve(bytes) {
            return Some(Reserved::Room(charge));
        }
        if turn.is_none() {
            let taken = queue()?;
            let late = self.parking.advance_hand();
            late.iter().for_each(|parked| parked.strip());
            if !late.is_empty() {
                self.budget.room_appeared();
            }
            // Sessions have just lost their pages, or the earlier holder has released its own. If that made room,
            // the turn goes on to the next session in the queue.
            if let Some(charge) = self.try_reserve(bytes) {
                return Some(Reserved::Room(charge));
            }
            *turn = Some(Arc::new(taken));
        }
        Some(Reserved::Overdrawn(self.budget.overdraw(bytes)))
    }

    /// Evicts pages until the used bytes are within the budget or only pinned pages are left. This may take long.
    pub(super) fn trim(&self) {
        loop {
            let excess = self.budget.excess().min(TRIM_BYTES);
            if excess == 0 || self.evict(excess, usize::MAX) == 0 {
                break;
            }
        }
    }

    /// Evicts unpinned pages of `bytes` in total, as far as it finds them, and returns the bytes that they took.
    /// For each page, it looks at no more than `look` pages of each stripe. All stripes give up about the same
    /// number of bytes, because a single stripe may consist of pages that many reads need.
    fn evict(&self, bytes: u64, look: usize) -> u64 {
        let mut evicted = if self.frames.has_retired() { self.frames.take_retired() } else { Vec::new() };
        let mut freed = evicted.iter().map(Evicted::memory_bytes).sum();
        let share = bytes.div_ceil(self.stripes.len() as u64);
        let mut may_note = true;
        loop {
            let mut were_any = false;
            for _ in 0..self.stripes.len() {
                if freed >= bytes {
                    return freed;
                }
                let next = self.next_stripe.fetch_add(1, Ordering::Relaxed);
                let stripe = &self.stripes[next & (self.stripes.len() - 1)];
                let wanted = share.min(bytes - freed);
                let before = evicted.len();
                let cut = |frame: &Frame, used, is_proven| self.cut_out(frame, used, is_proven);
                let of = (&self.table, &*self.frames);
                let (gone, cuts) = stripe.lock().evict(of, wanted, look, cut, &mut evicted);
                evicted[before..].iter().for_each(|page| self.excerpts.leave(page));
                were_any |= gone > 0;
                freed += gone;
                freed -= self.keep_cuts(cuts, &mut evicted, &mut may_note);
            }
            if !were_any {
                return freed;
            }
        }
    }
}
