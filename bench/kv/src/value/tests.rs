use super::*;

#[test]
fn a_value_of_any_length_is_checked_and_belongs_to_one_row() {
    for size in (1..200).chain([4096, 100_000]) {
        for (pk, ck) in [(0, 0), (1, 2), (-7, i64::MIN), (3 << 32 | 1, -1_700_000_000_000_000_000)] {
            let mut value = Vec::new();
            put(Filler::Checked, pk, ck, size, &mut value);
            assert_eq!(value.len(), size);
            assert_eq!(check(pk, ck, &value), Ok(()), "{size} bytes");
            // A value of one byte has room only for its length, so it cannot show a wrong key.
            if size >= 9 {
                assert!(check(pk + 1, ck, &value).is_err() && check(pk, ck ^ 1, &value).is_err(), "{size} bytes");
            }
            for at in [0, size / 2, size - 1] {
                let mut wrong = value.clone();
                wrong[at] ^= 0x40;
                assert!(check(pk, ck, &wrong).is_err(), "byte {at} of {size}");
            }
            let short = &value[..size - 1];
            assert!(size == 1 || check(pk, ck, short).is_err(), "{size} bytes less one");
        }
    }
}

#[test]
fn the_header_is_that_of_scylla_bench() {
    let mut value = Vec::new();
    put(Filler::Checked, 0x0102, 3, 57, &mut value);
    assert_eq!(value[..8], [57, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(value[8..16], [2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(value[16..24], [3, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(crc_fast::crc32_iscsi(&value[24..53]).to_le_bytes(), value[53..]);
    let mut short = Vec::new();
    put(Filler::Checked, 5, 6, 12, &mut short);
    assert_eq!(short, [12, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn values_that_are_not_checked_have_their_length_too() {
    for size in [1, 7, 8, 9, 1000] {
        let (mut random, mut zeros) = (Vec::new(), Vec::new());
        put(Filler::Random, 1, 2, size, &mut random);
        put(Filler::Zeros, 1, 2, size, &mut zeros);
        assert_eq!((random.len(), zeros), (size, vec![0; size]));
        assert!(size < 8 || random.iter().any(|byte| *byte != 0), "{random:?}");
    }
}

#[test]
fn sizes_are_written_as_scylla_bench_writes_them() {
    assert_eq!(RowSize::parse("4"), Ok(RowSize::Fixed(4)));
    assert_eq!(RowSize::parse("fixed:51200"), Ok(RowSize::Fixed(51_200)));
    assert_eq!(RowSize::parse("uniform:10..20"), Ok(RowSize::Uniform(10, 20)));
    for bad in ["0", "", "-1", "uniform:5", "uniform:9..5", "fixed:x", "normal:1..2"] {
        assert!(RowSize::parse(bad).is_err(), "{bad}");
    }
    let mut random = Random::of_client(1, 1);
    let drawn: Vec<usize> = (0..1000).map(|_| RowSize::Uniform(10, 12).draw(&mut random)).collect();
    assert!(drawn.iter().all(|size| (10..=12).contains(size)) && (10..=12).all(|size| drawn.contains(&size)));
}
