//! Tests the model itself with cases written by hand. Other tests compare everything with the model, so they cannot
//! find its mistakes.

use super::*;

fn put(key: &str, value: &str) -> Op {
    Op::Put { table: "t".to_owned(), key: key.into(), value: value.into() }
}

fn erase_range(low: &str, high: &str) -> Op {
    let range = (Bound::Included(low.into()), Bound::Excluded(high.into()));
    Op::RangeErase { table: "t".to_owned(), range }
}

fn show(model: &Model, at: u64) -> String {
    let rows =
        model.rows("t", Version(at)).map(|(key, value)| format!("{}={}", key.escape_ascii(), value.escape_ascii()));
    rows.collect::<Vec<_>>().join(" ")
}

fn three_commits() -> Model {
    let mut model = Model::new();
    model.create_table("t");
    model.commit(&[put("a", "1"), put("b", "1"), put("c", "1")]);
    model.commit(&[put("a", "2"), erase_range("a", "c"), put("b", "2")]);
    model.commit(&[Op::Erase { table: "t".to_owned(), key: b"c".to_vec() }]);
    model
}

#[test]
fn every_version_stays_readable() {
    let model = three_commits();
    let states: Vec<String> = (0..=3).map(|at| show(&model, at)).collect();
    assert_eq!(states, ["", "a=1 b=1 c=1", "b=2 c=1", "b=2"]);
}

#[test]
fn losing_commits_gives_the_state_before_them() {
    let mut model = three_commits();
    model.lose_after(Version(1));
    assert_eq!((model.newest(), show(&model, 9).as_str()), (Version(1), "a=1 b=1 c=1"));
}

#[test]
fn ranges_without_a_string_in_them_are_empty() {
    let bound = |text: &str| match text.split_at(1) {
        ("[", key) => Bound::Included(key.into()),
        ("(", key) => Bound::Excluded(key.into()),
        _ => Bound::Unbounded,
    };
    let is_empty = |low, high| is_empty_range(&(bound(low), bound(high)));
    assert!(!is_empty("*", "*") && !is_empty("[a", "[a") && !is_empty("(a", "[a\0") && !is_empty("(a", "(a\0\0"));
    assert!(is_empty("[a", "(a") && is_empty("(a", "[a") && is_empty("[b", "[a"));
    assert!(is_empty("*", "(") && is_empty("(a", "(a\0"));
}
