//! A filter that `validate` accepts can be asked about any hash, and a filter that was built denies no key that was
//! added to it.
#![no_main]

use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use sst::FilterKind;
use sst::format::PageRows;
use sst::format::filter::{FilterForm, FilterLayout, build, hash_key, hash_prefix, validate};

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let page = match input.byte() {
        0 => input.rest().to_vec(),
        kind => {
            let mut page = if kind < 128 { built(&mut input) } else { fuse(&mut input) };
            input.change(&mut page, 8);
            page
        }
    };
    if validate(&page).is_ok() {
        read(&page);
    }
});

fn built(input: &mut Input<'_>) -> Vec<u8> {
    let kind = input.choose(&[FilterKind::Bits12, FilterKind::Bits20]);
    let keys: Vec<Vec<u8>> = (0..1 + input.below(300)).map(|_| input.key()).collect();
    let hashes: Vec<u64> = keys.iter().flat_map(|key| [hash_key(key), hash_prefix(&key[..key.len() / 2])]).collect();
    let mut page = Vec::new();
    let rows = (input.number() / 2, keys.len() as u32);
    build(kind, rows, &hashes, &mut page);
    assert_eq!(validate(&page), Ok(()), "a filter we built");
    let layout = FilterLayout::of(&page);
    assert_eq!((layout.first_row(), layout.rows()), (rows.0, keys.len()));
    assert!(hashes.iter().all(|&hash| FilterForm::Blocks.may_contain(&page, hash)), "a hash that went in is denied");
    page
}

/// Makes a filter of the form that release 0.1 wrote, with arbitrary fingerprints.
fn fuse(input: &mut Input<'_>) -> Vec<u8> {
    let (segments, bits, bytes) = (1 + input.below(9) as u32, input.below(6), 1 + input.below(2));
    let mut page = vec![0; 24];
    page.extend_from_slice(&1_u32.to_le_bytes());
    page.extend_from_slice(&segments.to_le_bytes());
    page.extend_from_slice(&input.number().to_le_bytes());
    page.extend_from_slice(&[bits as u8, bytes as u8, 0, 0, 0, 0, 0, 0]);
    let places = (segments as usize + 2) << bits;
    page.extend((0..places * bytes).map(|_| input.byte()));
    assert_eq!(validate(&page), Ok(()), "a filter of fingerprints");
    page
}

fn read(page: &[u8]) {
    let layout = FilterLayout::of(page);
    assert!(layout.rows() > 0 && layout.first_row().checked_add(layout.rows() as u64).is_some());
    for hash in (0..64).map(|bit| 1_u64 << bit).chain([0, u64::MAX]) {
        for form in [FilterForm::Blocks, FilterForm::Fuse] {
            form.may_contain(page, hash);
            form.may_contain(page, hash_key(&hash.to_le_bytes()));
        }
    }
}
