use super::*;
use kit::Scratch;

#[test]
fn a_tiny_experiment_is_right_about_every_bucket() {
    let scratch = Scratch::new("stats");
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(scratch.join("out")), check: true, price: None };
    let size = Size::of(Scale::Tiny);
    let mut ground = Ground::with_stop("stats", &args, 1 << 20, Stop::never()).expect("there is room");
    assert!(measure_all(&mut ground, &size).expect("the disk works"));
    let arranged = arrangements(&size).count();
    assert_eq!(ground.cells().len(), arranged * (1 + size.buckets.len() * SIDES.len()));
    let outcome = outcome(&ground, &size);
    assert_eq!(outcome.goals.len(), 2 * arranged);
    assert_eq!(outcome.finish("stats", &ground, &args).expect("there is room"), Ending::Good);
}

#[test]
fn a_rank_counts_the_keys_before_a_string() {
    assert_eq!(rank(&key(0), 1000), 0);
    assert_eq!(rank(&key(170), 1000), 170);
    assert_eq!(rank(&key(170)[..GROUP_BYTES], 1000), 128);
    assert_eq!(rank(b"z", 1000), 1000);
}

#[test]
fn files_have_each_group_once() {
    let size = Size::of(Scale::Tiny);
    for lying in LYINGS {
        let places = (0..10).flat_map(|file| (0..size.file_groups).map(move |at| (file, at)));
        let mut groups: Vec<u64> = places.map(|(file, at)| group_of(&size, (10, lying), file, at)).collect();
        groups.sort_unstable();
        assert!(groups.into_iter().eq(0..10 * size.file_groups), "{lying:?}");
    }
}
