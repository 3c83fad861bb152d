//! Changes JSON values by JSON merge patches, as RFC 7396 describes them. This module knows no engine: a program
//! registers [`merge_patch`] as a function for merges.

use serde_json::{Map, Value};

/// The JSON value `value` after `patch`, in the form of a merge function. Fields of objects are replaced one by one, and
/// removed if the patch has `null` for them; any other value is replaced as a whole. A missing value counts as an empty
/// object. The fields of the result are sorted by name.
///
/// ```
/// let value = br#"{"name":"Ada","town":"London","age":36}"#;
/// let patched = larch_rows::merge_patch(b"key", Some(value), br#"{"age":37,"town":null}"#)?;
/// assert_eq!(patched, br#"{"age":37,"name":"Ada"}"#);
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
///
/// Returns which of the two is not JSON, and why.
pub fn merge_patch(_key: &[u8], value: Option<&[u8]>, patch: &[u8]) -> Result<Vec<u8>, String> {
    let parse =
        |bytes: &[u8], what: &str| serde_json::from_slice(bytes).map_err(|why| format!("{what} is not JSON: {why}"));
    let mut target = value.map_or(Ok(Value::Null), |value| parse(value, "its value"))?;
    apply(&mut target, parse(patch, "a merge patch")?);
    // Objects keep the order of their fields if another crate asks for that.
    target.sort_all_objects();
    Ok(target.to_string().into_bytes())
}

/// Applies a patch, as the pseudocode of RFC 7396 in section 2 does. Both are at most as deep as `serde_json` parses.
fn apply(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { unreachable!("it was made one") };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(&name);
        } else {
            apply(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_hold() {
        // RFC 7396, appendix A.
        let examples = [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ];
        for (value, patch, expected) in examples {
            let patched = merge_patch(b"", Some(value.as_bytes()), patch.as_bytes()).expect("both are JSON");
            assert_eq!(String::from_utf8_lossy(&patched), expected, "{value} by {patch}");
        }
        assert_eq!(merge_patch(b"", None, br#"{"a":1,"b":null}"#).expect("it is JSON"), br#"{"a":1}"#);
        assert!(merge_patch(b"", Some(b"{"), b"{}").expect_err("it is cut").starts_with("its value is not JSON: "));
        assert!(merge_patch(b"", None, b"x").expect_err("it is none").starts_with("a merge patch is not JSON: "));
    }
}
