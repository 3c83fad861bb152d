//! Tests of the keys that rows give to indexes, and of the texts that declare these keys. Random cases print their
//! seed. `LARCH_SEED=n` runs one of them again.

use super::*;
use crate::random::{Draw, on_seeds};
use rand::{RngExt, rngs::StdRng};
use std::collections::BTreeSet;

fn extractor(text: &str) -> Extractor {
    text.parse().unwrap_or_else(|bad| panic!("{text}: {bad}"))
}

/// The keys of a row, in the order in which they are given.
fn keys(extractor: &Extractor, key: &[u8], parts: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, BadRow> {
    let mut keys = Vec::new();
    let part = |group: usize| {
        assert!(extractor.groups().contains(&group), "group {group} is asked for and not announced");
        parts.get(group).map(Vec::as_slice)
    };
    let result = extractor.index_keys(key, &part, &mut |key| keys.push(key.to_vec()));
    assert!(result.is_ok() || keys.is_empty(), "a row with an error has no keys");
    result.map(|()| keys)
}

/// Checks the keys of a row without column groups, as text and in order.
#[track_caller]
fn check(declared: &str, value: &str, expected: Result<&[&str], &str>) {
    let extractor = extractor(declared);
    let shown = keys(&extractor, b"key", &[value.into()]);
    let shown = shown.map(|keys| keys.iter().map(|key| extractor.declaration().show(key)).collect::<Vec<_>>());
    let expected = expected.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
    assert_eq!(shown.map_err(|bad| bad.to_string()), expected.map_err(str::to_owned), "{declared} of {value}");
}

/// The bytes that stand for `text` in `docs/format/extractor.md`.
fn bytes(text: &str) -> Vec<u8> {
    let mut scanner = Scanner::new(text);
    let bytes = if text.starts_with('"') { scanner.literal('"').map(String::into_bytes) } else { scanner.hex() };
    bytes.unwrap_or_else(|bad| panic!("{text}: {bad}"))
}

#[test]
fn the_page_of_the_format_shows_the_keys_that_are_made() {
    let page = include_str!("../../../../docs/format/extractor.md");
    let (_, after) = page.split_once("## Examples").expect("the page has examples");
    let block = after.split("```").nth(1).expect("the examples are a block");
    for line in block.lines().skip(1) {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [declared, key, parts, expected] = columns[..] else { panic!("four columns: {line}") };
        let extractor = extractor(declared);
        let parts: Vec<Vec<u8>> = parts.split(" + ").map(bytes).collect();
        let found = keys(&extractor, &bytes(key), &parts);
        if expected == "error" {
            assert!(found.is_err(), "{line}: {found:?}");
        } else {
            let found = found.unwrap_or_else(|bad| panic!("{line}: {bad}"));
            let shown: Vec<String> = found.iter().map(|key| extractor.declaration().show(key)).collect();
            assert_eq!(shown.join("; "), expected, "{line}");
        }
        assert_eq!(extractor.to_string(), declared);
    }
}

#[test]
fn numbers_are_read_from_bytes_in_both_orders() {
    let value = vec![0x80, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff];
    let shown = |declared: &str| {
        let extractor = extractor(declared);
        let keys = keys(&extractor, b"", std::slice::from_ref(&value)).expect("the row fits");
        extractor.declaration().show(&keys[0])
    };
    assert_eq!(shown("value[0..1].le u8"), "(128)");
    assert_eq!(shown("value[0..1].be i8"), "(-128)");
    assert_eq!(shown("value[0..2].le u16"), format!("({})", 0x0180));
    assert_eq!(shown("value[0..2].be u16"), format!("({})", 0x8001));
    assert_eq!(shown("value[0..4].be i32"), format!("({})", i32::from_be_bytes([0x80, 1, 2, 3])));
    assert_eq!(shown("value[12..].le i32"), format!("({})", i32::from_le_bytes([12, 13, 14, 0xff])));
    assert_eq!(shown("value[0..8].be u64"), format!("({})", 0x8001_0203_0405_0607_u64));
    assert_eq!(shown("value[8..].le i64"), format!("({})", i64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 0xff])));
    let all: [u8; 16] = value.clone().try_into().expect("16 bytes");
    assert_eq!(shown("value.le i128"), format!("({})", i128::from_le_bytes(all)));
    assert_eq!(shown("value.be u128"), format!("({})", u128::from_be_bytes(all)));
    assert_eq!(shown("value[0..4].be f32"), format!("({:?})", f32::from_be_bytes([0x80, 1, 2, 3])));
    assert_eq!(shown("value[0..8].le f64"), format!("({:?})", f64::from_le_bytes([0x80, 1, 2, 3, 4, 5, 6, 7])));
}

