//! A hashed timing wheel for clients that wait for a time (Varghese and Lauck, "Hashed and Hierarchical Timing
//! Wheels", 1987). This module knows no clients and reads no clock.
//!
//! ```text
//!   time in nanoseconds >> 20 = tick              a tick is about a millisecond
//!   tick mod 2^15             = slot              a revolution is about 34 seconds
//!
//!   slots   | 0 | 1 | 2 | … | 32767 |             the first of a list; those of a list have the same slot
//!             |       |
//!             v       v
//!             7       3 -> 9                      the members of a list name the next one themselves
//!
//!   coming  (time, 4), (time, 1), …               a heap of those whose tick has come
//! ```
//!
//! Adding a client takes one write into the wheel. When the tick of a slot comes, the slot is emptied into the
//! heap. So the heap, which keeps times exact to the nanosecond, holds only clients whose times lie in about one
//! millisecond. A client that waits longer than a revolution of the wheel stays in its slot until the client's own
//! tick comes.
//!
//! Invariants: a client whose tick is at most `reached` is in `coming`, and every other client is in the slot of its
//! tick. A bit of `filled` is set exactly if its slot has a list.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

/// A tick is 2^20 ns.
const TICK_BITS: u32 = 20;

/// The number of slots. With these ticks, a revolution takes 34.4 s, which is longer than most think times of TPC-C.
const SLOTS: usize = 1 << 15;

/// The first capacity of the heap: 16 KiB. A thread with 13,000 operations a second has 14 operations in a tick.
const COMING: usize = 1024;

/// The next client in a list: its index plus one, or `None` if the list ends here. An empty slot is zero, so an
/// unused wheel touches none of its memory.
pub(crate) type Link = Option<NonZeroU32>;

/// A client that can wait in a wheel. The wheel keeps the links of its lists inside the clients.
pub(crate) trait Waiter {
    /// The time for which it waits. It must not change during the wait.
    fn due(&self) -> u64;

    /// The next client in its list.
    fn next(&mut self) -> &mut Link;
}

/// The clients of a slice that wait for a point in time, by their index. All calls get the same slice.
pub(crate) struct Wheel {
    slots: Vec<Link>,
    /// One bit for each slot.
    filled: Vec<u64>,
    coming: BinaryHeap<Reverse<(u64, u32)>>,
    /// The last tick that has come.
    reached: u64,
    /// The number of clients that wait.
    count: usize,
    /// The last result of [`Wheel::next`], or `None` after a change that may have made it wrong.
    next: Option<u64>,
}

impl Wheel {
    /// An empty wheel for times from `now` on.
    pub(crate) fn new(now: u64) -> Self {
        Self {
            slots: vec![None; SLOTS],
            filled: vec![0; SLOTS / 64],
            coming: BinaryHeap::with_capacity(COMING),
            reached: tick(now),
            count: 0,
            next: None,
        }
    }

    /// Whether the wheel is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds client `index`, which is not waiting yet. Its time may have passed already.
    pub(crate) fn add<W: Waiter>(&mut self, waiters: &mut [W], index: u32) {
        let waiter = &mut waiters[index as usize];
        let due = waiter.due();
        self.count += 1;
        self.next = self.next.map(|next| next.min(due));
        if tick(due) <= self.reached {
            self.coming.push(Reverse((due, index)));
            return;
        }
        let slot = slot(tick(due));
        *waiter.next() = self.slots[slot];
        self.slots[slot] = link(index);
        self.filled[slot / 64] |= 1 << (slot % 64);
    }

    /// Takes the client with the earliest time, if that time has come at `now`. If several clients have the same
    /// time, takes the client with the least index.
    pub(crate) fn take<W: Waiter>(&mut self, waiters: &mut [W], now: u64) -> Option<u32> {
        loop {
            if let Some(&Reverse((due, index))) = self.coming.peek() {
                if due > now {
                    return None;
                }
                self.coming.pop();
                self.count -= 1;
                self.next = None;
                return Some(index);
            }
            if self.count == 0 {
                self.reached = self.reached.max(tick(now));
            }
            if self.reached >= tick(now) {
                return None;
            }
            self.turn(waiters, tick(now));
        }
    }

