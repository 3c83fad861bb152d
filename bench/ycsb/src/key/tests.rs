use super::{KeyNames, decimal, fnv};
use crate::random::Random;
use crate::vectors::named;

const FILE: &str = include_str!("../../vectors/keys.txt");

#[test]
fn hashes_are_those_of_java() {
    let [case] = &named(FILE, "fnv")[..] else { panic!("one case") };
    let mut random = Random::with_state(case.get("seed"));
    case.check(|| fnv(random.long()));
    let [case] = &named(FILE, "fnv small")[..] else { panic!("one case") };
    let hashes: Vec<i64> = (0..20).map(fnv).collect();
    assert_eq!(hashes, case.list::<i64>("values"));
}

#[test]
fn keys_are_those_of_java() {
    let mut key = b"what was there".to_vec();
    for case in named(FILE, "keys") {
        let names = KeyNames { ordered: case.text("insertorder") == "ordered", zero_padding: case.get("zeropadding") };
        for (number, expected) in &case.entries()[2..] {
            names.write(number.parse().expect("a number"), &mut key);
            assert_eq!(String::from_utf8_lossy(&key), *expected, "{number} of {names:?}");
            assert!(key.len() <= names.max_bytes());
        }
    }
}

#[test]
fn numbers_are_written_in_decimal() {
    let mut powers: Vec<i64> = (0..19).map(|power| 10_i64.pow(power)).collect();
    powers.extend([0, i64::MAX, i64::MIN + 1, i64::MIN]);
    for power in powers {
        for number in [power.wrapping_sub(1), power, power.wrapping_add(1), power.wrapping_neg()] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }
}
