//! Declarations and the texts of keys. Random cases print their seed. `LARCH_SEED=n` runs one of them again.

use super::*;
use crate::field::Descending;
use crate::random::{Draw, on_seeds};
use rand::{RngExt, rngs::StdRng};
use std::collections::BTreeSet;

const KINDS: [Kind; 17] = [
    Kind::Bool,
    Kind::U8,
    Kind::U16,
    Kind::U32,
    Kind::U64,
    Kind::U128,
    Kind::I8,
    Kind::I16,
    Kind::I32,
    Kind::I64,
    Kind::I128,
    Kind::F32,
    Kind::F64,
    Kind::String,
    Kind::Bytes,
    Kind::Fixed(1),
    Kind::Fixed(3),
];

fn declaration(text: &str) -> Declaration {
    text.parse().unwrap_or_else(|bad| panic!("{text}: {bad}"))
}

fn draw_declaration(rng: &mut StdRng) -> Declaration {
    let field = |rng: &mut StdRng| FieldType {
        kind: KINDS[rng.random_range(0..KINDS.len())],
        is_optional: bool::draw(rng),
        is_descending: bool::draw(rng),
    };
    Declaration::new((0..rng.random_range(1..6)).map(|_| field(rng)).collect::<Vec<_>>())
}

fn draw_value(rng: &mut StdRng, field: FieldType) -> FieldValue<'static> {
    if field.is_optional && rng.random_range(0..4) == 0 {
        return FieldValue::None;
    }
    match field.kind {
        Kind::Bool => FieldValue::Bool(bool::draw(rng)),
        Kind::U8 => FieldValue::Unsigned(u8::draw(rng).into()),
        Kind::U16 => FieldValue::Unsigned(u16::draw(rng).into()),
        Kind::U32 => FieldValue::Unsigned(u32::draw(rng).into()),
        Kind::U64 => FieldValue::Unsigned(u64::draw(rng).into()),
        Kind::U128 => FieldValue::Unsigned(u128::draw(rng)),
        Kind::I8 => FieldValue::Signed(i8::draw(rng).into()),
        Kind::I16 => FieldValue::Signed(i16::draw(rng).into()),
        Kind::I32 => FieldValue::Signed(i32::draw(rng).into()),
        Kind::I64 => FieldValue::Signed(i64::draw(rng).into()),
        Kind::I128 => FieldValue::Signed(i128::draw(rng)),
        Kind::F32 => FieldValue::F32(f32::draw(rng)),
        Kind::F64 => FieldValue::F64(f64::draw(rng)),
        Kind::String => FieldValue::String(String::draw(rng).into()),
        Kind::Bytes => FieldValue::Bytes(Vec::draw(rng).into()),
        Kind::Fixed(bytes) => FieldValue::Bytes((0..bytes).map(|_| u8::draw(rng)).collect()),
    }
}

fn draw_values(rng: &mut StdRng, declaration: &Declaration) -> Vec<FieldValue<'static>> {
    declaration.fields().iter().map(|&field| draw_value(rng, field)).collect()
}

/// The lines of the examples in `docs/format/tuple.md`, in columns.
fn examples() -> impl Iterator<Item = [&'static str; 3]> {
    let page = include_str!("../../../../docs/format/tuple.md");
    let (_, after) = page.split_once("## Examples").expect("the page has examples");
    let block = after.split("```").nth(1).expect("the examples are a block");
    block.lines().skip(1).map(|line| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        columns.try_into().unwrap_or_else(|_| panic!("three columns: {line}"))
    })
}

#[test]
fn the_page_of_the_format_shows_the_bytes_that_are_written() {
    let mut kinds = BTreeSet::new();
    for [types, text, hex] in examples() {
        let declaration = declaration(types);
        let bytes: Vec<u8> =
            hex.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap_or_else(|_| panic!("{hex}"))).collect();
        assert_eq!(declaration.parse_key(text), Ok(bytes.clone()), "{types} | {text}");
        assert_eq!(declaration.show(&bytes), text, "{types}");
        assert_eq!(declaration.to_string(), types);
        kinds.extend(declaration.fields().iter().map(|field| field.kind.to_string()));
    }
    assert_eq!(kinds.len(), KINDS.len() - 1, "every kind has an example, and bytes[N] needs but one: {kinds:?}");
}

#[test]
fn a_declaration_reads_and_writes_the_keys_of_its_tuple() {
    type Typed = (u32, Descending<i64>, String, Option<Vec<u8>>, [u8; 16], f32, Descending<Option<bool>>);
    let declaration = Declaration::of::<Typed>();
    assert_eq!(declaration.to_string(), "u32, i64 desc, string, bytes?, bytes[16], f32, bool? desc");
    on_seeds("typed", |rng| {
        for _ in 0..200 {
            let front = (u32::draw(rng), Descending(i64::draw(rng)), String::draw(rng));
            let back = (<[u8; 16]>::draw(rng), f32::draw(rng), Descending(Option::draw(rng)));
            let typed: Typed = (front.0, front.1, front.2, Option::draw(rng), back.0, back.1, back.2);
            let key = typed.to_key();
            let values = declaration.decode(&key).expect("what a tuple wrote");
            let mut again = Vec::new();
            declaration.encode(&values, &mut again).expect("what was read");
            assert_eq!(again, key, "{typed:?}");
            let owned: Vec<FieldValue<'static>> = values.iter().cloned().map(FieldValue::into_owned).collect();
            assert_eq!(owned, values);
        }
    });
}

