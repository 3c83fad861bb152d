//! Reads that are under way together. It does not know what is read, nor which thread waits.
//!
//! A read owns its buffer until it ends, so that the caller has to keep nothing alive for it and may go away at any
//! time.

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
    /// Makes a read that is needed on the calling thread, which is quicker than handing it over if it is the only one.
    /// Reads that are not needed make room for it as for those that were submitted.
    fn make(&self, read: ReadRequest) {
        read.make();
    }
    /// How it reads, for people: `io_uring`, `threads`, `caller`.
    fn name(&self) -> &'static str;
    /// How long a short read from far away takes, as measured lately. Zero where reads are near: then it is not
    /// measured.
    fn latency(&self) -> Duration {
        Duration::ZERO
    }
    /// What is under way, and what has been.
    fn usage(&self) -> Usage {
        Usage::default()
    }
    /// Ends one of the reads that are held back, on this thread; false if none exists. A thread that waits for a read
    /// calls it, instead of waiting, until it returns false. Where threads read, no read is held back.
    fn drive(&self) -> bool {
        false
    }
}

/// Makes reads on the thread that asks for them, one after the other; those of a file with a descriptor that are near
/// each other together.
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
