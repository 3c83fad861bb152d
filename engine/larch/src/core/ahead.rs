//! Prepares a rotation: decides when a growing log should be synced, and keeps the file of the next log ready. This
//! module does not know how a log file is created, and does not decide when a log ends.
//!
//! This module is thread-safe. Its state is locked only for a few instructions.

use super::writer::{NextLog, Unsynced, Writer};
use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};

/// A log is synced each time it has grown by this many bytes. Not more often, because each sync makes the disk flush
/// its cache, and other reads and writes have to wait for that.
const MOST_STEP_BYTES: u64 = 8 << 20;

/// With a small write buffer, a log is synced this many times per write buffer instead.
const STEPS: u64 = 8;

/// The last sync before a rotation is due when at most 1/16 of the room in the memtables is left.
const LAST_PART: u64 = 16;

/// What is prepared for the next rotation.
#[derive(Debug)]
pub struct LogAhead {
    step_bytes: u64,
    /// The next sync is due when the log ends at this offset or later; `u64::MAX` if none is due for this log any
    /// more. Changes only under the writer's lock.
    due_at: AtomicU64,
    state: Mutex<AheadState>,
}

#[derive(Debug, Default)]
struct AheadState {
    unsynced: Option<Unsynced>,
    /// Whether the log has grown so much that the file of the next log should be created.
    is_next_due: bool,
    next: Option<NextLog>,
}

impl LogAhead {
    /// Starts with nothing prepared.
    pub fn new(write_buffer_bytes: u64) -> Self {
        let step_bytes = (write_buffer_bytes / STEPS).min(MOST_STEP_BYTES);
        Self { step_bytes, due_at: AtomicU64::new(step_bytes), state: Mutex::default() }
    }

    /// Notes that a commit was appended to the log of `writer`, and returns whether a sync is due. Memtables will be
    /// frozen at `limit_bytes`. The caller holds the writer's lock.
    pub fn appended(&self, writer: &Writer, limit_bytes: u64) -> bool {
        let (end, due_at) = (writer.log_end(), self.due_at.load(Ordering::Relaxed));
        let is_last = due_at < u64::MAX && writer.memory().used_bytes() >= limit_bytes - limit_bytes / LAST_PART;
        let is_due = end >= due_at || is_last;
        if is_due {
            self.due_at.store(if is_last { u64::MAX } else { end + self.step_bytes }, Ordering::Relaxed);
            let mut state = self.state.lock();
            state.unsynced = Some(writer.unsynced());
            state.is_next_due = true;
        }
        is_due
    }

    /// Notes that a new log of `writer` begins. What it has now should be synced at once, which also syncs the rest
    /// of the previous log: a reader of both logs can then rely on the previous log's end. The caller holds the
    /// writer's lock.
    pub fn begin_log(&self, writer: &Writer) {
        self.due_at.store(self.step_bytes, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.unsynced = Some(writer.unsynced());
        state.is_next_due = false;
    }

    /// Takes the point up to which a log should be synced now, if any.
    pub fn take_unsynced(&self) -> Option<Unsynced> {
        self.state.lock().unsynced.take()
    }

    /// Whether the file of the next log should be created and does not exist yet.
    pub fn needs_next(&self) -> bool {
        let state = self.state.lock();
        state.is_next_due && state.next.is_none()
    }

    /// Keeps the file of the next log until the rotation.
    pub fn put_next(&self, next: NextLog) {
        self.state.lock().next = Some(next);
    }

    /// Takes the file of the next log, if it is ready.
    pub fn take_next(&self) -> Option<NextLog> {
        self.state.lock().next.take()
    }
}
