//! What the process has taken of the machine: memory and processor time, as the system counts them. It does not know
//! what they were taken for.

use std::fs;
use std::time::Duration;

/// Memory of the process. Each number is `None` where the system does not tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Memory of the process's own: heap and stacks, without mapped files and without the system's page cache.
    pub anonymous_bytes: Option<u64>,
    /// All memory mapped and present, files included.
    pub resident_bytes: Option<u64>,
    /// The most that `resident_bytes` has been.
    pub peak_resident_bytes: Option<u64>,
}

/// Processor time of all threads of the process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// In the process's own code.
    pub user: Duration,
    /// In the system, on behalf of the process.
    pub system: Duration,
}

/// Memory of the process now.
pub fn memory() -> Memory {
    fs::read_to_string("/proc/self/status").map(|status| parse_memory(&status)).unwrap_or_default()
}

/// Processor time of the process so far, to a tick of the system (1/100 s); `None` where the system does not tell it.
pub fn cpu() -> Option<Cpu> {
    parse_cpu(&fs::read_to_string("/proc/self/stat").ok()?, ticks_per_second()?)
}

/// Lines of `name: <number> kB`.
fn parse_memory(status: &str) -> Memory {
    let bytes = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    Memory { anonymous_bytes: bytes("RssAnon"), resident_bytes: bytes("VmRSS"), peak_resident_bytes: bytes("VmHWM") }
}

/// One line: process id, name in parentheses (which may hold spaces and parentheses), then numbers; of the fields
/// counted from 1, the 14th and 15th are ticks in user and in system mode.
fn parse_cpu(stat: &str, ticks_per_second: u64) -> Option<Cpu> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(14 - 3);
    let mut time = || {
        let ticks: u64 = fields.next()?.parse().ok()?;
        Some(Duration::from_micros(ticks * 1_000_000 / ticks_per_second))
    };
    Some(Cpu { user: time()?, system: time()? })
}

#[cfg(target_os = "linux")]
fn ticks_per_second() -> Option<u64> {
    Some(rustix::param::clock_ticks_per_second())
}

#[cfg(not(target_os = "linux"))]
fn ticks_per_second() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests;
