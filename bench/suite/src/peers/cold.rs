//! The report on rows that do not fit in memory. Each engine runs with a small cache. Some parts of the report
//! also limit the memory of the process together with what the system caches of the process's files. Each part of
//! the report is a table of its own, with its own goals.

mod beside;
mod callers;
mod gets;
mod ground;
mod scan;
#[cfg(test)]
mod tests;

use super::{Ending, verdict_of};
use crate::args::PeersArgs;
use ground::Ground;
use harness::Scheme;

const MIB: u64 = 1 << 20;

/// The bytes of a row: its key and its value.
const ROW_BYTES: u64 = 120;

/// Measures all parts on all engines that this binary has.
pub fn run(args: &PeersArgs, schemes: &[Scheme]) -> Result<Ending, String> {
    let mut ground = Ground::prepare(args, schemes)?;
    let parts = [
        ("Gets by threads that wait for each", gets::measure(&mut ground)),
        ("Gets by one thread that has many under way", callers::measure(&mut ground)),
        ("A full scan", scan::measure(&mut ground)),
        // This part of the report changes the databases, so it comes after all other parts.
        ("Gets beside other work, and with half the cache", beside::measure(&mut ground)),
    ];
    let mut ending = verdict_of(&parts);
    ending.text = format!("{}\n{}", ground.head, ending.text);
    ending.leave_out(&ground.absent);
    Ok(ending)
}
