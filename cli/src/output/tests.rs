//! Tests of rows as text, in each form.

use super::*;
use crate::layout::Row;
use crate::schema::{KeySpec, Schema};

mod groups;

/// Encodes a record and prints it in five forms: as tsv, as json, the key, the key as JSON, and the value.
fn print(format: Format, columns: &[&str], key: &str, record: &[&[u8]]) -> [String; 5] {
    let specs: Vec<KeySpec> = key.split(',').map(|spec| spec.parse().expect("a key specification")).collect();
    let columns = columns.iter().map(ToString::to_string).collect();
    let layout = Layout::new(Some(Schema::new(format, columns, &specs).expect("the columns exist")));
    let record: Vec<Vec<u8>> = record.iter().map(|field| field.to_vec()).collect();
    let mut row = Row::default();
    layout.encode(&record, &mut row).expect("a row");
    show(&layout, &row)
}

fn show(layout: &Layout, row: &Row) -> [String; 5] {
    let mut printer = Printer::new(layout);
    let mut lines = [(); 5].map(|()| Vec::new());
    printer.tsv(&row.key, &row.parts, &mut lines[0]);
    printer.json(&row.key, &row.parts, &mut lines[1]);
    printer.key(&row.key, &mut lines[2]);
    printer.key_json(&row.key, &mut lines[3]);
    printer.value(&row.parts, &mut lines[4]);
    lines.map(|line| {
        assert_eq!(line.last(), Some(&b'\n'));
        String::from_utf8_lossy(&line[..line.len() - 1]).into_owned()
    })
}

#[test]
fn columns_come_out_in_their_order() {
    assert_eq!(
        print(Format::Tsv, &[], "3,1", &[b"a", b"b", b"c", b"d"]),
        ["a\tb\tc\td", r#"{"1":"a","2":"b","3":"c","4":"d"}"#, "c\ta", r#"["c","a"]"#, "b\td"]
    );
    assert_eq!(print(Format::Tsv, &[], "1", &[b"k"]), ["k", r#"{"1":"k"}"#, "k", r#""k""#, ""]);
    assert_eq!(print(Format::Tsv, &[], "1", &[b"k", b""]), ["k\t", r#"{"1":"k","2":""}"#, "k", r#""k""#, ""]);
    assert_eq!(print(Format::Tsv, &[], "2", &[b"", b"k"]), ["\tk", r#"{"1":"","2":"k"}"#, "k", r#""k""#, ""]);
}

#[test]
fn a_numeric_key_leaves_its_text_in_the_row() {
    assert_eq!(
        print(Format::Csv, &["id", "name"], "id:int", &[b"007", b"x\ty"]),
        ["007\tx\\ty", r#"{"id":"007","name":"x\ty"}"#, "7", "7", "x\\ty"]
    );
    // A number that JSON writes in the same way is a number.
    let numbers = print(Format::Csv, &["id", "n"], "id:num,n:int", &[b"-1.50e3", b"+7"]);
    assert_eq!(numbers[1..4], [r#"{"id":-1.50e3,"n":"+7"}"#, "-1500\t7", "[-1500,7]"]);
}

#[test]
fn special_bytes_are_escaped_only_for_csv() {
    let [tsv, json, key, _, value] = print(Format::Csv, &["a", "b"], "a", &[b"k\tk", b"\\\r\n\x01"]);
    assert_eq!([tsv, json], ["k\\tk\t\\\\\\r\\n\u{1}", r#"{"a":"k\tk","b":"\\\r\n\u0001"}"#]);
    assert_eq!([key, value], ["k\\tk", "\\\\\\r\\n\u{1}"]);
    let [tsv, json, ..] = print(Format::Tsv, &["a", "b"], "a", &[b"k\\t", b"\\\r"]);
    assert_eq!([tsv, json], ["k\\t\t\\\r\r", r#"{"a":"k\\t","b":"\\\r"}"#]);
}

#[test]
fn bytes_that_are_not_text_are_hexadecimal_in_json() {
    assert_eq!(print(Format::Csv, &["a", "b"], "a", &[b"k", b"\xff\x00"])[1], r#"{"a":"k","b":{"hex":"ff00"}}"#);
}

#[test]
fn names_in_json_differ() {
    assert_eq!(
        print(Format::Csv, &["a", "", "a", "3"], "1", &[b"1", b"2", b"3", b"4", b"5"])[1],
        r#"{"a":"1","2":"2","3_":"3","3":"4","5":"5"}"#
    );
}

#[test]
fn rows_without_a_schema_are_key_and_value() {
    let row = Row { key: b"k".to_vec(), parts: vec![b"v\\".to_vec()] };
    assert_eq!(show(&Layout::new(None), &row), ["k\tv\\\\", r#"{"key":"k","value":"v\\"}"#, "k", r#""k""#, "v\\"]);
}

#[test]
fn a_key_that_no_import_made_is_shown_raw() {
    let specs = ["1".parse().expect("a number"), "2".parse().expect("a number")];
    let layout = Layout::new(Some(Schema::new(Format::Tsv, vec![], &specs).expect("numbers need no header")));
    let row = Row { key: b"k".to_vec(), parts: vec![b"v".to_vec()] };
    assert_eq!(show(&layout, &row), ["\\?k\tv", r#"{"key":"\\?k","value":"v"}"#, "\\?k", r#""\\?k""#, "v"]);
}