#[test]
fn keys_of_any_declaration_have_a_text_that_reads_back() {
    on_seeds("texts", |rng| {
        for _ in 0..500 {
            let declaration = draw_declaration(rng);
            assert_eq!(declaration.to_string().parse().as_ref(), Ok(&declaration));
            assert_eq!(Declaration::from_bytes(&declaration.to_bytes()).as_ref(), Ok(&declaration));

            let values = draw_values(rng, &declaration);
            let mut key = Vec::new();
            declaration.encode(&values, &mut key).expect("values of its types");
            assert_eq!(declaration.decode(&key).as_ref(), Ok(&values), "{declaration}");
            let text = declaration.show(&key);
            assert_eq!(declaration.parse_key(&text).as_ref(), Ok(&key), "{declaration}: {text}");
            assert_eq!(declaration.parse_front(&text).as_ref(), Ok(&key), "{declaration}: {text}");

            let fewer = rng.random_range(0..=values.len());
            let mut front = Vec::new();
            declaration.encode_front(&values[..fewer], &mut front).expect("values of its types");
            assert!(key.starts_with(&front));
            assert_eq!(declaration.parse_front(&declaration.show(&front)), Ok(front));
        }
    });
}

#[test]
fn keys_of_any_declaration_have_the_order_of_their_fields() {
    on_seeds("order", |rng| {
        for _ in 0..500 {
            let declaration = draw_declaration(rng);
            let (mut a, mut b) = (draw_values(rng, &declaration), draw_values(rng, &declaration));
            // The first fields of a pair are often equal, so that the first difference lies in a later field.
            let same = rng.random_range(0..a.len());
            b[..same].clone_from_slice(&a[..same]);
            let fields = declaration.fields().iter().zip(a.iter().zip(&b));
            let orders = fields.map(|(field, (a, b))| {
                let order = compare(a, b);
                if field.is_descending { order.reverse() } else { order }
            });
            let expected = orders.fold(std::cmp::Ordering::Equal, |before, order| before.then(order));
            let mut keys = [Vec::new(), Vec::new()];
            declaration.encode(&a, &mut keys[0]).expect("values of its types");
            declaration.encode(&b, &mut keys[1]).expect("values of its types");
            assert_eq!(keys[0].cmp(&keys[1]), expected, "{declaration}: {a:?} {b:?}");
            a.pop();
            assert!(declaration.encode(&a, &mut keys[0]).is_err());
        }
    });
}

/// The order of two values of one type.
fn compare(a: &FieldValue<'_>, b: &FieldValue<'_>) -> std::cmp::Ordering {
    use FieldValue::*;
    match (a, b) {
        (None, None) => std::cmp::Ordering::Equal,
        (None, _) => std::cmp::Ordering::Less,
        (_, None) => std::cmp::Ordering::Greater,
        (Bool(a), Bool(b)) => a.cmp(b),
        (Unsigned(a), Unsigned(b)) => a.cmp(b),
        (Signed(a), Signed(b)) => a.cmp(b),
        (F32(a), F32(b)) => a.partial_cmp(b).expect("no NaN is drawn"),
        (F64(a), F64(b)) => a.partial_cmp(b).expect("no NaN is drawn"),
        (String(a), String(b)) => a.cmp(b),
        (Bytes(a), Bytes(b)) => a.cmp(b),
        _ => panic!("values of two types: {a} {b}"),
    }
}

#[test]
fn all_bytes_have_a_text_that_reads_back() {
    on_seeds("any bytes", |rng| {
        for _ in 0..2000 {
            let (declaration, bytes) = (draw_declaration(rng), Vec::<u8>::draw(rng));
            let text = declaration.show(&bytes);
            assert_eq!(declaration.parse_front(&text).as_ref(), Ok(&bytes), "{declaration}: {text}");
            if let Ok(values) = declaration.decode(&bytes) {
                let mut again = Vec::new();
                declaration.encode(&values, &mut again).expect("what was read");
                assert_eq!(again, bytes);
            }
        }
    });
}

