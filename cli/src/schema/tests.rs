//! Tests of schemas that come from key specifications and from metadata.

use super::*;

fn specs(text: &str) -> Vec<KeySpec> {
    text.split(',').map(|spec| spec.parse().expect("a key specification")).collect()
}

fn names(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_string).collect()
}

#[test]
fn columns_are_named_or_numbered() {
    let check = |columns: &str, key: &str, expected: &str| {
        let text = match Schema::new(Format::Csv, names(columns), &specs(key)) {
            Ok(schema) => schema.to_string(),
            Err(error) => error,
        };
        assert_eq!(text, expected, "{columns} {key}");
    };
    check("id name", "1", "csv rows of columns id, name, key id");
    check("id name", "name,id:int", "csv rows of columns id, name, key name, id:int");
    check("2025 2024 2", "2", "csv rows of columns 2025, 2024, 2, key 2");
    check("", "2:num,1", "csv rows, key column 2:num, column 1");
    check("id name", "age", "the header has no column age; it has id, name");
    check("id name", "3", "there is no column 3: the header has 2");
    check("id name", "0", "columns are numbered from 1");
    check("", "age", "there is no header to find key column age in; number it from 1, or say --header");
    check("a b a", "a", "the header names a twice, as columns 1 and 3; give the number of the one you mean");
    check("a b a", "3", "csv rows of columns a, b, a, key a");
    check("id name", "id,1", "column 1 is in the key twice; name it once");
}

#[test]
fn a_suffix_is_a_kind_only_if_it_is_one() {
    assert_eq!(specs("a:int")[0], KeySpec { name: "a".into(), kind: Kind::Int });
    assert_eq!(specs("a:b")[0], KeySpec { name: "a:b".into(), kind: Kind::Text });
    assert_eq!(specs("a:int:text")[0], KeySpec { name: "a:int".into(), kind: Kind::Text });
    assert!(":int".parse::<KeySpec>().is_err());
    assert!("".parse::<KeySpec>().is_err());
}

#[test]
fn metadata_comes_back_and_is_readable() {
    let schema = Schema::new(Format::Csv, names("id name"), &specs("id:int")).expect("columns exist");
    let metadata = schema.to_metadata();
    assert_eq!(
        String::from_utf8_lossy(&metadata),
        r#"{"larch_rows":1,"format":"csv","columns":["id","name"],"key":[{"column":1,"kind":"int"}]}"#
    );
    assert_eq!(Schema::from_metadata("t", &metadata, &[]), Ok(Some(schema)));

    let schema = Schema::new(Format::Jsonl, vec![], &specs("id")).expect("members are looked for in each row");
    assert_eq!(Schema::from_metadata("t", &schema.to_metadata(), &[]), Ok(Some(schema)));
}

#[test]
fn metadata_of_others_is_raw_and_bad_metadata_is_an_error() {
    assert_eq!(Schema::from_metadata("t", b"", &[]), Ok(None));
    assert_eq!(Schema::from_metadata("t", b"\x01\x02", &[]), Ok(None));
    assert_eq!(Schema::from_metadata("t", br#"{"mine":1}"#, &[]), Ok(None));
    for (metadata, part) in [
        (r#"{"larch_rows":3}"#, "newer larch"),
        (r#"{"larch_rows":1}"#, "damaged"),
        (r#"{"larch_rows":1,"format":"csv","key":[]}"#, "damaged"),
        (r#"{"larch_rows":1,"format":"csv","key":[{"column":0,"kind":"text"}]}"#, "damaged"),
        (r#"{"larch_rows":1,"format":"csv","key":[{"column":"id","kind":"text"}]}"#, "damaged"),
    ] {
        let error = Schema::from_metadata("t", metadata.as_bytes(), &[]).expect_err(metadata);
        assert!(error.contains(part) && error.contains("table t"), "{error}");
    }
}
