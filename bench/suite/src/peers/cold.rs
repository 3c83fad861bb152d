//! `larch bench cold`: rows that do not fit in memory. Each engine runs with a small cache. Some parts also put the
//! process into a memory cgroup, which limits its memory together with the page cache of its files. Each part has
//! its own table and goals.

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

/// Bytes of a row's key and value.
const ROW_BYTES: u64 = 120;

/// Measures all parts on all engines that this binary has.
pub fn run(args: &PeersArgs, schemes: &[Scheme]) -> Result<Ending, String> {
    let mut ground = Ground::prepare(args, schemes)?;
    let parts = [
        ("Gets by threads that wait for each", gets::measure(&mut ground)),
        ("Gets by one thread that has many under way", callers::measure(&mut ground)),
        ("A full scan", scan::measure(&mut ground)),
        // Comes last, because it changes the databases.
        ("Gets beside other work, and with half the cache", beside::measure(&mut ground)),
    ];
    let mut ending = verdict_of(&parts);
    ending.text = format!("{}\n{}", ground.head, ending.text);
    ending.leave_out(&ground.absent);
    Ok(ending)
}
