//! A group page gives back the parts that were put in, is as long as was predicted, and notices damage.

use super::*;
use rand::{RngExt, SeedableRng, rngs::StdRng};

fn reference(bytes: u64) -> Vec<u8> {
    let mut out = Vec::new();
    OutsideValue::encode(&mut out, bytes, &[pages::Address { offset: 64, bytes: 64, crc: 1 }]);
    out
}

#[test]
fn parts_come_back_and_the_length_was_foretold() {
    let mut rng = StdRng::seed_from_u64(5);
    for case in 0..300 {
        let rows = rng.random_range(1..40);
        let longest = [0, 3, 300, 4000][case % 4];
        let mut builder = GroupPageBuilder::default();
        let mut first = 0;
        for _ in 0..2 {
            let mut expected = Vec::new();
            let mut foretold = 0;
            for _ in 0..rows {
                let outside = case % 3 == 0 && rng.random_bool(0.3);
                let len = rng.random_range(0..=longest);
                let part = if outside { reference(9) } else { (0..len).map(|_| rng.random()).collect() };
                foretold = builder.bytes_with(part.len(), outside);
                builder.add(&part, outside);
                expected.push((part, outside));
            }
            let mut page = Vec::new();
            builder.finish(&mut page);
            assert_eq!(page.len(), foretold);
            assert_eq!(validate(&page), Ok(()));
            let layout = GroupLayout::of(&page);
            assert_eq!((layout.rows(), layout.first_row()), (rows, first));
            for (i, (part, outside)) in expected.iter().enumerate() {
                let found = layout.part(&page, i);
                assert_eq!((&page[found.at..found.at + found.bytes], found.outside), (part.as_slice(), *outside));
            }
            first += rows as u64;
        }
    }
}

#[test]
fn a_damaged_page_is_refused_or_can_be_read_without_leaving_it() {
    let mut builder = GroupPageBuilder::default();
    for i in 0..11 {
        let outside = i == 4;
        builder.add(&if outside { reference(3) } else { vec![b'p'; i] }, outside);
    }
    let mut page = Vec::new();
    builder.finish(&mut page);
    for at in HEADER_BYTES..page.len() {
        for bit in 0..8 {
            let mut bad = page.clone();
            bad[at] ^= 1 << bit;
            if validate(&bad).is_ok() {
                let layout = GroupLayout::of(&bad);
                for i in 0..layout.rows() {
                    let part = layout.part(&bad, i);
                    assert!(part.at + part.bytes <= bad.len());
                }
            }
        }
    }
    for len in 0..page.len() {
        assert!(validate(&page[..len]).is_err(), "cut to {len} bytes");
    }
}
