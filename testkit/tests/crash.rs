//! No acknowledged commit may be lost, whatever operation fails. `cargo x sim` runs more seeds.

use testkit::faults::{Crashes, crash_at_syncs, crash_in_recoveries, fail_operations, fail_recoveries, fill_the_disk};
use testkit::history::History;
use testkit::rerun::Rerun;

const STEPS: usize = 199;
const SAMPLES: usize = 20;

fn for_seeds(count: u64, mut check: impl FnMut(u64)) {
    for seed in 0..count {
        let _rerun = Rerun::of(seed, STEPS, SAMPLES);
        check(seed);
    }
}

#[test]
fn a_crash_at_any_sync_leaves_a_prefix_with_everything_acknowledged_durable() {
    let mut all = Crashes::default();
    for_seeds(30, |seed| {
        let Crashes { recoveries, in_parts } = crash_at_syncs(seed, STEPS, SAMPLES);
        all.recoveries += recoveries;
        all.in_parts += in_parts;
    });
    let Crashes { recoveries, in_parts } = all;
    println!("{recoveries} recoveries, {in_parts} of them with rows in parts");
    assert!(in_parts * 5 > recoveries, "a good share of crashes meets rows in parts: {in_parts} of {recoveries}");
}

#[test]
fn a_crash_at_every_sync_of_a_short_history_leaves_such_a_prefix() {
    const STEPS: usize = 60;
    // Histories with more syncs are left out: they import into thousands of tiny files, which takes too long.
    const MOST_SYNCS: u64 = 500;
    let is_short = |seed: &u64| {
        let mut history = History::new(*seed);
        history.run(STEPS).expect("the disk does not fail");
        history.disk().sync_count() <= MOST_SYNCS
    };
    for seed in (0..).filter(is_short).take(16) {
        let _rerun = Rerun::of(seed, STEPS, usize::MAX);
        crash_at_syncs(seed, STEPS, usize::MAX);
    }
}

#[test]
fn a_failed_operation_is_told_and_loses_nothing_acknowledged() {
    for_seeds(30, |seed| fail_operations(seed, STEPS, SAMPLES));
}

#[test]
fn a_crash_anywhere_in_the_recovery_from_a_failed_sync_loses_nothing_acknowledged() {
    let mut crashes = 0;
    for_seeds(30, |seed| crashes += crash_in_recoveries(seed, STEPS, SAMPLES));
    println!("{crashes} crashes");
    assert!(crashes > 100, "many recoveries from a failed sync crash: {crashes}");
}

#[test]
fn faults_in_recoveries_from_faults_lose_nothing_acknowledged() {
    for_seeds(30, |seed| fail_recoveries(seed, STEPS, SAMPLES));
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing_acknowledged() {
    for_seeds(40, |seed| fill_the_disk(seed, STEPS));
}
