use super::*;
use harness::report::{Environment, Report};
use kit::Scratch;

#[test]
fn programs_take_turns_at_being_first() {
    assert_eq!([1, 2, 3].map(|round| order(round, 2)), [vec![0, 1], vec![1, 0], vec![0, 1]]);
    assert_eq!(order(2, 1), [0]);
}

#[test]
fn a_baseline_takes_the_place_of_the_one_before() {
    let scratch = Scratch::new("regress");
    let place = scratch.join("kind");
    let rounds = |count: usize| vec![("round".to_owned(), Report::new(Environment::default())); count];
    let names = || {
        let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        stored(&place).into_iter().filter_map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(), Vec::<String>::new());
    store(&place, &stored(&place), &rounds(3)).expect("the directory is ours");
    assert_eq!(names(), ["round-01.json", "round-02.json", "round-03.json"]);
    store(&place, &stored(&place), &rounds(2)).expect("the directory is ours");
    assert_eq!(names(), ["round-01.json", "round-02.json"]);
    read(&stored(&place)).expect("they are results");
}

#[test]
fn without_a_baseline_of_this_machine_those_of_others_are_listed_with_their_commits() {
    let scratch = Scratch::new("regress");
    let kind = MachineKind::here(Path::new("."));
    let alone = without_baseline(&kind, &scratch.join("none"));
    assert!(alone.starts_with("cannot tell: there is no baseline") && !alone.contains("another machine"), "{alone}");
    let environment = Environment { commit: Some("0123abcd".to_owned()), ..Environment::default() };
    let rounds = vec![("round".to_owned(), Report::new(environment)); 2];
    store(&scratch.join("kept/an-older-machine"), &[], &rounds).expect("the directory is ours");
    let text = without_baseline(&kind, &scratch.join("kept"));
    assert!(text.contains(&kind.to_string()) && text.contains("--base-program"), "{text}");
    let other = text.lines().last().expect("it has lines");
    assert!(other.ends_with("an-older-machine: commit 0123abcd, 2 rounds"), "{other}");
}
