use super::*;
use kit::Scratch;

#[test]
fn a_tiny_experiment_measures_every_cell_and_goes_on_where_it_was() {
    let scratch = Scratch::new("batch");
    let out = scratch.join("out");
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(out.clone()), check: false };
    let (size, cold) = (Size::of(Scale::Tiny), cold::Size::of(Scale::Tiny));
    let open = || Ground::with_stop("batch", &args, 1 << 20, Stop::never()).expect("there is room");
    let mut ground = open();
    assert!(measure_all(&mut ground, &size).expect("both databases work"));
    assert_eq!(ground.cells().len(), size.batches.len() * SIDES.len());
    assert!(ground.cells().values().all(|rate| rate.as_f64().is_some_and(|rate| rate > 0.0)), "{:?}", ground.cells());

    assert!(cold::measure_all(&mut ground, &cold).expect("Larch works"));
    let all = size.batches.len() * SIDES.len() + cold.batches.len() * cold::SIDES.len();
    assert_eq!(ground.cells().len(), all);

    let mut again = open();
    assert!(measure_all(&mut again, &size).expect("nothing is left to measure"));
    assert!(cold::measure_all(&mut again, &cold).expect("nothing is left to measure"));
    assert_eq!(again.cells(), ground.cells());
    let outcome = outcome(&again, &size, &cold);
    assert!(outcome.goals.iter().all(|goal| goal.measured.is_some()), "{:?}", outcome.goals);
    assert_eq!(outcome.finish("batch", &again, &args).expect("there is room"), Ending::Good);
    let html = std::fs::read_to_string(out.join("index.html")).expect("it was written");
    assert!(
        html.contains("times multi_get")
            && html.contains("one row after the other")
            && html.contains("postgresql, in the server")
    );
    assert!(out.join("result.json").exists() && !out.join("data").exists(), "the databases are removed");
}
