//! Data pages hold the rows that were added, find them, and refuse malformed bytes.

use super::*;
use crate::format::MAX_CHUNK_BYTES;
use pages::Address;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;

type Rows = BTreeMap<Vec<u8>, (u64, RowKind, bool, Vec<u8>)>;

fn build(rows: &Rows, first_row: u64) -> Vec<u8> {
    let mut builder = DataPageBuilder::new(first_row);
    let mut estimate = 0;
    for (key, (version, kind, history, value)) in rows {
        estimate = builder.bytes_with(key, Version(*version), value.len());
        builder.add(key, Version(*version), *kind, false, value);
        if *history {
            builder.mark_history();
        }
    }
    let mut page = Vec::new();
    builder.finish(&mut page);
    assert!(page.len() <= estimate, "the estimate {estimate} is never below the page's {}", page.len());
    assert_eq!(builder.next_row(), first_row + rows.len() as u64);
    page
}

fn random_rows(rng: &mut StdRng) -> Rows {
    let mut rows = Rows::new();
    let prefix: Vec<u8> = (0..rng.random_range(0..6)).map(|_| b'p').collect();
    for _ in 0..rng.random_range(1..60) {
        let mut key = prefix.clone();
        key.extend((0..rng.random_range(0..8)).map(|_| [0u8, 1, b'a', b'b', 0xff][rng.random_range(0..5)]));
        let value = vec![7; if rng.random_bool(0.02) { 40_000 } else { rng.random_range(0..30) }];
        let kind = if rng.random_bool(0.2) { RowKind::Erase } else { RowKind::Put };
        rows.insert(key, (rng.random::<u64>() >> rng.random_range(0..64), kind, rng.random_bool(0.2), value));
    }
    rows
}

#[test]
fn rows_come_back_and_every_key_is_found() {
    for seed in 0..400 {
        let mut rng = StdRng::seed_from_u64(seed);
        let rows = random_rows(&mut rng);
        let page = build(&rows, 1000);
        validate(&page).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let layout = Layout::of(&page);
        assert_eq!((layout.rows(), layout.first_row()), (rows.len(), 1000));
        let mut key = Vec::new();
        for (i, (expected, (version, kind, history, value))) in rows.iter().enumerate() {
            let record = layout.read_row(&page, i, &mut key);
            assert_eq!((&key, record.version.0, record.kind), (expected, *version, *kind), "seed {seed}");
            assert_eq!(record.has_history, *history);
            assert_eq!(&page[record.value_at..record.value_at + record.value_bytes], value);
            assert_eq!(layout.search(&page, expected), Ok(i), "seed {seed}");
        }
        for _ in 0..50 {
            let len = rng.random_range(0..10);
            let wanted: Vec<u8> = (0..len).map(|_| [0u8, 1, b'a', b'p', 0xff][rng.random_range(0..5)]).collect();
            let at = rows.range(..wanted.clone()).count();
            let expected = if rows.contains_key(&wanted) { Ok(at) } else { Err(at) };
            assert_eq!(layout.search(&page, &wanted), expected, "seed {seed} {wanted:?}");
        }
    }
}

#[test]
fn a_page_of_one_huge_key_has_a_prefix_within_its_field() {
    let rows = Rows::from([(vec![b'k'; MAX_KEY_BYTES], (5, RowKind::Put, false, vec![1]))]);
    let page = build(&rows, 0);
    validate(&page).expect("valid");
    assert_eq!(Layout::of(&page).search(&page, &vec![b'k'; MAX_KEY_BYTES]), Ok(0));
}

#[test]
fn malformed_pages_are_refused_and_never_panic() {
    for seed in 0..300 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut rows = random_rows(&mut rng);
        rows.retain(|_, row| row.3.len() < 100);
        rows.insert(vec![1], (1, RowKind::Put, false, vec![]));
        let mut page = build(&rows, 0);
        for cut in 0..page.len().min(200) {
            assert!(validate(&page[..cut]).is_err());
        }
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(HEADER_BYTES..page.len());
            page[at] = rng.random();
        }
        if validate(&page).is_ok() {
            let layout = Layout::of(&page);
            let mut key = Vec::new();
            for i in 0..layout.rows() {
                layout.read_row(&page, i, &mut key);
                assert_eq!(layout.search(&page, &key), Ok(i), "seed {seed}: what validates can be searched");
            }
        }
    }
}

