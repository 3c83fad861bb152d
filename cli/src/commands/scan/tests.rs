//! Tests of the ranges of a scan.

use super::*;
use crate::args::KeyTypes;

#[test]
fn a_prefix_ends_where_no_key_starts_with_it() {
    for (prefix, after) in [
        (&b"a"[..], Some(&b"b"[..])),
        (b"a\xff", Some(b"b")),
        (b"a\xff\xffb", Some(b"a\xff\xffc")),
        (b"\xff\xff", None),
        (b"", None),
    ] {
        assert_eq!(larch::successor(prefix).as_deref(), after);
    }
}

#[test]
fn bounds_meet() {
    let check = |from: &str, to: &str, prefix: &str, expected: &str| {
        let some = |text: &str| Some(text).filter(|text| *text != "-").map(Into::into);
        let args = KeyRange { from: some(from), to: some(to), prefix: some(prefix), types: KeyTypes::default() };
        let text = |bound: Bound<Vec<u8>>| match bound {
            Bound::Included(bytes) | Bound::Excluded(bytes) => String::from_utf8(bytes).expect("text"),
            Bound::Unbounded => "-".to_string(),
        };
        let range = range(&args, &Layout::new(None)).expect("raw keys are never wrong");
        let range = range.map_or("none".to_string(), |(from, to)| format!("{}..{}", text(from), text(to)));
        assert_eq!(range, expected, "{from} {to} {prefix}");
    };
    check("-", "-", "-", "-..-");
    check("b", "d", "-", "b..d");
    check("-", "-", "b", "b..c");
    check("bb", "-", "b", "bb..c");
    check("a", "bb", "b", "b..bb");
    check("d", "b", "-", "none");
    check("b", "b", "-", "none");
    check("c", "-", "b", "none");
    check("-", "b", "b", "none");
    check("-", "", "-", "none");
}
