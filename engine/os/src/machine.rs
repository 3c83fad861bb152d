//! One handle for the disk, the reads, the clock, the free memory, the randomness and the threads. This module does not know how they
//! are used.

use crate::io::CallerReads;
use crate::real::{RealClock, RealDisk, RealFreeMemory, RealRandom, RealReads, ThreadPool};
use crate::sim::{SimClock, SimDisk, SimFreeMemory, SimRandom, SimReads, SimThreads};
use crate::sync::Arc;
use crate::{Clock, Disk, FreeMemory, Random, Reads, Threads};

/// Everything outside the process. Clones share it.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// Asynchronous reads of files.
    pub reads: Arc<dyn Reads>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// How much memory is free.
    pub memory: Arc<dyn FreeMemory>,
    /// Random numbers for identifiers.
    pub random: Arc<dyn Random>,
    /// Background work.
    pub threads: Arc<dyn Threads>,
}

impl Machine {
    /// The machine that the process runs on.
    pub fn real() -> Machine {
        Machine {
            disk: Arc::new(RealDisk),
            reads: Arc::new(RealReads::new()),
            clock: Arc::new(RealClock::new()),
            memory: Arc::new(RealFreeMemory::new()),
            random: Arc::new(RealRandom),
            threads: ThreadPool::of_process(),
        }
    }

    /// The machine that the process runs on, but with an empty disk in memory, which lives as long as its last handle.
    pub fn in_memory() -> Machine {
        Machine { disk: SimDisk::that_never_crashes(), reads: Arc::new(CallerReads), ..Machine::real() }
    }

    /// A machine in memory with an empty disk, whose every choice follows from `seed`.
    pub fn simulated(seed: u64) -> (Machine, Arc<SimDisk>) {
        let disk = SimDisk::new(seed);
        (Machine::simulated_on(disk.clone(), seed), disk)
    }

    /// As [`Machine::simulated`], but reads are held back until they are driven, in an order that follows from `seed`.
    pub fn simulated_with_reads(seed: u64) -> (Machine, Arc<SimDisk>, Arc<SimReads>) {
        let (machine, disk) = Machine::simulated(seed);
        let reads = SimReads::new(seed);
        (Machine { reads: reads.clone(), ..machine }, disk, reads)
    }

    /// A machine in memory with this disk, which may be an image of another machine's disk. The number of machines
    /// that the disk has had is mixed into `seed`. So each of them draws other numbers, as real machines would, and
    /// the identities in files that are made from these numbers are unique.
    pub fn simulated_on(disk: Arc<SimDisk>, seed: u64) -> Machine {
        let clock = Arc::new(SimClock::new());
        let seed = seed ^ disk.count_machine().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Machine {
            disk,
            reads: Arc::new(CallerReads),
            threads: Arc::new(SimThreads::new(clock.clone())),
            clock,
            memory: Arc::new(SimFreeMemory::default()),
            random: Arc::new(SimRandom::new(seed)),
        }
    }
}
