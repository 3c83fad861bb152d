//! Counts instructions. The processor counts instructions if it can. Otherwise, valgrind counts them. If neither
//! can, there are no counts. They are never estimated.

use crate::Result;
use perf_event::events::Hardware;
use std::process::Command;

/// What counts the instructions.
pub enum Counter {
    /// The processor.
    Hardware(Processor),
    /// Callgrind counts. It runs this program again, with fewer operations.
    Valgrind,
    /// Nothing: why.
    None(String),
}

/// A processor that counts.
pub struct Processor;

impl Counter {
    /// The best possible.
    pub fn find() -> Self {
        let why = match Processor.count(|| Ok((0..1000u64).map(std::hint::black_box).sum())) {
            Ok(1000..) => return Self::Hardware(Processor),
            Ok(count) => format!("the processor counted {count} for a thousand steps"),
            Err(error) => format!("the processor does not count ({error})"),
        };
        match Command::new("valgrind").arg("--version").output() {
            Ok(output) if output.status.success() => Self::Valgrind,
            _ => Self::None(format!("{why}, and there is no valgrind: apt-get install valgrind brings it")),
        }
    }
}

impl Processor {
    /// The instructions of this thread while `work` runs, without instructions of the system.
    pub fn count(&self, work: impl FnOnce() -> Result<u64>) -> Result<u64> {
        let mut counter =
            perf_event::Builder::new(Hardware::INSTRUCTIONS).exclude_kernel(true).exclude_hv(true).build()?;
        counter.enable()?;
        let sum = work();
        counter.disable()?;
        std::hint::black_box(sum?);
        Ok(counter.read()?)
    }
}
