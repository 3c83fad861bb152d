//! Keys that transactions have reserved. Other commits that write such a key wait until the transaction ends. This
//! module does not know what is written.
//!
//! A reservation is only advice: validation finds all conflicts, with or without it. A commit waits at most
//! [`LONGEST_WAIT`] for reserved keys. So a forgotten transaction slows other commits but does not stop them, and a
//! deadlock of two transactions ends after this time. A commit's future must not block its thread, because the
//! transaction that it waits for may be another task on this thread. It lets other tasks run, and asks again later.
//!
//! A transaction that has failed several times reserves all keys: it *holds the writer*. Then all other commits
//! wait for it, except those of its own thread. The transaction says how long they wait at most, because its work
//! may take long.
//!
//! Keys are represented by their hashes. If two keys collide, a commit waits without need, which does no harm.
//!
//! Thread safe. A thread that waits here must not hold other locks.

use crate::base::ops::CommitOps;
use crate::base::table::TableId;
use os::Clock;
use os::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use os::sync::{Condvar, Mutex, MutexGuard};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::thread::ThreadId;
use std::time::Duration;

/// The longest time that one commit, or one reservation, waits for reserved keys.
pub const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A transaction can reserve at most this many keys.
pub const MOST_KEYS: usize = 256;

/// The reserved keys of one database.
#[derive(Debug, Default)]
pub struct Reserved {
    /// The number of reserved keys, plus one while a transaction holds the writer.
    count: AtomicUsize,
    next_holder: AtomicU64,
    holders: Mutex<Holders>,
    freed: Condvar,
    hashes: RandomState,
}

#[derive(Debug, Default)]
struct Holders {
    /// The number of the transaction that has reserved a key, by the key's hash.
    keys: HashMap<u64, u64>,
    writer: Option<WriterHold>,
}

/// The transaction that holds the writer.
#[derive(Debug)]
struct WriterHold {
    holder: u64,
    /// Others stop waiting at this time.
    end: Duration,
    /// The thread that took the writer for the transaction.
    thread: ThreadId,
}

/// What one transaction has reserved, until [`Reserved::free`] is called with this value.
#[derive(Debug, Default)]
pub struct Reservation {
    /// The transaction's number in [`Reserved`], or 0 until it reserves something.
    holder: u64,
    keys: Vec<u64>,
    /// Whether the transaction has taken the writer, and may still hold it.
    holds_writer: bool,
}

impl Reserved {
    fn hash(&self, table: TableId, key: &[u8]) -> u64 {
        self.hashes.hash_one((table, key))
    }

