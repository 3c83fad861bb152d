//! Tests of tuples of Rust: their order, their prefixes, and how they are read back. Random cases print their seed.
//! `LARCH_SEED=n` runs one of them again.

use super::*;
use crate::decoder::Mistake;
use crate::field::{Descending, encode_beginning};
use crate::random::{Draw, on_seeds};
use rand::rngs::StdRng;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::RangeBounds;

/// The order of tuples of any type, for numbers without NaN.
fn native<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    a.partial_cmp(b).expect("no NaN is drawn")
}

/// Checks tuples of this type, which `draw` makes: they have the order of their bytes, and they are read back.
#[track_caller]
fn check<T>(name: &str, draw: impl Fn(&mut StdRng) -> T)
where
    T: for<'k> DecodeTuple<'k> + PartialOrd + Clone + Debug,
{
    on_seeds(name, |rng| {
        let mut tuples: Vec<T> = (0..200).map(|_| draw(rng)).collect();
        for tuple in &tuples {
            let key = tuple.to_key();
            assert_eq!(native(&T::decode(&key).expect("what we wrote"), tuple), Ordering::Equal, "{tuple:?}");
            let longer = [&key[..], b"more"].concat();
            let (front, rest) = T::decode_front(&longer).expect("what we wrote");
            assert_eq!((native(&front, tuple), rest), (Ordering::Equal, &b"more"[..]), "{tuple:?}");
            assert_eq!(T::decode(&longer).err(), Some(BadTuple::Longer { offset: key.len(), bytes: 4 }));
            for bytes in 0..key.len() {
                assert!(T::decode(&key[..bytes]).is_err(), "{tuple:?} cut to {bytes} bytes");
            }
        }
        tuples.sort_by(native);
        for pair in tuples.windows(2) {
            let keys = [pair[0].to_key(), pair[1].to_key()];
            assert_eq!(keys[0].cmp(&keys[1]), native(&pair[0], &pair[1]), "{pair:?}");
        }
    });
}

#[test]
fn every_type_of_one_field_keeps_its_order() {
    check("bool", |rng| (bool::draw(rng),));
    check("u8", |rng| (u8::draw(rng),));
    check("u16", |rng| (u16::draw(rng),));
    check("u32", |rng| (u32::draw(rng),));
    check("u64", |rng| (u64::draw(rng),));
    check("u128", |rng| (u128::draw(rng),));
    check("i8", |rng| (i8::draw(rng),));
    check("i16", |rng| (i16::draw(rng),));
    check("i32", |rng| (i32::draw(rng),));
    check("i64", |rng| (i64::draw(rng),));
    check("i128", |rng| (i128::draw(rng),));
    check("f32", |rng| (f32::draw(rng),));
    check("f64", |rng| (f64::draw(rng),));
    check("string", |rng| (String::draw(rng),));
    check("bytes", |rng| (Vec::<u8>::draw(rng),));
    check("bytes[3]", |rng| (<[u8; 3]>::draw(rng),));
}

#[test]
fn optional_and_descending_fields_keep_their_order() {
    check("i32?", |rng| (Option::<i32>::draw(rng),));
    check("bytes?", |rng| (Option::<Vec<u8>>::draw(rng),));
    check("u16 desc", |rng| (Descending(u16::draw(rng)),));
    check("f64 desc", |rng| (Descending(f64::draw(rng)),));
    check("string desc", |rng| (Descending(String::draw(rng)),));
    check("bytes desc", |rng| (Descending(Vec::<u8>::draw(rng)),));
    check("bytes? desc", |rng| (Descending(Option::<Vec<u8>>::draw(rng)),));
}

#[test]
fn several_fields_are_ordered_one_after_the_other() {
    check("bytes, bytes", |rng| (Vec::<u8>::draw(rng), Vec::<u8>::draw(rng)));
    check("bytes desc, bytes", |rng| (Descending(Vec::<u8>::draw(rng)), Vec::<u8>::draw(rng)));
    check("bytes, bytes desc", |rng| (Vec::<u8>::draw(rng), Descending(Vec::<u8>::draw(rng))));
    check("bytes? desc, u8, string", |rng| {
        (Descending(Option::<Vec<u8>>::draw(rng)), u8::draw(rng) % 3, String::draw(rng))
    });
    check("all", |rng| {
        let front = (bool::draw(rng), Option::<i8>::draw(rng), Descending(Option::<f32>::draw(rng)));
        let back = (String::draw(rng), <[u8; 2]>::draw(rng), Descending(i64::draw(rng)));
        (front.0, front.1, front.2, back.0, back.1, back.2)
    });
}

#[test]
fn twelve_fields_are_a_tuple() {
    let tuple = (1_u8, 2_i8, 3_u16, 4_i16, 5_u32, 6_i32, 7_u64, 8_i64, 9_u128, 10_i128, true, [1_u8, 2]);
    type Twelve = (u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, bool, [u8; 2]);
    let key = tuple.to_key();
    assert_eq!(Twelve::decode(&key), Ok(tuple));
    assert_eq!(key.len(), Twelve::TYPES.iter().map(|field| field.kind.width().expect("a fixed width")).sum::<usize>());
}

