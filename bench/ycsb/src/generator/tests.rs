use super::*;
use crate::keyspace::Inserts;
use crate::random::Random;
use crate::vectors::{Case, named};
use std::collections::HashMap;

const FILE: &str = include_str!("../../vectors/generators.txt");

fn seeded(case: &Case<'_>) -> Random {
    Random::with_state(case.get::<i64>("seed").cast_unsigned())
}

fn check_constants(case: &Case<'_>, zipfian: &Zipfian) {
    let (alpha, zeta2theta) = zipfian.alpha_and_zeta2theta();
    let Constants { zetan, eta, .. } = zipfian.constants();
    for (name, value) in [("alpha", alpha), ("zeta2theta", zeta2theta), ("zetan", zetan), ("eta", eta)] {
        assert_eq!(value.to_bits(), case.bits(name), "{name} of [{}] {:?}", case.name, case.entries()[1]);
    }
}

fn grow(zipfian: &mut Zipfian, items: i64) {
    let before = zipfian.constants();
    if before.count < items {
        zipfian.set_constants(zipfian.grown(before, items));
    }
}

#[test]
fn uniform_is_that_of_java() {
    for case in named(FILE, "uniform") {
        let (uniform, mut random) = (Uniform::new(case.get("min"), case.get("max")), seeded(&case));
        case.check(|| uniform.next(&mut random));
    }
}

#[test]
fn zipfian_is_that_of_java() {
    for case in named(FILE, "zipfian") {
        let (zipfian, mut random) = (Zipfian::new(case.get("min"), case.get("max")), seeded(&case));
        check_constants(&case, &zipfian);
        case.check(|| zipfian.next(&mut random));
    }
}

#[test]
fn zipfian_over_ever_more_items_is_that_of_java() {
    for case in named(FILE, "zipfian growing") {
        let mut count: i64 = case.get("items");
        let (mut zipfian, mut random) = (Zipfian::new(0, count - 1), seeded(&case));
        case.check(|| {
            count += if count % 3 == 0 { 2 } else { 1 };
            let items = if count % 5 == 0 { count - 3 } else { count };
            grow(&mut zipfian, items);
            zipfian.next_of(items, &mut random)
        });
        check_constants(&case, &zipfian);
    }
}

#[test]
fn scrambled_is_that_of_java() {
    for case in named(FILE, "scrambled") {
        let (scrambled, mut random) = (Scrambled::new(case.get("min"), case.get("max")), seeded(&case));
        check_constants(&case, &scrambled.inner);
        case.check(|| scrambled.next(&mut random));
    }
}

#[test]
fn the_most_wanted_of_a_million_are_those_of_java() {
    let [case] = &named(FILE, "scrambled top")[..] else { panic!("one case") };
    let (scrambled, mut random) = (Scrambled::new(0, 999_999), seeded(case));
    let mut hits: HashMap<i64, i64> = HashMap::new();
    for _ in 0..case.get("count") {
        *hits.entry(scrambled.next(&mut random)).or_default() += 1;
    }
    assert_eq!(hits.len(), case.get::<usize>("distinct"));
    let mut order: Vec<(i64, i64)> = hits.into_iter().collect();
    order.sort_unstable_by_key(|(number, hits)| (-hits, *number));
    let top: Vec<i64> = order[..10].iter().flat_map(|(number, hits)| [*number, *hits]).collect();
    assert_eq!(top, case.list::<i64>("values"));
}

#[test]
fn latest_is_that_of_java() {
    for case in named(FILE, "latest") {
        let mut records: i64 = case.get("records");
        let (mut zipfian, mut random) = (Zipfian::new(0, records - 2), seeded(&case));
        let mut round = 0;
        case.check(|| {
            if round % 3 == 0 {
                records += 1;
            }
            round += 1;
            grow(&mut zipfian, records - 1);
            records - 1 - zipfian.next_of(records - 1, &mut random)
        });
    }
}

