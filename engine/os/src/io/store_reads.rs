//! Reads of objects of a store. Many requests can be under way, and neighbouring reads are joined into one. This
//! module does not know how a store makes its requests. Reads of files that are not objects go to another `Reads`.
//!
//! A request to a store costs a round trip and money, whatever its length. So reads of objects are joined into
//! longer runs than reads of a disk, and over wider gaps.

use super::latency::Latency;
use super::queue::{Begun, Elsewhere, Queue, QueueLimits};
use super::run::{JoinLimits, ReadRun, join_within};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use crate::{Clock, ReadRequest, Reads, StoreObject, Usage};
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// A connection gives 50 to 100 MB/s after a round trip of 20 ms. So the largest gap costs about 1 ms, and the longest
/// run takes up to 20 ms.
const JOINED: JoinLimits = JoinLimits { run_bytes: 1 << 20, gap_bytes: 64 << 10 };

/// At most `depth` requests are under way. At most half of them are requests that no thread waits for.
fn limits(depth: usize) -> QueueLimits {
    QueueLimits {
        depth,
        unneeded: depth / 2,
        bytes: [usize::MAX, 64 << 20, 16 << 20],
        strained_bytes: [usize::MAX, 32 << 20, 4 << 20],
        calm_bytes: 8 << 20,
    }
}

/// Reads of objects.
pub struct StoreReads {
    shared: Arc<StoreReadsShared>,
    /// Counts the reads that callers make themselves.
    elsewhere: Arc<Elsewhere>,
}

struct StoreReadsShared {
    state: Mutex<StoreReadsState>,
    /// The latency in `state`, in nanoseconds, which callers can read without the lock.
    latency_nanos: AtomicU64,
    /// Reads files that are not objects.
    others: Arc<dyn Reads>,
    clock: Arc<dyn Clock>,
}

struct StoreReadsState {
    queue: Queue<ReadRun>,
    /// Whether a thread is in the loop of [`begin`]. Other threads then only queue their reads, and that loop begins
    /// them. So a store that calls back at once does not cause recursion.
    is_beginning: bool,
    latency: Latency,
}

impl StoreReads {
    /// Makes reads of objects with at most `depth` requests under way, but at least 2. Reads of files that are not
    /// objects go to `others`.
    pub fn new(depth: usize, others: Arc<dyn Reads>, clock: Arc<dyn Clock>) -> StoreReads {
        let queue = Queue::new(limits(depth.max(2)));
        let elsewhere = queue.elsewhere();
        let state = Mutex::new(StoreReadsState { queue, is_beginning: false, latency: Latency::default() });
        let latency_nanos = AtomicU64::new(nanos(Latency::default().get()));
        StoreReads { shared: Arc::new(StoreReadsShared { state, latency_nanos, others, clock }), elsewhere }
    }
}

impl Reads for StoreReads {
    fn submit(&self, reads: Vec<ReadRequest>) {
        let runs = join_within(reads, JOINED);
        let mut state = self.shared.state.lock();
        for run in runs {
            let urgency = run.urgency();
            state.queue.push(run, urgency);
        }
        drop(state);
        begin(&self.shared);
    }

    fn raise(&self, ticket: u64) {
        self.shared.state.lock().queue.raise(ticket);
        begin(&self.shared);
        self.shared.others.raise(ticket);
    }

    fn make(&self, read: ReadRequest) {
        let (begin, bytes) = (self.shared.clock.now(), read.buffer.len());
        self.elsewhere.make(read);
        self.shared.note(begin, bytes);
    }

    fn latency(&self) -> Duration {
        Duration::from_nanos(self.shared.latency_nanos.load(Ordering::Relaxed))
    }

    fn name(&self) -> &'static str {
        "store"
    }

    fn usage(&self) -> Usage {
        self.shared.state.lock().queue.usage()
    }
}

impl StoreReadsShared {
    /// Notes the latency of a read of `bytes` bytes that began at `begin` and has just ended.
    fn note(&self, begin: Duration, bytes: usize) {
        let time = self.clock.now().saturating_sub(begin);
        let mut state = self.state.lock();
        state.latency.note(time, bytes);
        self.latency_nanos.store(nanos(state.latency.get()), Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Begins all reads that may begin now, unless another thread is doing so.
fn begin(shared: &Arc<StoreReadsShared>) {
    let mut state = shared.state.lock();
    if std::mem::replace(&mut state.is_beginning, true) {
        return;
    }
    while let Some(begun) = state.queue.next() {
        drop(state);
        begin_one(shared, begun);
        state = shared.state.lock();
    }
    state.is_beginning = false;
}

/// Begins one run. If the source is not an object, the reads go to `others`.
fn begin_one(shared: &Arc<StoreReadsShared>, begun: Begun<ReadRun>) {
    // The source is closed at once, because an object can be read while its source is closed.
    let object = begun.item.open().map(|open| open.file().object());
    match object {
        Ok(Some(object)) => begin_object(shared, &object, begun),
        Ok(None) => {
            let run = shared.state.lock().queue.over(begun);
            shared.others.submit(run.into_reads().collect());
        }
        Err(error) => {
            let (kind, why) = (error.kind(), error.to_string());
            let run = shared.state.lock().queue.over(begun);
            run.fail(|| io::Error::new(kind, why.clone()));
        }
    }
}

fn begin_object(shared: &Arc<StoreReadsShared>, object: &StoreObject, begun: Begun<ReadRun>) {
    let start = begun.item.first.offset;
    let range = start..start + begun.item.bytes() as u64;
    let (shared, begin_time) = (Arc::clone(shared), shared.clock.now());
    let done = Box::new(move |read: io::Result<&[&[u8]]>| {
        if let Ok(pieces) = read {
            shared.note(begin_time, pieces.iter().map(|piece| piece.len()).sum());
        }
        let run = shared.state.lock().queue.over(begun);
        match read {
            Ok(pieces) => run.fill(pieces),
            Err(error) => {
                let (kind, why) = (error.kind(), error.to_string());
                run.fail(|| io::Error::new(kind, why.clone()));
            }
        }
        begin(&shared);
    });
    object.store.begin_read(&object.name, range, done);
}

impl Drop for StoreReads {
    fn drop(&mut self) {
        // Runs under way end by themselves. They begin no other run, because the queue is empty.
        let waiting = self.shared.state.lock().queue.clear();
        for run in waiting {
            run.fail(|| io::Error::new(ErrorKind::Interrupted, "the reads were closed before this one was made"));
        }
    }
}

impl fmt::Debug for StoreReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreReads").field("usage", &self.usage()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
