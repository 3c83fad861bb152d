//! Tests of rows of every form and type as arrays, and of damaged rows.

use super::*;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use rows::{Descending, Tuple};

/// The rows of a table with the columns `declared`, as text, with `-` for NULL.
fn rows(declared: &str, wanted: Option<&[usize]>, rows: &[(&[u8], &[&[u8]])]) -> Result<Vec<String>, BadField> {
    let columns: Columns = declared.parse().unwrap_or_else(|bad| panic!("{declared}: {bad}"));
    let all: Vec<usize> = (0..columns.schema().fields().len()).collect();
    let wanted = wanted.unwrap_or(&all);
    let groups = columns.groups_of(wanted);
    let mut filler = Filler::new(&columns, wanted, &groups, 1);
    let mut pushed = Ok(());
    for (key, parts) in rows {
        let read: Vec<&[u8]> = groups.iter().map(|group| parts[*group]).collect();
        pushed = pushed.and_then(|()| filler.push(key, &read));
    }
    let shown = |mut filler: Filler| texts(&columns, wanted, &mut filler);
    let one_by_one = pushed.map(|()| shown(filler));
    // Appending all rows in one call must give the same arrays.
    let mut together = Filler::new(&columns, wanted, &groups, 1);
    let parts: Vec<Vec<&[u8]>> =
        groups.iter().map(|group| rows.iter().map(|(_, parts)| parts[*group]).collect()).collect();
    let pushed = together.push_rows(|each| rows.iter().for_each(|(key, _)| each(key)), &parts, rows.len());
    let at_once = pushed.map(|()| shown(together)).map_err(|(row, bad)| {
        let (key, parts) = rows[row];
        let read: Vec<&[u8]> = groups.iter().map(|group| parts[*group]).collect();
        let alone = Filler::new(&columns, wanted, &groups, 1).push(key, &read);
        assert_eq!(alone, Err(bad.clone()), "row {row} of {declared}");
        bad
    });
    assert_eq!(at_once, one_by_one, "{declared}");
    one_by_one
}

/// The arrays as text, row after row.
fn texts(columns: &Columns, wanted: &[usize], filler: &mut Filler) -> Vec<String> {
    let schema = columns.schema().project(wanted).expect("the columns are there");
    let batch = RecordBatch::try_new(schema.into(), filler.take()).expect("the arrays have the types of the schema");
    let options = FormatOptions::default().with_null("-");
    let formats: Vec<_> =
        batch.columns().iter().map(|array| ArrayFormatter::try_new(array, &options).expect("it has a form")).collect();
    let row = |row| formats.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(row).collect()
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
fn columns_of_one_width_are_read_one_after_the_other() {
    let declared = "key.tuple(k u8), value.tuple(a bool, b u16, c i64, d f64, e u128, f bytes[3], g f32)";
    let value = |row: u8| {
        let front =
            (row % 2 == 1, u16::from(row), -i64::from(row), f64::from(row) / 2.0, u128::from(row) << 100).to_key();
        [&front[..], &[row; 3], &(f32::from(row),).to_key()].concat()
    };
    let good: Vec<Vec<u8>> = (0..3).map(value).collect();
    let of = |values: &[Vec<u8>], wanted: Option<&[usize]>| {
        let parts: Vec<[&[u8]; 1]> = values.iter().map(|value| [&value[..]]).collect();
        let all: Vec<(&[u8], &[&[u8]])> = parts.iter().map(|parts| (&b"\x07"[..], &parts[..])).collect();
        rows(declared, wanted, &all)
    };
    let expected = [
        "7|false|0|0|0.0|0|000000|0.0",
        "7|true|1|-1|0.5|1267650600228229401496703205376|010101|1.0",
        "7|false|2|-2|1.0|2535301200456458802993406410752|020202|2.0",
    ];
    assert_eq!(of(&good, None), Ok(expected.map(str::to_owned).to_vec()));
    assert_eq!(of(&good, Some(&[3, 0])), Ok(vec!["0|7".to_owned(), "-1|7".to_owned(), "-2|7".to_owned()]));
    let with = |bad: Vec<u8>| [good[0].clone(), good[1].clone(), bad, good[2].clone()];
    let bad = |column: Option<usize>, what: &str| Err(BadField { column, what: what.to_owned() });
    let no_bool = with([&[2], &good[2][1..]].concat());
    assert_eq!(of(&no_bool, None), bad(Some(1), "bool at byte 0: the byte is neither 0 nor 1"));
    assert_eq!(of(&with(good[2][..5].to_vec()), None), bad(Some(3), "i64 at byte 3: the bytes end within the field"));
    // Fields that are not needed are skipped, and fields after the last needed field are not read.
    assert_eq!(of(&no_bool, Some(&[2])).map(|rows| rows.len()), Ok(4));
    assert_eq!(of(&with(good[2][..3].to_vec()), Some(&[2])).map(|rows| rows.len()), Ok(4));
    let longer = [&good[2][..], b"x"].concat();
    assert_eq!(of(&with(longer), None), bad(None, "the tuple ends at byte 42, and 1 more follow"));
}

#[test]
fn only_what_is_wanted_is_read() {
    let declared = "key.tuple(a u8, b string, c u8), value.tuple(d u8, e u8), part(1) f string";
    let key = (1_u8, "two", 3_u8).to_key();
    let row: (&[u8], &[&[u8]]) = (&key, &[&[4, 5], b"\xff"]);
    assert_eq!(rows(declared, Some(&[4, 2]), &[row]), Ok(vec!["5|3".to_owned()]));
    // The damaged part is not read, and neither are fields after the last needed field.
    let damaged: (&[u8], &[&[u8]]) = (b"\x01", &[&[4], b"\xff"]);
    assert_eq!(rows(declared, Some(&[0, 3]), &[damaged]), Ok(vec!["1|4".to_owned()]));
}

#[test]
fn texts_between_separators_become_values() {
    let declared = "value.split(',')(a string, _ string, b i32, c f64, d bool)";
    check(declared, b"", b"x,y,-7,1e3,true", "x|-7|1000.0|true");
    // Fields for which the value has no text are missing. An empty text is a string, but not a number.
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
    // The last of several members with the same name counts, whatever the earlier ones contain.
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
