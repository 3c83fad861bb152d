use super::*;

fn wide(hash: u64, groups: u64) -> Vec<u8> {
    let mut key = Vec::new();
    Widening::new(groups).widen(format!("user{hash:020}").as_bytes(), &mut key);
    key
}

#[test]
fn wide_keys_have_the_order_of_narrow_ones() {
    let mut hash = 1_u64;
    let mut hashes: Vec<u64> = (0..1000)
        .map(|_| {
            hash = row_access::batch::mixed(hash);
            hash >> 1
        })
        .collect();
    hashes.extend([0, (1 << 63) - 1]);
    hashes.sort_unstable();
    let keys: Vec<Vec<u8>> = hashes.iter().map(|hash| wide(*hash, 7)).collect();
    assert!(keys.is_sorted());
    assert!(keys.iter().all(|key| key.len() == KEY_BYTES));
}

#[test]
fn neighbours_share_the_filler_and_groups_do_not() {
    let group = (1 << 63) / 4 + 1;
    let [first, second, other] = [5, 6, group + 5].map(|hash| wide(hash, 4));
    let shared = |one: &[u8], two: &[u8]| one.iter().zip(two).take_while(|(one, two)| one == two).count();
    assert!(shared(&first, &second) > 8 + FILLER_BYTES);
    assert!(shared(&first, &other) < 8);
}
