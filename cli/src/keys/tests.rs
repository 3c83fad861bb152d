//! Tests of the order and of round trips of key columns. Random cases print their seed. To run one of them again,
//! set `LARCH_SEED=n`.

use super::*;
use crate::demo_rows::mix;
use std::cmp::Ordering;

/// Random numbers from one seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Short texts over a small alphabet, which includes the bytes that escaping changes.
    fn text(&mut self) -> Vec<u8> {
        let length = self.below(5);
        (0..length).map(|_| [0, 1, b'a', 0xFE, 0xFF][self.below(5) as usize]).collect()
    }
}

/// Runs `case` on 20 seeds, or only on the seed in `LARCH_SEED`.
fn on_seeds(case: impl Fn(&mut Numbers)) {
    let seeds = match std::env::var("LARCH_SEED") {
        Ok(seed) => vec![seed.parse().expect("LARCH_SEED is a number")],
        Err(_) => (1..=20).collect::<Vec<u64>>(),
    };
    for seed in seeds {
        println!("LARCH_SEED={seed}");
        case(&mut Numbers(seed << 32));
    }
}

fn key(columns: &[(Kind, &[u8])]) -> Vec<u8> {
    let mut key = Vec::new();
    for (at, (kind, text)) in columns.iter().enumerate() {
        encode(*kind, text, at + 1 == columns.len(), &mut key).expect("the text fits its kind");
    }
    key
}

fn text(number: impl ToString) -> Vec<u8> {
    number.to_string().into_bytes()
}

#[test]
fn a_single_text_column_is_its_own_bytes() {
    assert_eq!(key(&[(Kind::Text, b"a\0b\xff")]), b"a\0b\xff");
}

#[test]
fn several_texts_are_ordered_column_by_column() {
    on_seeds(|numbers| {
        for _ in 0..500 {
            let (a, b) = ((numbers.text(), numbers.text()), (numbers.text(), numbers.text()));
            let (ka, kb) =
                (key(&[(Kind::Text, &a.0), (Kind::Text, &a.1)]), key(&[(Kind::Text, &b.0), (Kind::Text, &b.1)]));
            assert_eq!(ka.cmp(&kb), a.cmp(&b), "{a:?} {b:?}");

            let (mut first, mut second) = (Vec::new(), Vec::new());
            let rest = decode(Kind::Text, &ka, false, &mut first).expect("we encoded it");
            assert_eq!(decode(Kind::Text, rest, true, &mut second), Some(&[][..]));
            assert_eq!((first, second), a);
        }
    });
}

#[test]
fn ints_are_ordered_as_numbers() {
    on_seeds(|numbers| {
        for _ in 0..500 {
            let mut draw = || numbers.next() as i64 >> numbers.below(64);
            let (a, b) = (draw(), draw());
            let (ka, kb) = (key(&[(Kind::Int, &text(a))]), key(&[(Kind::Int, &text(b))]));
            assert_eq!(ka.cmp(&kb), a.cmp(&b), "{a} {b}");
            let mut back = Vec::new();
            assert_eq!(decode(Kind::Int, &ka, true, &mut back), Some(&[][..]));
            assert_eq!(back, text(a));
        }
    });
    let limits = [i64::MIN, -1, 0, 1, i64::MAX].map(|n| key(&[(Kind::Int, &text(n))]));
    assert!(limits.is_sorted());
}

#[test]
fn nums_are_ordered_as_numbers() {
    on_seeds(|numbers| {
        for _ in 0..500 {
            let mut draw = || match numbers.below(2) {
                0 => numbers.below(2000) as f64 / 8.0 - 100.0,
                _ => Some(f64::from_bits(numbers.next())).filter(|n| n.is_finite()).unwrap_or(0.5),
            };
            let (a, b) = (draw(), draw());
            let (ka, kb) = (key(&[(Kind::Num, &text(a))]), key(&[(Kind::Num, &text(b))]));
            assert_eq!(ka.cmp(&kb), a.partial_cmp(&b).unwrap_or(Ordering::Equal), "{a} {b}");
            let mut back = Vec::new();
            assert_eq!(decode(Kind::Num, &ka, true, &mut back), Some(&[][..]));
            assert_eq!(std::str::from_utf8(&back).expect("digits").parse::<f64>(), Ok(a));
        }
    });
    assert_eq!(key(&[(Kind::Num, b"-0")]), key(&[(Kind::Num, b"0")]));
}

#[test]
fn a_number_before_a_text_keeps_both_orders() {
    let rows = [("-10", "z"), ("-9", ""), ("2", "b"), ("10", "a"), ("10", "a\0")];
    let keys = rows.map(|(number, name)| key(&[(Kind::Int, number.as_bytes()), (Kind::Text, name.as_bytes())]));
    assert!(keys.is_sorted());
}

#[test]
fn what_is_no_number_is_refused() {
    for (kind, text) in [
        (Kind::Int, "abc"),
        (Kind::Int, ""),
        (Kind::Int, " 5"),
        (Kind::Int, "5.0"),
        (Kind::Int, "9223372036854775808"),
        (Kind::Num, "1,5"),
        (Kind::Num, ""),
        (Kind::Num, "inf"),
        (Kind::Num, "NaN"),
        (Kind::Num, "1e999"),
    ] {
        let error = encode(kind, text.as_bytes(), true, &mut Vec::new()).expect_err(text);
        assert!(error.to_string().starts_with(&format!("{text:?} is not a")), "{error}");
    }
}

#[test]
fn bytes_that_are_no_key_are_not_decoded() {
    for (kind, bytes) in [(Kind::Int, &b"1234567"[..]), (Kind::Num, b""), (Kind::Text, b"abc"), (Kind::Text, b"a\0b")] {
        assert_eq!(decode(kind, bytes, false, &mut Vec::new()), None);
    }
}

#[test]
fn a_bound_with_the_bits_of_minus_zero_is_zero() {
    let mut text = Vec::new();
    assert_eq!(
        decode_cut(Kind::Num, &[0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], true, &mut text),
        Some(Cut::Open)
    );
    assert_eq!(text, b"0");
}