    /// Advances to the next tick whose slot has clients, but not past tick `now`.
    fn turn<W: Waiter>(&mut self, waiters: &mut [W], now: u64) {
        self.next = None;
        if now - self.reached >= SLOTS as u64 {
            // At least one revolution has passed, so the ticks of all slots have come.
            self.reached = now;
            let mut from = 0;
            while let Some(slot) = self.filled_from(from) {
                self.empty(waiters, slot);
                from = slot + 1;
            }
            return;
        }
        match self.next_filled() {
            Some(tick) if tick <= now => {
                self.reached = tick;
                self.empty(waiters, slot(tick));
            }
            _ => self.reached = now,
        }
    }

    /// Moves the clients of `slot` whose tick has come into the heap.
    fn empty<W: Waiter>(&mut self, waiters: &mut [W], slot: usize) {
        let mut rest = self.slots[slot].take();
        while let Some(index) = index(rest) {
            let waiter = &mut waiters[index as usize];
            let due = waiter.due();
            rest = waiter.next().take();
            if tick(due) <= self.reached {
                self.coming.push(Reverse((due, index)));
            } else {
                *waiter.next() = self.slots[slot];
                self.slots[slot] = link(index);
            }
        }
        if self.slots[slot].is_none() {
            self.filled[slot / 64] &= !(1 << (slot % 64));
        }
    }

    /// A time before which no waiter is due; `u64::MAX` if no client waits. Usually it is the time of the client
    /// that is due first. But if the next slot in use has only clients of later revolutions, it is the time at which
    /// that slot's tick begins.
    pub(crate) fn next<W: Waiter>(&mut self, waiters: &mut [W]) -> u64 {
        if let Some(next) = self.next {
            return next;
        }
        let next = match self.coming.peek() {
            Some(Reverse((due, _))) => *due,
            None => self.next_filled().map_or(u64::MAX, |tick| self.first_of(waiters, tick)),
        };
        self.next = Some(next);
        next
    }

    /// The earliest time of a client in tick number `at`. Clients of other revolutions, which share the slot, are
    /// left out. If no client is due in tick `at`, the result is the beginning of the tick.
    fn first_of<W: Waiter>(&self, waiters: &mut [W], at: u64) -> u64 {
        let mut first = None;
        let mut rest = self.slots[slot(at)];
        while let Some(index) = index(rest) {
            let waiter = &mut waiters[index as usize];
            let due = waiter.due();
            if tick(due) == at {
                first = Some(first.map_or(due, |first: u64| first.min(due)));
            }
            rest = *waiter.next();
        }
        first.unwrap_or(at << TICK_BITS)
    }

    /// The next tick whose slot has clients.
    fn next_filled(&self) -> Option<u64> {
        let here = slot(self.reached + 1);
        let found = self.filled_from(here).or_else(|| self.filled_from(0))?;
        Some(self.reached + 1 + (found.wrapping_sub(here) % SLOTS) as u64)
    }

    /// The first slot with clients, searched from slot number `from` on.
    fn filled_from(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.filled.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.filled.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// Empties the wheel, and calls `each` with every client that waited, in no particular order.
    pub(crate) fn drain<W: Waiter>(&mut self, waiters: &mut [W], mut each: impl FnMut(u32)) {
        self.coming.drain().for_each(|Reverse((_, index))| each(index));
        let mut from = 0;
        while let Some(slot) = self.filled_from(from) {
            let mut rest = self.slots[slot].take();
            while let Some(index) = index(rest) {
                rest = waiters[index as usize].next().take();
                each(index);
            }
            from = slot + 1;
        }
        self.filled.fill(0);
        (self.count, self.next) = (0, None);
    }
}

fn tick(time: u64) -> u64 {
    time >> TICK_BITS
}

fn slot(tick: u64) -> usize {
    tick as usize % SLOTS
}

fn link(index: u32) -> Link {
    Some(NonZeroU32::MIN.saturating_add(index))
}

fn index(link: Link) -> Option<u32> {
    link.map(|link| link.get() - 1)
}
