//! Counts instructions with the processor's counter if it has one, otherwise with valgrind. If neither works, counts
//! are left out; they are never estimated.

use crate::Result;
use kit::hints::on_debian;
use perf_event::events::Hardware;
use std::fmt;
use std::process::Command;

/// The way to count instructions.
pub enum Counter {
    /// The processor's own counter.
    Hardware(Processor),
    /// Callgrind, which runs this program again with fewer operations.
    Valgrind,
    /// No way, and why.
    None(String),
}

/// A processor with an instruction counter.
pub struct Processor;

impl Counter {
    /// Picks the best way that works.
    pub fn find() -> Self {
        let why = match Processor.count(|| Ok((0..1000u64).map(std::hint::black_box).sum())) {
            Ok(1000..) => return Self::Hardware(Processor),
            Ok(count) => format!("the processor counted {count} for a thousand steps"),
            Err(error) => format!("the processor does not count ({error})"),
        };
        match Command::new("valgrind").arg("--version").output() {
            Ok(output) if output.status.success() => Self::Valgrind,
            _ => Self::None(format!("{why}, and there is no valgrind; {}", on_debian("valgrind"))),
        }
    }
}

/// How instructions were counted.
impl fmt::Display for Counter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hardware(_) => out.write_str("counted by the processor, in the timed process, few operations"),
            Self::Valgrind => out.write_str(
                "counted by callgrind in a process of its own on fewer operations, the loop around them subtracted",
            ),
            Self::None(why) => write!(out, "not counted here: {why}"),
        }
    }
}

impl Processor {
    /// Counts this thread's instructions in user mode while `work` runs.
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
