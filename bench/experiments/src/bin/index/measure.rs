//! Times two or more ways to do the same thing, in turns: A, B, A, B, …. This module does not know what is timed.
//!
//! The timed code never waits, so its own processor time is measured, which leaves out the time of other programs.
//! These still disturb the caches, more or less over time: turns spread the effect over all sides, and the median
//! drops the worst turns. All sides get the same inputs, made before the clock starts, and must return the same sum
//! over what they read, so a side that does nothing or something else is an error.

use crate::Result;
use kit::{median, spread};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How much to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Number of turns of each side.
    pub repeats: usize,
    /// Length of a turn.
    pub sample: Duration,
}

/// The time of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// Nanoseconds for one operation, the median of the turns.
    pub nanos: f64,
    /// The interquartile range of the turns, relative to the median.
    pub spread: f64,
}

/// One way to do the operation: does it for each input, and returns a sum over what it found.
pub type Side<'s, P> = &'s mut dyn FnMut(&[P]) -> Result<u64>;

/// Most operations in a turn, whose inputs are all in memory.
const MAX_COUNT: usize = 1 << 18;

/// Times `sides`. `inputs` makes inputs from a seed and a count.
pub fn in_turns<P>(
    effort: Effort,
    inputs: &dyn Fn(u64, usize) -> Vec<P>,
    sides: &mut [Side<'_, P>],
) -> Result<Vec<Timed>> {
    let count = enough(effort, inputs, sides)?;
    let mut turns = vec![Vec::with_capacity(effort.repeats); sides.len()];
    for repeat in 0..effort.repeats {
        let probes = inputs(repeat as u64, count);
        let mut sum_before = None;
        for (side, turns) in sides.iter_mut().zip(&mut turns) {
            let (time, sum) = time(side, &probes)?;
            if sum == 0 || *sum_before.get_or_insert(sum) != sum {
                return Err(format!("a turn of {count} operations read {sum:#x}, another {sum_before:x?}").into());
            }
            turns.push(time.as_nanos() as f64 / count as f64);
        }
    }
    Ok(turns.iter().map(|turns| Timed { nanos: median(turns), spread: spread(turns) }).collect())
}

/// Finds the number of operations for which a turn of the slowest side has the wanted length. This also warms up.
fn enough<P>(effort: Effort, inputs: &dyn Fn(u64, usize) -> Vec<P>, sides: &mut [Side<'_, P>]) -> Result<usize> {
    let mut count = 16;
    loop {
        let probes = inputs(u64::MAX, count);
        let mut slowest = Duration::ZERO;
        for side in sides.iter_mut() {
            slowest = slowest.max(time(side, &probes)?.0);
        }
        if slowest >= effort.sample || count >= MAX_COUNT {
            return Ok(count);
        }
        count *= 2;
    }
}

fn time<P>(side: &mut Side<'_, P>, probes: &[P]) -> Result<(Duration, u64)> {
    let start = processor_time();
    let sum = side(probes)?;
    Ok((processor_time() - start, std::hint::black_box(sum)))
}

/// The processor time that this thread has used.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests;
