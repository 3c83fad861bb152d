//! Reads that are under way together. It does not know what is read, nor which thread waits.
//!
//! A read owns its buffer until it ends, so that the caller has to keep nothing alive for it and may go away at any
//! time.

pub(crate) mod queue;
pub(crate) mod run;
mod source;

pub use source::{OpenSource, ReadSource};

use crate::Buffer;
use crate::sync::Arc;
use std::fmt::{self, Debug};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How urgent a read is, the most urgent first. Each has a bound of its own on the bytes under way.
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

/// Called at the end of a read, once, on any thread, with the buffer and the number of bytes that were filled. It must
/// neither wait nor take long. When it is called, the read is no longer under way. A panic in it is reported and
/// affects no other read.
pub type Done = Box<dyn FnOnce(Buffer, io::Result<usize>) + Send>;

/// A read to be made.
pub struct ReadRequest {
    /// From what; opened when the read is made.
    pub source: Arc<dyn ReadSource>,
    /// From where in it.
    pub offset: u64,
    /// All of it is filled, unless the file ends before.
    pub buffer: Buffer,
    /// How urgent it is.
    pub urgency: Urgency,
    /// A name by which it can be [raised](Reads::raise), unique among the reads under way.
    pub ticket: u64,
    /// Called when the read has ended.
    pub done: Done,
}

impl ReadRequest {
    /// Reads on this thread, and reports the end. A panic of the callback goes on to the caller.
    pub fn make(self) {
        let ReadRequest { source, offset, mut buffer, done, .. } = self;
        // The source is closed before the callback runs, because the caller may then read something else.
        let outcome = source.open().and_then(|open| open.file().read_at(&mut buffer, offset));
        done(buffer, outcome);
    }

    /// Reads on this thread, and reports the end.
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
        // Closed before the callback runs, because the caller may then remove the file.
        drop(source);
        let told = catch_unwind(AssertUnwindSafe(|| done(buffer, outcome)));
        // The panic has been reported by its hook, and concerns only the caller that asked for this read.
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

/// A number of reads, and the bytes that they take from the disk: whole blocks, and the gaps between joined reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadLoad {
    /// How many reads.
    pub reads: usize,
    /// How many bytes.
    pub bytes: usize,
}

impl ReadLoad {
    pub(crate) fn add(&mut self, more: ReadLoad) {
        self.reads += more.reads;
        self.bytes += more.bytes;
    }

    pub(crate) fn subtract(&mut self, less: ReadLoad) {
        self.reads -= less.reads;
        self.bytes -= less.bytes;
    }
}

/// What reads are doing and have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Begun and not over, by urgency.
    pub under_way: [ReadLoad; Urgency::ALL.len()],
    /// Not begun, by urgency.
    pub queued: [ReadLoad; Urgency::ALL.len()],
    /// Asked for so far.
    pub reads: u64,
    /// How many of them were made together with others, as one read of the disk.
    pub joined: u64,
}

/// What makes reads. Thread safe.
pub trait Reads: Send + Sync + Debug {
    /// Begins reads, in an order that it chooses. Where the machine has threads it does not wait for the disk;
    /// elsewhere all have ended when it returns, or are held back until they are [driven](Reads::drive).
    fn submit(&self, reads: Vec<ReadRequest>);
    /// Makes a read that has not been begun yet as urgent as one that is needed. Does nothing when the read has ended,
    /// or is under way.
    fn raise(&self, ticket: u64);
    /// Whether reads go on while the thread that submitted them does something else.
    fn overlap(&self) -> bool {
        true
    }
    /// Makes a read that is needed on the calling thread, which is quicker than handing it over where there is but one. Reads
    /// that are not needed make room for it as for those that were submitted.
    fn make(&self, read: ReadRequest) {
        read.make();
    }
    /// How it reads, for people: `io_uring`, `threads`, `caller`.
    fn name(&self) -> &'static str;
    /// What is under way, and what has been.
    fn usage(&self) -> Usage {
        Usage::default()
    }
    /// Ends one of the reads that are held back, on this thread; false if there is none. A thread that waits for a read
    /// calls it, instead of waiting, until it returns false. Where threads read, there is never one.
    fn drive(&self) -> bool {
        false
    }
}

/// Makes reads on the thread that asks for them, one after the other; those of a file with a descriptor that are near each
/// other together.
#[derive(Clone, Copy, Debug)]
pub struct CallerReads;

impl Reads for CallerReads {
    fn submit(&self, reads: Vec<ReadRequest>) {
        for mut run in run::join(reads) {
            let outcome = run.read();
            run.tell(outcome);
        }
    }

    fn overlap(&self) -> bool {
        false
    }

    fn raise(&self, _ticket: u64) {}

    fn name(&self) -> &'static str {
        "caller"
    }
}
