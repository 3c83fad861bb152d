//! What a client costs: the operations that it did beside the processor time that it used for them, and the same of
//! another client that did the same in turns with it. It knows no client.

#[cfg(test)]
mod tests;

use crate::median::median;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::io;
use std::process::Child;
use std::time::Duration;

/// One run of a client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Operations that were answered.
    pub operations: u64,
    /// Processor time of the client.
    pub processor: Duration,
    /// How long it took.
    pub time: Duration,
}

impl Run {
    /// Operations in a second of the client's processor time.
    pub fn per_processor_second(&self) -> f64 {
        self.operations as f64 / self.processor.as_secs_f64()
    }

    /// Operations in a second.
    pub fn per_second(&self) -> f64 {
        self.operations as f64 / self.time.as_secs_f64()
    }

    /// Processor time of a million operations, in seconds.
    pub fn processor_seconds_per_million(&self) -> f64 {
        1e6 / self.per_processor_second()
    }
}

impl fmt::Display for Run {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{:.1} K operations/s, {:.1} K operations a second of processor time",
            self.per_second() / 1e3,
            self.per_processor_second() / 1e3
        )
    }
}

/// Runs of two clients.
#[derive(Debug, Clone, Default)]
pub struct Sides {
    /// The runs of ours.
    pub ours: Vec<Run>,
    /// The runs of the other one.
    pub theirs: Vec<Run>,
}

impl Sides {
    /// Median of ours by median of theirs, in operations a second of processor time: by how much ours costs less.
    pub fn ratio(&self) -> f64 {
        let middle = |runs: &[Run]| median(&runs.iter().map(Run::per_processor_second).collect::<Vec<_>>());
        middle(&self.ours) / middle(&self.theirs)
    }
}

/// What two clients did, by kind of operation.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Name of the other client.
    pub theirs: &'static str,
    /// A name for each kind, with the runs.
    pub kinds: Vec<(String, Sides)>,
    /// How it was measured, in a line.
    pub about: String,
}

/// User and system time of this process.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("processor time is not negative")
}

/// Waits until a process that was started has ended, and returns its user and system time. Its exit status can still be
/// asked for.
///
/// # Errors
///
/// What the system refused, or that it tells no times of processes.
pub fn processor_time_at_end(child: &Child) -> io::Result<Duration> {
    // Its time is there after it has ended and before it is waited for.
    waitid(WaitId::Pid(Pid::from_child(child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    processor_time_of(&stat).ok_or_else(|| io::Error::other(format!("no processor time in `{stat}`")))
}

/// Words 14 and 15 of a process's `stat`, in hundredths of a second. The second word is its name in parentheses.
fn processor_time_of(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut words = after_name.split_whitespace().skip(11);
    let ticks = words.next()?.parse::<u64>().ok()? + words.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(10 * ticks))
}
