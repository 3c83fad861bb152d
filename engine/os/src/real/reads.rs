//! Reads of the real machine: through `io_uring` where the system allows it, by threads elsewhere. This module does
//! not know what is read.
//!
//! The databases of a process share one engine, because they share the disk, and the depth of the disk's queue can be
//! limited only for all of them together. The engine is made for the first read, and dropped when nothing uses it
//! any more. The environment variable `LARCH_READS` chooses the way to read; see [`ReadsChoice`].

mod closed;
mod hands;
mod pool;
#[cfg(target_os = "linux")]
mod ring;

use crate::io::queue::QueueLimits;
use crate::io::{CallerReads, Usage};
use crate::sync::{Arc, OnceLock, Weak};
use crate::{ReadRequest, Reads};
use pool::Pool;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
// The lock is a mutex of `std`, because it must outlive each model that a model checker runs, and must be made in
// a constant.
use std::sync::{Mutex, PoisonError};

/// The environment variable that chooses the way to read.
const VARIABLE: &str = "LARCH_READS";

/// The most disk reads under way through `io_uring`. A disk reaches its full speed with 32 to 128.
#[cfg(target_os = "linux")]
const RING_DEPTH: usize = 256;
/// The number of threads that read. Each has one read under way.
const POOL_DEPTH: usize = 32;

/// The limits of an engine with this depth.
///
/// At 1 GB/s, each MB under way delays a needed read by 1 ms. So while needed reads are made, at most one run of
/// 128 KiB for background work and four for readahead are under way. These suffice to use the time that needed reads
/// leave free. When no reads are needed, the limits suffice for a disk of 4 GB/s that answers after 1 ms, or for an
/// array of several disks.
fn limits(depth: usize) -> QueueLimits {
    QueueLimits {
        depth,
        unneeded: depth / 2,
        bytes: [usize::MAX, 8 << 20, 4 << 20],
        strained_bytes: [usize::MAX, 512 << 10, 128 << 10],
        calm_bytes: 8 << 20,
    }
}

/// A way to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadsChoice {
    /// Through `io_uring`, or by threads if the system forbids `io_uring`, or once the ring has broken. The default,
    /// if `LARCH_READS` is not set.
    Best,
    /// Through `io_uring`. Every read fails if the system forbids `io_uring`. `LARCH_READS=io_uring`.
    Ring,
    /// By threads. `LARCH_READS=threads`.
    Threads,
    /// On the thread that asks for the reads, one after the other. `LARCH_READS=caller`.
    Caller,
}

impl ReadsChoice {
    /// Parses the value of the variable. `None` means that it is not set.
    fn parse(value: Option<&OsStr>) -> Result<ReadsChoice, String> {
        match value.map(OsStr::to_str) {
            None => Ok(ReadsChoice::Best),
            Some(Some("io_uring")) => Ok(ReadsChoice::Ring),
            Some(Some("threads")) => Ok(ReadsChoice::Threads),
            Some(Some("caller")) => Ok(ReadsChoice::Caller),
            Some(_) => Err(format!(
                "{VARIABLE}={} is not a way to read: io_uring, threads or caller",
                value.unwrap_or_default().display()
            )),
        }
    }

    /// The engine for this choice. `ring` makes an engine that reads through `io_uring`.
    fn engine(self, ring: impl FnOnce() -> io::Result<Arc<dyn Reads>>) -> Arc<dyn Reads> {
        match self {
            ReadsChoice::Best => ring().unwrap_or_else(|_| Arc::new(Pool::new(limits(POOL_DEPTH), POOL_DEPTH))),
            ReadsChoice::Ring => ring().unwrap_or_else(|error| {
                let why = format!("cannot read through io_uring, which {VARIABLE} asks for: {error}");
                Arc::new(RingRefusal { kind: ErrorKind::Unsupported, why })
            }),
            ReadsChoice::Threads => Arc::new(Pool::new(limits(POOL_DEPTH), POOL_DEPTH)),
            ReadsChoice::Caller => Arc::new(CallerReads),
        }
    }
}

#[cfg(target_os = "linux")]
fn ring() -> io::Result<Arc<dyn Reads>> {
    Ok(Arc::new(ring::Ring::new(limits(RING_DEPTH), limits(POOL_DEPTH))?))
}

#[cfg(not(target_os = "linux"))]
fn ring() -> io::Result<Arc<dyn Reads>> {
    Err(io::Error::new(ErrorKind::Unsupported, "this system has none"))
}

/// The shared engine of the process, while it is in use.
static SHARED: Mutex<Option<Weak<dyn Reads>>> = Mutex::new(None);

/// Reads of the real machine.
#[derive(Debug, Default)]
pub struct RealReads {
    /// Made with the first read.
    engine: OnceLock<Arc<dyn Reads>>,
}

impl RealReads {
    /// Reads in the way that `LARCH_READS` chooses. All values that this function returns in a process share one
    /// engine. If the variable has an invalid value, every read fails with an error that says so.
    pub fn new() -> RealReads {
        RealReads::default()
    }

    /// Reads with an engine of its own.
    pub fn alone(choice: ReadsChoice) -> RealReads {
        RealReads { engine: OnceLock::from(choice.engine(ring)) }
    }

    fn engine(&self) -> &dyn Reads {
        &**self.engine.get_or_init(|| {
            let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(engine) = shared.as_ref().and_then(Weak::upgrade) {
                return engine;
            }
            let engine = match ReadsChoice::parse(std::env::var_os(VARIABLE).as_deref()) {
                Ok(choice) => choice.engine(ring),
                Err(why) => Arc::new(RingRefusal { kind: ErrorKind::InvalidInput, why }),
            };
            *shared = Some(Arc::downgrade(&engine));
            engine
        })
    }
}

impl Reads for RealReads {
    fn submit(&self, reads: Vec<ReadRequest>) {
        if !reads.is_empty() {
            self.engine().submit(reads);
        }
    }

    fn raise(&self, ticket: u64) {
        if let Some(engine) = self.engine.get() {
            engine.raise(ticket);
        }
    }

    fn make(&self, read: ReadRequest) {
        self.engine().make(read);
    }

    /// If the engine is not made yet, this call makes it.
    fn name(&self) -> &'static str {
        self.engine().name()
    }

    /// If the engine is not made yet, this call makes it.
    fn overlap(&self) -> bool {
        self.engine().overlap()
    }

    fn usage(&self) -> Usage {
        self.engine.get().map(|engine| engine.usage()).unwrap_or_default()
    }
}

/// Fails every read, because the chosen way to read is unknown or not available.
#[derive(Debug)]
struct RingRefusal {
    kind: ErrorKind,
    why: String,
}

impl Reads for RingRefusal {
    fn make(&self, read: ReadRequest) {
        self.submit(vec![read]);
    }

    fn submit(&self, reads: Vec<ReadRequest>) {
        for read in reads {
            read.finish(Err(io::Error::new(self.kind, self.why.clone())));
        }
    }

    fn raise(&self, _ticket: u64) {}

    fn name(&self) -> &'static str {
        "none"
    }
}

#[cfg(test)]
mod tests;