    /// The hashes of `keys`, for [`Reserved::reserve`] and [`Reserved::is_reserved`].
    pub fn hashes<'k>(&self, keys: impl Iterator<Item = (TableId, &'k [u8])>) -> Vec<u64> {
        let mut hashes: Vec<u64> = keys.map(|(table, key)| self.hash(table, key)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    fn name(&self, reservation: &mut Reservation) {
        if reservation.holder == 0 {
            reservation.holder = self.next_holder.fetch_add(1, Ordering::Relaxed) + 1;
        }
    }

    /// Reserves keys for a transaction, up to [`MOST_KEYS`]. With a `clock`, waits for keys that other transactions
    /// have reserved, and skips those that stay reserved. Without a clock, stops at the first key that is not free;
    /// the task calls again later, so all tasks take their keys in the same order. Returns false if another
    /// transaction has one of the keys.
    pub fn reserve(&self, reservation: &mut Reservation, hashes: &[u64], clock: Option<&dyn Clock>) -> bool {
        self.name(reservation);
        let mut patience = Patience::new(clock);
        let mut has_all = true;
        let mut holders = self.holders.lock();
        for &hash in hashes {
            let mut goes_on = true;
            while goes_on && holders.keys.get(&hash).is_some_and(|holder| *holder != reservation.holder) {
                (holders, goes_on) = patience.wait(&self.freed, holders);
            }
            match holders.keys.entry(hash) {
                Entry::Occupied(place) if *place.get() == reservation.holder => {}
                Entry::Occupied(_) if clock.is_none() => return false,
                Entry::Occupied(_) => has_all = false,
                Entry::Vacant(_) if reservation.keys.len() >= MOST_KEYS => break,
                Entry::Vacant(place) => {
                    place.insert(reservation.holder);
                    reservation.keys.push(hash);
                    self.count.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
        has_all
    }

    /// Holds the writer: makes all other commits wait until the transaction ends, but at most for `longest`. First
    /// waits until no other transaction holds the writer, or its time is over. If the transaction already holds the
    /// writer, `longest` starts anew.
    pub fn hold_writer(&self, reservation: &mut Reservation, longest: Duration, clock: &dyn Clock) {
        while let Some(left) = self.try_hold_writer(reservation, longest, clock) {
            let holders = self.holders.lock();
            if holders.writer.is_some() {
                drop(self.freed.wait_timeout(holders, left));
            }
        }
    }

    /// Like [`Reserved::hold_writer`], but does not wait. If another transaction holds the writer, changes nothing
    /// and returns how long that transaction may still hold it.
    pub fn try_hold_writer(
        &self,
        reservation: &mut Reservation,
        longest: Duration,
        clock: &dyn Clock,
    ) -> Option<Duration> {
        self.name(reservation);
        let (holder, now) = (reservation.holder, clock.now());
        let mut holders = self.holders.lock();
        if let Some((_, left)) = holders.other_writer(holder, now) {
            return Some(left);
        }
        let hold = WriterHold { holder, end: now + longest, thread: std::thread::current().id() };
        if holders.writer.replace(hold).is_none() {
            self.count.fetch_add(1, Ordering::SeqCst);
        }
        reservation.holds_writer = true;
        None
    }

    /// Frees everything that a transaction has reserved.
    pub fn free(&self, reservation: &mut Reservation) {
        if reservation.keys.is_empty() && !reservation.holds_writer {
            return;
        }
        let mut holders = self.holders.lock();
        self.count.fetch_sub(reservation.keys.len(), Ordering::SeqCst);
        for hash in reservation.keys.drain(..) {
            holders.keys.remove(&hash);
        }
        // If this transaction's time was over, another transaction may hold the writer now.
        if std::mem::take(&mut reservation.holds_writer)
            && holders.writer.take_if(|hold| hold.holder == reservation.holder).is_some()
        {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
        drop(holders);
        self.freed.notify_all();
    }

    /// Waits while another transaction holds the writer or has reserved a key that `ops` write. `own` are the
    /// caller's own reservations, which are ignored.
    #[inline]
    pub fn wait_for(&self, ops: CommitOps<'_>, own: Option<&Reservation>, clock: Option<&dyn Clock>) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.wait(ops, own.map_or(0, |own| own.holder), clock);
        }
    }

    #[cold]
    fn wait(&self, ops: CommitOps<'_>, own: u64, clock: Option<&dyn Clock>) {
        let Some(clock) = clock else { return };
        let mut holders = self.holders.lock();
        let this = std::thread::current().id();
        while let Some((_, left)) = holders.other_writer(own, clock.now()).filter(|(hold, _)| hold.thread != this) {
            holders = self.freed.wait_timeout(holders, left).0;
        }
        drop(holders);
        let mut patience = Patience::new(Some(clock));
        for (table, op) in ops.iter() {
            let Some(key) = op.key() else { continue };
            let hash = self.hash(TableId(table), key);
            let mut holders = self.holders.lock();
            let mut goes_on = true;
            while holders.keys.get(&hash).is_some_and(|holder| *holder != own) {
                if !goes_on {
                    return;
                }
                (holders, goes_on) = patience.wait(&self.freed, holders);
            }
        }
    }

    /// Whether another transaction has reserved one of the keys, or holds the writer at the time `now`. Ignores
    /// `own` reservations, and does not wait.
    pub fn is_reserved(&self, hashes: &[u64], own: &Reservation, now: Duration) -> bool {
        let is_of_other = |holder: &u64| *holder != own.holder;
        self.count() > 0 && {
            let holders = self.holders.lock();
            holders.other_writer(own.holder, now).is_some()
                || hashes.iter().any(|hash| holders.keys.get(hash).is_some_and(is_of_other))
        }
    }

    /// Whether a commit of `ops` would wait at the time `now`, see [`Reserved::wait_for`].
    pub fn is_reserved_for(&self, ops: CommitOps<'_>, now: Duration) -> bool {
        let keys = ops.iter().filter_map(|(table, op)| Some((TableId(table), op.key()?)));
        self.is_reserved(&self.hashes(keys), &Reservation::default(), now)
    }

    /// Whether a transaction holds the writer. A transaction whose time is over still holds the writer until
    /// another transaction takes it.
    #[cfg(test)]
    pub fn is_held(&self) -> bool {
        self.holders.lock().writer.is_some()
    }

    /// The number of reserved keys, plus one while a transaction holds the writer.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

impl Holders {
    /// The transaction other than `own` that holds the writer at the time `now`, if any, and how long it may still
    /// do so.
    fn other_writer(&self, own: u64, now: Duration) -> Option<(&WriterHold, Duration)> {
        let hold = self.writer.as_ref().filter(|hold| hold.holder != own)?;
        let left = hold.end.checked_sub(now).filter(|left| !left.is_zero())?;
        Some((hold, left))
    }
}

/// How long a thread will still wait.
struct Patience<'c> {
    clock: Option<&'c dyn Clock>,
    /// The time until which the thread waits, or `None` before its first wait.
    end: Option<Duration>,
}

impl<'c> Patience<'c> {
    /// With a `clock`, a thread can wait. Without a clock, [`Patience::wait`] returns at once.
    fn new(clock: Option<&'c dyn Clock>) -> Self {
        Self { clock, end: None }
    }

    /// Waits until some key is freed. The second value is false if this did not wait, because there is no clock or
    /// the time is over.
    fn wait<'g, T>(&mut self, freed: &Condvar, guard: MutexGuard<'g, T>) -> (MutexGuard<'g, T>, bool) {
        let Some(clock) = self.clock else { return (guard, false) };
        let now = clock.now();
        let end = *self.end.get_or_insert(now + LONGEST_WAIT);
        let Some(left) = end.checked_sub(now).filter(|left| !left.is_zero()) else { return (guard, false) };
        (freed.wait_timeout(guard, left).0, true)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
