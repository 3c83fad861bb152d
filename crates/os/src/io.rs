//! Reads that are under way together. It does not know what is read, nor who waits.
//!
//! A read owns its buffer until it is over, so nobody has to keep anything alive for it: who asked may go away at any
//! time.

use crate::sync::Arc;
use crate::{Buffer, File};
use std::fmt::{self, Debug};
use std::io;

/// How urgent a read is, the most urgent first. Each has a bound of its own on the bytes under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Urgency {
    /// Somebody waits for it.
    Needed,
    /// Somebody will want it soon.
    Ahead,
    /// Background work wants it.
    Background,
}

impl Urgency {
    /// Every urgency, the most urgent first.
    pub const ALL: [Self; 3] = [Self::Needed, Self::Ahead, Self::Background];
}

/// Told of the end of a read, once, on any thread: the buffer as it was filled, and how many bytes of it were. It neither
/// waits nor takes long.
pub type Done = Box<dyn FnOnce(Buffer, io::Result<usize>) + Send>;

/// A read to be made.
pub struct Read {
    /// From which file.
    pub file: Arc<dyn File>,
    /// From where in it.
    pub offset: u64,
    /// All of it is filled, unless the file ends before.
    pub buffer: Buffer,
    /// How urgent it is.
    pub urgency: Urgency,
    /// A name by which it can be [raised](Reads::raise), unique among the reads under way.
    pub ticket: u64,
    /// Who is told.
    pub done: Done,
}

impl Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read")
            .field("file", &self.file)
            .field("offset", &self.offset)
            .field("bytes", &self.buffer.len())
            .field("urgency", &self.urgency)
            .field("ticket", &self.ticket)
            .finish_non_exhaustive()
    }
}

/// Who makes reads. Thread safe.
pub trait Reads: Send + Sync + Debug {
    /// Begins reads, in an order that it chooses. Where the machine has threads it does not wait for the disk; elsewhere
    /// all are over when it returns.
    fn submit(&self, reads: Vec<Read>);
    /// Makes a read that has not been begun yet as urgent as one that is needed. Does nothing when it is over, or under way.
    fn raise(&self, ticket: u64);
    /// How it reads, for people: `io_uring`, `threads`, `caller`.
    fn name(&self) -> &'static str;
}

/// Makes reads on the thread that asks for them, one by one.
#[derive(Clone, Copy, Debug)]
pub struct CallerReads;

impl Reads for CallerReads {
    fn submit(&self, mut reads: Vec<Read>) {
        reads.sort_by_key(|read| read.urgency);
        for Read { file, offset, mut buffer, done, .. } in reads {
            let outcome = file.read_at(&mut buffer, offset);
            done(buffer, outcome);
        }
    }

    fn raise(&self, _ticket: u64) {}

    fn name(&self) -> &'static str {
        "caller"
    }
}
