#![allow(clippy::disallowed_methods, reason = "results of real files, never simulated")]

use super::*;
use crate::experiment::tests::tiny;

#[test]
fn a_tiny_experiment_measures_every_cell_and_goes_on_where_it_was() {
    let [once, again] = [0, 1].map(|_| Batch::of(Scale::Tiny));
    let (scratch, ground, _) = tiny(once, again);
    for side in WARM.into_iter().chain(COLD) {
        let rates = Batch::of(Scale::Tiny).rates(&ground, 100, side);
        let is_whole = |rate: &Rate| rate.rows_per_second > 0.0 && rate.million.cpu_seconds > Some(0.0);
        assert!(rates.len() == 1 && rates.iter().all(is_whole), "{side:?}: {rates:?}");
    }
    let html = std::fs::read_to_string(scratch.join("out/index.html")).expect("it was written");
    for part in ["times multi_get", "A million operations of each cell", "The disk alone", "postgresql, in the server"]
    {
        assert!(html.contains(part), "{part}");
    }
}
