use super::{missing, reads_of_window};
use harness::{Interval, Measured};

#[test]
fn reads_of_the_warm_up_are_not_those_of_the_window() {
    let interval = |warming, operations| Interval { warming, operations, ..Interval::default() };
    let intervals = vec![interval(true, 1_990), interval(false, 3_000), interval(false, 2_000)];
    let measured = Measured { operations: 5_000, warmed: 8, cut: 2, intervals, ..Measured::default() };
    // Each operation is one read, and 5,000 of the 7,000 operations are in the window.
    assert_eq!(reads_of_window(7_000, &measured), 5_000);
    assert_eq!(reads_of_window(7_000, &Measured::default()), 0);
    assert_eq!(missing(&measured), 0);
}
