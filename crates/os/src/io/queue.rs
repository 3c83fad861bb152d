//! Which read is begun next. The queue does not know how reads are made, or what is read.
//!
//! The most urgent read goes first, within three limits on what is under way:
//!
//! * depth: how many reads of the disk, of all urgencies together;
//! * a share of the depth for reads that no thread waits for, so that the rest of it is free for the other reads;
//! * the bytes under way, with a limit for each urgency. The limit is low while a thread waits for reads, and
//!   higher when no thread has waited for a while. A read that is larger than its limit begins when no other read
//!   of its urgency is under way.
//!
//! "A while" is measured in bytes of reads that no thread waits for: it ends when reads of a certain number of these
//! bytes have begun. So a while is longer on a slower disk, and the same calls always lead to the same order of
//! reads.
//!
//! No read waits forever: if [`PATIENCE`] more urgent reads have passed a read that could have begun, this read is
//! next.

use super::request::{ReadRequest, Urgency};
use super::usage::{ReadLoad, Usage};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::collections::{HashMap, VecDeque};

/// The number of more urgent reads that may pass a read which could begin. Assume that reads of all three
/// urgencies wait, and that the limits allow each of them. Then of 33 reads that begin, about one has the second
/// urgency, and about one has the third.
const PATIENCE: usize = 32;

/// What waits in a queue.
pub(crate) trait Queued {
    /// The number of reads in this item, and the number of bytes that they take from the disk.
    fn load(&self) -> ReadLoad;
    /// The tickets of the item. With one of them, a caller can make the item needed.
    fn tickets(&self) -> impl Iterator<Item = u64>;
}

/// The most that may be under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    /// The most reads of the disk.
    pub(crate) depth: usize,
    /// The most reads of the disk that no thread waits for.
    pub(crate) unneeded: usize,
    /// The most bytes for each urgency.
    pub(crate) bytes: [usize; Urgency::ALL.len()],
    /// The most bytes for each urgency while a thread waits for reads. These limits are low because the disk reads
    /// these bytes first, and the next read of that thread has to wait meanwhile.
    pub(crate) strained_bytes: [usize; Urgency::ALL.len()],
    /// The number of bytes after which the queue assumes that no thread waits. It counts the bytes of the reads
    /// that have begun since the last needed read and are not needed.
    pub(crate) calm_bytes: usize,
}

/// An item that was begun. It is under way until it is given to [`Queue::over`].
#[derive(Debug)]
pub(crate) struct Begun<T> {
    pub(crate) item: T,
    load: ReadLoad,
    /// The urgency under which the item is counted. It may be higher than when the item was pushed, because a
    /// caller may have made the item needed since then.
    urgency: Urgency,
}

/// What waits and what is under way.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    limits: QueueLimits,
    lines: [UrgencyLine<T>; Urgency::ALL.len()],
    /// For each ticket, the place where its item waits. Items that are needed are not in this map.
    places: HashMap<u64, (Urgency, u64)>,
    /// The bytes of all reads that are not needed and have begun since the last needed read.
    unneeded_bytes: usize,
    /// Counters of the reads that are made without the queue. `seen_elsewhere` is the number of these reads that
    /// had begun when the queue last looked at the counters.
    elsewhere: Arc<Elsewhere>,
    seen_elsewhere: u64,
    /// How many reads were pushed so far, and how many of them were joined with other reads.
    reads: u64,
    joined: u64,
}

/// How many reads were made without the queue, by the threads that wait for the reads.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    begun: AtomicU64,
    over: AtomicU64,
}

impl Elsewhere {
    /// Makes a read on this thread. If the read is needed, it is counted as under way while it is made. The count
    /// stays right even if the callback of the read panics.
    pub(crate) fn make(&self, read: ReadRequest) {
        let counted = (read.urgency == Urgency::Needed).then(|| Counted::new(self));
        read.make();
        drop(counted);
    }

    fn are_over(&self) -> bool {
        self.begun.load(Ordering::Relaxed) == self.over.load(Ordering::Relaxed)
    }
}

