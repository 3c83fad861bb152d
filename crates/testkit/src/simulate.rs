//! All tests of a whole database in which a seed decides everything. The first tests run a history alone, and then
//! with crashes, with faults, with faults during recoveries, on a full disk, with followers that meet errors, in
//! directories that are moved and removed, and with flipped bits. The other tests run the same history again in
//! other ways: with the other index, with reads that are held back, with caches of three sizes, and with many
//! futures at once.

use crate::corruption::flip_bits;
use crate::faults::{crash_at_syncs, crash_in_recoveries, fail_operations, fail_recoveries, fill_the_disk};
use crate::followers::follow_through_errors;
use crate::futures::read_by_futures;
use crate::history::History;
use crate::moved::change_directories;
use crate::options::TinyOptions;
use crate::rerun::Rerun;
use crate::twins::read_both_ways;

/// How many flips of bits are tried for each sample. A flip costs only one open of the database, and it needs no
/// history of its own.
pub const FLIPS: usize = 4;

/// Runs all tests with `seed`. Panics if a promise is broken. It tries `samples` faults of each kind. If there are
/// fewer, it tries all.
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
