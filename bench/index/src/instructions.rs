//! Counts of instructions: by the processor where it can, else by valgrind, else none. They are never estimated.

use crate::Result;
use kit::Scratch;
use perf_event::events::Hardware;
use std::path::Path;
use std::process::Command;

/// What counts the instructions.
pub enum Counter {
    /// The processor.
    Hardware(Processor),
    /// Callgrind, which runs this program again on fewer operations.
    Valgrind,
    /// Nothing: why.
    None(String),
}

/// A processor that counts.
pub struct Processor;

impl Counter {
    /// The best there is.
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
    /// Instructions of this thread while `work` runs, outside the system.
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

/// What is counted when valgrind runs this program. It is never part of its caller, so that valgrind finds it by name.
#[inline(never)]
pub fn counted_region(work: &mut dyn FnMut()) {
    work();
    std::hint::black_box(&work);
}

/// Runs this program on the data in `directory` under valgrind: the instructions of each [`counted_region`] that it enters.
pub fn count_in_valgrind(directory: &Path, scratch: &Scratch) -> Result<Vec<u64>> {
    const NAME: &str = "callgrind";
    let region = concat!(module_path!(), "::counted_region");
    // Valgrind 3.19 lets no other thread run while one waits for a ring. What is counted reads nothing from disk.
    let output = Command::new("valgrind")
        .env("LARCH_READS", "caller")
        .arg("--tool=callgrind")
        .arg("--collect-atstart=no")
        .arg(format!("--toggle-collect={region}"))
        .arg(format!("--dump-after={region}"))
        .arg(format!("--callgrind-out-file={}", scratch.join(NAME).display()))
        .arg(std::env::current_exe()?)
        .arg("--count")
        .arg(directory)
        .output()?;
    if !output.status.success() {
        return Err(format!("under valgrind: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    // One file for each time the region was left, numbered from 1.
    let mut counts = Vec::new();
    while let Ok(text) = std::fs::read_to_string(scratch.join(format!("{NAME}.{}", counts.len() + 1))) {
        let total = text.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
        match total.and_then(|total| total.trim().parse().ok()) {
            Some(total @ 1..) => counts.push(total),
            _ => break,
        }
    }
    for i in 1.. {
        if std::fs::remove_file(scratch.join(format!("{NAME}.{i}"))).is_err() {
            break;
        }
    }
    Ok(counts)
}
