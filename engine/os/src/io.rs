//! Asynchronous reads, of which many can be under way at the same time. This module does not know what is read, or
//! which thread waits.
//!
//! A read owns its buffer until it ends. So the caller need not keep anything alive for it, and may stop waiting at
//! any time.

mod latency;
pub(crate) mod queue;
mod request;
pub(crate) mod run;
mod store_reads;
mod usage;

pub use request::{Done, ReadRequest, Urgency};
pub use store_reads::StoreReads;
pub use usage::{ReadLoad, Usage};

use std::fmt::Debug;
use std::time::Duration;

/// An engine that makes reads. Thread safe.
pub trait Reads: Send + Sync + Debug {
    /// Begins these reads, in any order. On a machine with threads, the call does not wait for the disk. On other
    /// machines, the reads have either ended when the call returns, or are held back until they are
    /// [driven](Reads::drive).
    fn submit(&self, reads: Vec<ReadRequest>);
    /// Raises a queued read to [`Urgency::Needed`]. Does nothing if the read is under way or has ended.
    fn raise(&self, ticket: u64);
    /// Whether reads go on while the thread that submitted them does something else.
    fn overlap(&self) -> bool {
        true
    }
    /// Makes a needed read on the calling thread. For a single read, this is quicker than a hand-over to another
    /// thread. As with a submitted needed read, the limits for readahead and background reads are lower while it is
    /// under way.
    fn make(&self, read: ReadRequest) {
        read.make();
    }
    /// How the reads are made, for people to read: `io_uring`, `threads`, `caller`.
    fn name(&self) -> &'static str;
    /// The recent latency of short reads from a distant store. Zero for other reads, which are not measured.
    fn latency(&self) -> Duration {
        Duration::ZERO
    }
    /// The reads that are under way, the reads that wait to begin, and the totals so far.
    fn usage(&self) -> Usage {
        Usage::default()
    }
    /// Makes one of the held-back reads on this thread. Returns false if none is held back. A thread that needs the
    /// result of a read calls this until the result is there or the call returns false. On a machine where threads
    /// read, no read is held back.
    fn drive(&self) -> bool {
        false
    }
}

/// Makes reads on the thread that asks for them, one after the other. Neighbouring reads of a file with a descriptor
/// are joined.
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
