//! Operations that decode keep their meaning when they are written again, and when their batch is resolved.
#![no_main]

use larch::MergeOp;
use larch::fuzz::{BatchOps, Op, encoded};
use larch_fuzz::Input;
use libfuzzer_sys::fuzz_target;
use sst::Until;
use std::collections::BTreeMap;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let count = input.byte();
    if count < 0x80 {
        let mut ops = BatchOps::new();
        let bytes = input.rest();
        match ops.decode(bytes, count.into()) {
            Ok(()) => {
                assert_eq!((ops.bytes(), ops.iter().count()), (bytes, usize::from(count)));
                let again = written(&ops);
                assert_eq!(state(&again), state(&ops));
                check_resolved(again);
            }
            Err(_) => assert!(ops.is_empty()),
        }
    } else {
        let mut ops = BatchOps::new();
        while !input.is_empty() {
            let (kind, table) = (input.byte(), u32::from(input.byte() % 2));
            match kind % 5 {
                0 => ops.put(table, &input.key(), input.bytes(8)),
                3 => {
                    let until = Some(Until::from_millis(input.number()));
                    ops.put_until(table, &input.key(), input.bytes(8), until);
                }
                4 => ops.merge(table, &input.key(), &encoded(&MergeOp::Append(input.bytes(8)))),
                1 => ops.erase(table, &input.key()),
                _ => ops.range_erase(table, &input.key(), &input.key()),
            }
        }
        let mut again = BatchOps::new();
        assert_eq!(again.decode(ops.bytes(), ops.count()), Ok(()));
        assert!(again.iter().eq(ops.iter()));
        assert!(again.decode(ops.bytes(), ops.count() + 1).is_err() && again.is_empty());
        check_resolved(ops);
    }
});

/// Writes the operations one by one into a new batch.
fn written(ops: &BatchOps) -> BatchOps {
    let mut again = BatchOps::new();
    for (table, op) in ops {
        match op {
            Op::Put { key, value, until } => again.put_until(table, key, value, until),
            Op::Merge { key, operand } => again.merge(table, key, operand),
            Op::Erase { key } => again.erase(table, key),
            Op::RangeErase { start, end } => again.range_erase(table, start, end),
        }
    }
    again
}

/// At one version, a row that was put is seen even if a range erase covers it, wherever the two operations are in
/// the batch. So after `resolve`, readers that follow this rule must see the same rows as if the operations were
/// applied in their order.
fn check_resolved(mut ops: BatchOps) {
    let expected = state(&ops);
    ops.resolve();
    assert!(ops.is_resolved());
    assert_eq!(ops.iter().count(), ops.count() as usize);
    assert_eq!(state(&ops), expected);
    let is_range = |op: &Op<'_>| matches!(op, Op::RangeErase { .. });
    let mut ranges_first: Vec<_> = ops.iter().collect();
    ranges_first.sort_by_key(|(_, op)| !is_range(op));
    assert_eq!(state_of(ranges_first.into_iter()), expected);
}

/// Returns the rows that a database has after `ops`, if it was empty before.
fn state(ops: &BatchOps) -> BTreeMap<(u32, Vec<u8>), Vec<u8>> {
    state_of(ops.iter())
}

fn state_of<'a>(ops: impl Iterator<Item = (u32, Op<'a>)>) -> BTreeMap<(u32, Vec<u8>), Vec<u8>> {
    let mut state = BTreeMap::new();
    for (table, op) in ops {
        match op {
            Op::Put { key, value, .. } => drop(state.insert((table, key.to_vec()), value.to_vec())),
            // Only the order and the bytes of operands matter here, so they are strung together.
            Op::Merge { key, operand } => {
                state.entry((table, key.to_vec())).or_insert_with(Vec::new).extend_from_slice(operand);
            }
            Op::Erase { key } => drop(state.remove(&(table, key.to_vec()))),
            Op::RangeErase { start, end } => {
                state.retain(|(of, key), _| *of != table || &**key < start || (!end.is_empty() && &**key >= end));
            }
        }
    }
    state
}
