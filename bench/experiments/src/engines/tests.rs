use super::*;
use crate::experiment::tests::tiny;

#[test]
fn a_tiny_experiment_measures_each_way_of_the_engines_that_are_there() {
    let schemes = [stores::larch::TPCC, tpcc::noop::SCHEME];
    let [once, again] = [0, 1].map(|_| Engines::of(Scale::Tiny, &schemes));
    let (_, ground, _) = tiny(once, again);
    let engines = Engines::of(Scale::Tiny, &schemes);
    let all = engines.sides();
    assert_eq!(all.len(), 4, "Larch alone is there: {all:?}");
    for side in &all {
        let runs = engines.runs(&ground, *side);
        assert!(runs.iter().all(|ran| ran.new_orders > 0) && runs.len() == 1, "{}", side.name());
    }
    assert!(engines.best(&ground, Engine::Larch, Durability::Synced).is_some_and(|tpmc| tpmc > 0.0));
}
