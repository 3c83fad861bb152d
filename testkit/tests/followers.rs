//! Followers of databases with random histories, amid errors of all kinds.

use testkit::followers::{Followed, follow_through_errors};

#[test]
fn a_follower_shows_a_prefix_that_only_grows_whatever_errors_pass() {
    let mut all = Followed::default();
    for seed in 0..60 {
        println!("seed {seed}");
        let Followed { states, errors, failed_steps } = follow_through_errors(seed, 200);
        all.states += states;
        all.errors += errors;
        all.failed_steps += failed_steps;
    }
    assert!(all.states > 1000 && all.errors > 200 && all.failed_steps > 50, "{all:?}");
}
