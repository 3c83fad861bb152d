//! Tests that sizes are read and printed.

use super::*;

#[test]
fn a_page_has_a_size_of_32_bits() {
    assert!(parse_u32("4GiB").is_err());
    assert_eq!(parse_u32("16KiB"), Ok(16384));
}

#[test]
fn a_cache_has_a_size_or_what_is_free() {
    assert_eq!(parse_budget("free"), Ok(Budget::free()));
    assert_eq!(parse_budget("64MiB"), Ok(Budget::fixed(64 << 20)));
    for bad in ["", "Free", "free memory", "64MB", "-1"] {
        let why = parse_budget(bad).expect_err(bad);
        assert!(why.contains("64MiB") && why.contains("`free`"), "{bad}: {why}");
    }
}

#[test]
fn numbers_are_readable() {
    assert_eq!([bytes(0), bytes(1023), bytes(1024), bytes(100_000_000)], ["0 B", "1023 B", "1.0 KiB", "95.4 MiB"]);
    assert_eq!([count(0), count(999), count(1000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([of(1, "row"), of(2000, "row")], ["1 row", "2,000 rows"]);
}
