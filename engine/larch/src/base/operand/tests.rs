//! Tests of operands: joining, in any groups, changes nothing.

use super::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn value(before: Option<&[u8]>, ops: &[MergeOp<'_>]) -> std::result::Result<Vec<u8>, String> {
    let mut collected = Collected::default();
    for op in ops.iter().rev() {
        collected.add(op.encode().to_vec());
    }
    match before {
        Some(value) => collected.end_with(value, None),
        None => collected.end(),
    }
    collected.value(b"k", &functions(), 0)
}

fn functions() -> MergeFunctions {
    let mut functions = MergeFunctions::default();
    let twice = |_: &[u8], value: Option<&[u8]>, operand: &[u8]| match operand {
        b"no" => Err("it said no".to_owned()),
        operand => Ok([value.unwrap_or_default(), operand, operand].concat()),
    };
    functions.add("twice", Arc::new(twice));
    functions
}

#[test]
fn each_operator_does_what_it_says() {
    let number = |n: i64| n.to_le_bytes().to_vec();
    assert_eq!(value(None, &[MergeOp::Add(5), MergeOp::Add(-7)]), Ok(number(-2)));
    assert_eq!(value(Some(&number(i64::MAX)), &[MergeOp::Add(1)]), Ok(number(i64::MIN)));
    assert_eq!(value(None, &[MergeOp::Max(b"a")]), Ok(b"a".to_vec()));
    assert_eq!(value(Some(b"b"), &[MergeOp::Max(b"a"), MergeOp::Max(b"ba")]), Ok(b"ba".to_vec()));
    assert_eq!(value(Some(b"b"), &[MergeOp::Min(b"ba"), MergeOp::Min(b"a")]), Ok(b"a".to_vec()));
    assert_eq!(
        value(None, &[MergeOp::Append(b"a"), MergeOp::Append(b""), MergeOp::Append(b"bc")]),
        Ok(b"abc".to_vec())
    );
    assert_eq!(value(None, &[MergeOp::set_bit(0), MergeOp::set_bit(17)]), Ok(vec![1, 0, 2]));
    assert_eq!(value(Some(&[0xf0; 2]), &[MergeOp::Or { at: 1, bytes: &[1, 1] }]), Ok(vec![0xf0, 0xf1, 1]));
    let call = |operand| MergeOp::Call { function: "twice", operand };
    assert_eq!(value(Some(b"x"), &[call(b"y"), MergeOp::Append(b"z")]), Ok(b"xyyz".to_vec()));
}

#[test]
fn a_value_that_cannot_be_computed_says_why() {
    let why = value(Some(b"seven b"), &[MergeOp::Add(1)]).expect_err("it is no number");
    let expected = "its value has 7 bytes, and a number to add to has 8; put or erase the key";
    assert_eq!(why, format!("the merges of row k cannot be applied: {expected}"));
    let why = value(None, &[MergeOp::Call { function: "other", operand: b"" }]).expect_err("there is none");
    assert!(why.ends_with("the merge function other is not registered; register it at open"), "{why}");
    let why = value(None, &[MergeOp::Call { function: "twice", operand: b"no" }]).expect_err("it refuses");
    assert!(why.ends_with("it said no"), "{why}");
    // What was merged is still there, so that a program with the function can compute the value.
    let mut collected = Collected::default();
    collected.add(MergeOp::Call { function: "twice", operand: b"y" }.encode().to_vec());
    collected.end_with(b"x", None);
    let Merged::Operand(operand) = collected.finish(b"k", &MergeFunctions::default(), 0) else {
        panic!("it has no function")
    };
    assert!(is_complete(&operand));
    let mut value = None;
    assert_eq!(apply(&operand, &mut value, b"k", &functions(), 0), Ok(()));
    assert_eq!(value.as_deref(), Some(&b"xyy"[..]));
}

#[test]
fn operands_take_no_more_room_than_they_need() {
    let join = |ops: &[MergeOp<'_>]| {
        let mut joined = Joined::default();
        ops.iter().for_each(|op| joined.add(&op.encode(), b"k", &MergeFunctions::default()));
        joined.operand
    };
    assert_eq!(join(&[MergeOp::Add(3), MergeOp::Add(-1)].repeat(1000)), MergeOp::Add(2000).encode().to_vec());
    assert_eq!(join(&[MergeOp::Append(b"abc")].repeat(1000)), MergeOp::Append(&b"abc".repeat(1000)).encode().to_vec());
    let far = join(&[MergeOp::set_bit(1), MergeOp::set_bit(8_000_000)]);
    assert!(far.len() < 20, "no zeros between two bits: {} bytes", far.len());
    assert!(
        !is_valid(b"")
            && !is_valid(NO_VALUE)
            && !is_valid(&[NO_VALUE, NO_VALUE].concat())
            && !is_valid(&[99, 0])
            && !is_valid(&[ADD, 1, 0])
            && !is_valid(&[APPEND, 9])
    );
}

fn random_op(random: &mut StdRng) -> MergeOp<'static> {
    const BYTES: [&[u8]; 5] = [b"", b"a", b"bb", b"12345678", &[0x80; 30]];
    let bytes = BYTES[random.random_range(0..BYTES.len())];
    match random.random_range(0..7) {
        0 => MergeOp::Add(random.random()),
        1 => MergeOp::Max(bytes),
        2 => MergeOp::Min(bytes),
        3 => MergeOp::Append(bytes),
        4 => MergeOp::Or { at: random.random_range(0..9), bytes },
        5 => MergeOp::set_bit(random.random_range(0..90)),
        _ => MergeOp::Call { function: "twice", operand: bytes },
    }
}

