use super::*;
use sst::SoughtKey;

fn hash(number: u64) -> u64 {
    SoughtKey::new(&number.to_be_bytes()).hash()
}

/// A filter with the keys `0..count`, for rows of `row_bytes` each.
fn filled(count: u64, row_bytes: u64) -> SetFilter {
    let filter = SetFilter::default();
    (0..count).for_each(|key| filter.note(hash(key), key * row_bytes));
    filter
}

#[test]
fn no_key_that_was_noted_is_denied() {
    let filter = filled(100_000, 200);
    assert!((0..100_000).all(|key| filter.may_have(hash(key))));
}

#[test]
fn most_other_keys_are_denied_whatever_the_size() {
    // Checks that the filter fails to deny at most `most` of ten thousand absent keys: first for rows with small
    // values, then for rows with hardly any.
    let check = |count: u64, row_bytes: u64, most: usize| {
        let filter = filled(count, row_bytes);
        let passed = (0..10_000).filter(|key| filter.may_have(hash(1 << 40 | key))).count();
        assert!(passed <= most, "{passed} of {count} rows of {row_bytes} bytes");
    };
    check(0, 100, 0);
    for count in [1, 100, 1_000, 10_000, 100_000, 400_000] {
        check(count, 160, 60);
        check(count, 64, 1_800);
    }
}

#[test]
fn it_takes_no_more_than_a_twelfth_of_the_rows_once_there_are_some() {
    for rows in [1_u64 << 16, 1 << 20, 1 << 23, 64 << 20, 1 << 30] {
        let filter = SetFilter::default();
        (0..=64).for_each(|step| filter.note(hash(step), rows / 64 * step));
        assert!(filter.bytes() <= rows / 12, "{} bytes for rows of {rows}", filter.bytes());
    }
    assert_eq!(filled(1, 100).bytes(), 64);
}

#[test]
fn tables_do_not_share_keys() {
    let filter = Arc::new(SetFilter::default());
    let [one, other] = [1, 2].map(|table| TableFilter::new(filter.clone(), TableId(table)));
    (0..1_000).for_each(|key| one.note(hash(key), 100 * key));
    assert!((0..1_000).all(|key| one.may_have(hash(key))));
    assert!((0..1_000).filter(|&key| other.may_have(hash(key))).count() <= 10);
}