/// Checks a page as [`validate`] does, but looks at every row as a whole. The head of the page must be valid.
fn look_at_every_row(page: &[u8]) -> Result<(), String> {
    let layout = Layout::of(page);
    let room = page.len() - layout.records_at;
    let offsets: Vec<usize> = (0..=layout.rows).map(|i| layout.offset(page, i)).collect();
    if offsets[0] != 0 || offsets[layout.rows] != room || !offsets.is_sorted_by(|a, b| a < b) {
        return Err("offsets".to_owned());
    }
    (0..layout.rows).try_for_each(|i| layout.validate_row(page, i))
}

#[test]
fn rows_that_are_passed_at_a_glance_are_sound() {
    let (mut sound, mut refused) = (0, 0);
    for seed in 0..3_000 {
        let mut rng = StdRng::seed_from_u64(seed);
        let versions = [1, 100, 1 << 20, 1 << 40][rng.random_range(0..4)];
        let len = rng.random_range(0..200);
        let mut rows = Rows::new();
        for _ in 0..rng.random_range(1..20) {
            let mut key = vec![b'k'; [2, len][rng.random_range(0..2)]];
            key.extend((0..rng.random_range(0..9)).map(|_| rng.random::<u8>()));
            let kind = [RowKind::Put, RowKind::Erase, RowKind::Merge][rng.random_range(0..3)];
            rows.insert(key, (rng.random_range(0..versions), kind, false, vec![7; rng.random_range(0..9)]));
        }
        let mut page = build(&rows, 0);
        assert_eq!((validate(&page), look_at_every_row(&page)), (Ok(()), Ok(())), "seed {seed}");
        for _ in 0..40 {
            let at = rng.random_range(HEADS_AT..page.len());
            let before = page[at];
            page[at] = if rng.random() { before ^ 1 << rng.random_range(0..8) } else { rng.random() };
            let careful = look_at_every_row(&page);
            assert_eq!(validate(&page).is_ok(), careful.is_ok(), "seed {seed}: {careful:?}");
            *(if careful.is_ok() { &mut sound } else { &mut refused }) += 1;
            page[at] = before;
        }
    }
    assert!(sound > 1_000 && refused > 1_000, "{sound} sound, {refused} refused");
}

#[test]
fn rows_beyond_the_last_row_id_are_refused() {
    let row = (1, RowKind::Put, false, vec![]);
    let mut page = build(&Rows::from([(vec![1], row.clone()), (vec![2], row)]), 0);
    let mut with_first_row = |row: u64| {
        page[HEADER_BYTES + 16..][..8].copy_from_slice(&row.to_le_bytes());
        validate(&page)
    };
    assert_eq!(with_first_row(u64::MAX - 2), Ok(()));
    let why = "2 rows from row 18446744073709551614 are beyond the last row there can be";
    assert_eq!(with_first_row(u64::MAX - 1), Err(why.to_owned()));
}

#[test]
fn references_are_to_values_that_a_file_can_hold() {
    let at = |offset: u64, bytes: u32| Address { offset, bytes, crc: 7 };
    let mebibyte = MAX_CHUNK_BYTES as u32 + 64;
    let check = |bytes: u64, chunks: &[Address]| {
        let mut reference = Vec::new();
        OutsideValue::encode(&mut reference, bytes, chunks);
        let mut page = DataPageBuilder::new(0);
        page.add(b"k", Version(1), RowKind::Put, true, &reference);
        let mut out = Vec::new();
        page.finish(&mut out);
        assert_eq!(validate(&out).is_ok(), OutsideValue::check(&reference).is_ok());
        OutsideValue::check(&reference).is_ok()
    };
    let two = [at(0, mebibyte), at(mebibyte.into(), 128)];
    assert!(check(1, &two[..1]) && check(1 << 20, &two[..1]) && check((1 << 20) + 1, &two));
    assert!(check(64 * 255, &[at(64, 64)]) && check((1 << 20) + 128 * 255, &two));
    // The length of each of these values does not fit its chunks. The value is longer than this number of chunks
    // or of stored bytes can hold, or it is too short to need them.
    assert!(!check((1 << 20) + 1, &two[..1]) && !check(64 * 255 + 1, &[at(64, 64)]));
    assert!(!check(u64::MAX, &two) && !check(0, &two[..1]) && !check(1, &two));
    // In these references, chunks are repeated, overlap, are out of order, lie where no chunk can lie, or have no
    // bytes.
    assert!(!check(9, &[two[0]; 2]) && !check(9, &[at(0, 128), at(64, 128)]) && !check(9, &[two[1], two[0]]));
    assert!(!check(9, &[at(u64::MAX - 63, 64)]) && !check(9, &[at(64, 0)]) && !check(0, &[]));
    let many = vec![two[0]; 400_000];
    let mut reference = Vec::new();
    OutsideValue::encode(&mut reference, 400_000 << 20, &many);
    assert!(OutsideValue::check(&reference).is_err());
}
