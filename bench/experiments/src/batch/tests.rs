use super::*;
use kit::Scratch;

#[test]
fn a_tiny_experiment_measures_every_cell_and_goes_on_where_it_was() {
    let scratch = Scratch::new("batch");
    let out = scratch.join("out");
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(out.clone()), check: false, price: None };
    let (size, cold) = (Size::of(Scale::Tiny), cold::Size::of(Scale::Tiny));
    let open = || Ground::with_stop("batch", &args, 1 << 20, Stop::never()).expect("there is room");
    let mut ground = open();
    assert!(measure_all(&mut ground, &size).expect("both databases work"));
    assert_eq!(ground.cells().len(), size.batches.len() * SIDES.len());
    let rates: Vec<Rate> = ground.cells().keys().filter_map(|name| ground.known(name)).collect();
    let is_whole =
        |rate: &Rate| rate.rows_per_second > 0.0 && rate.million.cpu_seconds.is_some_and(|seconds| seconds > 0.0);
    assert!(rates.len() == ground.cells().len() && rates.iter().all(is_whole), "{:?}", ground.cells());

    assert!(cold::measure_all(&mut ground, &cold).expect("Larch works"));
    // One more cell records that the cold database was built.
    assert_eq!(ground.cells().len(), size.batches.len() * SIDES.len() + cold.cells() + 1);

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
            && html.contains("A million operations of each cell")
            && html.contains("one row after the other")
            && html.contains("The disk alone")
            && html.contains("postgresql, in the server")
    );
    assert!(out.join("result.json").exists() && !out.join("data").exists(), "the databases are removed");
}
