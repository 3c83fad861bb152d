//! Escapes in both directions.

use super::*;

#[test]
fn every_byte_comes_back() {
    let all: Vec<u8> = (0..=255).collect();
    let (mut line, mut back) = (Vec::new(), Vec::new());
    escape(&all, &mut line);
    assert!(!line.iter().any(|byte| matches!(byte, b'\t' | b'\n' | b'\r')));
    unescape(&line, &mut back).expect("we escaped it");
    assert_eq!(back, all);
}

#[test]
fn plain_text_is_left_alone() {
    let mut line = Vec::new();
    escape(b"plain, \"text\"", &mut line);
    assert_eq!(line, b"plain, \"text\"");
}

#[test]
fn an_unknown_escape_says_what_to_write() {
    for text in [&b"a\\b"[..], b"end\\"] {
        let error = unescape(text, &mut Vec::new()).expect_err("not an escape");
        assert!(error.contains("write \\\\ for a backslash"), "{error}");
    }
}
