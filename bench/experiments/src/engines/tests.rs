#![allow(clippy::disallowed_methods, reason = "databases of real files, never simulated")]

use super::*;
use kit::Scratch;

#[test]
fn a_tiny_experiment_measures_each_way_of_the_engines_that_are_there() {
    let scratch = Scratch::new("engines");
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(scratch.join("out")), check: false, price: None };
    let (size, schemes) = (Size::of(Scale::Tiny), [store_larch::TPCC, tpcc::noop::SCHEME]);
    let mut ground = Ground::with_stop("engines", &args, 1 << 20, Stop::never()).expect("there is room");
    assert!(measure_all(&mut ground, &size, &schemes).expect("the disk works"));
    let all = all_sides(&schemes);
    assert_eq!(all.len(), 4, "Larch alone is there: {all:?}");
    for side in &all {
        let runs = runs(&ground, &size, *side);
        assert!(runs.iter().all(|ran| ran.new_orders > 0) && runs.len() == 1, "{}", side.name());
    }
    assert!(best(&ground, &size, Engine::Larch, Durability::Synced).is_some_and(|tpmc| tpmc > 0.0));
    let outcome = outcome(&ground, &size, &schemes);
    assert_eq!(outcome.finish("engines", &ground, &args).expect("there is room"), Ending::Good);
}
