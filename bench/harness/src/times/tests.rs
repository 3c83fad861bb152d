#![allow(clippy::disallowed_methods, reason = "a test")]

use super::*;

/// Numbers of all sizes, the same each time.
fn numbers(seed: u64, count: usize) -> Vec<u64> {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 20
    };
    (0..count).map(|_| next() >> (next() % 44)).collect()
}

fn counted(numbers: &[u64]) -> Times {
    let mut tally = Tally::<u32>::new();
    numbers.iter().for_each(|nanos| tally.record(*nanos));
    tally.times()
}

#[test]
fn buckets_cover_every_time_without_gap_or_overlap() {
    for bucket_here in 0..GROUP * GROUPS {
        assert_eq!(bucket(least(bucket_here)), bucket_here);
        assert_eq!(bucket(greatest(bucket_here)), bucket_here);
        if bucket_here > 0 {
            assert_eq!(greatest(bucket_here - 1) + 1, least(bucket_here));
        }
    }
    assert_eq!(greatest(GROUP * GROUPS - 1), u64::MAX);
}

#[test]
fn answers_are_those_of_hdrhistogram() {
    for seed in 0..20 {
        let numbers = numbers(seed, 1000 + seed as usize);
        let times = counted(&numbers);
        let mut reference = Histogram::<u64>::new(3).expect("three digits");
        numbers.iter().for_each(|nanos| reference.record(*nanos).expect("grows"));
        assert_eq!(times.count(), reference.len(), "seed {seed}");
        assert_eq!(times.min(), reference.min(), "seed {seed}");
        assert_eq!(times.max(), reference.max(), "seed {seed}");
        assert!((times.mean() / reference.mean() - 1.0).abs() < 1e-9, "seed {seed}");
        for quantile in [0.0, 0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0] {
            assert_eq!(times.quantile(quantile), reference.value_at_quantile(quantile), "seed {seed}, {quantile}");
        }
        assert_eq!(times.hdr(), reference, "seed {seed}");
        assert_eq!(Times::from_hdr(&reference), times, "seed {seed}");
    }
}

#[test]
fn merged_times_are_those_of_all_numbers_together() {
    let (few, many) = (numbers(7, 10), numbers(8, 5000));
    let all: Vec<u64> = few.iter().chain(&many).copied().collect();
    assert_eq!(counted(&few).merged(&counted(&many)), counted(&all));

    let mut tally = Tally::<u64>::new();
    for part in all.chunks(700) {
        let mut thread = Tally::<u32>::new();
        part.iter().for_each(|nanos| thread.record(*nanos));
        tally.add(&thread);
    }
    assert_eq!(tally.times(), counted(&all));
}

#[test]
fn no_times_have_no_length() {
    let none = Times::default();
    assert_eq!((none.count(), none.min(), none.max(), none.quantile(0.99)), (0, 0, 0, 0));
    assert_eq!(none.mean(), 0.0);
    assert_eq!(none.merged(&none), none);
}

#[test]
fn a_cleared_tally_counts_anew() {
    let mut tally = Tally::<u32>::new();
    tally.record(5);
    tally.record(5_000_000);
    tally.clear();
    tally.record(7);
    assert_eq!(tally.times(), counted(&[7]));
}
