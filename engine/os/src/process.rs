//! Facts about the process: its memory and processor time, as the system counts them, and whether it was forked. This
//! module does not know what the process does.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Memory of the process. Each number is `None` where the system does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// The process's own memory: heap and stacks, without mapped files and without the system's page cache.
    pub anonymous_bytes: Option<u64>,
    /// All mapped memory that is present, including files.
    pub resident_bytes: Option<u64>,
    /// The peak of `resident_bytes`.
    pub peak_resident_bytes: Option<u64>,
}

/// Processor time of all threads of the process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Time in the process's own code.
    pub user: Duration,
    /// Time in the kernel on behalf of the process.
    pub system: Duration,
}

/// Identifies the process in which a value was made, so that a forked child can tell that it is not that process.
///
/// On Linux, a check costs one read of memory, from a page that the system zeroes in a forked child
/// (`MADV_WIPEONFORK`). Elsewhere the check asks the system for the process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessOrigin(u64);

impl ProcessOrigin {
    /// This process.
    pub fn here() -> ProcessOrigin {
        ProcessOrigin(current())
    }

    /// Whether this is the process in which the value was made.
    pub fn is_here(self) -> bool {
        self.0 == current()
    }
}

/// A number that no other call in this process returns.
pub fn unique_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A number that differs from those of all ancestors from which this process was forked.
fn current() -> u64 {
    /// The greatest number so far, in this process and its ancestors.
    static LAST: AtomicU64 = AtomicU64::new(0);
    static MARK: OnceLock<Option<&'static AtomicU64>> = OnceLock::new();
    let Some(mark) = MARK.get_or_init(wiped_on_fork) else { return u64::from(std::process::id()) };
    match mark.load(Ordering::Relaxed) {
        0 => {
            let new = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            mark.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|other| other, |_| new)
        }
        number => number,
    }
}

/// An atomic number that is never freed. It is zero at first, and zero again in a forked child. `None` if the system
/// has no such memory.
#[cfg(all(target_os = "linux", not(miri)))]
fn wiped_on_fork() -> Option<&'static AtomicU64> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    // SAFETY: this is a new private mapping, to which nothing else refers. It is never unmapped.
    let page = unsafe {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let page = mmap_anonymous(std::ptr::null_mut(), crate::BLOCK_BYTES, protection, flags).ok()?;
        if madvise(page, crate::BLOCK_BYTES, Advice::LinuxWipeOnFork).is_err() {
            rustix::mm::munmap(page, crate::BLOCK_BYTES).ok();
            return None;
        }
        page
    };
    // SAFETY: the page starts aligned, is initialized with zeros, lives for ever, and is used as this atomic only.
    Some(unsafe { &*page.cast::<AtomicU64>() })
}

#[cfg(any(not(target_os = "linux"), miri))]
fn wiped_on_fork() -> Option<&'static AtomicU64> {
    None
}

/// Makes writes beyond the file size limit (`ulimit -f`) fail with an error. Otherwise `SIGXFSZ` kills the process
/// without a message. A program calls this at its start. Processes that it starts inherit the change.
pub fn report_files_too_large() {
    // SAFETY: the signal calls no function, because it is ignored.
    let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    debug_assert_ne!(before, libc::SIG_ERR, "there is such a signal, and it may be ignored");
}

/// Memory of the process now.
pub fn memory() -> ProcessMemory {
    fs::read_to_string("/proc/self/status").map(|status| parse_memory(&status)).unwrap_or_default()
}

/// Processor time of the process so far, to a tick of the system (1/100 s); `None` where the system does not report it.
pub fn cpu() -> Option<Cpu> {
    parse_cpu(&fs::read_to_string("/proc/self/stat").ok()?, ticks_per_second()?)
}

/// How long the calling thread has been ready to run since it was started, but had no processor; `None` where the
/// system does not report it.
pub fn waited_for_processor() -> Option<Duration> {
    parse_wait(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Lines of `name: <number> kB`.
fn parse_memory(status: &str) -> ProcessMemory {
    let bytes = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    ProcessMemory {
        anonymous_bytes: bytes("RssAnon"),
        resident_bytes: bytes("VmRSS"),
        peak_resident_bytes: bytes("VmHWM"),
    }
}

/// Parses one line of three numbers: the nanoseconds that the thread has run, those that it was ready to run and did
/// not, and how often it began to run.
fn parse_wait(schedstat: &str) -> Option<Duration> {
    let nanos = schedstat.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Parses one line: the process id, the name in parentheses (which may contain spaces and parentheses), and numbers.
/// Fields 14 and 15, counted from 1, are the ticks in user mode and in system mode.
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
