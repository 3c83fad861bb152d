//! Times two or more ways to do the same thing. The ways A and B take turns, in the order A, B, A, B and so on. This
//! module does not know what is timed.
//!
//! The timed code waits for nothing. So only its own processor time is measured. The time that other programs take
//! on the processor is not counted. The effect of other programs on the caches changes with time. Turns spread this
//! effect over all sides, and the median leaves out the worst turns. Every side gets the same inputs, which are made
//! before the clock starts. Every side must return the same sum over what it read. So a side that did nothing, or
//! did something else, gives an error.

use crate::Result;
use kit::{median, spread};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// How long to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Turns of each side.
    pub repeats: usize,
    /// Length of a turn.
    pub sample: Duration,
}

/// What an operation took.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Timed {
    /// Median of the turns, nanoseconds for one operation.
    pub nanos: f64,
    /// The upper quartile minus the lower quartile of the turns, as a part of the median.
    pub spread: f64,
}

/// One way to do the operation: a function that does the operation for each input and returns a sum over what it
/// found.
pub type Side<'s, P> = &'s mut dyn FnMut(&[P]) -> Result<u64>;

/// The most operations of a turn. The limit exists because the inputs of all operations of a turn are in memory.
const MAX_COUNT: usize = 1 << 18;

/// Times `sides` on the inputs that `inputs` makes from a seed and a count.
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

/// The number of operations with which a turn of the slowest side has the wanted length. Measuring it also warms
/// everything up.
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
