//! Reads what is free from the files in which Linux says it: `/proc/meminfo` for the machine, `/proc/pressure/memory`
//! for how long threads have waited, `/proc/self/status` for what is in swap, and the files of the control groups of
//! this process. This module does not know who asks.
//!
//! Each reading opens the files anew, so it needs no descriptor in between, and it finds the process in another group
//! after it was moved. A reading takes 50 us if it follows another one, and 130 us if other programs have used the
//! processor in between.
//!
//! On other systems the files are missing, and there is no reading.

mod groups;
mod system_file;

use crate::free_memory::{FreeMemory, MemoryReading, ScopeMemory};
use std::path::PathBuf;
use std::time::Duration;
use system_file::text;

/// The memory of the system that the process runs on.
#[derive(Clone, Debug)]
pub struct RealFreeMemory {
    /// The directory that has `proc` and `sys`.
    root: PathBuf,
}

impl RealFreeMemory {
    /// The memory of this system.
    #[expect(clippy::new_without_default, reason = "as with the other parts of the real machine")]
    pub fn new() -> RealFreeMemory {
        RealFreeMemory { root: PathBuf::from("/") }
    }
}

impl FreeMemory for RealFreeMemory {
    fn read(&self) -> Option<MemoryReading> {
        let machine = parse_machine(&text(&self.root.join("proc/meminfo"))?)?;
        // A kernel without this file does not count the waits.
        let pressure = text(&self.root.join("proc/pressure/memory"))?;
        let mut scopes = vec![machine];
        groups::read(&self.root, machine.total_bytes, &mut scopes)?;
        let status = text(&self.root.join("proc/self/status"))?;
        Some(MemoryReading {
            scopes,
            stalled: parse_stalled(&pressure).unwrap_or_default(),
            swapped_bytes: bytes_in(&status, "VmSwap").unwrap_or_default(),
        })
    }
}

/// The lines of `/proc/meminfo`.
fn parse_machine(meminfo: &str) -> Option<ScopeMemory> {
    Some(ScopeMemory {
        total_bytes: bytes_in(meminfo, "MemTotal")?,
        available_bytes: bytes_in(meminfo, "MemAvailable")?,
        free_bytes: bytes_in(meminfo, "MemFree")?,
    })
}

/// The bytes in the line `name: <number> kB`.
fn bytes_in(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=<microseconds>`, and a line for the time in which all threads waited.
fn parse_stalled(pressure: &str) -> Option<Duration> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
    Some(Duration::from_micros(total.parse().ok()?))
}

#[cfg(test)]
mod tests;
