//! Feeds give every commit whole, in order and once, whatever the machine does. `cargo x feed` does the same for ten
//! million commits.

use testkit::feeds::follow;

#[test]
fn feeds_give_every_commit_once_through_crashes_flushes_and_compactions() {
    let mut crashes = 0;
    for seed in 0..4 {
        let counts = follow(seed, 6_000, |_| {});
        assert!(counts.followed + counts.crashes.1 == counts.commits, "seed {seed}: {counts}");
        crashes += counts.crashes.0;
    }
    assert!(crashes > 0, "some seed has a crash");
}
