//! Tests of merges in a memtable.

use super::*;
use crate::base::operand::MergeOp;
use crate::base::record::tests::seeds;
use os::sync::Arc;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn none() -> MergeFunctions {
    MergeFunctions::default()
}

fn merge(memtable: &Memtable, version: u64, op: MergeOp<'_>) {
    memtable.batch().merge(b"k", Version(version), &op.encode(), &none());
}

/// The value at `at`, if the memtable alone gives one after a value `before`.
fn value(memtable: &Memtable, at: u64, before: Option<&[u8]>) -> Vec<u8> {
    let mut collected = Collected::default();
    if memtable.collect(b"k", Version(at), &mut collected).1 {
        match before {
            Some(value) => collected.end_with(value, None),
            None => collected.end(),
        }
    }
    collected.value(b"k", &none(), 0).expect("it can be computed")
}

fn kind(memtable: &Memtable, at: u64) -> RowKind {
    memtable.get(b"k", Version(at)).expect("it is there").kind()
}

#[test]
fn a_short_value_below_makes_a_merge_a_put() {
    let memtable = Memtable::new();
    memtable.apply(b"k", Version(1), RowKind::Put, b"a");
    merge(&memtable, 2, MergeOp::Append(b"b"));
    merge(&memtable, 3, MergeOp::Append(b"c"));
    assert_eq!((kind(&memtable, 2), kind(&memtable, 3)), (RowKind::Put, RowKind::Put));
    assert_eq!((value(&memtable, 1, None), value(&memtable, 3, None)), (b"a".to_vec(), b"abc".to_vec()));
    memtable.apply(b"k", Version(4), RowKind::Erase, b"");
    merge(&memtable, 5, MergeOp::Append(b"d"));
    assert_eq!(value(&memtable, 9, Some(b"x")), b"d");
    memtable.remove_range(b"a", b"z", Version(6));
    merge(&memtable, 7, MergeOp::Append(b"e"));
    assert_eq!(value(&memtable, 9, Some(b"x")), b"e");
    assert_eq!(value(&memtable, 3, Some(b"x")), b"abc", "older versions stay as they were");
}

#[test]
fn without_a_value_below_merges_are_joined() {
    let memtable = Memtable::new();
    for version in 1..=1000 {
        merge(&memtable, version, MergeOp::Add(2));
    }
    assert_eq!(value(&memtable, 1000, Some(&5i64.to_le_bytes())), 2005i64.to_le_bytes());
    assert_eq!(value(&memtable, 10, None), 20i64.to_le_bytes());
    let row = memtable.get(b"k", Version(1000)).expect("it is there");
    assert_eq!(row.value().len(), MergeOp::Add(0).encode().len(), "one row says all");
}

#[test]
fn long_values_are_not_copied_with_each_merge() {
    let memtable = Memtable::new();
    let mut expected = vec![b'x'; 10_000];
    memtable.apply(b"k", Version(1), RowKind::Put, &expected);
    let before = memtable.bytes();
    for version in 2..3000 {
        merge(&memtable, version, MergeOp::Append(b"0123456789"));
        expected.extend_from_slice(b"0123456789");
        if version % 97 == 0 {
            assert_eq!(value(&memtable, version, None), expected);
        }
    }
    assert_eq!(value(&memtable, 5000, None), expected);
    assert_eq!(value(&memtable, 2, None).len(), 10_010);
    let each = (memtable.bytes() - before) / 2998;
    assert!(each < 300, "a merge of 10 bytes takes {each} bytes");
    // As many merges of one commit, without a value below them.
    let memtable = Memtable::new();
    let mut rows = memtable.batch();
    for _ in 0..3000 {
        rows.merge(b"k", Version(7), &MergeOp::Append(b"0123456789").encode(), &none());
    }
    assert_eq!(value(&memtable, 7, None), b"0123456789".repeat(3000));
    assert!(memtable.bytes() < 3000 * 300, "{} bytes", memtable.bytes());
}

#[test]
fn several_memtables_are_collected_down_to_the_first_that_decides() {
    let [old, new] = [Memtable::new(), Memtable::new()].map(Arc::new);
    old.apply(b"k", Version(1), RowKind::Put, b"a");
    merge(&old, 2, MergeOp::Append(b"b"));
    merge(&new, 5, MergeOp::Append(b"c"));
    let value = |at: u64| {
        let mut collected = Collected::default();
        let is_open = [&new, &old].into_iter().all(|one| one.collect(b"k", Version(at), &mut collected).1);
        (is_open, collected.value(b"k", &none(), 0))
    };
    assert_eq!(value(9), (false, Ok(b"abc".to_vec())));
    assert_eq!(value(4), (false, Ok(b"ab".to_vec())));
    new.remove_range(b"", b"", Version(6));
    merge(&new, 7, MergeOp::Append(b"d"));
    assert_eq!(value(9), (false, Ok(b"d".to_vec())));
    assert_eq!(value(5), (false, Ok(b"abc".to_vec())));
}

#[test]
fn a_short_merge_that_makes_a_long_value_takes_little_memory() {
    let memtable = Memtable::new();
    memtable.apply(b"k", Version(1), RowKind::Put, b"x");
    merge(&memtable, 2, MergeOp::set_bit(8_000_000));
    memtable.apply(b"k", Version(3), RowKind::Erase, b"");
    merge(&memtable, 4, MergeOp::set_bit(8_000_000));
    merge(&memtable, 5, MergeOp::set_bit(8_000_001));
    assert!(memtable.bytes() < 1000, "{} bytes", memtable.bytes());
    let (of_put, of_nothing) = (value(&memtable, 2, None), value(&memtable, 5, Some(b"y")));
    assert_eq!((of_put.len(), of_put[0], of_put[1_000_000]), (1_000_001, b'x', 1));
    assert_eq!((of_nothing.len(), of_nothing[0], of_nothing[1_000_000]), (1_000_001, 0, 3));
}

#[test]
fn merges_of_one_batch_find_the_rows_below_them_as_single_merges_do() {
    for seed in seeds(if cfg!(miri) { 2 } else { 200 }) {
        let mut random = StdRng::seed_from_u64(seed);
        let (together, alone) = (Memtable::new(), Memtable::new());
        for version in 1..random.random_range(2..30) {
            let mut rows = together.batch();
            for _ in 0..random.random_range(1..20) {
                let (key, version) = ([random.random_range(b'a'..b'h')], Version(version));
                match random.random_range(0..6) {
                    0 => [&mut rows, &mut alone.batch()].map(|rows| rows.apply(&key, version, RowKind::Put, &[1; 8])),
                    1 => [&mut rows, &mut alone.batch()].map(|rows| rows.apply(&key, version, RowKind::Erase, &[])),
                    _ => {
                        let operand = MergeOp::Add(random.random_range(-5..5)).encode();
                        [&mut rows, &mut alone.batch()].map(|rows| rows.merge(&key, version, &operand, &none()))
                    }
                };
            }
        }
        let all = |memtable: &Memtable| memtable.all_versions().map(|row| format!("{row:?}")).collect::<Vec<_>>();
        assert_eq!(all(&together), all(&alone), "seed {seed}");
        assert_eq!(together.rows(), alone.rows(), "seed {seed}");
    }
}