#[test]
fn hotspot_is_that_of_java() {
    for case in named(FILE, "hotspot") {
        let hotspot = Hotspot::new(case.get("min"), case.get("max"), case.get("data"), case.get("opn"));
        let (hotspot, mut random) = (hotspot.expect("it can draw"), seeded(&case));
        case.check(|| hotspot.next(&mut random));
    }
}

#[test]
fn a_hotspot_that_could_not_draw_is_refused() {
    assert!(Hotspot::new(0, 9, 0.0, 0.5).is_none(), "nothing is hot");
    assert!(Hotspot::new(0, 9, 1.0, 0.5).is_none(), "nothing is cold");
    assert!(Hotspot::new(0, 9, 0.0, 0.0).is_some());
    assert!(Hotspot::new(0, 9, 1.0, 1.0).is_some());
}

#[test]
fn exponential_is_that_of_java() {
    for case in named(FILE, "exponential") {
        let exponential = Exponential::new(case.get("percentile"), case.get("range"));
        let mut random = seeded(&case);
        case.check(|| i64::from(exponential.next(&mut random) as i32));
    }
    // Java's logarithm and libm's logarithm sometimes differ in the last bit. The drawn numbers are rounded to
    // whole numbers, so they are nevertheless equal.
    for case in named(FILE, "exponential bits") {
        let exponential = Exponential::new(case.get("percentile"), case.get("range"));
        let mut random = seeded(&case);
        for expected in case.list::<i64>("values") {
            let bits = exponential.next(&mut random).to_bits().cast_signed();
            assert!(
                (bits - expected).abs() <= 1,
                "{} and {}",
                f64::from_bits(bits as u64),
                f64::from_bits(expected as u64)
            );
        }
    }
}

#[test]
fn discrete_is_that_of_java() {
    for case in named(FILE, "discrete") {
        let weights: Vec<f64> = case.list("weights");
        let discrete = Discrete::new(weights.into_iter().zip(0..)).expect("there are weights");
        let mut random = seeded(&case);
        case.check(|| discrete.next(&mut random));
    }
}

#[test]
fn what_has_no_weight_is_never_chosen() {
    assert!(Discrete::new([(0.0, 'a'), (-1.0, 'b')]).is_none());
    let discrete = Discrete::new([(0.0, 'a'), (1.0, 'b')]).expect("b has a weight");
    let mut random = Random::with_state(1);
    assert!((0..1000).all(|_| discrete.next(&mut random) == 'b'));
}

#[test]
fn histogram_is_that_of_java() {
    for case in named(FILE, "histogram") {
        let histogram = Histogram::new(case.get("block"), case.list("buckets")).expect("it has an area");
        let mut random = seeded(&case);
        case.check(|| histogram.next(&mut random));
    }
}

#[test]
fn a_histogram_is_read() {
    let histogram = Histogram::parse("BlockSize\t10\n0\t5\n1\t0\n2\t3\n").expect("it is one");
    assert_eq!(histogram.max(), 30);
    let bad = |text| Histogram::parse(text).expect_err("it is none");
    assert_eq!(bad(""), BadHistogram::NoBlockSize);
    assert_eq!(bad("BlockSize\t0\n"), BadHistogram::NoBlockSize);
    assert_eq!(bad("BlockSize\t10\n"), BadHistogram::Area);
    assert_eq!(bad("BlockSize\t10\n0\t0\n"), BadHistogram::Area);
    assert_eq!(bad("BlockSize\t10\n0\t1\n2\t1\n"), BadHistogram::Line(3));
    assert_eq!(bad("BlockSize\t10\n0\t-1\n"), BadHistogram::Line(2));
}

#[test]
fn acknowledged_inserts_are_those_of_java() {
    let [case] = &named(FILE, "acknowledged")[..] else { panic!("one case") };
    let inserts = Inserts::after(case.get("start"));
    let mut waiting: Vec<i64> = (0..16).map(|_| inserts.take()).collect();
    let mut random = seeded(case);
    case.check(|| {
        let place = random.below(16) as usize;
        inserts.acknowledge(waiting[place]);
        waiting[place] = inserts.take();
        inserts.limit()
    });
}
