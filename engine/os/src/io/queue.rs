//! A queue that decides which read begins next. It does not know how reads are made, or what is read.
//!
//! The most urgent read goes first, within three limits on what is under way:
//!
//! * the depth: the number of disk reads of all urgencies together;
//! * a share of the depth for unneeded reads, which no thread waits for. The rest is kept for needed reads;
//! * the bytes of each urgency. These limits are low while a thread waits for reads, and higher once no thread has
//!   waited for a while. A read that is larger than its limit begins when no other read of its urgency is under way.
//!
//! "A while" is measured in bytes, not in time: it ends once unneeded reads of [`QueueLimits::calm_bytes`] have
//! begun since the last needed read. So it is longer on a slower disk, and the same calls always give the same order
//! of reads.
//!
//! No read starves: once [`PATIENCE`] more urgent reads have overtaken a read that could have begun, it is next.

use super::request::{ReadRequest, Urgency};
use super::usage::{ReadLoad, Usage};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use std::collections::{HashMap, VecDeque};

/// How many more urgent reads may overtake a read that could begin. So if reads of all three urgencies wait and the
/// limits allow them all, then of 33 reads about one is [`Urgency::Ahead`] and about one [`Urgency::Background`].
const PATIENCE: usize = 32;

/// An item of a queue: one disk read, which may be several reads joined.
pub(crate) trait Queued {
    /// The number of reads in this item, and the bytes that they take from the disk.
    fn load(&self) -> ReadLoad;
    /// The tickets of the item's reads. A caller can raise the item with any of them.
    fn tickets(&self) -> impl Iterator<Item = u64>;
}

/// The most that may be under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    /// Disk reads of all urgencies.
    pub(crate) depth: usize,
    /// Disk reads that no thread waits for.
    pub(crate) unneeded: usize,
    /// Bytes of each urgency.
    pub(crate) bytes: [usize; Urgency::ALL.len()],
    /// Bytes of each urgency while a thread waits for reads. These limits are low because that thread's next read
    /// has to wait until the disk has read these bytes.
    pub(crate) strained_bytes: [usize; Urgency::ALL.len()],
    /// When unneeded reads of this many bytes have begun since the last needed read, the queue assumes that no
    /// thread waits.
    pub(crate) calm_bytes: usize,
}

/// An item that has begun. It is under way until it is passed to [`Queue::over`].
#[derive(Debug)]
pub(crate) struct Begun<T> {
    pub(crate) item: T,
    load: ReadLoad,
    /// The urgency under which the item is counted. It may have been raised since the item was pushed.
    urgency: Urgency,
}

/// The items that wait, and counts of those under way.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    limits: QueueLimits,
    lines: [UrgencyLine<T>; Urgency::ALL.len()],
    /// The place where the item of each ticket waits. Needed items are not in this map.
    places: HashMap<u64, (Urgency, u64)>,
    /// The bytes of the unneeded reads that have begun since the last needed read.
    unneeded_bytes: usize,
    /// Counters of the reads that bypass the queue, and the value of `elsewhere.begun` when the queue last looked.
    elsewhere: Arc<Elsewhere>,
    seen_elsewhere: u64,
    /// How many reads were pushed so far, and how many of them were joined with other reads.
    reads: u64,
    joined: u64,
}

/// Counts needed reads that bypass the queue, because the threads that wait for them make them.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    begun: AtomicU64,
    over: AtomicU64,
}

impl Elsewhere {
    /// Makes a read on this thread. A needed read is counted as under way until its callback has returned or
    /// panicked.
    pub(crate) fn make(&self, read: ReadRequest) {
        let counted = (read.urgency == Urgency::Needed).then(|| Counted::new(self));
        read.make();
        drop(counted);
    }

    fn are_over(&self) -> bool {
        self.begun.load(Ordering::Relaxed) == self.over.load(Ordering::Relaxed)
    }
}

/// Counts one read as under way until it is dropped.
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
    /// The items in order of arrival. A raised item moves to another line and leaves `None` in its place. The front
    /// is never `None`.
    waiting: VecDeque<Option<T>>,
    /// The place of the front item: its number in the order of arrival. Places are never reused.
    front: u64,
    queued: ReadLoad,
    under_way: ReadLoad,
    /// Disk reads under way. A run of joined reads counts once here, unlike in `under_way`.
    begun: usize,
    /// How many more urgent items have begun while the limits would have let the front item begin.
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

    /// The counters for reads that bypass the queue. While a needed one is under way, the byte limits are the lower
    /// ones.
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

    /// Moves the item with the given ticket to the end of the needed line. Returns false if the item does not wait,
    /// or already waits there.
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

    /// Sets the limits for reads that begin from now on. Reads under way go on.
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

    /// Takes the item at `place` out of the line of `urgency`, and forgets its place.
    fn leave(&mut self, urgency: Urgency, place: u64) -> T {
        let item = self.line(urgency).take(place);
        if urgency != Urgency::Needed {
            for ticket in item.tickets() {
                // A ticket that was used twice may already lead to another item.
                if self.places.get(&ticket) == Some(&(urgency, place)) {
                    self.places.remove(&ticket);
                }
            }
        }
        item
    }

    /// Whether an item of this urgency waits and the limits let it begin.
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
