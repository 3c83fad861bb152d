//! Rows of every form and type as arrays, and rows that are damaged.

use super::*;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use rows::{Descending, Tuple};

/// The rows of a table with these columns, as text: NULL as `-`.
fn rows(declared: &str, wanted: Option<&[usize]>, rows: &[(&[u8], &[&[u8]])]) -> Result<Vec<String>, BadField> {
    let columns: Columns = declared.parse().unwrap_or_else(|bad| panic!("{declared}: {bad}"));
    let all: Vec<usize> = (0..columns.schema().fields().len()).collect();
    let wanted = wanted.unwrap_or(&all);
    let groups = columns.groups_of(wanted);
    let mut filler = Filler::new(&columns, wanted, &groups, 1);
    for (key, parts) in rows {
        let read: Vec<&[u8]> = groups.iter().map(|group| parts[*group]).collect();
        filler.push(key, &read)?;
    }
    let schema = columns.schema().project(wanted).expect("the columns are there");
    let batch = RecordBatch::try_new(schema.into(), filler.take()).expect("the arrays have the types of the schema");
    let options = FormatOptions::default().with_null("-");
    let formats: Vec<_> =
        batch.columns().iter().map(|array| ArrayFormatter::try_new(array, &options).expect("it has a form")).collect();
    let row = |row| formats.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|");
    Ok((0..batch.num_rows()).map(row).collect())
}

#[track_caller]
fn check(declared: &str, key: &[u8], value: &[u8], expected: &str) {
    assert_eq!(rows(declared, None, &[(key, &[value])]).map(|mut rows| rows.remove(0)), Ok(expected.to_owned()));
}

#[track_caller]
fn check_bad(declared: &str, key: &[u8], value: &[u8], column: Option<usize>, what: &str) {
    assert_eq!(rows(declared, None, &[(key, &[value])]), Err(BadField { column, what: what.to_owned() }), "{declared}");
}

#[test]
fn fields_of_tuples_of_every_type_become_values() {
    let numbers = (u8::MAX, u16::MAX, u32::MAX, u64::MAX, u128::MAX).to_key();
    let declared = "key.tuple(a u8, b u16, c u32, d u64, e u128)";
    check(declared, &numbers, b"", "255|65535|4294967295|18446744073709551615|340282366920938463463374607431768211455");
    let numbers = (i8::MIN, i16::MIN, i32::MIN, i64::MIN, i128::MIN).to_key();
    let declared = "key.tuple(a i8, b i16, c i32, d i64, e i128)";
    check(
        declared,
        &numbers,
        b"",
        "-128|-32768|-2147483648|-9223372036854775808|-170141183460469231731687303715884105728",
    );
    let others = (true, 1.5_f32, f64::NEG_INFINITY, "a\0é", &b"\0\xff"[..]).to_key();
    check("key.tuple(a bool, b f32, c f64, d string, e bytes)", &others, b"", "true|1.5|-inf|a\0é|00ff");
    let descending = (Descending(7_u32), Descending("a\0b"), Descending(None::<u8>), Some(3_u8)).to_key();
    check("key.tuple(a u32 desc, b string desc, c u8? desc, d u8?)", &descending, b"", "7|a\0b|-|3");
    let fixed = [&[1, 2, 3][..], &(9_u8,).to_key()].concat();
    check("value.tuple(a bytes[3], b u8)", b"", &fixed, "010203|9");
    check("key.tuple(a u8, b rest string)", b"\x07a\0b", b"", "7|a\0b");
}

#[test]
fn only_what_is_wanted_is_read() {
    let declared = "key.tuple(a u8, b string, c u8), value.tuple(d u8, e u8), part(1) f string";
    let key = (1_u8, "two", 3_u8).to_key();
    let row: (&[u8], &[&[u8]]) = (&key, &[&[4, 5], b"\xff"]);
    assert_eq!(rows(declared, Some(&[4, 2]), &[row]), Ok(vec!["5|3".to_owned()]));
    // The part that is damaged is not read, and neither are fields after the last that is wanted.
    let damaged: (&[u8], &[&[u8]]) = (b"\x01", &[&[4], b"\xff"]);
    assert_eq!(rows(declared, Some(&[0, 3]), &[damaged]), Ok(vec!["1|4".to_owned()]));
}

