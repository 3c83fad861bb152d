//! A read to be made: its source, its buffer, its urgency, and a function that is called at its end. This module
//! does not know when a read is made, or by which thread.

use crate::sync::Arc;
use crate::{Buffer, ReadSource};
use std::fmt::{self, Debug};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How urgent a read is. The most urgent kind comes first. Each urgency has its own limit for the bytes under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Urgency {
    /// A thread or task waits for it.
    Needed,
    /// It will be needed soon.
    Ahead,
    /// Background work wants it.
    Background,
}

impl Urgency {
    /// Every urgency, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Needed, Self::Ahead, Self::Background];
}

/// A function that is called once at the end of a read, on any thread. It gets the buffer, and the number of bytes
/// that were filled or an error. The function must neither wait nor take long. When it is called, the read is no
/// longer under way. If the function panics, the panic is reported and affects no other read.
pub type Done = Box<dyn FnOnce(Buffer, io::Result<usize>) + Send>;

/// A read to be made.
pub struct ReadRequest {
    /// The source of the read. It is opened when the read is made.
    pub source: Arc<dyn ReadSource>,
    /// Where in the source the read begins.
    pub offset: u64,
    /// The buffer to fill. The read fills the buffer completely, unless the source ends first.
    pub buffer: Buffer,
    /// How urgent it is.
    pub urgency: Urgency,
    /// A name by which the read can be [raised](crate::Reads::raise). No other read that is under way has it.
    pub ticket: u64,
    /// Called when the read has ended.
    pub done: Done,
}

impl ReadRequest {
    /// Makes the read on this thread, and reports its end. If the callback panics, the panic goes on to the
    /// caller.
    pub fn make(self) {
        let ReadRequest { source, offset, mut buffer, done, .. } = self;
        // The source is closed before the callback runs, because the callback may read something else.
        let outcome = source.open().and_then(|open| open.file().read_at(&mut buffer, offset));
        done(buffer, outcome);
    }

    /// Makes the read on this thread, and reports its end.
    pub(crate) fn perform(mut self) {
        let outcome = self.open_and_read();
        self.finish(outcome);
    }

    /// Opens the source, reads, and closes it.
    pub(crate) fn open_and_read(&mut self) -> io::Result<usize> {
        let open = Arc::clone(&self.source).open()?;
        open.file().read_at(&mut self.buffer, self.offset)
    }

    /// Reports the end.
    pub(crate) fn finish(self, outcome: io::Result<usize>) {
        let ReadRequest { source, buffer, done, .. } = self;
        // The source is closed before the callback runs, because the callback may remove the file.
        drop(source);
        let told = catch_unwind(AssertUnwindSafe(|| done(buffer, outcome)));
        // The panic hook has reported the panic. A panic of the callback concerns only the caller that asked for
        // this read.
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
