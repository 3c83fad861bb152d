use super::*;
use kit::Scratch;

#[test]
fn a_tiny_experiment_misses_no_page_after_a_precharge() {
    let scratch = Scratch::new("precharge");
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(scratch.join("out")), check: true, price: None };
    let size = Size::of(Scale::Tiny);
    let mut ground = Ground::with_stop("precharge", &args, 1 << 20, Stop::never()).expect("there is room");
    assert!(measure_all(&mut ground, &size).expect("the disk works"));
    let shape: Shape = ground.known("data of rows").expect("it was built");
    assert_eq!(shape.levels[0], (0, 2), "two files lie over the others");
    let of = |way, rows| -> Measured {
        let side = Side { index: PageIndexKind::Btree, way };
        ground.known(&cell_name(0, size.delays[1], rows, side)).expect("it was measured")
    };
    let [alone, ahead, charged] = WAYS.map(|way| of(way, 1000));
    assert!(charged.rounds < ahead.rounds && ahead.rounds < alone.rounds, "{charged:?} {ahead:?} {alone:?}");
    assert_eq!((charged.faults_after, charged.rounds), (0, charged.precharge_rounds));
    let outcome = outcome(&ground, &size);
    assert_eq!(outcome.goals.len(), 2 * size.delays.len());
    assert_eq!(outcome.finish("precharge", &ground, &args).expect("there is room"), Ending::Good);
}

#[test]
fn parts_of_a_row_that_is_written_again_differ() {
    let thrice = [0, 1, 2].map(|times| parts_after(280, times)[0].clone());
    assert!(thrice[0] != thrice[1] && thrice[1] != thrice[2] && thrice[2] == parts(280)[0]);
    assert_eq!(parts_after(41, 0), parts(41));
    assert_eq!(parts(64)[1].len(), LARGE_BYTES);
    assert_eq!(parts(65).map(|part| part.len()), [HOT_BYTES, COLD_BYTES]);
}
