//! A run of ten seconds of what `cargo x stress` does for longer.

use std::time::Duration;
use testkit::stress::{Settings, stress};

#[test]
fn the_whole_api_under_threads_and_executors_keeps_its_promises() {
    let scratch = kit::Scratch::new("stress-test");
    let directory = scratch.join("db");
    let (time, round) = (Duration::from_secs(10), Duration::from_secs(5));
    let summary = stress(&Settings { seed: 1, time, round, directory, allocated_bytes: None });
    for what in ["commit", "compare", "get async", "parked", "task", "get read-only", "pass"] {
        assert!(summary.done.contains_key(what), "nobody did {what}: {:?}", summary.done);
    }
}
