//! Writes a file on another thread, one piece at a time, while the caller fills the next buffer. This module knows
//! no pages.
//!
//! * If no thread has begun a write when the caller needs its buffer, the caller makes the write itself. So the
//!   caller waits only for a write that another thread has begun, and busy or missing threads do no harm.
//! * If a write fails, the next call returns its error. After a failed write, nothing more is written.
//!
//! If a `WritesBehind` is dropped while a write is under way, this write still runs to its end.

use os::sync::{Arc, Condvar, Mutex};
use os::{Buffer, File, Threads};
use std::fmt;
use std::io;

/// Writes to one file.
pub struct WritesBehind {
    threads: Arc<dyn Threads>,
    slot: Arc<Slot>,
}

struct Slot {
    file: Arc<dyn File>,
    write: Mutex<Write>,
    ended: Condvar,
}

/// The write that was handed over last.
enum Write {
    /// No write waits.
    None,
    /// No thread has begun it.
    Waiting(FullBuffer),
    /// A thread makes it.
    UnderWay,
    /// The write has ended. The caller can take the buffer back and fill it again.
    Ended(Buffer, io::Result<()>),
    /// A write failed, and the caller knows.
    Failed,
}

/// What is to be written.
struct FullBuffer {
    buffer: Buffer,
    filled: usize,
    offset: u64,
}

impl WritesBehind {
    /// Writes to `file` on `threads`.
    pub fn new(threads: Arc<dyn Threads>, file: Arc<dyn File>) -> Self {
        Self { threads, slot: Arc::new(Slot { file, write: Mutex::new(Write::None), ended: Condvar::new() }) }
    }

    /// Hands over the first `filled` bytes of `buffer`, to be written at `offset`. The previous write must have
    /// [ended](Self::finish).
    pub fn begin(&self, buffer: Buffer, filled: usize, offset: u64) {
        *self.slot.write.lock() = Write::Waiting(FullBuffer { buffer, filled, offset });
        let slot = Arc::clone(&self.slot);
        self.threads.hand_over(Box::new(move || slot.run()));
    }

    /// Waits for the end of the last write, and returns its buffer; `None` if no write was under way.
    ///
    /// # Errors
    ///
    /// The error of the write.
    pub fn finish(&self) -> io::Result<Option<Buffer>> {
        self.slot.finish()
    }
}

impl Slot {
    /// Makes the write that was handed over, unless the caller has made it already.
    fn run(&self) {
        let mut write = self.write.lock();
        if !matches!(*write, Write::Waiting(_)) {
            return;
        }
        let Write::Waiting(full) = std::mem::replace(&mut *write, Write::UnderWay) else { return };
        drop(write);
        let guard = EndOnPanic(self);
        let outcome = full.write_to(&*self.file);
        std::mem::forget(guard);
        self.end(Write::Ended(full.buffer, outcome));
    }

    fn end(&self, write: Write) {
        *self.write.lock() = write;
        self.ended.notify_one();
    }

    fn finish(&self) -> io::Result<Option<Buffer>> {
        let mut write = self.write.lock();
        while matches!(*write, Write::UnderWay) {
            write = self.ended.wait(write);
        }
        let last = std::mem::replace(&mut *write, Write::None);
        drop(write);
        let outcome = match last {
            Write::None | Write::UnderWay => Ok(None),
            Write::Waiting(full) => full.write_to(&*self.file).map(|()| Some(full.buffer)),
            Write::Ended(buffer, outcome) => outcome.map(|()| Some(buffer)),
            Write::Failed => Err(io::Error::other("a write before it failed or panicked")),
        };
        if outcome.is_err() {
            *self.write.lock() = Write::Failed;
        }
        outcome
    }
}

/// Marks a write that panics as ended, so that the caller does not wait for it for ever.
struct EndOnPanic<'s>(&'s Slot);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        self.0.end(Write::Failed);
    }
}

impl FullBuffer {
    fn write_to(&self, file: &dyn File) -> io::Result<()> {
        file.write_at(&self.buffer[..self.filled], self.offset)
    }
}

impl fmt::Debug for WritesBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WritesBehind").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