#[test]
fn a_range_holds_the_keys_that_begin_with_its_fields_and_no_others() {
    on_seeds("prefixes", |rng| {
        for _ in 0..500 {
            let key = (Vec::<u8>::draw(rng), Descending(Option::<u8>::draw(rng)), String::draw(rng));
            let prefix = (Vec::<u8>::draw(rng), Descending(Option::<u8>::draw(rng)));
            let bytes = key.to_key();
            assert_eq!((prefix.0.clone(),).range().contains(&bytes), prefix.0 == key.0, "{prefix:?} {key:?}");
            let begins = (&prefix.0, prefix.1) == (&key.0, key.1);
            assert_eq!(prefix.range().contains(&bytes), begins, "{prefix:?} {key:?}");
            assert!(().range().contains(&bytes) && key.range().contains(&bytes));
            assert!((key.0.clone(), key.1).range().contains(&bytes));

            let mut open = Vec::new();
            encode_beginning(&prefix.0, &mut open);
            assert_eq!(prefix_range(open).contains(&bytes), key.0.starts_with(&prefix.0), "{prefix:?} {key:?}");
        }
    });
    assert_eq!((Descending(0_u8),).range(), (Bound::Included(vec![0xff]), Bound::Unbounded));
    assert_eq!((7_u8, 255_u8).range(), (Bound::Included(vec![7, 255]), Bound::Excluded(vec![8])));
}

#[test]
fn numbers_that_are_equal_have_equal_keys() {
    assert_eq!((-0.0_f64, -0.0_f32).to_key(), (0.0_f64, 0.0_f32).to_key());
    let other = f64::from_bits(f64::NAN.to_bits() | 1 << 63 | 5);
    assert_eq!((other, -f32::NAN).to_key(), (f64::NAN, f32::NAN).to_key());
    assert!((f64::NAN,).to_key() > (f64::INFINITY,).to_key());
    assert!((f32::NAN,).to_key() > (f32::INFINITY,).to_key());
    assert!(<(f64,)>::decode(&(f64::NAN,).to_key()).expect("what we wrote").0.is_nan());
}

#[test]
fn text_is_borrowed_where_nothing_was_escaped() {
    let key = ("plain", &b"by\0tes"[..], Descending("turned")).to_key();
    type Borrowed<'k> = (Cow<'k, str>, Cow<'k, [u8]>, Descending<Cow<'k, str>>);
    let (plain, escaped, Descending(turned)) = Borrowed::decode(&key).expect("what we wrote");
    assert!(matches!(plain, Cow::Borrowed("plain")));
    assert!(matches!(escaped, Cow::Owned(bytes) if bytes == b"by\0tes"));
    assert!(matches!(turned, Cow::Owned(text) if text == "turned"));
}

#[test]
fn a_mistake_has_a_field_and_a_place() {
    #[track_caller]
    fn check<T: for<'k> DecodeTuple<'k> + Debug>(key: &[u8], expected: &str) {
        assert_eq!(T::decode(key).expect_err("a mistake").to_string(), expected);
    }
    check::<(u32,)>(&[0, 0, 0], "field 0 (u32) at byte 0: the bytes end within the field");
    check::<(u8, u32)>(&[1, 0, 0], "field 1 (u32) at byte 1: the bytes end within the field");
    check::<(u8, bool)>(&[1, 2], "field 1 (bool) at byte 1: the byte is neither 0 nor 1");
    check::<(Option<u8>,)>(&[], "field 0 (u8?) at byte 0: the bytes end within the field");
    check::<(Descending<Option<u8>>,)>(&[1], "field 0 (u8? desc) at byte 0: the byte is neither 0 nor 1");
    check::<(u8, String)>(
        &[1, b'a', 0, 7],
        "field 1 (string) at byte 3: after a zero byte comes neither 00, the end, nor ff, a zero that belongs to the field",
    );
    check::<(u8, String)>(&[1, 0xc3, 0, 0], "field 1 (string) at byte 1: the string is not UTF-8");
    check::<(u8, String)>(&[1, 0xc3, 0], "field 1 (string) at byte 1: the bytes end within the field");
    check::<(u8,)>(&[1, 2, 3], "the tuple ends at byte 1, and 2 more follow");
    let zero = (-1_i64 as u64 >> 1).to_be_bytes();
    check::<(f64,)>(&zero, "field 0 (f64) at byte 0: the bits are those of a number that is written in another way");
    let mistake = Mistake::OtherFloat;
    let nan = <(u8, f32)>::decode(&[9, 0xff, 0xff, 0, 0]).expect_err("another NaN");
    assert_eq!(nan, BadTuple::Field { field: 1, field_type: f32::TYPE, offset: 1, mistake });
}

#[test]
fn no_bytes_make_a_decoder_panic_and_what_it_reads_is_what_is_written() {
    type Borrowed<'k> = (Cow<'k, str>, Descending<Option<Cow<'k, [u8]>>>, f32);
    on_seeds("bytes", |rng| {
        for _ in 0..2000 {
            let bytes = Vec::<u8>::draw(rng);
            if let Ok((tuple, rest)) = Borrowed::decode_front(&bytes) {
                assert_eq!([&tuple.to_key(), rest].concat(), bytes);
            }
            if let Ok((tuple, rest)) = <(Option<bool>, Descending<String>)>::decode_front(&bytes) {
                assert_eq!([&tuple.to_key(), rest].concat(), bytes);
            }
        }
    });
}
