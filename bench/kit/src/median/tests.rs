use super::{median, spread};

#[test]
fn a_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
    assert_eq!(median(&[7.0]), 7.0);
    assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
    assert_eq!(median(&[4.0, 1.0, 100.0, 2.0]), 3.0);
}

#[test]
fn a_spread_is_between_quartiles_and_a_part_of_the_median() {
    assert_eq!(spread(&[13.0, 8.0, 10.0]), 0.5);
    assert_eq!(spread(&[1.0, 9.0, 10.0, 12.0, 100.0]), 0.3);
    assert_eq!(spread(&[3.0]), 0.0);
}
