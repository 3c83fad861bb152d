use super::*;
use crate::rows::{mix, random};
use std::collections::BTreeMap;

const PAGE_BYTES: usize = 4096;

/// Random rows that fit a page, with random lengths and common prefixes.
fn rows(seed: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rows = BTreeMap::new();
    let mut bytes = SLOTS_AT;
    for i in 0.. {
        let mut key = b"common/"[..random(seed, i * 3, 8) as usize].to_vec();
        key.extend_from_slice(&mix(seed ^ i).to_be_bytes()[..random(seed, i * 3 + 1, 9) as usize]);
        let value = vec![i as u8; random(seed, i * 3 + 2, 200) as usize];
        bytes += 2 + RECORD_HEAD_BYTES + key.len() + value.len();
        if bytes > PAGE_BYTES {
            break;
        }
        rows.entry(key).or_insert(value);
    }
    rows
}

#[test]
fn a_slot_page_finds_what_a_btree_map_finds() {
    for seed in 0..200 {
        let rows = rows(seed);
        let mut builder = SlotPageBuilder::<PAGE_BYTES>::new();
        for (key, value) in &rows {
            assert!(builder.add(key, value), "seed {seed}");
        }
        let page = builder.finish();
        let page = SlotPage(&page);
        assert_eq!(page.rows(), rows.len(), "seed {seed}");
        for (i, key) in rows.keys().enumerate() {
            assert_eq!((page.search(key), page.key(i)), (Ok(i), &key[..]), "seed {seed}");
            for absent in [[&key[..], b"\0"].concat(), key.split_last().map_or(Vec::new(), |(_, rest)| rest.to_vec())] {
                let position = rows.keys().filter(|key| **key < absent).count();
                let expected = if rows.contains_key(&absent) { Ok(position) } else { Err(position) };
                assert_eq!(page.search(&absent), expected, "seed {seed}, key {absent:?}");
            }
        }
    }
}

#[test]
fn a_row_that_does_not_fit_is_refused() {
    let mut builder = SlotPageBuilder::<PAGE_BYTES>::new();
    assert!(!builder.add(b"k", &[0; PAGE_BYTES]));
    // Fills the page but for one byte, counting its head, the slot and the record's head.
    assert!(builder.add(b"k", &[0; PAGE_BYTES - SLOTS_AT - 2 - RECORD_HEAD_BYTES - 1]));
    assert!(!builder.add(b"l", b""));
    assert_eq!(SlotPage(&builder.finish()).rows(), 1);
}
