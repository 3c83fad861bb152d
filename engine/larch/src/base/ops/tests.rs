//! Tests that a batch has the bytes of the format page, that no bytes make it panic, and that the order of its ops
//! still matters when all of them get the same version.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::base::operand::MergeOp;
use crate::base::record::tests::seeds;

fn decode(bytes: &[u8], count: u32) -> Result<BatchOps, OpsError> {
    let mut ops = BatchOps::new();
    ops.decode(bytes, count).map(|()| ops)
}

#[test]
fn ops_have_the_bytes_of_the_format_page() {
    let mut ops = BatchOps::new();
    ops.put(1, b"k", b"vw");
    ops.erase(0x0203, b"");
    ops.range_erase(1, b"a", b"");
    let long = [7; 300];
    ops.put(1, &long, b"");
    let mut golden = Vec::new();
    golden.extend_from_slice(b"\x00\x01\x00\x00\x00\x01k\x02vw");
    golden.extend_from_slice(b"\x01\x03\x02\x00\x00\x00");
    golden.extend_from_slice(b"\x03\x01\x00\x00\x00\x01a\x00");
    golden.extend_from_slice(b"\x00\x01\x00\x00\x00\xac\x02");
    golden.extend_from_slice(&long);
    golden.push(0);
    assert_eq!(ops.bytes(), golden);
    assert_eq!(ops.count(), 4);
    let expected = [
        (1, Op::Put { key: b"k", value: b"vw", until: None }),
        (0x0203, Op::Erase { key: b"" }),
        (1, Op::RangeErase { start: b"a", end: b"" }),
        (1, Op::Put { key: &long, value: b"", until: None }),
    ];
    assert_eq!(ops.iter().collect::<Vec<_>>(), expected);
    assert_eq!(ops.iter().len(), 4);
    assert_eq!(decode(&golden, 4).expect("it is whole").iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_put_of_parts_is_a_put_of_their_encoding() {
    for sizes in [&[3][..], &[0, 0], &[1, 200, 0], &[127, 0, 128, 20_000]] {
        let parts: Vec<Vec<u8>> = sizes.iter().map(|&size| vec![b'p'; size]).collect();
        let mut value = Vec::new();
        parts::encode(&parts, &mut value);
        let (mut split, mut whole) = (BatchOps::new(), BatchOps::new());
        split.put_parts(1, b"k", &parts);
        whole.put(1, b"k", &value);
        assert_eq!((split.bytes(), split.count()), (whole.bytes(), 1), "{sizes:?}");
    }
}

#[test]
fn bytes_that_end_early_are_refused_with_the_place_of_the_op() {
    let mut ops = BatchOps::new();
    ops.put(1, b"key", &[5; 200]);
    let second = ops.bytes().len();
    ops.range_erase(2, b"a", b"b");
    for length in 0..ops.bytes().len() {
        let error = decode(&ops.bytes()[..length], 2).expect_err("it is cut");
        let expected = match length {
            0 => 0,
            length if length == second => second,
            length if length < second => 0,
            _ => second,
        };
        assert_eq!(error.at, expected, "length {length}: {error}");
    }
    assert!(decode(ops.bytes(), 2).is_ok());
    for count in [0, 1, 3] {
        assert!(decode(ops.bytes(), count).is_err());
    }
}

/// Checks that a batch refuses one op, made of `kind`, a table and `rest`, and that the error says `why`.
fn check_refused(kind: u8, rest: &[u8], why: &str) {
    let bytes = [&[kind, 1, 0, 0, 0], rest].concat();
    let mut ops = BatchOps::new();
    ops.put(1, b"old", b"");
    let error = ops.decode(&bytes, 1).expect_err("it is refused");
    assert_eq!(error.to_string(), format!("the op at byte 0 of the batch {why}"));
    assert!(ops.is_empty(), "nothing is left of what was there");
}

#[test]
fn bad_ops_are_refused_with_a_reason() {
    check_refused(2, b"\x01a\x02", "has an operand that ends after the batch");
    check_refused(2, b"\x01a\x01b", "has an operand that does not decode, or that only a newer release can read");
    check_refused(5, b"\x01a", "has an unknown kind");
    check_refused(4, b"\x01a\x01\x01\0\0\0\0\0\0\0", "has a value that ends after the batch");
    check_refused(4, b"\x01a\0\x01\0\0\0\0\0\0", "has a value that ends after the batch");
    check_refused(4, b"\x01a\0\0\0\0\0\0\0\0\0", "has a time of 0");
    check_refused(1, b"\x02a", "has a key that ends after the batch");
    check_refused(1, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a", "has a key that ends after the batch");
    check_refused(1, b"\x80\x80\x80\x80\x80\x00", "has a key that ends after the batch");
    check_refused(1, b"\xff\xff\xff\xff\x7fa", "has a key that ends after the batch");
    check_refused(0, b"\x01a\x01", "has a value that ends after the batch");
    let long = [&b"\x80\x80\x40"[..], &vec![b'k'; 1 << 20]].concat();
    check_refused(1, &long, "has a key that is too long");
    check_refused(3, b"\x01a\x80", "has a range end that ends after the batch");
}

#[test]
fn a_put_with_a_time_has_the_bytes_of_the_format_alone_and_in_a_batch() {
    let until = Some(Until::from_millis(0x0102_0304));
    let mut ops = BatchOps::new();
    ops.put_until(7, b"k", b"vw", until);
    ops.put_until(7, b"k", b"vw", None);
    ops.put_parts_until(7, b"k", &[b"v", b"w"], until);
    let with_time = b"\x04\x07\0\0\0\x01k\x02\x04\x03\x02\x01\0\0\0\0vw";
    let in_parts = b"\x04\x07\0\0\0\x01k\x03\x04\x03\x02\x01\0\0\0\0\x01vw";
    assert_eq!(ops.bytes(), [&with_time[..], b"\0\x07\0\0\0\x01k\x02vw", in_parts].concat());
    let put = Op::Put { key: b"k", value: b"vw", until };
    assert_eq!(EncodedOp::new(7, put).parts().concat(), with_time);
    assert_eq!(CommitOps::One(7, put).encoded_bytes(), with_time.len());
    let decoded = decode(ops.bytes(), 3).expect("it was encoded");
    let expected = [(7, put), (7, Op::Put { key: b"k", value: b"vw", until: None })];
    assert_eq!(decoded.iter().take(2).collect::<Vec<_>>(), expected);
    assert!(matches!(decoded.iter().last(), Some((7, Op::Put { value: b"\x01vw", until: Some(_), .. }))));
}

#[test]
fn random_bytes_never_panic() {
    for seed in seeds(2000) {
        let mut random = StdRng::seed_from_u64(seed);
        let length = random.random_range(0..40);
        let bytes: Vec<u8> =
            (0..length).map(|_| if random.random() { random.random_range(0..6) } else { random.random() }).collect();
        for count in 0..4 {
            if let Ok(ops) = decode(&bytes, count) {
                assert_eq!(ops.iter().count(), count as usize, "seed {seed}");
            }
        }
    }
}

/// The rows left of `before` after applying the ops one after the other.
fn in_order(ops: &BatchOps, before: &BTreeMap<(u32, Vec<u8>), Vec<u8>>) -> BTreeMap<(u32, Vec<u8>), Vec<u8>> {
    let mut rows = before.clone();
    for (table, op) in ops {
        match op {
            Op::Put { key, value, .. } => {
                rows.insert((table, key.to_vec()), value.to_vec());
            }
            Op::Merge { key, operand } => {
                let row = rows.entry((table, key.to_vec())).or_default();
                operand::describe(operand, |op| match op {
                    MergeOp::Append(bytes) => row.extend_from_slice(bytes),
                    op => panic!("{op:?} is not tried"),
                });
            }
            Op::Erase { key } => {
                rows.remove(&(table, key.to_vec()));
            }
            Op::RangeErase { start, end } => {
                rows.retain(|(in_table, key), _| {
                    *in_table != table || key.as_slice() < start || (!end.is_empty() && key.as_slice() >= end)
                });
            }
        }
    }
    rows
}

/// The rows left of `before` if all ops have the same version. The last put or erase of a key then wins over every
/// range erase.
fn at_one_version(ops: &BatchOps, before: &BTreeMap<(u32, Vec<u8>), Vec<u8>>) -> BTreeMap<(u32, Vec<u8>), Vec<u8>> {
    let mut ranges_first = BatchOps::new();
    for (table, op) in ops {
        if let Op::RangeErase { start, end } = op {
            ranges_first.range_erase(table, start, end);
        }
    }
    for (table, op) in ops {
        match op {
            Op::Put { key, value, until } => ranges_first.put_until(table, key, value, until),
            Op::Merge { key, operand } => ranges_first.merge(table, key, operand),
            Op::Erase { key } => ranges_first.erase(table, key),
            Op::RangeErase { .. } => {}
        }
    }
    in_order(&ranges_first, before)
}

fn random_key(random: &mut StdRng) -> Vec<u8> {
    let length = random.random_range(0..3);
    (0..length).map(|_| random.random_range(b'a'..b'e')).collect()
}

#[test]
fn a_resolved_batch_means_the_same_at_one_version() {
    for seed in seeds(3000) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut before = BTreeMap::new();
        for table in 0..3 {
            for _ in 0..10 {
                before.insert((table, random_key(&mut random)), vec![255]);
            }
        }
        let mut ops = BatchOps::new();
        for index in 0..random.random_range(0..14u8) {
            let (table, key) = (random.random_range(0..3), random_key(&mut random));
            match random.random_range(0..5) {
                0 | 1 => ops.put(table, &key, &[index]),
                2 => ops.erase(table, &key),
                3 => ops.merge(table, &key, &MergeOp::Append(&[index]).encode()),
                _ => ops.range_erase(table, &key, &random_key(&mut random)),
            }
        }
        let expected = in_order(&ops, &before);
        let unresolved = ops.clone();
        ops.resolve();
        assert!(ops.is_resolved());
        assert_eq!(at_one_version(&ops, &before), expected, "seed {seed}: {:?}", unresolved.iter().collect::<Vec<_>>());
        assert_eq!(in_order(&ops, &before), expected, "seed {seed}");
        assert_eq!(ops.iter().count(), ops.count() as usize, "seed {seed}");
        assert!(decode(ops.bytes(), ops.count()).is_ok(), "seed {seed}");
    }
}

#[test]
fn only_a_range_erase_after_other_ops_needs_resolving() {
    let mut ops = BatchOps::new();
    ops.range_erase(1, b"a", b"c");
    ops.put(1, b"b", b"new");
    ops.erase(1, b"c");
    assert!(ops.is_resolved());
    ops.range_erase(1, b"b", b"");
    assert!(!ops.is_resolved());
    ops.put(1, b"c", b"newer");
    ops.resolve();
    let expected = [
        (1, Op::RangeErase { start: b"a", end: b"c" }),
        (1, Op::RangeErase { start: b"b", end: b"" }),
        (1, Op::Put { key: b"c", value: b"newer", until: None }),
    ];
    assert_eq!(ops.iter().collect::<Vec<_>>(), expected);
    ops.clear();
    assert!(ops.is_empty() && ops.bytes().is_empty() && ops.is_resolved());
}

#[test]
fn a_single_op_has_the_bytes_of_a_batch_of_one() {
    for (key_bytes, more_bytes) in
        [0, 1, 127, 128, 300, 16_384].iter().flat_map(|&a| [0, 5, 128, 70_000].map(|b| (a, b)))
    {
        let (key, more) = (vec![b'k'; key_bytes], vec![b'v'; more_bytes]);
        let put = Op::Put { key: &key, value: &more, until: None };
        for op in [put, Op::Erase { key: &key }, Op::RangeErase { start: &key, end: &more }] {
            let mut batch = BatchOps::new();
            batch.push(70_000, op);
            let one = CommitOps::One(70_000, op);
            assert_eq!(EncodedOp::new(70_000, op).parts().concat(), batch.bytes());
            assert_eq!(one.encoded_bytes(), batch.bytes().len());
            assert!(one.iter().eq(batch.iter()) && one.count() == batch.count());
            assert_eq!(one.is_erases_only(), batch.is_erases_only());
        }
    }
}
