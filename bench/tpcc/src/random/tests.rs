use super::*;
use std::collections::BTreeSet;

#[test]
fn last_names_are_those_of_the_specification() {
    assert_eq!(last_name(371).as_bytes(), b"PRICALLYOUGHT");
    assert_eq!(last_name(40).as_bytes(), b"BARPRESBAR");
    assert_eq!(last_name(0).as_bytes(), b"BARBARBAR");
    let names: BTreeSet<Vec<u8>> = (0..1000).map(|number| last_name(number).as_bytes().to_vec()).collect();
    assert_eq!(names.len(), 1000);
}

#[test]
fn numbers_reach_both_ends_and_are_even() {
    let mut stream = Stream::of(1, &[]);
    let mut counts = [0_u32; 10];
    (0..100_000).for_each(|_| counts[stream.between(1, 10) as usize - 1] += 1);
    // The standard deviation is 95.
    assert!(counts.iter().all(|count| count.abs_diff(10_000) < 500), "{counts:?}");
}

#[test]
fn skewed_numbers_are_within_their_bounds_and_favour_some() {
    let constants = Constants::of(1);
    let mut stream = Stream::of(2, &[]);
    let mut counts = vec![0_u32; 3001];
    (0..300_000).for_each(|_| counts[stream.skewed(constants.customer, 1, 3000) as usize] += 1);
    assert_eq!(counts[0], 0);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let tenth: u32 = counts[..300].iter().sum();
    assert!(tenth > 100_000, "a tenth of the customers takes more than a third: {tenth}");
    assert!((0..10_000).all(|_| (1..=100_000).contains(&stream.skewed(constants.item, 1, 100_000))));
}

#[test]
fn constants_of_last_names_differ_as_they_must() {
    for seed in 0..2000 {
        let Constants { last_name_loaded, last_name, customer, item } = Constants::of(seed);
        let delta = last_name_loaded.c.abs_diff(last_name.c);
        assert!((65..=119).contains(&delta) && delta != 96 && delta != 112, "seed {seed}: {delta}");
        assert!(customer.c <= 1023 && item.c <= 8191 && last_name.c <= 255);
    }
}

#[test]
fn strings_have_every_letter_and_every_length() {
    let mut stream = Stream::of(3, &[]);
    let (mut lengths, mut letters) = (BTreeSet::new(), [0_u32; 256]);
    for _ in 0..20_000 {
        let mut text = Text::<50>::EMPTY;
        stream.letters(26, 50, &mut text);
        lengths.insert(text.as_bytes().len());
        text.as_bytes().iter().for_each(|letter| letters[usize::from(*letter)] += 1);
    }
    assert_eq!(lengths, (26..=50).collect());
    let used: Vec<u32> = letters.iter().copied().filter(|count| *count > 0).collect();
    let (least, most) = (used.iter().min().expect("some"), used.iter().max().expect("some"));
    assert!(used.len() == 62 && most * 100 < least * 110, "{used:?}");
}

#[test]
fn a_permutation_has_every_number_once_and_another_stream_another_order() {
    let of = |seed| {
        let permutation = Permutation::draw(&mut Stream::of(seed, &[]));
        (0..Permutation::COUNT).map(|number| permutation.of(number)).collect::<Vec<u32>>()
    };
    let (first, second) = (of(1), of(2));
    let mut sorted = first.clone();
    sorted.sort_unstable();
    assert!(sorted.iter().copied().eq(0..Permutation::COUNT));
    let same = first.iter().zip(&second).filter(|(a, b)| a == b).count();
    let fixed = first.iter().enumerate().filter(|(at, number)| *at == **number as usize).count();
    assert!(same < 15 && fixed < 15, "{same} alike, {fixed} stay");
}

#[test]
fn streams_of_neighbours_differ() {
    let first: BTreeSet<u64> = (0..100).flat_map(|a| (0..100).map(move |b| Stream::of(7, &[a, b]).word())).collect();
    assert_eq!(first.len(), 10_000);
    assert_eq!(Stream::of(7, &[1, 2]).word(), Stream::of(7, &[1, 2]).word());
    assert_ne!(Stream::of(7, &[1, 2]).word(), Stream::of(8, &[1, 2]).word());
}
