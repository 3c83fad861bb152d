//! Tests that rows become bytes and then the same rows again.

use super::*;
use crate::schema::KeySpec;

fn layout(format: Format, columns: &str, key: &str) -> Layout {
    let specs: Vec<KeySpec> = key.split(',').map(|spec| spec.parse().expect("a key specification")).collect();
    let columns = columns.split_whitespace().map(str::to_string).collect();
    Layout::new(Some(Schema::new(format, columns, &specs).expect("the columns exist")))
}

fn encode(layout: &Layout, line: &str) -> Result<Row, String> {
    let record: Vec<Vec<u8>> = line.split('\t').map(|field| field.as_bytes().to_vec()).collect();
    let mut row = Row::default();
    layout.encode(&record, &mut row).map(|()| row)
}

#[test]
fn a_row_without_other_columns_differs_from_one_with_an_empty_one() {
    let layout = layout(Format::Tsv, "", "1");
    let value = |line| encode(&layout, line).expect("a row").parts;
    assert_eq!(value("k"), [b""]);
    assert_eq!(value("k\t"), [b"\0"]);
    assert_eq!(value("k\t\t"), [b"\t"]);
    assert_eq!(value("k\t\0"), [b"\0\0"]);
    assert_eq!(value("k\tv"), [b"v"]);
    for (marked, columns) in
        [(&b""[..], None), (b"\0", Some(&b""[..])), (b"\t", Some(b"\t")), (b"\0\0", Some(b"\0")), (b"v", Some(b"v"))]
    {
        assert_eq!(unmark(marked), columns);
    }
}

#[test]
fn a_number_in_the_key_keeps_the_whole_row() {
    let row = encode(&layout(Format::Tsv, "", "2:int"), "a\t007\tb").expect("a row");
    assert_eq!(row.parts, [b"a\t007\tb"]);
    assert_eq!(row.key, (7 ^ 1u64 << 63).to_be_bytes());
}

#[test]
fn csv_fields_are_kept_escaped_and_keys_are_not() {
    let record = vec![b"a\tb".to_vec(), b"c\nd\\".to_vec(), b"".to_vec()];
    let mut row = Row::default();
    layout(Format::Csv, "", "1").encode(&record, &mut row).expect("a row");
    assert_eq!(row, Row { key: b"a\tb".to_vec(), parts: vec![b"c\\nd\\\\\t".to_vec()] });
}

#[test]
fn a_row_that_ends_before_its_key_is_refused() {
    let error = encode(&layout(Format::Tsv, "", "3"), "a\tb").expect_err("there is no column 3");
    assert!(error.contains("ends before its key, column 3: it has 2 columns"), "{error}");
}

#[test]
fn put_makes_the_row_that_import_would() {
    let check = |layout: &Layout, line: &str, key: &str, rest: Option<&str>| {
        let put = layout.row_from_texts(key.as_bytes(), rest.map(str::as_bytes)).expect(line);
        assert_eq!(put, encode(layout, line).expect(line), "{line}");
    };
    check(&layout(Format::Tsv, "", "1"), "k\ta\tb", "k", Some("a\tb"));
    check(&layout(Format::Tsv, "", "1"), "k", "k", None);
    check(&layout(Format::Tsv, "", "1"), "k\t", "k", Some(""));
    check(&layout(Format::Tsv, "", "2"), "a\tk\tb", "k", Some("a\tb"));
    check(&layout(Format::Tsv, "", "3,1"), "x\ta\ty\tb", "y\tx", Some("a\tb"));
    check(&layout(Format::Csv, "id name", "id:int"), "007\tx", "007", Some("x"));
    check(&layout(Format::Csv, "id", "id"), "x", "x", None);
}

