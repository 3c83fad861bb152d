use super::{DRAWS, Growth, Inserts, View, WINDOW};
use crate::generator::Zipfian;

#[test]
fn the_limit_waits_for_the_first_that_is_missing() {
    let inserts = Inserts::after(10);
    assert_eq!(inserts.limit(), 9);
    let taken: Vec<i64> = (0..4).map(|_| inserts.take()).collect();
    assert_eq!(taken, [10, 11, 12, 13]);
    inserts.acknowledge(11);
    inserts.acknowledge(13);
    assert_eq!(inserts.limit(), 9);
    inserts.acknowledge(10);
    assert_eq!(inserts.limit(), 11);
    inserts.acknowledge(12);
    assert_eq!(inserts.limit(), 13);
}

#[test]
fn an_insert_may_be_late_by_more_than_the_window() {
    let inserts = Inserts::after(0);
    let late = inserts.take();
    for _ in 0..2 * WINDOW + 10 {
        inserts.acknowledge(inserts.take());
    }
    assert_eq!(inserts.limit(), -1);
    inserts.acknowledge(late);
    assert_eq!(inserts.limit(), 2 * WINDOW + 10);
    inserts.acknowledge(inserts.take());
    assert_eq!(inserts.limit(), 2 * WINDOW + 11);
}

#[test]
fn shared_constants_are_those_of_one_who_counts_alone() {
    let mut alone = Zipfian::new(0, 99);
    let growth = Growth::from(alone.clone());
    let (mut one, mut other) = (alone.clone(), alone.clone());
    for items in [100, 101, 105, 300] {
        alone.set_constants(alone.grown(alone.constants(), items));
        growth.follow(&mut one, items);
        growth.follow(&mut other, items);
        assert_eq!(one.constants(), alone.constants());
        assert_eq!(other.constants(), alone.constants());
    }
    growth.follow(&mut other, 50);
    assert_eq!(other.constants(), alone.constants(), "fewer items change nothing");
}

#[test]
fn a_record_is_drawn_from_a_range_that_is_hardly_there() {
    let mut draws = 0;
    let number = View::Fixed(9).redraw(|| {
        draws += 1;
        1_000_000_007
    });
    assert_eq!((number, draws), (7, DRAWS));
    let mut numbers = [12, 10, 3].into_iter();
    assert_eq!(View::Fixed(9).redraw(|| numbers.next().expect("3 is there")), 3);
}