#[test]
fn texts_between_separators_become_values() {
    let declared = "value.split(',')(a string, _ string, b i32, c f64, d bool)";
    check(declared, b"", b"x,y,-7,1e3,true", "x|-7|1000.0|true");
    // Of fewer texts the others are missing; an empty text is a string and no number.
    check(declared, b"", b",,", "|-|-|-");
    check(declared, b"", b"x", "x|-|-|-");
    check(declared, b"", b"x,y,1,2,false,more", "x|1|2.0|false");
    let declared = r"value.split('\t' escaped marked)(a string, b string)";
    check(declared, b"", b"a\\tb\tc\\\\", "a\tb|c\\");
    check(declared, b"", b"", "-|-");
    check(declared, b"", b"\0", "|-");
    check(r"value.split('\t')(a string, b string)", b"", b"a\\tb\tc", r"a\tb|c");
    check_bad(declared, b"", b"a\\x", Some(0), r#""a\\x" has a backslash that escapes nothing"#);
    check_bad("value.split(',')(a u8)", b"", b"256", Some(0), r#""256" is not of type u8"#);
    check_bad(
        "value.split(',')(a u8, b string)",
        b"",
        b"1,\xff",
        Some(1),
        "the string is not UTF-8 from byte 0 on; declare the column as bytes",
    );
}

#[test]
fn members_of_json_become_values() {
    let declared = r#"value.json(a string, b u8, c string "$.x.y", d i64 "$.x.z[1]", e bool, f string "$.x")"#;
    let value = br#"{"b": 7, "a": "\u00e9\"", "other": [{}], "x": {"z": [1, -2], "y": [1, {}]}, "e": false}"#;
    check(declared, b"", value, r#"é"|7|[1, {}]|-2|false|{"z": [1, -2], "y": [1, {}]}"#);
    check(declared, b"", b"{}", "-|-|-|-|-|-");
    check(declared, b"", br#"{"a": null, "b": null, "x": [], "e": null}"#, "-|-|-|-|-|[]");
    check(declared, b"", b"17", "-|-|-|-|-|-");
    // Of several members with the same name the last one counts, whatever the others had.
    check(declared, b"", br#"{"b": 1, "x": {"y": "q"}, "x": {"z": [1, 2]}, "b": 2}"#, r#"-|2|-|2|-|{"z": [1, 2]}"#);
    check(declared, b"", br#"{"a": 1.50}"#, "1.50|-|-|-|-|-");
    check_bad(declared, b"", br#"{"b": 256}"#, Some(1), r#""256" is not of type u8"#);
    check_bad(declared, b"", br#"{"b": 1.0}"#, Some(1), r#""1.0" is not of type u8"#);
    check_bad(declared, b"", br#"{"b": "1"}"#, Some(1), r#""1" is a string"#);
    check_bad(declared, b"", br#"{"b": 1"#, None, "it is not JSON: EOF while parsing an object at line 1 column 7");
    check_bad(declared, b"", br#"{} {}"#, None, "it is not JSON: trailing characters at line 1 column 4");
    check_bad(declared, b"", b"\xff", None, "the string is not UTF-8 from byte 0 on; declare the column as bytes");
}

#[test]
fn damaged_bytes_are_an_error_that_names_the_column() {
    let declared = "key.tuple(a u8, b u32?), value.tuple(c string)";
    check_bad(declared, b"\x01", b"a\0\0", Some(1), "u32? at byte 1: the bytes end within the field");
    check_bad(declared, b"\x01\x02", b"a\0\0", Some(1), "u32? at byte 1: the byte is neither 0 nor 1");
    check_bad(declared, b"\x01\0\0", b"a\0\0", None, "the tuple ends at byte 2, and 1 more follow");
    check_bad(declared, b"\x01\0", b"a", Some(2), "string at byte 0: the bytes end within the field");
    check_bad(declared, b"\x01\0", b"\xff\0\0", Some(2), "string at byte 0: the string is not UTF-8");
    check_bad(
        "value v string",
        b"",
        b"a\xff",
        Some(0),
        "the string is not UTF-8 from byte 1 on; declare the column as bytes",
    );
}

#[test]
fn arrays_begin_anew_after_they_were_taken() {
    let columns: Columns = "key.tuple(a u8), value v string".parse().expect("columns");
    let mut filler = Filler::new(&columns, &[0, 1], &[0], 4);
    for row in 0..3_u8 {
        filler.push(&[row], &[b"a value that is longer than a view"]).expect("the row fits");
    }
    assert!(filler.bytes() >= 3 * 35 && filler.rows() == 3);
    assert_eq!(filler.take()[0].len(), 3);
    assert_eq!((filler.rows(), filler.bytes()), (0, 0));
    filler.push(&[9], &[b""]).expect("the row fits");
    assert_eq!(filler.take()[1].len(), 1);
}
