//! Runs all tests of a whole database that follow from one seed: a history alone, then with crashes, faults, faults
//! during recoveries, a full disk, followers that meet errors, directories that are moved and removed, and flipped
//! bits. Then the same history with the other index, with reads that are held back, with caches of three sizes, and
//! with many futures at once.

use crate::corruption::flip_bits;
use crate::faults::{crash_at_syncs, crash_in_recoveries, fail_operations, fail_recoveries, fill_the_disk};
use crate::followers::follow_through_errors;
use crate::futures::read_by_futures;
use crate::history::History;
use crate::moved::change_directories;
use crate::options::TinyOptions;
use crate::rerun::Rerun;
use crate::twins::read_both_ways;

/// Bit flips for each sample. A flip costs only one open of the database, and needs no history of its own.
pub const FLIPS: usize = 4;

/// Runs all tests with `seed`, with at most `samples` faults of each kind. Panics if a promise is broken.
pub fn simulate(seed: u64, steps: usize, samples: usize) {
    let _rerun = Rerun::of(seed, steps, samples);
    History::new(seed).run(steps).expect("the disk does not fail");
    if samples == 0 {
        return;
    }
    crash_at_syncs(seed, steps, samples);
    fail_operations(seed, steps, samples);
    crash_in_recoveries(seed, steps, samples);
    fail_recoveries(seed, steps, samples);
    fill_the_disk(seed, steps);
    follow_through_errors(seed, steps);
    change_directories(seed);
    flip_bits(seed, steps, FLIPS * samples);
    let options = TinyOptions::of(seed);
    for options in TinyOptions::with_each_cache(seed) {
        let mut history = History::with_options(seed, options).holding_reads();
        history.run(steps).expect("the disk does not fail");
        read_by_futures(seed, steps, history);
    }
    read_both_ways(seed, steps, &if seed.is_multiple_of(2) { options.with_both_indexes() } else { options });
}
