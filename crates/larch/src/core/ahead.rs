//! Prepares a rotation: decides when a growing log is to be made durable, and keeps the file of the next log. It
//! does not know how the next log is created, and does not decide when a log ends.
//!
//! Thread safe. The lock of the state is held for a few instructions.

use super::writer::{NextLog, Unsynced, Writer};
use os::sync::Mutex;
use os::sync::atomic::{AtomicU64, Ordering};

/// The log is made durable each time it has grown by this many bytes. The step is not smaller, because a sync also
/// makes the disk write its cache, and other writes and reads wait for that.
const MOST_STEP_BYTES: u64 = 8 << 20;

/// For a small write buffer, the step is the write buffer divided by this number.
const STEPS: u64 = 8;

/// The last sync before a rotation is due when no more than this part of the room in the memtables is left: 16 stands
/// for 1/16.
const LAST_PART: u64 = 16;

/// What is done ahead of the next rotation.
#[derive(Debug)]
pub struct LogAhead {
    step_bytes: u64,
    /// The next sync is due when the log ends here or later. `u64::MAX` means that no sync is due any more. It
    /// changes under the writer's lock only.
    due_at: AtomicU64,
    state: Mutex<AheadState>,
}

#[derive(Debug, Default)]
struct AheadState {
    unsynced: Option<Unsynced>,
    /// Whether the log has grown so much that the file of the next one is due.
    is_next_due: bool,
    next: Option<NextLog>,
}

impl LogAhead {
    /// Nothing is done yet.
    pub fn new(write_buffer_bytes: u64) -> Self {
        let step_bytes = (write_buffer_bytes / STEPS).min(MOST_STEP_BYTES);
        Self { step_bytes, due_at: AtomicU64::new(step_bytes), state: Mutex::default() }
    }

    /// Notes that a commit was appended to the log of `writer`, whose memtables will be frozen with `limit_bytes`, and
    /// returns whether a sync is due. It is called under the writer's lock.
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

    /// Notes that the log of `writer` begins. The rest of the previous log is to be made durable at once, so that a
    /// reader of both logs can rely on where the previous log ended. It is called under the writer's lock.
    pub fn begin_log(&self, writer: &Writer) {
        self.due_at.store(self.step_bytes, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.unsynced = Some(writer.unsynced());
        state.is_next_due = false;
    }

    /// What is to be made durable.
    pub fn take_unsynced(&self) -> Option<Unsynced> {
        self.state.lock().unsynced.take()
    }

    /// Whether the file of the next log is due and not there.
    pub fn needs_next(&self) -> bool {
        let state = self.state.lock();
        state.is_next_due && state.next.is_none()
    }

    /// Keeps the file of the next log for the rotation.
    pub fn put_next(&self, next: NextLog) {
        self.state.lock().next = Some(next);
    }

    /// The file of the next log, if it is there.
    pub fn take_next(&self) -> Option<NextLog> {
        self.state.lock().next.take()
    }
}
