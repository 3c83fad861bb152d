//! What random tests draw: values at the borders of their types, and values anywhere else. This module knows no
//! encoding.

use rand::{RngExt, SeedableRng, rngs::StdRng};

/// Runs `case` on 20 seeds, or on the seed that `LARCH_SEED` gives.
pub fn on_seeds(name: &str, mut case: impl FnMut(&mut StdRng)) {
    let seeds = match std::env::var("LARCH_SEED") {
        Ok(seed) => vec![seed.parse().expect("LARCH_SEED is a number")],
        Err(_) => (1..=20).collect::<Vec<u64>>(),
    };
    for seed in seeds {
        println!("{name}: LARCH_SEED={seed} runs this again");
        case(&mut StdRng::seed_from_u64(seed));
    }
}

/// A value of this type. Two drawn values are often equal or near each other.
pub trait Draw {
    fn draw(rng: &mut StdRng) -> Self;
}

impl Draw for bool {
    fn draw(rng: &mut StdRng) -> Self {
        rng.random()
    }
}

macro_rules! numbers {
    ($($number:ident)+) => {$(
        impl Draw for $number {
            fn draw(rng: &mut StdRng) -> Self {
                let border = [$number::MIN, 0 as $number, $number::MAX][rng.random_range(0..3)];
                match rng.random_range(0..3) {
                    0 => border.wrapping_add(rng.random_range(0..3)),
                    1 => border.wrapping_sub(rng.random_range(0..3)),
                    _ => rng.random(),
                }
            }
        }
    )+};
}

numbers! { u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 }

macro_rules! floats {
    ($($number:ident)+) => {$(
        impl Draw for $number {
            fn draw(rng: &mut StdRng) -> Self {
                let borders = [
                    0.0, -0.0, $number::INFINITY, $number::NEG_INFINITY, $number::MAX, $number::MIN,
                    $number::MIN_POSITIVE, -$number::MIN_POSITIVE, $number::EPSILON,
                    $number::from_bits(1), -$number::from_bits(1),
                ];
                let any = $number::from_bits(rng.random());
                match rng.random_range(0..3) {
                    0 => borders[rng.random_range(0..borders.len())],
                    1 if !any.is_nan() => any,
                    _ => $number::from(i16::draw(rng)) / 4.0,
                }
            }
        }
    )+};
}

floats! { f32 f64 }

impl Draw for Vec<u8> {
    /// Draws strings of few different letters, so that some strings are the beginning of others. Some of the
    /// letters are bytes that must be escaped, or that occur in escapes.
    fn draw(rng: &mut StdRng) -> Self {
        let letters = [0, 1, b'a', 0xfe, 0xff];
        (0..rng.random_range(0..6)).map(|_| letters[rng.random_range(0..letters.len())]).collect()
    }
}

impl Draw for String {
    fn draw(rng: &mut StdRng) -> Self {
        let letters = ['\0', '\u{1}', '\n', '"', '\\', '\'', 'a', '\u{7f}', 'é', '\u{ffff}', '\u{10ffff}'];
        (0..rng.random_range(0..6)).map(|_| letters[rng.random_range(0..letters.len())]).collect()
    }
}

impl<const N: usize> Draw for [u8; N] {
    fn draw(rng: &mut StdRng) -> Self {
        std::array::from_fn(|_| [0, 1, 0xfe, 0xff][rng.random_range(0..4)])
    }
}

impl<T: Draw> Draw for Option<T> {
    fn draw(rng: &mut StdRng) -> Self {
        if rng.random_range(0..4) == 0 { None } else { Some(T::draw(rng)) }
    }
}