/// One read that counts as under way.
struct Counted<'e>(&'e Elsewhere);

impl<'e> Counted<'e> {
    fn new(elsewhere: &'e Elsewhere) -> Self {
        elsewhere.begun.fetch_add(1, Ordering::Relaxed);
        Self(elsewhere)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.over.fetch_add(1, Ordering::Relaxed);
    }
}

/// The reads of one urgency.
#[derive(Debug)]
struct UrgencyLine<T> {
    /// The items in order of arrival. If an item is made needed, it moves to another line, and `None` stays in its
    /// place. The front item is never `None`.
    waiting: VecDeque<Option<T>>,
    /// The place of the front item. Places are never used twice.
    front: u64,
    queued: ReadLoad,
    under_way: ReadLoad,
    /// The number of reads of the disk that are under way.
    begun: usize,
    /// How many more urgent items have begun while the front item waited, although the limits allowed the front
    /// item to begin.
    passed: usize,
}

impl<T> UrgencyLine<T> {
    fn new() -> UrgencyLine<T> {
        let load = ReadLoad::default();
        UrgencyLine { waiting: VecDeque::new(), front: 0, queued: load, under_way: load, begun: 0, passed: 0 }
    }
}

impl<T: Queued> UrgencyLine<T> {
    fn push(&mut self, item: T) -> u64 {
        self.queued.add(item.load());
        self.waiting.push_back(Some(item));
        self.front + self.waiting.len() as u64 - 1
    }

    fn take(&mut self, place: u64) -> T {
        let index = usize::try_from(place - self.front).expect("what waits is in memory");
        let item = self.waiting[index].take().expect("a place is forgotten when it is left");
        self.queued.subtract(item.load());
        while let Some(None) = self.waiting.front() {
            self.waiting.pop_front();
            self.front += 1;
        }
        item
    }

    fn first(&self) -> Option<&T> {
        Some(self.waiting.front()?.as_ref().expect("a hole is not left at the front"))
    }
}

impl<T: Queued> Queue<T> {
    pub(crate) fn new(limits: QueueLimits) -> Queue<T> {
        assert!(limits.unneeded > 0 && limits.depth > limits.unneeded, "there is room for all urgencies: {limits:?}");
        let lines = Urgency::ALL.map(|_| UrgencyLine::new());
        Queue {
            limits,
            lines,
            places: HashMap::new(),
            unneeded_bytes: limits.calm_bytes,
            elsewhere: Arc::default(),
            seen_elsewhere: 0,
            reads: 0,
            joined: 0,
        }
    }

    /// The counters for reads that are made without the queue. While such reads are under way, the limit for reads
    /// in the queue that no thread needs is lower.
    pub(crate) fn elsewhere(&self) -> Arc<Elsewhere> {
        Arc::clone(&self.elsewhere)
    }

    /// Puts an item at the end of its line.
    pub(crate) fn push(&mut self, item: T, urgency: Urgency) {
        let reads = item.load().reads as u64;
        self.reads += reads;
        self.joined += if reads > 1 { reads } else { 0 };
        let place = self.line(urgency).push(item);
        if urgency != Urgency::Needed {
            let item =
                self.lines[urgency as usize].waiting.back().and_then(Option::as_ref).expect("it was just pushed");
            self.places.extend(item.tickets().map(|ticket| (ticket, (urgency, place))));
        }
    }

    /// Moves the item with the given ticket to the end of the line of needed items. Returns false if the item does
    /// not wait, or if it already waits in that line.
    pub(crate) fn raise(&mut self, ticket: u64) -> bool {
        let Some(&(urgency, place)) = self.places.get(&ticket) else {
            return false;
        };
        let item = self.leave(urgency, place);
        self.line(Urgency::Needed).push(item);
        true
    }