#[test]
fn joined_in_any_groups_they_give_the_same_value() {
    for seed in 0..2000 {
        let mut random = StdRng::seed_from_u64(seed);
        let same = random.random_bool(0.5).then(|| random_op(&mut random));
        let ops: Vec<_> = (0..random.random_range(1..12))
            .map(|_| match same {
                Some(op) if random.random_bool(0.7) => op,
                _ => random_op(&mut random),
            })
            .collect();
        let before = match random.random_range(0..3) {
            0 => None,
            1 => Some(&b"12345678"[..]),
            _ => Some(&b"ab"[..]),
        };
        let one_by_one = ops.iter().try_fold(before.map(<[u8]>::to_vec), |value, op| {
            value_after(b"k", value.as_deref(), &op.encode(), &self::functions()).map(Some)
        });
        let (functions, mut joined) = (functions(), Joined::default());
        let mut rest = &ops[..];
        while !rest.is_empty() {
            let (group, after) = rest.split_at(random.random_range(1..=rest.len()));
            let mut operand = Joined::default();
            group.iter().for_each(|op| operand.add(&op.encode(), b"k", &functions));
            joined.add(&operand.operand, b"k", &functions);
            rest = after;
        }
        assert!(Steps(&joined.operand).all(|step| step.is_some()), "seed {seed}");
        let at_once = value_after(b"k", before, &joined.operand, &functions).map(Some);
        match (one_by_one, at_once) {
            (Ok(a), Ok(b)) => assert_eq!(a, b, "seed {seed}: {ops:?} on {before:?}"),
            (Err(_), Err(_)) => {}
            (a, b) => panic!("seed {seed}: {a:?} and {b:?} of {ops:?} on {before:?}"),
        }
    }
}

#[test]
fn a_value_that_expires_goes_and_the_merges_stay() {
    let collected = || {
        let mut collected = Collected::default();
        collected.add(MergeOp::Append(b"+").encode().to_vec());
        collected.end_with(b"abc", Some(Until::from_millis(10)));
        collected
    };
    let none = MergeFunctions::default();
    assert_eq!(collected().value(b"k", &none, 9), Ok(b"abc+".to_vec()));
    assert_eq!(collected().value(b"k", &none, 10), Ok(b"+".to_vec()));
    assert_eq!(collected().finish(b"k", &none, 10), Merged::Value(b"+".to_vec()));
    let Merged::Operand(operand) = collected().finish(b"k", &none, 9) else { panic!("it will expire") };
    let mut again = Collected::default();
    again.add(MergeOp::Append(b"-").encode().to_vec());
    assert!(!again.add(&operand), "it is complete");
    assert_eq!(again.value(b"k", &none, 9), Ok(b"abc+-".to_vec()));
    let mut again = Collected::default();
    again.add(&operand);
    assert_eq!(again.finish(b"k", &none, 11), Merged::Value(b"+".to_vec()));
    assert_eq!(describe(&operand, |_| ()), Some((Some(&b"abc"[..]), Some(Until::from_millis(10)))));
}
