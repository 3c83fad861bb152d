//! The report on rows that do not fit in memory. It runs with a small cache. Where a part needs it, there is also a
//! limit on the memory of the process and on the system's cache of its files. Each part is a table of its own with
//! its goals.

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

/// Bytes of the key and the value of a row.
const ROW_BYTES: u64 = 120;

/// Measures all parts on all engines that are there.
pub fn run(args: &PeersArgs, schemes: &[Scheme]) -> Result<Ending, String> {
    let mut ground = Ground::prepare(args, schemes)?;
    let parts = [
        ("Gets by threads that wait for each", gets::measure(&mut ground)),
        ("Gets by one thread that has many under way", callers::measure(&mut ground)),
        ("A full scan", scan::measure(&mut ground)),
        // It changes the database, so it comes last.
        ("Gets beside other work, and with half the cache", beside::measure(&mut ground)),
    ];
    let mut ending = verdict_of(&parts);
    ending.text = format!("{}\n{}", ground.head, ending.text);
    ending.leave_out(&ground.absent);
    Ok(ending)
}
