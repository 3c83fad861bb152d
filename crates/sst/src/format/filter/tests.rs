//! No hash that was put in is ever denied, others hardly ever match, and bytes of another shape are refused.

use super::*;
use rand::{RngExt, SeedableRng, rngs::StdRng};

fn built(kind: FilterKind, hashes: &[u64]) -> Vec<u8> {
    let mut page = Vec::new();
    build(kind, (7, hashes.len().max(1) as u32), &mut hashes.to_vec(), &mut page);
    assert_eq!(validate(&page), Ok(()));
    page
}

const KINDS: [FilterKind; 2] = [FilterKind::Bits8, FilterKind::Bits16];

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
    let more = [1000, 1009, 1010, 3361, 3362, 5000, 14_000];
    for count in counts.chain(more.into_iter().filter(|_| !cfg!(miri))) {
        let hashes: Vec<u64> = (0..count).map(|_| rng.random()).collect();
        for kind in KINDS {
            let page = built(kind, &hashes);
            let layout = FilterLayout::of(&page);
            assert_eq!((layout.first_row(), layout.rows()), (7, count.max(1)));
            assert_eq!(layout.fingerprint_bits() as usize, kind.fingerprint_bytes() * 8);
            assert!(hashes.iter().all(|&hash| layout.may_contain(&page, hash)), "{count} hashes, {kind:?}");
        }
    }
}

#[test]
fn hashes_that_are_equal_are_one() {
    for kind in KINDS {
        let page = built(kind, &[5; 1000]);
        assert!(page.len() < 100, "{} bytes", page.len());
        assert!(FilterLayout::of(&page).may_contain(&page, 5));
    }
}

#[test]
fn others_match_as_rarely_as_a_fingerprint_says() {
    let mut rng = StdRng::seed_from_u64(2);
    let (keys, looks) = if cfg!(miri) { (50, 500) } else { (10_000, 400_000) };
    let key = |i: u64| hash_key(format!("user {i:06}").as_bytes());
    for (kind, expected) in KINDS.into_iter().zip([256.0, 65_536.0]) {
        let page = built(kind, &(0..keys).map(key).collect::<Vec<_>>());
        let layout = FilterLayout::of(&page);
        let matched = (0..looks).filter(|i| layout.may_contain(&page, key(keys + i))).count() as f64;
        let expected = looks as f64 / expected;
        assert!(matched < expected + 5.0 * expected.sqrt() + 1.0, "{kind:?}: {matched} of {looks} keys match");
        let by_chance = (0..looks).filter(|_| layout.may_contain(&page, rng.random())).count() as f64;
        assert!(by_chance < expected + 5.0 * expected.sqrt() + 1.0, "{kind:?}: {by_chance} of {looks} hashes match");
    }
}

#[test]
fn a_partition_is_about_as_long_as_a_page() {
    for kind in KINDS {
        for page_bytes in [256, 1000, 4 << 10, 16 << 10, 64 << 10, 1 << 20] {
            let rows = partition_rows(kind, page_bytes);
            let target = page_bytes.min(MAX_PARTITION_BYTES) as usize;
            let bytes = FINGERPRINTS_AT + FilterShape::of(rows).places() * kind.fingerprint_bytes();
            assert!(bytes <= target && bytes * 10 >= target * 7, "{kind:?}: {rows} rows take {bytes} of {page_bytes}");
            let bits = bytes as f64 * 8.0 / f64::from(rows);
            println!("{kind:?}, pages of {page_bytes}: {rows} rows, {bits:.1} bits each");
        }
        assert_eq!(partition_rows(kind, 0), 1);
    }
    // What the decision reckons with.
    let rows = KINDS.map(|kind| partition_rows(kind, 16 << 10));
    assert_eq!(rows, [12_303, 5_999]);
}

#[test]
fn construction_succeeds_with_the_first_seeds() {
    let mut rng = StdRng::seed_from_u64(3);
    let sizes: &[usize] = if cfg!(miri) { &[1, 7] } else { &[1, 2, 3, 10, 50, 100, 500, 2000, 6000, 12_000] };
    for &count in sizes {
        let rounds = if count < 1000 { 200 } else { 20 };
        for _ in 0..rounds {
            let mut hashes: Vec<u64> = (0..count).map(|_| rng.random()).collect();
            hashes.sort_unstable();
            let shape = FilterShape::of(count as u32);
            let tries = (0..TRIES).position(|i| peel(shape, mix(i), &hashes).is_some());
            assert!(tries.is_some_and(|tries| tries < 16), "{count} hashes: {tries:?} seeds in vain");
        }
    }
}

#[test]
fn without_a_filter_everything_may_be_there() {
    for kind in KINDS {
        let mut page = Vec::new();
        write(kind, (0, 3), None, &mut page);
        assert_eq!((validate(&page), page.len()), (Ok(()), FINGERPRINTS_AT));
        let layout = FilterLayout::of(&page);
        assert!((0..100).all(|hash| layout.may_contain(&page, mix(hash))));
        assert_eq!((layout.fingerprint_bits(), layout.fingerprints()), (0, 0));
    }
}

#[test]
fn bytes_of_another_shape_are_refused() {
    let page = built(FilterKind::Bits16, &[1, 2, 3]);
    for len in 0..page.len() {
        assert!(validate(&page[..len]).is_err());
    }
    // Whatever a head says, what passes can be asked.
    for at in FIRST_ROW_AT..FINGERPRINTS_AT {
        for bit in 0..8 {
            let mut changed = page.clone();
            changed[at] ^= 1 << bit;
            if validate(&changed).is_ok() {
                let layout = FilterLayout::of(&changed);
                let found = (0..100).filter(|hash| layout.may_contain(&changed, mix(*hash))).count();
                assert!(found <= 100);
            } else {
                assert!(!(SEED_AT..SHAPE_AT).contains(&at), "any seed will do");
            }
        }
    }
    let check = |at: usize, bytes: &[u8]| {
        let mut changed = page.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        validate(&changed).expect_err("it is refused")
    };
    assert_eq!(check(ROWS_AT, &[0; 4]), "a filter of 0 rows from 7");
    assert_eq!(check(FIRST_ROW_AT, &[0xff; 8]), "a filter of 3 rows from 18446744073709551615");
    assert_eq!(check(SHAPE_AT, &[19]), "a filter of unknown shape [19, 2, 0, 0, 0, 0, 0, 0]");
    assert_eq!(check(SHAPE_AT + 1, &[0]), "a filter of 1 segments has fingerprints of 0 bytes");
    assert_eq!(check(SEGMENTS_AT, &[0; 4]), "a filter of 0 segments has fingerprints of 2 bytes");
    assert_eq!(check(SEGMENTS_AT, &[2]), format!("a filter of {} bytes in {}", page.len() + 16, page.len()));
}
