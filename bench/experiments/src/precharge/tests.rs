use super::*;
use crate::experiment::tests::tiny;

#[test]
fn a_tiny_experiment_misses_no_page_after_a_precharge() {
    let [once, again] = [0, 1].map(|_| Precharge::of(Scale::Tiny));
    let (_, ground, outcome) = tiny(once, again);
    let shape: Shape = ground.told(DATA).expect("it was built");
    assert_eq!(shape.levels[0], (0, 2), "two files lie over the others");
    let of = |way| {
        let side = Side { index: PageIndexKind::Btree, way };
        let cell = Cell { repeat: 0, delay: Duration::from_micros(100), rows: 1000, side };
        ground.known::<Taken>(cell).expect("it was measured")
    };
    let [alone, ahead, charged] = WAYS.map(of);
    assert!(charged.rounds < ahead.rounds && ahead.rounds < alone.rounds, "{charged:?} {ahead:?} {alone:?}");
    assert_eq!((charged.faults_after, charged.rounds), (0, charged.precharge_rounds));
    assert_eq!(outcome.goals.len(), 2 * 2);
    assert!(outcome.goals.iter().all(|goal| goal.is_reached), "{:?}", outcome.goals);
}

#[test]
fn parts_of_a_row_that_is_written_again_differ() {
    let thrice = [0, 1, 2].map(|times| parts_after(280, times)[0].clone());
    assert!(thrice[0] != thrice[1] && thrice[1] != thrice[2] && thrice[2] == parts(280)[0]);
    assert_eq!(parts_after(41, 0), parts(41));
    assert_eq!(parts(64)[1].len(), LARGE_BYTES);
    assert_eq!(parts(65).map(|part| part.len()), [HOT_BYTES, COLD_BYTES]);
}