#[test]
fn put_says_what_is_wrong_with_a_row() {
    for (layout, key, rest, part) in [
        (layout(Format::Csv, "id name age", "id"), "x", Some("a"), "2 columns beside its key and this one has 1"),
        (layout(Format::Csv, "id name age", "id"), "x", Some("a"), "(name, age)"),
        (layout(Format::Csv, "id name", "id"), "x", None, "1 column beside"),
        (layout(Format::Csv, "", "id:int".replace("id", "1").as_str()), "x", None, "not a whole number"),
        (layout(Format::Csv, "", "1"), "x", Some("\\q"), "write \\\\ for a backslash"),
        (layout(Format::Tsv, "", "3"), "x", Some("a"), "needs at least 2 columns"),
        (layout(Format::Tsv, "", "1"), "x\ty", Some("a"), "cannot hold a line end, nor a column a tab"),
        (layout(Format::Tsv, "", "1"), "x", Some("a\nb"), "cannot hold a line end"),
        (layout(Format::Tsv, "", "1,2"), "x", Some("a"), "the key has 2 columns and this text has 1"),
    ] {
        let error = layout.row_from_texts(key.as_bytes(), rest.map(str::as_bytes)).expect_err(part);
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_bound_is_where_its_keys_begin() {
    let layout = layout(Format::Tsv, "", "1,2:int,3");
    let key = |text: &str| layout.key_from_text(text.as_bytes()).expect("a key");
    let bound = |text: &str| layout.bound_from_text(text.as_bytes()).expect("a bound");
    for (start, inside, outside) in [
        ("DE", "DE\t5\tx", "DD\t5\tx"),
        ("DE", "DEX\t5\tx", "DD\t5\tx"),
        ("DE\t", "DE\t5\tx", "DEX\t5\tx"),
        ("DE\t5", "DE\t5\tx", "DE\t6\tx"),
        ("DE\t5\t", "DE\t5\tx", "DE\t55\tx"),
        ("DE\t5\tx", "DE\t5\txy", "DE\t5\ty"),
        ("", "DE\t5\txy", "-"),
    ] {
        assert!(key(inside).starts_with(&bound(start)), "{start:?} {inside:?}");
        if outside != "-" {
            assert!(!key(outside).starts_with(&bound(start)), "{start:?} {outside:?}");
        }
    }
    assert!(layout.bound_from_text(b"a\tb").is_err());
    assert!(layout.bound_from_text(b"a\t1\tc\td").is_err());
}

#[test]
fn a_key_gives_its_texts_back() {
    let layout = layout(Format::Csv, "", "1,2:num,3");
    let key = layout.key_from_text(b"a\\tb\t1.50\tc").expect("a key");
    let mut texts = Vec::new();
    assert_eq!(layout.key_texts_of(&key, &mut texts), [b"a\tb".to_vec(), b"1.5".to_vec(), b"c".to_vec()]);
    assert!(layout.key_texts_of(b"no key", &mut texts).is_empty());
}

/// A layout with groups.
fn grouped(format: Format, columns: &str, key: &str, groups: &str) -> Layout {
    let schema = layout(format, columns, key).schema().expect("it has one").clone();
    let groups: Vec<_> = groups.split(';').map(|group| group.parse().expect("a group")).collect();
    Layout::new(Some(schema.with_groups(&groups).expect("they fit")))
}

#[test]
fn each_group_is_a_part_with_its_columns_in_their_order() {
    let check = |layout: &Layout, line: &str, expected: &[&str]| {
        let row = encode(layout, line).expect(line);
        let parts: Vec<String> = row.parts.iter().map(|part| part.escape_ascii().to_string()).collect();
        assert_eq!(parts, expected, "{line:?}");
    };
    let tsv = grouped(Format::Tsv, "", "2", "cold:4,3;hot:*");
    check(&tsv, "a\tk\tc\td\te\tf", &["c\\td", "a\\te\\tf"]);
    check(&tsv, "a\tk\tc", &["c", "a"]);
    check(&tsv, "a\tk\t", &["\\x00", "a"]);
    check(&tsv, "\tk", &["", "\\x00"]);
    check(&tsv, "\0\tk\t\t", &["\\t", "\\x00\\x00"]);
    check(&grouped(Format::Tsv, "", "1", "hot:*"), "k", &[""]);
    let number = grouped(Format::Tsv, "", "2:int", "cold:3;hot:*");
    check(&number, "a\t007\tc\td", &["007\\tc", "a\\td"]);
    check(&number, "a\t007", &["007", "a"]);
    let number = grouped(Format::Tsv, "", "3:int,1", "cold:2;hot:*");
    check(&number, "\ta\t7", &["\\ta\\t7", ""]);
}

#[test]
fn a_column_in_no_group_is_refused() {
    let layout = grouped(Format::Tsv, "id a", "id", "hot:a");
    assert!(encode(&layout, "k\ta").is_ok() && encode(&layout, "k").is_ok());
    let error = encode(&layout, "k\ta\tb").expect_err("there is no column 3");
    assert!(error.starts_with("column 3 is in no group, and no group takes the rest"), "{error}");
}

#[test]
fn put_splits_the_row_as_import_would() {
    for groups in ["hot:b,a;cold:c", "hot:*;cold:b", "cold:a,b;hot:c"] {
        for key in ["id", "id:int"] {
            let layout = grouped(Format::Csv, "a id b c", key, groups);
            let put = layout.row_from_texts(b"007", Some(b"x\t\ty\\\\")).expect("a row");
            assert_eq!(put, encode(&layout, "x\t007\t\ty\\").expect("a row"), "{groups}");
        }
    }
    let layout = grouped(Format::Jsonl, "", "id", "hot:a;cold:*");
    let put = layout.row_from_texts(b"x", Some(br#"{"b": 1, "a": 2}"#)).expect("an object");
    assert_eq!(put.parts, [br#"{"id":"x","a":2}"#.to_vec(), br#"{"b":1}"#.to_vec()]);
}

#[test]
fn an_object_is_split_by_its_members() {
    let layout = grouped(Format::Jsonl, "", "id:int", "hot:a,n;cold:b");
    let mut row = Row::default();
    layout.encode_object(r#"{ "b" : [1, {"a":2}] , "n":1e05,"id":7,"\u0061":"\u0062"}"#, &mut row).expect("an object");
    assert_eq!(row.key, (7 ^ 1u64 << 63).to_be_bytes());
    assert_eq!(row.parts, [br#"{"n":1e05,"id":7,"\u0061":"\u0062"}"#.to_vec(), br#"{"b":[1, {"a":2}]}"#.to_vec()]);
    layout.encode_object(r#"{"id":7}"#, &mut row).expect("an object");
    assert_eq!(row.parts, [br#"{"id":7}"#.to_vec(), b"{}".to_vec()]);
    let error = layout.encode_object(r#"{"id":7,"c":1,"d":2}"#, &mut row).expect_err("c has no group");
    assert!(error.starts_with("member \"c\" is in no group, and no group takes the rest"), "{error}");
    let error = layout.encode_object(r#"{"id":7,"a":}"#, &mut row).expect_err("no JSON");
    assert!(error.starts_with("not a JSON object"), "{error}");
}

/// Checks random keys, every prefix of each key, and the string right after each prefix.
#[test]
fn a_cut_key_has_a_text_that_comes_to_the_same_keys() {
    for (key, texts) in [
        ("1", &["a", "ab", "b", "", "a b"][..]),
        ("1:int", &["-9223372036854775808", "-70000", "-1", "0", "1", "255", "256", "70000", "9223372036854775806"]),
        ("1:num", &["-1e300", "-1.5", "-1", "0", "1e-300", "0.1", "1", "1.5", "2", "255", "1e300"]),
        ("1,2:int,3", &["DE\t5\tx", "DE\t5\txy", "DE\t6\t", "DEX\t-1\ta", "\t0\t", "DE\t256\tx"]),
        ("1,2", &["a\tb", "a\t", "\tb", "ab\tb", "a\tc"]),
        ("1:int,2:num", &["1\t1", "1\t2", "-1\t0", "2\t-2.5"]),
    ] {
        let layout = layout(Format::Csv, "", key);
        let mut keys: Vec<Vec<u8>> =
            texts.iter().map(|text| layout.key_from_text(text.as_bytes()).expect("a key")).collect();
        keys.sort();
        let after = keys.iter().map(|key| [key, &[0][..]].concat());
        let cuts = keys.iter().flat_map(|key| (0..=key.len()).map(|bytes| key[..bytes].to_vec())).chain(after);
        for cut in cuts {
            let text = layout.text_of_bound(&cut);
            let shown = text.escape_ascii();
            let bound = layout.bound_from_text(&text).unwrap_or_else(|why| panic!("{cut:?} is {shown}: {why}"));
            for key in &keys {
                assert_eq!(*key >= cut, *key >= bound, "{key:?} and {cut:?}, which is {shown}");
            }
        }
    }
}
