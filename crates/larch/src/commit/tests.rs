//! The pace of slowed writers.

use super::*;

#[test]
fn one_pace_serves_all_writers_and_no_commit_waits_long() {
    let pace = Pace::default();
    let millis = Duration::from_millis;
    assert_eq!(pace.reserve(millis(1000), millis(20)), millis(20));
    assert_eq!(pace.reserve(millis(1000), millis(20)), millis(40), "the second writer waits for the first one's share");
    assert_eq!(
        pace.reserve(millis(1000), millis(500)),
        LONGEST_WAIT,
        "a large batch leaves the rest to those after it"
    );
    assert_eq!(pace.reserve(millis(1100), millis(1)), LONGEST_WAIT);
    assert_eq!(pace.reserve(millis(1600), millis(1)), millis(1), "what nobody used is not saved up");
    for _ in 0..100 {
        pace.reserve(millis(2000), millis(1000));
    }
    assert_eq!(pace.reserve(millis(2000) + 10 * LONGEST_WAIT, millis(1)), millis(1), "the debt has a limit");
}
