//! A request to read: its source, its buffer, its urgency, and a callback for its end. This module does not know
//! when a read is made, or by which thread.

use crate::sync::Arc;
use crate::{Buffer, ReadSource};
use std::fmt::{self, Debug};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How urgent a read is, the most urgent first. Each urgency has its own limit for the bytes under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Urgency {
    /// A thread or task waits for the read.
    Needed,
    /// Readahead: the bytes will be needed soon.
    Ahead,
    /// A read of background work.
    Background,
}

impl Urgency {
    /// Every urgency, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Needed, Self::Ahead, Self::Background];
}

/// The callback of a read, called once at its end, on any thread, with the buffer and either the number of filled
/// bytes or an error. It must neither block nor take long. When it is called, the read's source is closed. If it
/// panics, the panic hook reports the panic, and no other read is affected.
pub type Done = Box<dyn FnOnce(Buffer, io::Result<usize>) + Send>;

/// A read to be made.
pub struct ReadRequest {
    /// Opened when the read is made.
    pub source: Arc<dyn ReadSource>,
    /// Where in the source the read begins.
    pub offset: u64,
    /// The buffer to fill. It is filled completely, unless the source ends first.
    pub buffer: Buffer,
    /// How urgent the read is.
    pub urgency: Urgency,
    /// Identifies the read for [`raise`](crate::Reads::raise). No other unfinished read has the same ticket.
    pub ticket: u64,
    /// Called when the read has ended.
    pub done: Done,
}

impl ReadRequest {
    /// Makes the read on this thread, and calls the callback. A panic of the callback goes on to the caller.
    pub fn make(self) {
        let ReadRequest { source, offset, mut buffer, done, .. } = self;
        // The source is closed before the callback runs, because the callback may read something else.
        let outcome = source.open().and_then(|open| open.file().read_at(&mut buffer, offset));
        done(buffer, outcome);
    }

    /// Makes the read on this thread, and calls the callback. A panic of the callback ends here.
    pub(crate) fn perform(mut self) {
        let outcome = self.open_and_read();
        self.finish(outcome);
    }

    /// Opens the source, reads, and closes it.
    pub(crate) fn open_and_read(&mut self) -> io::Result<usize> {
        let open = Arc::clone(&self.source).open()?;
        open.file().read_at(&mut self.buffer, self.offset)
    }

    /// Calls the callback.
    pub(crate) fn finish(self, outcome: io::Result<usize>) {
        let ReadRequest { source, buffer, done, .. } = self;
        // The source is closed before the callback runs, because the callback may remove the file.
        drop(source);
        let told = catch_unwind(AssertUnwindSafe(|| done(buffer, outcome)));
        // The panic hook has reported a panic. It concerns only the caller that asked for this read.
        drop(told);
    }
}

impl Debug for ReadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read")
            .field("source", &self.source)
            .field("offset", &self.offset)
            .field("bytes", &self.buffer.len())
            .field("urgency", &self.urgency)
            .field("ticket", &self.ticket)
            .finish_non_exhaustive()
    }
}
