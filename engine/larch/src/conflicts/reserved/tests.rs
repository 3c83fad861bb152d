//! Tests which transaction has which key.

use super::*;

const TABLE: TableId = TableId(1);

fn reserve(reserved: &Reserved, reservation: &mut Reservation, keys: &[&str]) {
    for key in keys {
        reserved.reserve(reservation, &reserved.hashes([(TABLE, key.as_bytes())].into_iter()), None);
    }
}

#[test]
fn a_key_has_one_holder_until_it_is_freed() {
    let reserved = Reserved::default();
    let (mut first, mut second) = (Reservation::default(), Reservation::default());
    reserve(&reserved, &mut first, &["a", "b", "a"]);
    reserve(&reserved, &mut second, &["b", "c"]);
    assert_eq!((first.keys.len(), second.keys.len(), reserved.count()), (2, 1, 3));
    reserve(&reserved, &mut first, &["a", "d"]);
    assert_eq!((first.keys.len(), reserved.count()), (3, 4), "what it has it does not take twice");
    reserved.free(&mut first);
    assert_eq!(reserved.count(), 1);
    reserve(&reserved, &mut second, &["b"]);
    reserved.free(&mut second);
    reserved.free(&mut second);
    assert_eq!(reserved.count(), 0);
}

#[test]
fn without_a_clock_keys_are_taken_in_one_order_up_to_one_that_is_not_free() {
    let reserved = Reserved::default();
    let keys: Vec<String> = (0..10).map(|key| key.to_string()).collect();
    let hashes = reserved.hashes(keys.iter().map(|key| (TABLE, key.as_bytes())));
    let (mut first, mut second) = (Reservation::default(), Reservation::default());
    assert!(reserved.reserve(&mut first, &hashes[4..5], None));
    assert!(!reserved.reserve(&mut second, &hashes, None));
    assert_eq!(second.keys, hashes[..4]);
    let is_reserved = |hashes| reserved.is_reserved(hashes, &second, Duration::ZERO);
    assert!(is_reserved(&hashes[4..]) && !is_reserved(&hashes[..4]));
    reserved.free(&mut first);
    assert!(reserved.reserve(&mut second, &hashes, None));
    assert_eq!(second.keys, hashes);
}

#[test]
fn a_transaction_reserves_a_limited_number_of_keys() {
    let (reserved, mut reservation) = (Reserved::default(), Reservation::default());
    let keys: Vec<String> = (0..MOST_KEYS + 10).map(|i| i.to_string()).collect();
    reserve(&reserved, &mut reservation, &keys.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(reserved.count(), MOST_KEYS);
    reserved.free(&mut reservation);
    assert_eq!(reserved.count(), 0);
}
