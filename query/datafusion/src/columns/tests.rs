//! Tests of texts that declare columns, and of the errors for other texts.

use super::*;

#[track_caller]
fn check(text: &str) -> Columns {
    let columns: Columns = text.parse().unwrap_or_else(|bad| panic!("{text}: {bad}"));
    assert_eq!(columns.to_string(), text);
    columns
}

#[track_caller]
fn check_bad(text: &str, expected: &str) {
    assert_eq!(text.parse::<Columns>().map(|columns| columns.to_string()), Err(BadColumns(expected.to_owned())));
}

#[test]
fn columns_are_written_as_they_are_read() {
    check("key k bytes");
    check("key.tuple(a u32, _ string? desc, \"b c\" rest bytes), part(3) v string");
    check(r#"value.split('\t' escaped marked)(a string, _ bytes, b i64), key.tuple(k u8)"#);
    check(r#"value.json(a string, b f64 "$.x['y z'][2]", "\"" bool)"#);
    let spaced: Columns =
        " key . tuple ( a u32 ,b u8?desc ) ,\n value v string ".parse().expect("spaces have no meaning");
    assert_eq!(spaced, check("key.tuple(a u32, b u8? desc), value v string"));
}

#[test]
fn the_schema_has_a_column_for_each_name() {
    let columns = check(
        r#"value.json(name string, n u8), key.tuple(a u64? desc, _ u8, b bytes[3], c rest bytes), part(1) v bytes"#,
    );
    let schema = columns.schema();
    let shown: Vec<String> = schema
        .fields()
        .iter()
        .map(|field| format!("{} {}{}", field.name(), field.data_type(), if field.is_nullable() { "?" } else { "" }))
        .collect();
    assert_eq!(
        shown,
        ["name Utf8View?", "n UInt8?", "a UInt64?", "b FixedSizeBinary(3)", "c BinaryView", "v BinaryView"]
    );
    assert_eq!(columns.key_columns(), [Some(2), None, Some(3), Some(4)]);
    assert!(columns.groups_of(&[2, 4]).is_empty());
    assert_eq!(columns.groups_of(&[5, 1]), [0, 1]);
    let wide = check("key.tuple(a u128, b i128)").schema();
    assert!(wide.fields().iter().all(|field| *field.data_type() == DataType::Decimal256(39, 0)));
}

#[test]
fn a_table_about_which_nothing_is_known_has_bytes() {
    assert_eq!(Columns::raw(&[]).to_string(), "key key bytes, value value bytes");
    let groups = ["hot", "key"].map(str::to_owned);
    assert_eq!(Columns::raw(&groups).to_string(), "key key bytes, value hot bytes, part(1) key_ bytes");
    let key = "u32, string? desc".parse().expect("a declaration");
    let columns = Columns::of_tuples(&key, &[]);
    assert_eq!(columns.to_string(), "key.tuple(key_0 u32, key_1 string? desc), value value bytes");
    assert_eq!(columns.to_string().parse(), Ok(columns));
}

#[test]
fn a_wrong_text_says_where_it_is_wrong() {
    check_bad("", "at the end of the columns: `key`, `value` or `part(N)` is expected");
    check_bad(
        "key.tuple(a u33)",
        "at `u33)` of the columns: a type is expected: one of bool, u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64, string, bytes, or bytes[N]",
    );
    check_bad("key.tuple(a u32", "at the end of the columns: `)` is expected");
    check_bad("key k bytes x", "at `bytes x` of the columns: the text should end");
    check_bad("value.split(',;')(a u8)", "at `)(a u8)` of the columns: a separator is one byte, as in ',' or '\\t'");
    check_bad("value.xml(a u8)", "at `(a u8)` of the columns: `tuple`, `split` or `json` is expected");
    check_bad("value.json(a u8 \"a\")", "at `a` of the columns: `$` is expected");
}

#[test]
fn columns_that_no_row_can_have_are_refused() {
    check_bad("key k bytes, key j bytes", "key is declared twice; declare all of its fields together");
    check_bad("key k bytes, value k bytes", "two columns have the name k; choose another one");
    check_bad("key.tuple(_ u8)", "there is no column; declare one, as in key k bytes");
    check_bad("key k u8", "key: bytes without an end are string or bytes, neither optional nor descending");
    check_bad("key.json(a u8)", "key: a key is .tuple(…), or one column of string or bytes");
    check_bad("value.tuple(a rest bytes)", "value: only a key can have `rest`");
    check_bad("value.json(a u8?)", "value: a text may always be missing and has no order: leave out `?` and `desc`");
    check_bad("value.json(a bytes)", "value: a text is a string, a number or bool");
    check_bad("value.tuple(a u8 \"$.a\")", "value: only a field of .json(…) has a path");
    let columns = check("part(2) v bytes");
    let refused = |groups: &[&str]| {
        let groups: Vec<String> = groups.iter().map(|name| (*name).to_owned()).collect();
        columns.check_groups("t", &groups).map_err(|bad| bad.to_string())
    };
    assert_eq!(
        refused(&[]),
        Err("table t is not split in column groups, so there is no part(2); write value".to_owned())
    );
    let of_two = "table t has 2 column groups (a, b), from part(0) on, so there is no part(2)";
    assert_eq!(refused(&["a", "b"]), Err(of_two.to_owned()));
    assert_eq!(refused(&["a", "b", "c"]), Ok(()));
}

#[test]
fn no_text_makes_the_parser_panic() {
    let text =
        r#"key.tuple(a u32, "b" rest string), part(1).split('\t' escaped)(x i8), value.json(n u8 "$.a['b'][3]")"#;
    for end in 0..text.len() {
        assert!(text[..end].parse::<Columns>().is_err() || text[end..].starts_with(','), "{}", &text[..end]);
        for sign in ["(", "\"", "'", "\\", ".", "é"] {
            // The result does not matter, but nothing may panic.
            drop(format!("{}{sign}{}", &text[..end], &text[end..]).parse::<Columns>());
        }
    }
}
