//! Reads that are under way together. This module does not know what is read, or which thread waits.
//!
//! A read owns its buffer until it ends. So the caller has to keep nothing alive for the read, and may go away at any
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
    /// Begins reads, in an order that it chooses. Where the machine has threads, it does not wait for the disk.
    /// Elsewhere all reads have ended when it returns, or they are held back until they are [driven](Reads::drive).
    fn submit(&self, reads: Vec<ReadRequest>);
    /// Makes a read as urgent as a needed read, if it has not begun yet. Does nothing if the read is under way or has
    /// ended.
    fn raise(&self, ticket: u64);
    /// Whether reads go on while the thread that submitted them does something else.
    fn overlap(&self) -> bool {
        true
    }
    /// Makes a needed read on the calling thread. This is quicker than handing it over if it is the only read. Reads
    /// that are not needed make room for it, as they do for submitted reads.
    fn make(&self, read: ReadRequest) {
        read.make();
    }
    /// How it reads, for people: `io_uring`, `threads`, `caller`.
    fn name(&self) -> &'static str;
    /// How long a short read from far away takes, as measured lately. Zero where reads are from near: there it is not
    /// measured.
    fn latency(&self) -> Duration {
        Duration::ZERO
    }
    /// What is under way, and the totals so far.
    fn usage(&self) -> Usage {
        Usage::default()
    }
    /// Ends one of the reads that are held back, on this thread. False if no read is held back. A thread that has to
    /// wait for a read calls this, instead of waiting, until it returns false. Where threads read, no read is held
    /// back.
    fn drive(&self) -> bool {
        false
    }
}

/// Makes reads on the thread that asks for them, one after the other. Neighbouring reads of a file with a descriptor
/// are made together.
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
