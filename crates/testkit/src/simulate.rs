//! Everything a seed can say about a whole database: a history, crashes, faults, a full disk, flipped bits.

use crate::corruption::flip_bits;
use crate::faults::{crash_at_syncs, fail_operations, fill_the_disk};
use crate::history::History;
use crate::rerun::Rerun;

/// Runs `seed`; panics if a promise is broken. Faulty runs take half of the steps: there are many of them.
pub fn simulate(seed: u64, steps: usize) {
    let _rerun = Rerun::of(seed, steps);
    History::new(seed).run(steps).expect("the disk does not fail");
    let steps = steps / 2;
    crash_at_syncs(seed, steps, 4);
    fail_operations(seed, steps, 4);
    fill_the_disk(seed, steps);
    flip_bits(seed, steps, 16);
}