#[test]
fn what_is_missing_leaves_the_row_out_or_is_none_or_is_an_error() {
    let missing = |declared: &str| format!("field 0 of the index, `{declared}`: the row does not have it");
    for (source, value) in [
        ("value[2..4]", "abc"),
        ("value[4..]", "abc"),
        ("value.le u32", "abc"),
        ("value.text u32", ""),
        ("value bytes[4]", "abc"),
        ("value.split(',')[1] string", "abc"),
        ("value.split(',')[1] bool", "abc,,"),
        ("value.split(',')[*] f32", ""),
        (r#"value.json("$.a") string"#, "{}"),
        (r#"value.json("$.a") bool"#, r#"{"a": null}"#),
        (r#"value.json("$.a.b") string"#, r#"{"a": "b"}"#),
        (r#"value.json("$.a") string"#, "[1]"),
        (r#"value.json("$[1]") string"#, "[1]"),
        (r#"value.json("$[0]") string"#, r#"{"0": 1}"#),
        (r#"value.json("$[*]") u8"#, "[]"),
    ] {
        check(source, value, Ok(&[]));
        check(&format!("{source} lenient"), value, Ok(&[]));
        check(&format!("{source}?"), value, Ok(&["(none)"]));
        check(&format!("{source}? desc"), value, Ok(&["(none)"]));
        let required = format!("{source} required");
        check(&required, value, Err(&missing(&required)));
    }
}

#[test]
fn what_is_wrong_is_an_error_unless_the_field_is_lenient() {
    for (source, value, what) in [
        ("value.le u16", "abc", "3 bytes are more than u16 has"),
        ("value bytes[2]", "abc", "3 bytes are more than bytes[2] has"),
        ("value.text u8", "256", "256 is outside the range of u8"),
        ("value.text u8", " 1", r#"" 1" is not of type u8"#),
        ("value.text bool", "yes", r#""yes" is not of type bool"#),
        ("value.split(';')[1] i8", "a;b", r#""b" is not of type i8"#),
        (r#"value.json("$") u8"#, "256", "256 is outside the range of u8"),
        (r#"value.json("$") u8"#, "-1", "-1 is not of type u8"),
        (r#"value.json("$") i64"#, "1.0", "1.0 is not of type i64"),
        (r#"value.json("$") u128"#, "18446744073709551616", "1.8446744073709552e19 is not of type u128"),
        (r#"value.json("$") string"#, "7", "7 is not of type string"),
        (r#"value.json("$") bool"#, r#""true""#, "a string is not of type bool"),
        (r#"value.json("$") string"#, "true", "true is not of type string"),
        (r#"value.json("$") string"#, "{}", "an object is not of type string"),
        (r#"value.json("$.a") f64"#, r#"{"a": [1]}"#, "an array is not of type f64"),
        (r#"value.json("$.a") f64"#, r#"{"a": 1"#, "it is not JSON: EOF while parsing an object at line 1 column 7"),
        (r#"value.json("$.a") f64"#, r#"{"a": 1} 2"#, "it is not JSON: trailing characters at line 1 column 10"),
        (r#"value.json("$.a") f64"#, "", "it is not JSON: EOF while parsing a value at line 1 column 0"),
        ("value.tuple(u8, bool)[0]", "ab", "field 1 (bool) at byte 1: the byte is neither 0 nor 1"),
    ] {
        // If a field comes from a tuple, its type need not be repeated, whatever its kind is.
        for declared in [source.to_owned(), format!("{source} required"), format!("{source}?")] {
            check(&declared, value, Err(&format!("field 0 of the index, `{declared}`: {what}")));
        }
        check(&format!("{source} lenient"), value, Ok(&[]));
        check(&format!("{source}? lenient"), value, Ok(&["(none)"]));
    }
    let bad = keys(&extractor("key, value string"), b"", &[b"ab\xff".to_vec()]).expect_err("no UTF-8");
    assert_eq!(bad.to_string(), "field 1 of the index, `value string`: the string is not UTF-8 from byte 2 on");
}

#[test]
fn json_is_read_along_its_path() {
    let value =
        r#"{"a": 1, "b": {"a": [10, {"c": "d"}, [true]]}, "": 2, "x y": -3, "a": 4, "big": 18446744073709551615}"#;
    check(r#"value.json("$.a") u8"#, value, Ok(&["(4)"]));
    check(r#"value.json("$.a") f32"#, value, Ok(&["(4.0)"]));
    check(r#"value.json("$.b.a[0]") f64"#, value, Ok(&["(10.0)"]));
    check(r#"value.json("$.b.a[1].c") string"#, value, Ok(&[r#"("d")"#]));
    check(r#"value.json("$.b.a[2][0]") bool"#, value, Ok(&["(true)"]));
    check(r#"value.json("$['']") u8"#, value, Ok(&["(2)"]));
    check(r#"value.json("$['x y']") i8 desc"#, value, Ok(&["(-3)"]));
    check(r#"value.json("$.big") u64"#, value, Ok(&["(18446744073709551615)"]));
    check(r#"value.json("$.big") i128"#, value, Ok(&["(18446744073709551615)"]));
    check(r#"value.json("$['\\u{e9}\\'']") u8"#, r#"{"é'": 5}"#, Ok(&["(5)"]));
    check(r#"value.json("$['é']") u8"#, r#"{"\u00e9": 5}"#, Ok(&["(5)"]));
    // If two members have the same name, the path follows only the later one.
    check(r#"value.json("$.a.b") u8"#, r#"{"a": {"b": 1}, "a": {}}"#, Ok(&[]));
    check(r#"value.json("$.a[*]") u8"#, r#"{"a": [1, 2], "a": [3]}"#, Ok(&["(3)"]));
    // A number is read as the nearest `f64`, as in any other program.
    check(r#"value.json("$") f64"#, "122.416294033786585", Ok(&[&format!("({:?})", 122.416_294_033_786_58_f64)]));
}

#[test]
fn deep_json_is_read_or_refused_and_never_overflows_the_stack() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let beside = format!(r#"{{"deep": {}, "a": 1}}"#, deep(100_000));
    check(r#"value.json("$.a") u8"#, &beside, Ok(&["(1)"]));
    let path = format!("${}", "[0]".repeat(100));
    let declared = format!(r#"value.json("{path}") u8"#);
    let error = format!("field 0 of the index, `{declared}`: an array is not of type u8");
    check(&declared, &deep(100_000), Err(&error));
    check(&declared, &format!("{}7{}", "[".repeat(100), "]".repeat(100)), Ok(&["(7)"]));
    check(&declared, &deep(90), Ok(&[]));
}

#[test]
fn each_value_of_a_field_gives_a_key_once_and_in_order() {
    check("value.split(',')[*] string", "b,a,,b", Ok(&[r#"("")"#, r#"("a")"#, r#"("b")"#]));
    check("value.split(',')[*] u8, key", "2,,1", Ok(&["(1, x'6b6579')", "(2, x'6b6579')"]));
    check("value.split(',')[*] u8?, key[0..1]", "2,,1", Ok(&["(none, x'6b')", "(1, x'6b')", "(2, x'6b')"]));
    check("key[0..1], value.split(',')[*] u8 desc", "2,1,3", Ok(&["(x'6b', 3)", "(x'6b', 2)", "(x'6b', 1)"]));
    let value = r#"{"a": [{"b": [3, 1]}, {"c": 0}, {"b": [2, null]}]}"#;
    check(r#"value.json("$.a[*].b[*]") u8"#, value, Ok(&["(1)", "(2)", "(3)"]));
    check(r#"value.json("$.a[*].b[*]") u8?"#, value, Ok(&["(none)", "(1)", "(2)", "(3)"]));
    check(r#"value.json("$.a[*].b[0]") u8"#, value, Ok(&["(2)", "(3)"]));
    let declared = r#"value.json("$[*]") u8"#;
    check(declared, r#"[1, "x"]"#, Err(&format!("field 0 of the index, `{declared}`: a string is not of type u8")));
    check(&format!("{declared} lenient"), r#"[1, "x", 2]"#, Ok(&["(1)", "(2)"]));
}

#[test]
fn the_first_field_that_does_not_fit_decides() {
    check("value.split(',')[9] u8, value.split(',')[0] u8", "x", Ok(&[]));
    let declared = "value.split(',')[0] u8";
    let error = format!("field 0 of the index, `{declared}`: \"x\" is not of type u8");
    check(&format!("{declared}, value.split(',')[9] u8"), "x", Err(&error));
}

#[test]
fn the_groups_that_are_needed_are_known() {
    assert!(extractor("key[0..4], key").groups().is_empty());
    assert_eq!(extractor("part(3).text u8, value, part(3), part(0), part(1)").groups(), [0, 1, 3]);
    let bad = keys(&extractor("part(2)"), b"key", &[Vec::new(), Vec::new()]).expect_err("no group 2");
    assert_eq!(bad.to_string(), "field 0 of the index, `part(2)`: the table has no column group 2");
}

#[test]
fn the_key_of_a_row_can_follow_the_key_of_its_entry() {
    let extractor = extractor("value.split(',')[*] string, key[0..1] desc");
    for key in keys(&extractor, b"key", &[b"a,ab,a\0".to_vec()]).expect("the row fits") {
        let entry = [&key, &b"key of the row"[..]].concat();
        let declaration = extractor.declaration();
        let (values, rest) = declaration.decode_front(&entry).expect("what we wrote");
        assert_eq!((declaration.decode(&key).as_ref(), rest), (Ok(&values), &b"key of the row"[..]));
    }
}

#[test]
fn a_text_that_is_no_extractor_is_refused() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(text.parse::<Extractor>().expect_err("no extractor").to_string(), format!("at byte {expected}"));
    }
    check("", "0 of the text: `key`, `value` or `part(N)` is expected");
    check("key,", "4 of the text: `key`, `value` or `part(N)` is expected");
    check("keys", "0 of the text: `key`, `value` or `part(N)` is expected");
    check("key key", "4 of the text: the text should end");
    check("key[4..4]", "7 of the text: a range ends after its start");
    check("key[4]", "5 of the text: `..` is expected");
    check("part(65536)", "5 of the text: no table has so many column groups");
    check("value.cut", "6 of the text: `le`, `be`, `text`, `split`, `json` or `tuple` is expected");
    check("value[0..4].split(',')[0]", "12 of the text: `le`, `be` or `text` is expected");
    check("value.split(', ')[0] string", "12 of the text: a separator is one byte, as in ','");
    check("value.split('é')[0] string", "12 of the text: a separator is one byte, as in ','");
    check("value u32", "6 of the text: bytes without `.le`, `.be` or `.text` are string or bytes, not u32");
    check("value[0..4] bytes[3]", "12 of the text: the range is longer or shorter, not bytes[3]");
    check("value[0..4].le u64", "15 of the text: the range is longer or shorter, not u64");
    check("value.be string", "9 of the text: `.le` and `.be` are numbers, not string");
    check("value.text string", "11 of the text: `.text` is a number or bool, not string");
    check("value.split(',')[0] bytes[2]", "20 of the text: text is a string, bytes, a number or bool, not bytes[2]");
    check(r#"value.json("$") bytes"#, "16 of the text: JSON has strings, numbers and bool, not bytes");
    check("key.tuple(u8, i8)[1] u8", "21 of the text: the field of the tuple is i8, not u8");
    check("key.tuple(u8, i8)[2]", "18 of the text: the tuple has 2 fields, from 0");
    check("key? required", "5 of the text: a field with `?` may be missing, so it is not required");
    let many = "value.split(',')[*] u8, value.json(\"$[*]\") u8";
    check(many, "24 of the text: only one field of an index may have `[*]`");
    let path = "11 of the text: in the path, at byte";
    check(r#"value.json(".a") u8"#, &format!("{path} 0 of the text: `$` is expected"));
    check(r#"value.json("$a") u8"#, &format!("{path} 1 of the text: the text should end"));
    let name = "a name of letters, digits and `_` is expected; write another one as ['the name']";
    check(r#"value.json("$.é") u8"#, &format!("{path} 2 of the text: {name}"));
    check(r#"value.json("$[-1]") u8"#, &format!("{path} 2 of the text: a text in quotes is expected: '…'"));
    let long = format!(r#"value.json("${}") u8"#, "[0]".repeat(101));
    check(&long, &format!("{path} 301 of the text: the text should end"));
    for text in ["value.split(',')[0]", r#"value.json("$")"#, "value.text"] {
        let bad = text.parse::<Extractor>().expect_err("no type").to_string();
        assert!(bad.starts_with(&format!("at byte {} of the text: a type is expected", text.len())), "{bad}");
    }
}

#[test]
fn stored_bytes_are_a_version_and_the_text() {
    let text = r#"key[0..4], value.json("$.city") string, value.split(',')[2] u32 desc"#;
    let stored = extractor(text).to_bytes();
    assert_eq!(stored, [&[1], text.as_bytes()].concat());
    assert_eq!(Extractor::from_bytes(&stored), Ok(extractor(text)));
    let refused = |bytes: &[u8]| Extractor::from_bytes(bytes).expect_err("it is refused").to_string();
    assert_eq!(refused(b""), "there is no declaration: the bytes are empty");
    assert_eq!(refused(b"\x02key"), "made by a newer Larch: a declaration of version 2; open it with that release");
    assert_eq!(refused(b"\x01key\xff"), "the declaration is not UTF-8 from byte 4 on");
    let bad = "the declaration cannot be read: at byte 0 of the text: `key`, `value` or `part(N)` is expected";
    assert_eq!(refused(b"\x01row"), bad);
}

fn pick<'t>(rng: &mut StdRng, choices: &[&'t str]) -> &'t str {
    choices[rng.random_range(0..choices.len())]
}

/// A random declared field. Some of these fields have no meaning.
fn draw_field(rng: &mut StdRng) -> String {
    let place = pick(
        rng,
        &[
            "",
            "[0..4]",
            "[..]",
            "[3..]",
            "[1..3].be",
            ".le",
            ".text",
            ".split(',')[1]",
            ".split('\\n')[*]",
            ".json(\"$\")",
            ".json(\"$.a\")",
            ".json(\"$.a[*]['\\\"\\\\'']\")",
            ".json(\"$[0].a\")",
            ".tuple(u8, string? desc, bytes)[0]",
            ".tuple(u8, string? desc, bytes)[1]",
        ],
    );
    let kind = pick(rng, &["", " bool", " u16", " i8", " u32", " f32", " f64", " string", " bytes", " bytes[4]"]);
    let source = pick(rng, &["key", "value", "part(0)", "part(1)"]);
    let (optional, descending) = (pick(rng, &["", "?"]), pick(rng, &["", " desc"]));
    format!("{source}{place}{kind}{optional}{descending}{}", pick(rng, &["", " required", " lenient"]))
}

/// A random value: in one of the forms that the fields of the tests expect, or any bytes.
fn draw_value(rng: &mut StdRng) -> Vec<u8> {
    match rng.random_range(0..4) {
        0 => Vec::draw(rng),
        1 => format!("{},{}\n{}", i8::draw(rng), u16::draw(rng), String::draw(rng)).into_bytes(),
        2 => {
            let members = [r#""a": [1, {"\"'": "x"}]"#, r#""a": -2.5"#, r#""b": null"#, r#""a": "t""#];
            let object = format!("{{{}, {}}}", pick(rng, &members), pick(rng, &members));
            if bool::draw(rng) { object.into_bytes() } else { format!("[{object}]").into_bytes() }
        }
        _ => {
            let mut tuple = vec![u8::draw(rng)];
            tuple.extend([0xfe, 0x9e, 0xff, 0xff, 0x00, 0x00]);
            tuple
        }
    }
}

#[test]
fn an_extractor_has_a_text_that_reads_back_and_gives_keys_of_its_declaration() {
    let (mut extractors, mut given, mut refused) = (BTreeSet::new(), 0, 0);
    on_seeds("extractors", |rng| {
        for _ in 0..1000 {
            let fields: Vec<String> = (0..rng.random_range(1..3)).map(|_| draw_field(rng)).collect();
            let Ok(extractor) = fields.join(",").parse::<Extractor>() else { continue };
            let text = extractor.to_string();
            assert_eq!(text.parse().as_ref(), Ok(&extractor), "{text}");
            assert_eq!(Extractor::from_bytes(&extractor.to_bytes()).as_ref(), Ok(&extractor));
            let declaration = extractor.declaration();
            for _ in 0..5 {
                let (key, parts) = (draw_value(rng), [draw_value(rng), draw_value(rng)]);
                let Ok(found) = keys(&extractor, &key, &parts) else {
                    refused += 1;
                    continue;
                };
                assert!(found.is_sorted_by(|a, b| a < b), "{text}: {found:?}");
                for key in &found {
                    let values = declaration.decode(key).unwrap_or_else(|bad| panic!("{text}: {bad}"));
                    assert_eq!(values.len(), fields.len());
                    given += 1;
                }
            }
            extractors.insert(text);
        }
    });
    println!("{} extractors gave {given} keys and refused {refused} rows", extractors.len());
    assert!(extractors.len() > 20 && given > 100 && refused > 100, "random cases that show little");
}
