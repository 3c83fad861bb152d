//! Sizes in and out.

use super::*;

#[test]
fn sizes_are_binary() {
    for (text, expected) in [
        ("0", 0),
        ("4096", 4096),
        ("4096B", 4096),
        ("16K", 16 << 10),
        ("16KiB", 16 << 10),
        ("16kib", 16 << 10),
        ("64MiB", 64 << 20),
        ("64 MiB", 64 << 20),
        ("1GiB", 1 << 30),
        ("2T", 2 << 40),
    ] {
        assert_eq!(parse(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_bad_size_says_what_to_write() {
    for (text, part) in [
        ("", "starts with a digit"),
        ("MiB", "starts with a digit"),
        ("-1", "starts with a digit"),
        ("1.5GiB", "`.5GIB` is not a unit"),
        ("64MB", "`MB` is not a unit"),
        ("99999999999999999999", "too large"),
        ("99999999999T", "too large"),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
        assert!(error.contains("64MiB"), "{text}: {error}");
    }
    assert!(parse_u32("4GiB").is_err());
    assert_eq!(parse_u32("16KiB"), Ok(16384));
}

#[test]
fn numbers_are_readable() {
    assert_eq!([bytes(0), bytes(1023), bytes(1024), bytes(100_000_000)], ["0 B", "1023 B", "1.0 KiB", "95.4 MiB"]);
    assert_eq!([count(0), count(999), count(1000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([of(1, "row"), of(2000, "row")], ["1 row", "2,000 rows"]);
}
