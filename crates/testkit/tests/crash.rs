//! Whatever fails, nothing acknowledged is lost. More seeds: `cargo x sim`.

use testkit::faults::{crash_at_syncs, fail_operations, fill_the_disk};
use testkit::rerun::Rerun;

const STEPS: usize = 199;
const SAMPLES: usize = 20;

fn for_seeds(count: u64, check: impl Fn(u64)) {
    for seed in 0..count {
        let _rerun = Rerun::of(seed, STEPS, SAMPLES);
        check(seed);
    }
}

#[test]
fn a_crash_at_any_sync_leaves_a_prefix_with_everything_acknowledged_durable() {
    for_seeds(30, |seed| crash_at_syncs(seed, STEPS, SAMPLES));
}

#[test]
fn a_crash_at_every_sync_of_a_short_history_leaves_such_a_prefix() {
    const STEPS: usize = 60;
    for seed in 0..16 {
        let _rerun = Rerun::of(seed, STEPS, usize::MAX);
        crash_at_syncs(seed, STEPS, usize::MAX);
    }
}

#[test]
fn a_failed_operation_is_told_and_loses_nothing_acknowledged() {
    for_seeds(30, |seed| fail_operations(seed, STEPS, SAMPLES));
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing_acknowledged() {
    for_seeds(40, |seed| fill_the_disk(seed, STEPS));
}
