use super::*;

/// Adds the terms one by one. The method of Kahan (1965) keeps the rounding error small, however many terms are
/// added.
fn added(from: i64, to: i64) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for i in from..to {
        let term = 1.0 / ((i + 1) as f64).powf(THETA) - lost;
        let next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    sum
}

fn assert_near(sum: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((sum - expected).abs() <= tolerance * expected, "{what}: {sum} and {expected}");
}

#[test]
fn what_follows_the_first_items_is_their_sum_to_double_precision() {
    for (after, last) in [(1 << 16, (1 << 16) + 1), (1 << 16, 1 << 17), (1 << 18, 1 << 22), (1_000_000, 3_000_017)] {
        let sum = rest(after as f64, last as f64);
        assert_near(sum, added(after, last), 1e-14, &format!("{after} to {last}"));
    }
}

#[test]
fn the_sum_over_ten_billion_items_is_the_one_that_the_original_has_counted() {
    // The expected value is the result of 10^10 rounded additions.
    assert_near(zeta(0, 10_000_000_000, 0.0), 26.469_028_201_783_02, 1e-11, "10^10 items");
}

#[test]
fn a_range_of_any_length_is_ready_and_draws_from_all_of_it() {
    for items in [TERMS + 1, i64::MAX] {
        let zipfian = Zipfian::new(0, items - 1);
        let mut random = Random::with_state(1);
        let drawn: Vec<i64> = (0..10_000).map(|_| zipfian.next(&mut random)).collect();
        assert!(drawn.iter().all(|number| (0..=items).contains(number)), "{items}");
        assert!(drawn.contains(&0) && drawn.iter().any(|number| *number > items / 4), "{items}");
    }
}

#[test]
fn a_range_grows_by_any_length() {
    let small = Zipfian::new(0, 99);
    let grown = small.grown(small.constants(), 1_000_000_000_000);
    assert_near(grown.zetan, Zipfian::new(0, 999_999_999_999).constants().zetan, 1e-11, "grown");
}
