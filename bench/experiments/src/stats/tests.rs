use super::*;
use crate::experiment::tests::tiny;

#[test]
fn a_tiny_experiment_is_right_about_every_bucket() {
    let [once, again] = [0, 1].map(|_| Stats::of(Scale::Tiny));
    let arranged = once.arrangements().count();
    let (_, ground, outcome) = tiny(once, again);
    let stats = Stats::of(Scale::Tiny);
    assert_eq!(ground.cells().len(), arranged * (1 + stats.buckets.len() * SIDES.len()));
    assert_eq!(outcome.goals.len(), 2 * arranged);
    assert!(outcome.goals.iter().all(|goal| goal.is_reached), "{:?}", outcome.goals);
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
    let stats = Stats::of(Scale::Tiny);
    for lying in LYINGS {
        let files = Files { count: 10, lying };
        let places = (0..10).flat_map(|file| (0..stats.file_groups).map(move |at| (file, at)));
        let mut groups: Vec<u64> = places.map(|(file, at)| stats.group_of(files, file, at)).collect();
        groups.sort_unstable();
        assert!(groups.into_iter().eq(0..10 * stats.file_groups), "{lying:?}");
    }
}
