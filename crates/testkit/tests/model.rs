//! Random histories show what a sorted map with versions would show. More seeds: `cargo x sim`.

use testkit::history::History;
use testkit::rerun::Rerun;

/// A prime number of steps, so that no phase falls in with the end.
const STEPS: usize = 397;

#[test]
fn random_histories_read_as_a_sorted_map_would() {
    for seed in 0..200 {
        let _rerun = Rerun::of(seed, STEPS);
        History::new(seed).run(STEPS).expect("the disk does not fail");
    }
}
