//! Compares sets of keys with explicit sets of short strings. Random cases print their seed; `LARCH_SEED=n` runs one
//! again.

use super::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// All strings of up to three bytes, where each byte is 0, 1 or ff.
fn universe() -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for length in 0..3 {
        let longer: Vec<Vec<u8>> = all.iter().filter(|key| key.len() == length).cloned().collect();
        all.extend(longer.iter().flat_map(|key| [0, 1, 0xff].map(|byte| [&key[..], &[byte]].concat())));
    }
    all
}

fn has(set: &KeySet, key: &[u8]) -> bool {
    set.ranges
        .iter()
        .any(|range| range.low.as_slice() <= key && range.high.as_ref().is_none_or(|high| key < high.as_slice()))
}

fn random_set(random: &mut StdRng, all: &[Vec<u8>]) -> KeySet {
    let mut draw = || all[random.random_range(0..all.len())].clone();
    let ranges = [draw(), draw(), draw()].map(|low| {
        let high = draw();
        KeyRange { low, high: (!high.is_empty()).then_some(high) }
    });
    KeySet::of(ranges[..random.random_range(0..=3)].to_vec())
}

#[test]
fn sets_have_the_keys_that_they_should() {
    let seed = std::env::var("LARCH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    println!("LARCH_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let all = universe();
    for _ in 0..2000 {
        let (a, b) = (random_set(&mut random, &all), random_set(&mut random, &all));
        let within = KeyRange { low: all[random.random_range(0..all.len())].clone(), high: None };
        let (union, both, other) = (a.clone().union(b.clone()), a.intersection(&b), a.complement_in(&within));
        for set in [&union, &both, &other] {
            assert!(set.ranges.iter().all(|range| !range.is_empty()));
            assert!(set.ranges.windows(2).all(|pair| pair[0].high.as_ref().is_some_and(|high| *high <= pair[1].low)));
            let joined = set.clone().joined();
            assert!(joined.ranges.windows(2).all(|pair| pair[0].high.as_ref().is_some_and(|high| *high < pair[1].low)));
            assert!(all.iter().all(|key| has(set, key) == has(&joined, key)));
        }
        for key in &all {
            let (in_a, in_b) = (has(&a, key), has(&b, key));
            assert_eq!(has(&union, key), in_a || in_b, "{key:?} in {a:?} or {b:?}");
            assert_eq!(has(&both, key), in_a && in_b, "{key:?} in {a:?} and {b:?}");
            assert_eq!(has(&other, key), !in_a && *key >= within.low, "{key:?} in {within:?} without {a:?}");
        }
    }
}

#[test]
fn a_range_below_a_prefix_has_no_key_of_another_prefix() {
    let below = KeyRange { low: vec![7], high: None }.below(&[1, 0xff]);
    assert_eq!(below, KeyRange { low: vec![1, 0xff, 7], high: Some(vec![2]) });
    assert_eq!(KeyRange::of_prefix(vec![0xff]), KeyRange { low: vec![0xff], high: None });
}
