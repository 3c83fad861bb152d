#![allow(clippy::disallowed_methods, reason = "a test")]

use super::*;

/// Numbers of all sizes. A seed always gives the same numbers.
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

#[test]
fn times_come_back_from_a_result_file() {
    for seed in 0..20 {
        let times = counted(&numbers(seed, 300 * seed as usize));
        let text = serde_json::to_string(&times).expect("writes");
        let back: Times = serde_json::from_str(&text).expect("reads");
        assert_eq!(back, times, "seed {seed}");
    }
}

#[test]
fn the_histogram_of_a_result_file_is_one_that_others_read() {
    use base64::Engine;
    let times = counted(&numbers(3, 2000));
    let value = serde_json::to_value(&times).expect("writes");
    let text = value["histogram"].as_str().expect("a histogram");
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).expect("base64");
    let read = hdrhistogram::serialization::Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice());
    assert_eq!(Times::from_hdr(&read.expect("reads")), times);
    assert_eq!(value["p99_9_nanos"].as_u64(), times.known_quantile(0.999));
}

#[test]
fn what_is_no_histogram_is_refused() {
    use base64::Engine;
    let standard = base64::engine::general_purpose::STANDARD;
    let times = counted(&numbers(5, 50));
    let value = serde_json::to_value(&times).expect("writes");
    let good = standard.decode(value["histogram"].as_str().expect("a histogram")).expect("base64");
    assert_eq!(form::decode(&good).as_ref(), Ok(&times));
    for length in 0..good.len() {
        assert!(form::decode(&good[..length]).is_err(), "cut at {length}");
    }
    for bit in 0..8 * good.len() {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        // It must not panic. A flipped bit in the counts may give another valid histogram.
        if let Ok(other) = form::decode(&bad) {
            let read = bit / 8 < 24 || (32..40).contains(&(bit / 8));
            assert!(!read, "bit {bit} of the header is read by nobody");
            assert!(other.iter().count() <= GROUP * GROUPS);
        }
    }
    let huge = [&good[..4], &5u32.to_be_bytes(), &good[8..40], &[0xff, 0xff, 0xff, 0xff, 0x0f]].concat();
    assert!(form::decode(&huge).is_ok_and(|none| none.is_empty()), "only empty buckets");
    let wrong = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = value.clone();
        change(&mut value);
        serde_json::from_value::<Times>(value).expect_err("is wrong").to_string()
    };
    assert!(wrong(&|value| value["count"] = 49.into()).contains("holds 50 times where `count` is 49"));
    assert!(wrong(&|value| value["histogram"] = "not base64!".into()).contains("a histogram: "));
    assert!(wrong(&|value| value["histogram"] = "".into()).contains("holds 0 times"));
}

#[test]
fn a_quantile_is_known_from_ten_times_beyond_it_on() {
    let known = |count, quantile| Times::zeros(count).known_quantile(quantile).is_some();
    for (quantile, least) in [(0.5, 20), (0.9, 100), (0.95, 200), (0.99, 1_000), (0.999, 10_000), (0.9999, 100_000)] {
        assert_eq!((known(least - 1, quantile), known(least, quantile)), (false, true), "{quantile}");
    }
    let value = serde_json::to_value(Times::zeros(999)).expect("it is JSON");
    assert_eq!((&value["p95_nanos"], &value["p99_nanos"]), (&0.into(), &serde_json::Value::Null));
}
