//! A filter that passes the check can be asked about anything, and one that was built denies nothing that went in.
#![no_main]

use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use sst::FilterKind;
use sst::format::PageRows;
use sst::format::filter::{FilterLayout, build, hash_key, hash_prefix, validate};

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let page = if input.byte() == 0 {
        input.rest().to_vec()
    } else {
        let mut page = built(&mut input);
        input.change(&mut page, 8);
        page
    };
    if validate(&page).is_ok() {
        read(&page);
    }
});

fn built(input: &mut Input<'_>) -> Vec<u8> {
    let kind = input.choose(&[FilterKind::Bits8, FilterKind::Bits16]);
    let keys: Vec<Vec<u8>> = (0..1 + input.below(300)).map(|_| input.key()).collect();
    let hashes: Vec<u64> = keys.iter().flat_map(|key| [hash_key(key), hash_prefix(&key[..key.len() / 2])]).collect();
    let mut page = Vec::new();
    let rows = (input.number() / 2, keys.len() as u32);
    build(kind, rows, &mut hashes.clone(), &mut page);
    assert_eq!(validate(&page), Ok(()), "a filter we built");
    let layout = FilterLayout::of(&page);
    assert_eq!((layout.first_row(), layout.rows()), (rows.0, keys.len()));
    assert!(hashes.iter().all(|&hash| layout.may_contain(&page, hash)), "a hash that went in is denied");
    page
}

fn read(page: &[u8]) {
    let layout = FilterLayout::of(page);
    assert!(layout.rows() > 0 && layout.first_row().checked_add(layout.rows() as u64).is_some());
    for hash in (0..64).map(|bit| 1_u64 << bit).chain([0, u64::MAX]) {
        layout.may_contain(page, hash);
        layout.may_contain(page, hash_key(&hash.to_le_bytes()));
    }
}
