use super::*;
use std::convert::Infallible;

const OPTIONS: Options = Options { first: 1000.0, precision: 0.05, repeats: 3 };

/// Searches a store whose 99th percentile at a rate is the one of a queue: `service / (1 - rate / capacity)`.
fn searched(first: f64, capacity: f64, mut noise: impl FnMut(usize) -> f64) -> (Found, Vec<f64>) {
    let mut tried = Vec::new();
    let found = search(Options { first, ..OPTIONS }, |rate| {
        tried.push(rate);
        let load = rate * noise(tried.len()) / capacity;
        let millis = if load < 1.0 { 1.0 / (1.0 - load) } else { f64::INFINITY };
        Ok::<_, Infallible>(if millis < 5.0 { Verdict::Met } else { Verdict::Missed })
    });
    (found.unwrap_or_else(|never| match never {}), tried)
}

/// Checks that the search finds the rate at which the percentile is 5 ms: four fifths of the capacity.
fn check(first: f64, capacity: f64) {
    let (found, tried) = searched(first, capacity, |_| 1.0);
    let (lower, upper) = (found.lower.expect("a rate met it"), found.upper.expect("a rate missed it"));
    let true_rate = capacity * 0.8;
    assert!(lower.rate < true_rate && true_rate <= upper.rate, "{found:?} has not {true_rate}");
    assert!(upper.rate <= lower.rate * 1.051, "{found:?} is wide");
    assert!(found.is_confirmed && lower.met == 2 && upper.missed == 2, "{found:?}");
    assert!(tried.len() < 25, "{tried:?}");
}

#[test]
fn the_interval_has_the_true_rate_from_wherever_the_search_begins() {
    for first in [1.0, 999.0, 12_345.0, 80_000.0, 100_000.0, 90_000_000.0] {
        check(first, 100_000.0);
    }
    check(0.5, 1.0);
    check(1e6, 3e7);
}

#[test]
fn a_bound_that_a_lucky_or_unlucky_run_set_does_not_stay() {
    // Each run in turn is the one that differs: it meets any rate, or misses any.
    for other in [0.001, 1000.0] {
        for odd in 1..20 {
            let (found, tried) = searched(1000.0, 100_000.0, |run| if run == odd { other } else { 1.0 });
            let (lower, upper) = (found.lower.expect("a rate met it"), found.upper.expect("a rate missed it"));
            assert!(lower.met > lower.missed && upper.missed > upper.met, "{found:?}");
            assert!(found.is_confirmed, "{found:?} after {tried:?}");
            assert!(lower.rate < 80_000.0, "run {odd} of {tried:?}: {found:?}");
            assert!(upper.rate >= 80_000.0, "run {odd} of {tried:?}: {found:?}");
        }
    }
}

#[test]
fn a_store_that_always_meets_has_no_upper_bound() {
    let found = search(OPTIONS, |_| Ok::<_, Infallible>(Verdict::Met)).expect("nothing fails");
    assert_eq!((found.lower.map(|bound| bound.rate), found.upper), (Some(1e9), None));
    assert!(!found.is_confirmed);
}

#[test]
fn a_store_that_never_meets_has_no_lower_bound() {
    let mut tried = Vec::new();
    let found = search(OPTIONS, |rate| {
        tried.push(rate);
        Ok::<_, Infallible>(Verdict::Missed)
    });
    let found = found.expect("nothing fails");
    assert_eq!(found.lower, None);
    assert!(tried.len() == 13 && found.upper.is_some_and(|bound| bound.rate < 0.3), "{tried:?}");
}

#[test]
fn a_run_with_too_few_requests_ends_the_search() {
    let verdict = |rate| if rate < 300.0 { Verdict::TooFew } else { Verdict::Missed };
    let found = search(OPTIONS, |rate| Ok::<_, Infallible>(verdict(rate))).expect("nothing fails");
    assert_eq!((found.lower, found.upper.map(|bound| bound.rate)), (None, Some(500.0)));
}

#[test]
fn runs_that_contradict_each_other_end_unconfirmed() {
    let mut number = 0;
    let found = search(OPTIONS, |_| {
        number += 1;
        Ok::<_, Infallible>(if number % 2 == 0 { Verdict::Met } else { Verdict::Missed })
    });
    assert!(number <= MOST_RUNS + 6 && found.is_ok(), "{number}");
}

#[test]
fn an_error_ends_the_search() {
    let ended = search(OPTIONS, |rate| if rate > 5000.0 { Err("lost") } else { Ok(Verdict::Met) });
    assert_eq!(ended, Err("lost"));
}

#[test]
fn rates_have_four_digits() {
    for (rate, expected) in [(1234.5678, 1235.0), (99_999.0, 100_000.0), (0.012_345_6, 0.012_35), (7.0, 7.0)] {
        assert_eq!(rounded(rate), expected);
    }
}
