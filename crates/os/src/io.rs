//! An interface for reads, of which many can be under way at the same time. This module does not know what is
//! read, or which thread waits.
//!
//! A read owns its buffer until it ends. So the caller need not keep anything alive for the read, and may stop
//! waiting at any time.

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
    /// Begins these reads, not necessarily in the order of the list. On a machine with threads, the call does not
    /// wait for the disk. On other machines, all reads have ended when the call returns, or the reads are held
    /// back until they are [driven](Reads::drive).
    fn submit(&self, reads: Vec<ReadRequest>);
    /// Makes a read as urgent as a needed read, if it has not begun yet. It does nothing if the read is under way
    /// or has ended.
    fn raise(&self, ticket: u64);
    /// Whether reads go on while the thread that submitted them does something else.
    fn overlap(&self) -> bool {
        true
    }
    /// Makes a needed read on the calling thread. If no other reads are wanted, this is quicker than handing the
    /// read to another thread. While this read is made, the limit for submitted reads that no thread needs is
    /// lower. The limit is also lower while a needed read that was submitted is under way.
    fn make(&self, read: ReadRequest) {
        read.make();
    }
    /// A name for the way in which the reads are made, for people: `io_uring`, `threads`, `caller`.
    fn name(&self) -> &'static str;
    /// How long a short read of a distant store takes, as measured lately. It is zero if the reads are not from a
    /// distant store, because such reads are not measured.
    fn latency(&self) -> Duration {
        Duration::ZERO
    }
    /// The reads that are under way, the reads that wait to begin, and the totals so far.
    fn usage(&self) -> Usage {
        Usage::default()
    }
    /// Makes one of the reads that are held back, on this thread. Returns false if no read is held back. A thread
    /// that needs the result of a read does not wait: it makes this call again and again, until the call returns
    /// false. On a machine where threads read, no read is held back.
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
