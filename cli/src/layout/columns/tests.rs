//! Tests of schemas as declarations of columns for queries.

use crate::schema::{Format, KeySpec, Schema};

#[track_caller]
fn check(format: Format, header: &[&str], key: &[&str], groups: &[&str], expected: &str) {
    let header = header.iter().map(|name| (*name).to_owned()).collect();
    let key: Vec<KeySpec> = key.iter().map(|key| key.parse().expect("a key column")).collect();
    let groups: Vec<_> = groups.iter().map(|group| group.parse().expect("a group")).collect();
    let schema = Schema::new(format, header, &key).expect("the key fits");
    let schema = if groups.is_empty() { schema } else { schema.with_groups(&groups).expect("the groups fit") };
    assert_eq!(super::declared(&schema), expected);
}

#[test]
fn each_column_of_a_header_is_declared_where_it_lies() {
    check(
        Format::Csv,
        &["name", "city", "age"],
        &["city", "name"],
        &[],
        r"key.tuple(city string, name rest string), value.split('\t' escaped marked)(age string)",
    );
    check(
        Format::Tsv,
        &["name", "city", "age"],
        &["name"],
        &[],
        r"key.tuple(name rest string), value.split('\t' marked)(city string, age string)",
    );
    // The value contains the text of the whole row, because a number in the key can be written in several ways.
    check(
        Format::Csv,
        &["a", "id", "b c"],
        &["id:int"],
        &[],
        r#"key.tuple(id i64), value.split('\t' escaped)(a string, _ string, "b c" string)"#,
    );
    check(
        Format::Csv,
        &["id", "a", "b", "c"],
        &["id:int"],
        &["hot:b", "cold:*"],
        r"key.tuple(id i64), value.split('\t' escaped marked)(_ string, b string), part(1).split('\t' escaped marked)(a string, c string)",
    );
}

#[test]
fn rows_whose_columns_are_not_known_are_a_column_of_text() {
    check(Format::Jsonl, &[], &["city", "id:num"], &[], "key.tuple(city string, id f64), value value string");
    check(Format::Tsv, &[], &["2"], &[], "key.tuple(column_2 rest string), value value string");
    check(
        Format::Jsonl,
        &[],
        &["id"],
        &["hot:name", "id:*"],
        "key.tuple(id rest string), value hot string, part(1) id_ string",
    );
}