#[test]
fn a_text_stands_for_the_beginning_of_keys() {
    let declaration = declaration("u8, string? desc, bytes");
    let key = declaration.parse_key(r#"(7, "abc", x'0000')"#).expect("a key");
    for text in
        ["()", "(7)", r#"( 7 , "abc" )"#, r#"(7, "ab"..)"#, r#"(7, ""..)"#, r#"(7, "abc", x'00'..)"#, "() + x'07fe'"]
    {
        let front = declaration.parse_front(text).unwrap_or_else(|bad| panic!("{text}: {bad}"));
        assert!(key.starts_with(&front), "{text}");
    }
    for text in [r#"(7, "abd"..)"#, "(7, none)", "(8)", r#"(7, "ab")"#] {
        let front = declaration.parse_front(text).unwrap_or_else(|bad| panic!("{text}: {bad}"));
        assert!(!key.starts_with(&front), "{text}");
    }
}

#[test]
fn a_text_that_is_no_key_is_refused() {
    #[track_caller]
    fn check(types: &str, text: &str, expected: &str) {
        let declaration = declaration(types);
        assert_eq!(declaration.parse_key(text).expect_err("no key").to_string(), format!("at byte {expected}"));
    }
    check("u8", "7", "0 of the text: `(` is expected");
    check("u8", "(256)", "1 of the text: 256 is outside the range of u8");
    check("u8", "(-1)", "1 of the text: a value of type u8 is expected, not `-1`");
    check("u8", "(none)", "1 of the text: only a field that is declared with `?` can be none");
    check("u8", "(7", "2 of the text: `,` or `)` is expected");
    check("u8", "(7, 8)", "4 of the text: there is no further field: u8");
    check("u8, u8", "(7)", "3 of the text: a key has one whole value for each field: u8, u8");
    check("u8", "(7) 8", "4 of the text: the text should end");
    check("string", "(\"ab)", "5 of the text: the text in quotes has no end: `\"` is expected");
    check("string", "(\"a\"..)", "7 of the text: a key has one whole value for each field: string");
    check("string", "(x'00')", "1 of the text: a text in quotes is expected: \"…\"");
    let escapes = "after `\\` comes one of `n`, `r`, `t`, `u{…}`, `\\` and `\"`, which ends the text without it";
    for text in [r#"("a\b")"#, r#"("a\u{110000}")"#, r#"("a\u{}")"#, r#"("a\u41")"#, r#"("a\"#] {
        check("string", text, &format!("3 of the text: {escapes}"));
    }
    check("bytes", "(x'0')", "3 of the text: a byte is expected, as two digits from 0 to f");
    check("bytes", "(x'0é')", "3 of the text: a byte is expected, as two digits from 0 to f");
    check("bytes", "(x'00", "3 of the text: the bytes have no end: `'` is expected");
    check("bytes[2]", "(x'00')", "1 of the text: 1 bytes are not of type bytes[2]");
    check("bool", "(maybe)", "1 of the text: a value of type bool is expected, not `maybe`");
}

#[test]
fn a_text_that_is_no_declaration_is_refused() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(text.parse::<Declaration>().expect_err("no declaration").to_string(), expected);
    }
    let names = "a type is expected: one of bool, u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64, string, \
        bytes, or bytes[N]";
    check("", &format!("at byte 0 of the text: {names}"));
    check("u8, u7", &format!("at byte 4 of the text: {names}"));
    check("u8 u8", "at byte 3 of the text: the text should end");
    check("u8 desc?", "at byte 7 of the text: the text should end");
    check("bytes[0]", "at byte 6 of the text: a field has 1 to 65535 bytes");
    check("bytes[65536]", "at byte 6 of the text: a field has 1 to 65535 bytes");
    check("bytes[x]", "at byte 6 of the text: a whole number is expected");
}

#[test]
fn values_that_do_not_fit_are_refused_and_leave_the_key_as_it_was() {
    #[track_caller]
    fn check(types: &str, values: &[FieldValue<'_>], expected: &str) {
        let mut key = b"before".to_vec();
        let bad = declaration(types).encode(values, &mut key).expect_err("they do not fit");
        assert_eq!((bad.to_string(), &key[..]), (expected.to_owned(), &b"before"[..]));
    }
    let number = FieldValue::Unsigned(300);
    check("u8", &[], "the number of values is 0, and the number of fields 1");
    check("u16", &[number.clone(), number.clone()], "the number of values is 2, and the number of fields 1");
    check("u16, u8? desc", &[number.clone(), number.clone()], "field 1 (u8? desc): 300 is outside the range of u8");
    check("u16, string", &[number.clone(), number.clone()], "field 1 (string): 300 is not of type string");
    let none = "field 0 (u16): only a field that is declared with `?` can be none";
    check("u16", &[FieldValue::None], none);
    check("bytes[2]", &[FieldValue::Bytes(b"abc".into())], "field 0 (bytes[2]): 3 bytes are not of type bytes[2]");
}

#[test]
fn stored_bytes_of_another_version_are_refused() {
    assert_eq!(declaration("u8,string ?desc").to_bytes(), b"\x01u8, string? desc");
    let refused = |bytes: &[u8]| Declaration::from_bytes(bytes).expect_err("it is refused").to_string();
    assert_eq!(refused(b""), "there is no declaration: the bytes are empty");
    assert_eq!(refused(b"\x02u8"), "made by a newer Larch: a declaration of version 2; open it with that release");
    assert_eq!(refused(b"\x01u8\xff"), "the declaration is not UTF-8 from byte 3 on");
    assert!(
        refused(b"\x01u7").starts_with("the declaration cannot be read: at byte 0 of the text: a type is expected")
    );
}
