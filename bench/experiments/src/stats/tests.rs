use super::*;
use kit::Scratch;

#[test]
fn a_tiny_experiment_is_right_about_every_bucket() {
    let scratch = Scratch::new("stats");
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(scratch.join("out")), check: false };
    let size = Size::of(Scale::Tiny);
    let mut ground = Ground::with_stop("stats", &args, 1 << 20, Stop::never()).expect("there is room");
    assert!(measure_all(&mut ground, &size).expect("the disk works"));
    assert_eq!(ground.cells().len(), size.files.len() * size.buckets.len() * SIDES.len());
    let outcome = outcome(&ground, &size);
    let errors: Vec<_> = outcome.goals.iter().map(|goal| goal.measured).collect();
    assert!(errors.iter().all(|error| error.is_some_and(|error| error <= 0.5)), "{errors:?}");
    assert_eq!(outcome.finish("stats", &ground, &args).expect("there is room"), Ending::Good);
}

#[test]
fn a_rank_counts_the_keys_before_a_string() {
    assert_eq!(rank(&key(0), 100), 0);
    assert_eq!(rank(&key(17), 100), 17);
    assert_eq!(rank(b"0000000000000018", 100), 18);
    assert_eq!(rank(b"z", 100), 100);
}
