use super::*;
use crate::welch::tests::Series;

/// The variance of the mean of `length` AR(1) values of variance 1 with coefficient `memory`.
fn exact(length: usize, memory: f64) -> f64 {
    let n = length as f64;
    let rest = (1..length).map(|lag| 2.0 * (1.0 - lag as f64 / n) * memory.powi(lag as i32)).sum::<f64>();
    (1.0 + rest) / n
}

/// The mean of many estimates, divided by the true variance.
fn estimated(length: usize, memory: f64) -> f64 {
    let mut series = Series::new(0x5eed_0001);
    let rounds = 2_000;
    let one = |_| uncertainty(&series.values(length, memory)).expect("there are values").variance;
    (0..rounds).map(one).sum::<f64>() / f64::from(rounds) / exact(length, memory)
}

#[test]
fn values_that_depend_on_those_before_make_the_mean_less_sure() {
    for (length, memory) in [(20, 0.5), (60, 0.0), (60, 0.5), (60, 0.7), (600, 0.5), (600, 0.9)] {
        let found = estimated(length, memory);
        assert!((0.95..1.7).contains(&found), "{length} values, coefficient {memory}: {found} of the true variance");
    }
    // `naive` is what a test that takes the seconds as independent would use.
    let mut series = Series::new(0x5eed_0002);
    let naive = |_| variance(&series.values(600, 0.9)) / 600.0;
    let naive = (0..200).map(naive).sum::<f64>() / 200.0 / exact(600, 0.9);
    assert!(naive < 0.1, "{naive}");
}

#[test]
fn too_few_values_say_nothing() {
    assert_eq!(uncertainty(&[]), None);
    assert_eq!(uncertainty(&[1.0]), None);
    assert_eq!(uncertainty(&[1.0, 3.0]), Some(Uncertainty { variance: 1.0, degrees: 1.0 }));
}

#[test]
fn a_ratio_that_is_the_same_in_all_pieces_is_sure() {
    let below = [1.0, 2.0, 3.0, 10.0];
    let sure = uncertainty_of_ratio(&below.map(|value| 5.0 * value), &below).expect("there are pieces");
    assert!(sure.variance < 1e-20, "{sure:?}");
    assert_eq!(uncertainty_of_ratio(&[0.0, 0.0], &[0.0, 0.0]), None, "nothing was counted");
}
