//! Compares what two clients cost that do the same operations: how many operations each did, and with how much
//! processor time. The two clients take turns. This module knows no client.

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
    /// The number of answered operations.
    pub operations: u64,
    /// Processor time of the client.
    pub processor: Duration,
    /// How long the run took.
    pub time: Duration,
}

impl Run {
    /// Operations per second of the client's processor time.
    pub fn per_processor_second(&self) -> f64 {
        self.operations as f64 / self.processor.as_secs_f64()
    }

    /// Operations per second.
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

/// Runs of two clients that are compared.
#[derive(Debug, Clone, Default)]
pub struct Sides {
    /// The runs of our client.
    pub ours: Vec<Run>,
    /// The runs of the other client.
    pub theirs: Vec<Run>,
}

impl Sides {
    /// Our median divided by the other client's median, in operations per second of processor time. Above 1, our
    /// client costs less.
    pub fn ratio(&self) -> f64 {
        let middle = |runs: &[Run]| median(&runs.iter().map(Run::per_processor_second).collect::<Vec<_>>());
        middle(&self.ours) / middle(&self.theirs)
    }
}

/// What two clients did, for each kind of operation.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The name of the other client.
    pub theirs: &'static str,
    /// The name of each kind, and its runs.
    pub kinds: Vec<(String, Sides)>,
    /// A line that says how it was measured.
    pub about: String,
}

/// User and system time of this process.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("processor time is not negative")
}

/// Waits until a child process has ended, and returns its user and system time. The caller can still ask for its exit
/// status.
///
/// # Errors
///
/// Returns an error if the system refused a call or does not report the times of processes.
pub fn processor_time_at_end(child: &Child) -> io::Result<Duration> {
    // The system keeps the processor time of an ended process until its parent takes the exit status. With NOWAIT,
    // the exit status is not taken.
    waitid(WaitId::Pid(Pid::from_child(child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    processor_time_of(&stat).ok_or_else(|| io::Error::other(format!("no processor time in `{stat}`")))
}

/// Words 14 and 15 of a process's `stat`, which are in hundredths of a second. The second word is the name of the
/// process in parentheses.
fn processor_time_of(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut words = after_name.split_whitespace().skip(11);
    let ticks = words.next()?.parse::<u64>().ok()? + words.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(10 * ticks))
}
