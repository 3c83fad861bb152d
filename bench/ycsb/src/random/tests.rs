use super::Random;
use crate::vectors::named;

const FILE: &str = include_str!("../../vectors/generators.txt");

fn seeded(case: &crate::vectors::Case<'_>) -> Random {
    Random::with_state(case.get::<i64>("seed").cast_unsigned())
}

#[test]
fn numbers_are_those_of_java() {
    for case in named(FILE, "random long") {
        let mut random = seeded(&case);
        case.check(|| random.long());
    }
    for case in named(FILE, "random int") {
        let mut random = seeded(&case);
        case.check(|| i64::from(random.int()));
    }
    for case in named(FILE, "random double bits") {
        let mut random = seeded(&case);
        case.check(|| random.double().to_bits().cast_signed());
    }
    for case in named(FILE, "random bounded") {
        let mut random = seeded(&case);
        let bound = case.get("bound");
        case.check(|| i64::from(random.below(bound)));
    }
}

#[test]
fn clients_and_seeds_have_streams_of_their_own() {
    let mut first: Vec<i64> =
        (0..100).flat_map(|seed| (0..100).map(move |client| Random::of_client(seed, client).long())).collect();
    first.sort_unstable();
    first.dedup();
    assert_eq!(first.len(), 10_000);
}
