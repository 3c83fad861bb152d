//! No hash that was put in is ever denied, other hashes hardly ever match, and bytes of another shape are refused.

use super::*;
use rand::{RngExt, SeedableRng, rngs::StdRng};

fn built(kind: FilterKind, hashes: &[u64]) -> Vec<u8> {
    let mut page = Vec::new();
    build(kind, (7, hashes.len().max(1) as u32), hashes, &mut page);
    assert_eq!(validate(&page), Ok(()));
    page
}

const KINDS: [FilterKind; 2] = [FilterKind::Bits12, FilterKind::Bits20];

fn may_contain(page: &[u8], hash: u64) -> bool {
    FilterForm::Blocks.may_contain(page, hash)
}

#[test]
fn hashes_are_what_the_format_says() {
    let hashes = [&b""[..], b"a", b"abcdefgh", b"abcdefghi", &[0xff; 20]].map(|key| [hash_key(key), hash_prefix(key)]);
    let expected: [[u64; 2]; 5] = [
        [0xda35_63d4_9912_e431, 0x7a00_e3a3_e49f_eaeb],
        [0x0d75_49d2_dd4d_e224, 0xcf8b_6387_4b90_dbab],
        [0x3480_588a_20a5_f41d, 0xe07e_1ea3_c55d_f9c0],
        [0x8502_21a8_5d22_84bc, 0xce13_d79c_d626_a9bc],
        [0x3cb4_cfce_cdae_811f, 0x1006_c381_0bcb_fb24],
    ];
    assert_eq!(hashes, expected);
}

#[test]
fn no_hash_that_was_put_in_is_denied() {
    let mut rng = StdRng::seed_from_u64(1);
    let counts = if cfg!(miri) { 0..20 } else { 0..300 };
    let more = [1000, 5000, 14_000];
    for count in counts.chain(more.into_iter().filter(|_| !cfg!(miri))) {
        let hashes: Vec<u64> = (0..count).map(|_| rng.random()).collect();
        for kind in KINDS {
            let page = built(kind, &hashes);
            let layout = FilterLayout::of(&page);
            assert_eq!((layout.first_row(), layout.rows()), (7, count.max(1)));
            assert_eq!(layout.form(), FilterForm::Blocks);
            assert_eq!(layout.shape(&page), format!("{} blocks", count.div_ceil(kind.block_keys()).max(1)));
            assert!(hashes.iter().all(|&hash| may_contain(&page, hash)), "{count} hashes, {kind:?}");
        }
    }
}

#[test]
fn others_match_as_rarely_as_a_kind_says() {
    let mut rng = StdRng::seed_from_u64(2);
    let (keys, looks) = if cfg!(miri) { (500, 500) } else { (10_000, 400_000) };
    let key = |i: u64| hash_key(format!("user {i:06}").as_bytes());
    for (kind, expected) in KINDS.into_iter().zip([256.0, 4_000.0]) {
        let page = built(kind, &(0..keys).map(key).collect::<Vec<_>>());
        let matched = (0..looks).filter(|i| may_contain(&page, key(keys + i))).count() as f64;
        let expected = looks as f64 / expected;
        assert!(matched < expected + 5.0 * expected.sqrt() + 1.0, "{kind:?}: {matched} of {looks} keys match");
        let by_chance = (0..looks).filter(|_| may_contain(&page, rng.random())).count() as f64;
        assert!(by_chance < expected + 5.0 * expected.sqrt() + 1.0, "{kind:?}: {by_chance} of {looks} hashes match");
        println!("{kind:?}: {matched} of {looks} other keys match");
    }
}

#[test]
fn a_partition_is_about_as_long_as_a_page() {
    for kind in KINDS {
        for page_bytes in [256, 1000, 4 << 10, 16 << 10, 64 << 10, 1 << 20] {
            let rows = partition_rows(kind, page_bytes);
            let target = page_bytes.min(MAX_PARTITION_BYTES) as usize;
            let bytes = built(kind, &vec![0; rows as usize]).len();
            assert!(bytes <= target && bytes * 10 >= target * 7, "{kind:?}: {rows} rows take {bytes} of {page_bytes}");
            let bits = bytes as f64 * 8.0 / f64::from(rows);
            println!("{kind:?}, pages of {page_bytes}: {rows} rows, {bits:.1} bits each");
        }
        assert_eq!(partition_rows(kind, 0), 1);
    }
    // The decision about filters is based on these numbers.
    let rows = KINDS.map(|kind| partition_rows(kind, 16 << 10));
    assert_eq!(rows, [10_710, 6_375]);
}

#[test]
fn bytes_of_another_shape_are_refused() {
    let page = built(FilterKind::Bits20, &[1, 2, 3]);
    for len in 0..page.len() {
        assert!(validate(&page[..len]).is_err());
    }
    // Whatever the head of a page says, if the page passes the check, a key can be looked up in it.
    for at in FIRST_ROW_AT..blocks::BLOCKS_AT {
        for bit in 0..8 {
            let mut changed = page.clone();
            changed[at] ^= 1 << bit;
            let is_rows = at < HEAD_BYTES;
            assert!(is_rows || validate(&changed).is_err(), "byte {at}");
        }
    }
    let check = |at: usize, bytes: &[u8]| {
        let mut changed = page.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        validate(&changed).expect_err("it is refused")
    };
    assert_eq!(check(ROWS_AT, &[0; 4]), "a filter of 0 rows from 7");
    assert_eq!(check(FIRST_ROW_AT, &[0xff; 8]), "a filter of 3 rows from 18446744073709551615");
    assert_eq!(check(HEAD_BYTES, &[2]), "a filter of 2 blocks in 128 bytes");
    assert_eq!(check(HEAD_BYTES, &[0]), "a filter of 0 blocks in 128 bytes");
    assert!(check(63, &[1]).starts_with("a filter of unknown shape"));
}

#[test]
fn a_page_of_another_form_can_be_asked() {
    let page = built(FilterKind::Bits12, &[1, 2, 3]);
    assert!((0..100).all(|hash| FilterForm::Fuse.may_contain(&page, hash)), "it denies nothing");
    for len in 48..page.len() {
        let found = (0..100_u64).filter(|hash| FilterForm::Blocks.may_contain(&page[..len], hash << 40)).count();
        assert_eq!(found, 100, "without a whole block it denies nothing");
    }
}
