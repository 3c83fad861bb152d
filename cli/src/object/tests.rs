//! Tests of the keys of JSON objects.

use super::*;
use crate::schema::Format;

fn schema(key: &str) -> Schema {
    let specs: Vec<_> = key.split(',').map(|spec| spec.parse().expect("a key specification")).collect();
    Schema::new(Format::Jsonl, vec![], &specs).expect("members are looked for in each row")
}

#[test]
fn key_members_are_found_anywhere() {
    let mut key = Vec::new();
    encode_key(&schema("id"), r#"{"a":[1,{"id":"no"}],"id":"y\u0065s\t"}"#, &mut key).expect("an object");
    assert_eq!(key, b"yes\t");
    let (mut number, mut text) = (Vec::new(), Vec::new());
    encode_key(&schema("id:int"), r#"{"id":7}"#, &mut number).expect("an object");
    encode_key(&schema("id:int"), r#"{"id":"007"}"#, &mut text).expect("an object");
    assert_eq!(number, text);
}

#[test]
fn a_bad_object_says_why() {
    for (key, text, part) in [
        ("id", "[1]", "expected an object"),
        ("id", "{\"id\":\"x\"", "EOF while parsing"),
        ("id", "{\"id\":\"x\"} {}", "trailing characters"),
        ("id", "{\"name\":\"x\"}", "no member \"id\""),
        ("id", "{\"id\":5}", "as id:int or id:num"),
        ("id", "{\"id\":null}", "is null"),
        ("id:int", "{\"id\":5.5}", "\"5.5\" is not a whole number"),
        ("id", "{\"id\":\"x\",\"id\":\"y\"}", "there twice"),
    ] {
        let error = encode_key(&schema(key), text, &mut Vec::new()).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn put_adds_the_key_members_that_are_missing() {
    let check = |key: &str, text: &str, object: &str, expected: &str| {
        let schema = schema(key);
        let texts: Vec<Vec<u8>> = text.split('\t').map(|text| text.as_bytes().to_vec()).collect();
        let mut key = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            keys::encode(schema.key[at].kind, text, at + 1 == texts.len(), &mut key).expect("fits its kind");
        }
        let whole = match with_key(&schema, &texts, object.as_bytes(), &key) {
            Ok(whole) => String::from_utf8(whole).expect("JSON"),
            Err(error) => error,
        };
        assert!(whole.contains(expected), "{text} {object}: {whole}");
    };
    check("id", "x", "{}", r#"{"id":"x"}"#);
    check("id", "x", r#"{"a": 1}"#, r#"{"id":"x","a": 1}"#);
    check("id", "x", r#"{"a":1,"id":"x"}"#, r#"{"a":1,"id":"x"}"#);
    check("id:int,name", "5\tx", r#"{"name":"x"}"#, r#"{"id":5,"name":"x"}"#);
    check("id:int", "007", "{}", r#"{"id":"007"}"#);
    check("id", "x", r#"{"id":"y"}"#, "say another key");
    check("id", "x", "[]", "expected an object");
    check("id", "x", "", "EOF");
}