    /// The next item to begin, if the limits allow one.
    pub(crate) fn next(&mut self) -> Option<Begun<T>> {
        let elsewhere = self.elsewhere.begun.load(Ordering::Relaxed);
        if elsewhere != self.seen_elsewhere {
            (self.seen_elsewhere, self.unneeded_bytes) = (elsewhere, 0);
        }
        let able = Urgency::ALL.map(|urgency| self.is_able(urgency));
        let most = Urgency::ALL.into_iter().find(|&urgency| able[urgency as usize])?;
        let is_due = |&urgency: &Urgency| able[urgency as usize] && self.lines[urgency as usize].passed >= PATIENCE;
        let urgency = Urgency::ALL.into_iter().rev().find(is_due).unwrap_or(most);
        for other in Urgency::ALL {
            if other > urgency && able[other as usize] {
                self.line(other).passed += 1;
            }
        }
        let place = self.lines[urgency as usize].front;
        let item = self.leave(urgency, place);
        let load = item.load();
        self.unneeded_bytes = match urgency {
            Urgency::Needed => 0,
            _ => self.unneeded_bytes.saturating_add(load.bytes),
        };
        let line = self.line(urgency);
        line.passed = 0;
        line.begun += 1;
        line.under_way.add(load);
        Some(Begun { item, load, urgency })
    }

    /// Sets the limits for reads that begin from now on. Reads that are under way go on.
    #[cfg(target_os = "linux")]
    pub(crate) fn set_limits(&mut self, limits: QueueLimits) {
        self.limits = limits;
    }

    /// Notes that an item is over, and returns the item.
    pub(crate) fn over(&mut self, begun: Begun<T>) -> T {
        let line = self.line(begun.urgency);
        line.begun -= 1;
        line.under_way.subtract(begun.load);
        begun.item
    }

    /// Whether an item may be begun.
    pub(crate) fn has_next(&self) -> bool {
        Urgency::ALL.into_iter().any(|urgency| self.is_able(urgency))
    }

    /// Whether nothing is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.lines.iter().all(|line| line.begun == 0)
    }

    /// Takes out everything that waits.
    pub(crate) fn clear(&mut self) -> Vec<T> {
        self.places.clear();
        let mut items = Vec::new();
        for line in &mut self.lines {
            line.front += line.waiting.len() as u64;
            line.queued = ReadLoad::default();
            items.extend(line.waiting.drain(..).flatten());
        }
        items
    }

    /// The reads that wait, the reads that are under way, and the totals so far.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            under_way: Urgency::ALL.map(|urgency| self.lines[urgency as usize].under_way),
            queued: Urgency::ALL.map(|urgency| self.lines[urgency as usize].queued),
            reads: self.reads,
            joined: self.joined,
        }
    }

    fn line(&mut self, urgency: Urgency) -> &mut UrgencyLine<T> {
        &mut self.lines[urgency as usize]
    }

    /// Takes the item at `place` out of the line of `urgency`, and forgets where the item waited.
    fn leave(&mut self, urgency: Urgency, place: u64) -> T {
        let item = self.line(urgency).take(place);
        if urgency != Urgency::Needed {
            for ticket in item.tickets() {
                // If tickets were not unique, this ticket may already belong to another item.
                if self.places.get(&ticket) == Some(&(urgency, place)) {
                    self.places.remove(&ticket);
                }
            }
        }
        item
    }

    /// Whether a read of the given urgency waits that the limits allow to begin.
    fn is_able(&self, urgency: Urgency) -> bool {
        let line = &self.lines[urgency as usize];
        let Some(first) = line.first() else {
            return false;
        };
        let unneeded: usize = self.lines[Urgency::Needed as usize + 1..].iter().map(|line| line.begun).sum();
        let needed = self.lines[Urgency::Needed as usize].begun;
        let is_calm = needed == 0 && self.unneeded_bytes >= self.limits.calm_bytes && self.elsewhere.are_over();
        let bytes = if is_calm { &self.limits.bytes } else { &self.limits.strained_bytes };
        unneeded + needed < self.limits.depth
            && (urgency == Urgency::Needed || unneeded < self.limits.unneeded)
            && (line.begun == 0 || line.under_way.bytes + first.load().bytes <= bytes[urgency as usize])
    }
}

#[cfg(test)]
mod tests;
