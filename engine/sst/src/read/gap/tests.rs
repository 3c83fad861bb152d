use super::*;

fn gap(start: &str, end: Option<&str>) -> KeyRange {
    KeyRange { start: start.into(), end: end.map(Into::into) }
}

/// Reports the same gap so often that it is noted.
fn told(known: &KnownGap, low: &str, high: Option<&str>) {
    (0..MISSES).for_each(|_| known.missed(|| gap(low, high)));
}

#[test]
fn it_holds_what_lies_inside() {
    use Bound::{Excluded, Included, Unbounded};
    let known = KnownGap::default();
    assert!(!known.holds(Included(b"c"), Included(b"c")));
    told(&known, "c", Some("f"));
    for (low, high, holds) in [
        (Included(&b"c"[..]), Excluded(&b"f"[..]), true),
        (Excluded(b"c"), Included(b"e"), true),
        (Included(b"c"), Included(b"f"), false),
        (Included(b"b"), Included(b"e"), false),
        (Unbounded, Included(b"e"), false),
        (Included(b"c"), Unbounded, false),
    ] {
        assert_eq!(known.holds(low, high), holds, "{low:?} to {high:?}");
    }
    told(&known, "", None);
    assert!(known.holds(Unbounded, Unbounded));
}

#[test]
fn gaps_that_meet_are_one_and_another_takes_its_place() {
    let known = KnownGap::default();
    told(&known, "c", Some("f"));
    told(&known, "f", Some("g"));
    told(&known, "a", Some("d"));
    assert_eq!(*known.gap.read(), Some(gap("a", Some("g"))));
    told(&known, "h", None);
    assert_eq!(*known.gap.read(), Some(gap("h", None)));
    told(&known, "g", Some("h"));
    assert_eq!(*known.gap.read(), Some(gap("g", None)));
}

#[test]
fn few_misses_change_it_and_long_keys_are_not_kept() {
    let known = KnownGap::default();
    known.missed(|| gap("c", Some("f")));
    (1..MISSES).for_each(|_| known.missed(|| unreachable!("not this often")));
    known.missed(|| KeyRange { start: vec![b'x'; MAX_KEY_BYTES + 1], end: None });
    assert_eq!(*known.gap.read(), Some(gap("c", Some("f"))));
    assert!(known.heap_bytes() >= 2);
}
